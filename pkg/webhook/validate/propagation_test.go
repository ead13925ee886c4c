package validate

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

const policyHead = `
metadata: {namespace: shop, name: p, labels: {propagationpolicy.karmada.io/permanent-id: id}}
`

// selecting is a spec that selects something, without its closing brace.
const selecting = `spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}], `

func TestPropagationPolicies(t *testing.T) {
	check(t, propagationPolicies(), policyHead, map[string]ruleCase{
		"Minimal": {
			reason: "A kind is enough.",
			object: `spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop}]}`,
		},
		"Everything": {
			reason: "What the contract has may be used all at once, where it does not exclude each other.",
			object: selecting + `
propagateDeps: true, preemption: Always, schedulerName: mine,
placement: {
  clusterAffinity: {clusterNames: [m1], exclude: [m2], labelSelector: {matchLabels: {a: b}}, fieldSelector: {matchExpressions: [
    {key: provider, operator: In, values: [p]}, {key: region, operator: NotIn, values: [r]}, {key: zone, operator: In, values: [z]}]}},
  clusterTolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {key: k, value: v}],
  spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}, {spreadByField: region, minGroups: 2, maxGroups: 2}],
  replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m1]}, weight: 2}]}},
  workloadAffinity: {affinity: {groupByLabelKey: app.kubernetes.io/part-of}, antiAffinity: {groupByLabelKey: app}}},
failover: {
  application: {decisionConditions: {tolerationSeconds: 0}, purgeMode: Gracefully, gracePeriodSeconds: 1, statePreservation: {rules: [{aliasLabelName: a/b, jsonPath: "{ .x }"}]}},
  cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: c, jsonPath: "{.y}"}]}}},
suspension: {dispatchingOnClusters: {clusterNames: [m1]}}}`,
		},
		"NoNamespace": {
			reason: "The defaults fill it in: without them it would mean every namespace.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}`,
			want:   []string{`spec.resourceSelectors[0].namespace: Invalid value: ""…"shop"`},
		},
		"OtherNamespace": {
			reason: "A namespaced policy selects in its own namespace alone.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}, {apiVersion: v1, kind: Secret, namespace: bank}]}`,
			want:   []string{`spec.resourceSelectors[1].namespace: Invalid value: "bank"…"shop"`},
		},
		"UnreadableSelector": {
			reason: "It selects nothing, and the policy would be thought to work.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop, labelSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}}]}`,
			want:   []string{`spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: Invalid value: "in"`},
		},
		"PreemptionWithoutName": {
			reason: "What is taken from others is said one by one.",
			object: `spec: {preemption: Always, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: a}, {apiVersion: v1, kind: ConfigMap, namespace: shop}]}`,
			want:   []string{`spec.resourceSelectors[1].name: Required value`},
		},
		"NoPreemptionWithoutName": {
			reason: "Who takes nothing need name nothing.",
			object: `spec: {preemption: Never, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}]}`,
		},
		"SuspendedTwice": {
			reason: "All clusters, and some of them, is a contradiction.",
			object: selecting + `suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [m1]}}}`,
			want:   []string{`spec.suspension: Invalid value`},
		},
		"SuspendedOnNone": {
			reason: "An empty list of clusters says nothing.",
			object: selecting + `suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: []}}}`,
		},
		"NotSuspended": {
			reason: "What is explicitly not held back may be held back in some clusters.",
			object: selecting + `suspension: {dispatching: false, dispatchingOnClusters: {clusterNames: [m1]}}}`,
		},
		"AllAtOnce": {
			reason: "Who has made three mistakes learns of three.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: bank}], preemption: Always, placement: {spreadConstraints: [{spreadByField: region}]}}`,
			want: []string{
				`spec.resourceSelectors[0].namespace: `, `spec.resourceSelectors[0].name: `,
				`spec.placement.spreadConstraints: …the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled`,
			},
		},
	})
	check(t, propagationPolicies(), "", map[string]ruleCase{
		"NoIdentity": {
			reason: "Without one its claims are nobody's.",
			object: `{metadata: {namespace: shop, name: p}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}]}}`,
			want:   []string{`metadata.labels[propagationpolicy.karmada.io/permanent-id]: Required value`},
		},
		"OtherScopesIdentity": {
			reason: "Each scope has a label of its own.",
			object: `{metadata: {namespace: shop, name: p, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}]}}`,
			want:   []string{`metadata.labels[propagationpolicy.karmada.io/permanent-id]: Required value`},
		},
	})
}

func TestClusterPropagationPolicies(t *testing.T) {
	const head = `
metadata: {name: p, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}
`
	check(t, clusterPropagationPolicies(), head, map[string]ruleCase{
		"AnyNamespace": {
			reason: "It selects in every namespace, or in one.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret, namespace: bank}]}`,
		},
		"SameRules": {
			reason: "What the two scopes share has the same rules.",
			object: `spec: {preemption: Always, resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}`,
			want:   []string{`spec.resourceSelectors[0].name: Required value`},
		},
	})
	check(t, clusterPropagationPolicies(), "", map[string]ruleCase{
		"NoIdentity": {
			reason: "Without one its claims are nobody's.",
			object: `{metadata: {name: p}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}}`,
			want:   []string{`metadata.labels[clusterpropagationpolicy.karmada.io/permanent-id]: Required value`},
		},
	})
}

func TestPlacement(t *testing.T) {
	within := func(affinity string) string {
		return selecting + `placement: {clusterAffinities: [{affinityName: a, ` + affinity + `}]}}`
	}
	overflowing := func(replicas, term string) string {
		return selecting + `placement: {replicaScheduling: ` + replicas + `, clusterAffinities: [` + term + `]}}`
	}
	const (
		aggregated = `{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}`
		dynamic    = `{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}`
		static     = `{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m1]}, weight: 1}]}}`
		duplicated = `{replicaSchedulingType: Duplicated}`
		overflow   = `{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: b, clusterNames: [m2]}, {affinityName: c}]}`
	)
	check(t, propagationPolicies(), policyHead, map[string]ruleCase{
		"BothAffinities": {
			reason: "There is one way or the other to say where.",
			object: selecting + `placement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}}`,
			want:   []string{`spec.placement.clusterAffinities: Invalid value: ["a"]: clusterAffinities cannot co-exist with clusterAffinity`},
		},
		"Groups":     {reason: "Groups have names.", object: selecting + `placement: {clusterAffinities: [{affinityName: a}, {affinityName: b.c/d_e}]}}`},
		"BadName":    {reason: "The name becomes part of what is reported, as a label key would.", object: selecting + `placement: {clusterAffinities: [{affinityName: "a b"}]}}`, want: []string{`spec.placement.clusterAffinities[0].affinityName: Invalid value: "a b"`}},
		"NoName":     {reason: "A group without name cannot be reported.", object: selecting + `placement: {clusterAffinities: [{affinityName: ""}]}}`, want: []string{`spec.placement.clusterAffinities[0].affinityName: Required value`}},
		"SameName":   {reason: "Which of the two is in use could not be told.", object: selecting + `placement: {clusterAffinities: [{affinityName: a}, {affinityName: a}]}}`, want: []string{`spec.placement.clusterAffinities[1].affinityName: Invalid value: "a": each affinity term in a policy must have a unique name`}},
		"BadLabel":   {reason: "A selector that cannot be read selects no cluster.", object: within(`labelSelector: {matchLabels: {"a b": c}}`), want: []string{`spec.placement.clusterAffinities[0].labelSelector.matchLabels: Invalid value: "a b"`}},
		"Key":        {reason: "A cluster has three such fields.", object: within(`fieldSelector: {matchExpressions: [{key: name, operator: In, values: [a]}]}`), want: []string{`spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0].key: Invalid value: "name": unsupported key "name", must be provider, region, or zone`}},
		"Operator":   {reason: "Two operators are known.", object: within(`fieldSelector: {matchExpressions: [{key: zone, operator: Exists}]}`), want: []string{`spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0].operator: Invalid value: "Exists": unsupported operator "Exists", must be In or NotIn`}},
		"KeyAndOp":   {reason: "Both mistakes are told.", object: within(`fieldSelector: {matchExpressions: [{key: name, operator: Gt, values: ["1"]}]}`), want: []string{`spec…unsupported key "name"`, `spec…unsupported operator "Gt"`}},
		"NoValues":   {reason: "In of nothing matches nothing.", object: within(`fieldSelector: {matchExpressions: [{key: zone, operator: In}]}`), want: []string{`spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0].values: Required value`}},
		"SingleTerm": {reason: "The deprecated form has the same rules.", object: selecting + `placement: {clusterAffinity: {fieldSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}}`, want: []string{`spec.placement.clusterAffinity.fieldSelector…unsupported key "a"`}},
		"Weights":    {reason: "So have clusters that are weighed.", object: selecting + `placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{weight: 1, targetCluster: {fieldSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}]}}}}`, want: []string{`spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.fieldSelector.matchExpressions[0].key: `}},

		"OverflowAggregated": {reason: "Aggregation knows what does not fit. A last group may be all other clusters.", object: overflowing(aggregated, overflow)},
		"OverflowDynamic":    {reason: "So do dynamic weights.", object: overflowing(dynamic, overflow)},
		"OverflowStatic":     {reason: "Static weights do not ask whether it fits.", object: overflowing(static, overflow), want: []string{`spec.placement.clusterAffinities[0].overflowAffinities: Forbidden`}},
		"OverflowDuplicated": {reason: "Nothing is divided.", object: overflowing(duplicated, overflow), want: []string{`spec.placement.clusterAffinities[0].overflowAffinities: Forbidden`}},
		"OverflowUndivided":  {reason: "Without a strategy every cluster has all replicas.", object: selecting + `placement: {clusterAffinities: [` + overflow + `]}}`, want: []string{`spec.placement.clusterAffinities[0].overflowAffinities: Forbidden`}},
		"OverflowOfAll":      {reason: "Where every cluster is eligible there is none to overflow to.", object: overflowing(aggregated, `{affinityName: a, overflowAffinities: [{affinityName: b}]}`), want: []string{`spec.placement.clusterAffinities[0]: Required value`}},
		"OverflowSameAsTerm": {reason: "The names tell the groups of a term apart.", object: overflowing(aggregated, `{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: a}]}`), want: []string{`spec.placement.clusterAffinities[0].overflowAffinities[0].affinityName: …each affinity term in a policy must have a unique name`}},
		"OverflowSameTwice":  {reason: "Among each other, too.", object: overflowing(aggregated, `{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: b}, {affinityName: b}]}`), want: []string{`spec.placement.clusterAffinities[0].overflowAffinities[1].affinityName: …unique name`}},
		"OverflowTwoTerms":   {reason: "Two terms may overflow into a group of the same name.", object: overflowing(aggregated, `{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: c}]}, {affinityName: b, clusterNames: [m2], overflowAffinities: [{affinityName: c}]}`)},
		"OverflowSelector":   {reason: "A group that takes the rest has the same rules.", object: overflowing(aggregated, `{affinityName: a, clusterNames: [m1], overflowAffinities: [{affinityName: "b b", fieldSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]}`), want: []string{`spec.placement.clusterAffinities[0].overflowAffinities[0].affinityName: `, `spec.placement.clusterAffinities[0].overflowAffinities[0].fieldSelector…unsupported key`}},

		"Greater":       {reason: "Taints of clusters are not compared by size.", object: selecting + `placement: {clusterTolerations: [{key: a, operator: Gt, value: "1"}, {key: a, operator: Lt, value: "1"}]}}`, want: []string{`spec.placement.clusterTolerations[0].operator: Unsupported value: "Gt"…"Equal", "Exists"`, `spec.placement.clusterTolerations[1].operator: Unsupported value: "Lt"`}},
		"UnknownEffect": {reason: "It tolerates nothing, which shows in the emergency alone.", object: selecting + `placement: {clusterTolerations: [{key: a, operator: Exists, effect: NoExecut}]}}`, want: []string{`spec.placement.clusterTolerations[0].effect: Unsupported value: "NoExecut"`}},

		"SpreadBoth":        {reason: "A group is by field or by label.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster, spreadByLabel: a}]}}`, want: []string{`spec.placement.spreadConstraints[0]: Invalid value`}},
		"SpreadByLabel":     {reason: "By label alone needs no other.", object: selecting + `placement: {spreadConstraints: [{spreadByLabel: a, minGroups: 1}]}}`},
		"SpreadNegative":    {reason: "There are no negative groups.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster, minGroups: -1, maxGroups: -2}]}}`, want: []string{`spec.placement.spreadConstraints[0].minGroups: Invalid value: -1`, `spec.placement.spreadConstraints[0].maxGroups: Invalid value: -2`}},
		"SpreadLess":        {reason: "A range has its lower end first.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}}`, want: []string{`spec.placement.spreadConstraints[0].maxGroups: Invalid value: 2: maxGroups lower than minGroups is not allowed`}},
		"SpreadExact":       {reason: "A range may have one number.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]}}`},
		"SpreadUnbounded":   {reason: "No largest number is none.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 0}]}}`},
		"SpreadTwice":       {reason: "Two ranges for one field contradict each other.", object: selecting + `placement: {spreadConstraints: [{spreadByField: cluster}, {spreadByField: region}, {spreadByField: region}]}}`, want: []string{`spec.placement.spreadConstraints[2].spreadByField: Invalid value: "region": multiple region spread constraints are not allowed`}},
		"SpreadNoCluster":   {reason: "Regions are filled with clusters, and how many must be said.", object: selecting + `placement: {spreadConstraints: [{spreadByField: region, minGroups: 1}]}}`, want: []string{`spec.placement.spreadConstraints: …the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled`}},
		"SpreadWithCluster": {reason: "The order does not matter.", object: selecting + `placement: {spreadConstraints: [{spreadByField: zone}, {spreadByField: cluster}]}}`},

		"SameGroups":    {reason: "Together and apart is a contradiction.", object: selecting + `placement: {workloadAffinity: {affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}}}`, want: []string{`spec.placement.workloadAffinity.antiAffinity.groupByLabelKey: Invalid value: "a"`}},
		"BadGroups":     {reason: "They are keys of labels.", object: selecting + `placement: {workloadAffinity: {affinity: {groupByLabelKey: "a b"}, antiAffinity: {groupByLabelKey: ""}}}}`, want: []string{`spec.placement.workloadAffinity.affinity.groupByLabelKey: Invalid value: "a b"`, `spec.placement.workloadAffinity.antiAffinity.groupByLabelKey: Required value`}},
		"OneOfTheTwo":   {reason: "Either does.", object: selecting + `placement: {workloadAffinity: {antiAffinity: {groupByLabelKey: a}}}}`},
		"NoneOfTheTwo":  {reason: "Neither says nothing.", object: selecting + `placement: {workloadAffinity: {}}}`},
		"EmptyAffinity": {reason: "It means every cluster.", object: selecting + `placement: {clusterAffinity: {}}}`},
	})
}

func TestFailover(t *testing.T) {
	application := func(deps, rest string) string {
		return selecting + `propagateDeps: ` + deps + `, failover: {application: {` + rest + `}}}`
	}
	const graceful = `decisionConditions: {tolerationSeconds: 10}, purgeMode: Gracefully, gracePeriodSeconds: 600`
	check(t, propagationPolicies(), policyHead, map[string]ruleCase{
		"Graceful":        {reason: "As the defaults leave it.", object: application("true", graceful)},
		"NoDependencies":  {reason: "A workload that moves needs its ConfigMaps.", object: application("false", graceful), want: []string{`spec.propagateDeps: Invalid value: false`}},
		"Tolerates":       {reason: "Time does not go backwards.", object: application("true", `decisionConditions: {tolerationSeconds: -1}, purgeMode: Directly`), want: []string{`spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1`}},
		"NoGrace":         {reason: "Gracefully is for so long.", object: application("true", `decisionConditions: {}, purgeMode: Gracefully`), want: []string{`spec.failover.application.gracePeriodSeconds: Required value`}},
		"NoMode":          {reason: "No mode is the default one.", object: application("true", `decisionConditions: {}`), want: []string{`spec.failover.application.gracePeriodSeconds: Required value`}},
		"ZeroGrace":       {reason: "No time at all is another mode.", object: application("true", `decisionConditions: {}, purgeMode: Gracefully, gracePeriodSeconds: 0`), want: []string{`spec.failover.application.gracePeriodSeconds: Invalid value: 0: must be greater than 0`}},
		"GraceOfDirectly": {reason: "It would be ignored.", object: application("true", `decisionConditions: {}, purgeMode: Directly, gracePeriodSeconds: 5`), want: []string{`spec.failover.application.gracePeriodSeconds: Invalid value: 5…Gracefully`}},
		"GraceOfNever":    {reason: "Here, too.", object: application("true", `decisionConditions: {}, purgeMode: Never, gracePeriodSeconds: 5`), want: []string{`spec.failover.application.gracePeriodSeconds: Invalid value: 5`}},
		"Directly":        {reason: "Other modes need no time.", object: application("true", `decisionConditions: {}, purgeMode: Directly`)},
		"BadAlias":        {reason: "The value becomes a label.", object: application("true", graceful+`, statePreservation: {rules: [{aliasLabelName: "a b", jsonPath: "{.a}"}]}`), want: []string{`spec.failover.application.statePreservation.rules[0].aliasLabelName: Invalid value: "a b"`}},
		"BadPath":         {reason: "A path that cannot be read would fail when the cluster has.", object: application("true", graceful+`, statePreservation: {rules: [{aliasLabelName: a, jsonPath: "{.a"}]}`), want: []string{`spec.failover.application.statePreservation.rules[0].jsonPath: Invalid value: "{.a"`}},
		"ClusterAlias":    {reason: "The failover of clusters preserves by the same rules.", object: selecting + `failover: {cluster: {statePreservation: {rules: [{aliasLabelName: "", jsonPath: "{.a}"}]}}}}`, want: []string{`spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: ""`, `spec.failover.cluster.statePreservation.rules[0].aliasLabelName: `}},
		"ClusterAlone":    {reason: "It moves what depends on nothing, too.", object: selecting + `propagateDeps: false, failover: {cluster: {purgeMode: Directly}}}`},
	})
}

func TestPolicyChange(t *testing.T) {
	policy := func(id, scheduler string) *policyv1alpha1.PropagationPolicy {
		p := object[policyv1alpha1.PropagationPolicy](t, policyHead)
		p.Labels = map[string]string{"propagationpolicy.karmada.io/permanent-id": id}
		p.Spec.SchedulerName = scheduler
		return p
	}
	cases := map[string]struct {
		reason   string
		was, now *policyv1alpha1.PropagationPolicy
		want     []string
	}{
		"Same":       {reason: "Nothing changes.", was: policy("id", "s"), now: policy("id", "s")},
		"Created":    {reason: "Nothing was.", now: policy("id", "s")},
		"Scheduler":  {reason: "Two schedulers would disagree about what is placed already.", was: policy("id", "s"), now: policy("id", "t"), want: []string{`spec.schedulerName: Invalid value: "t": the schedulerName should not be updated`}},
		"Default":    {reason: "To leave it out is to say the default one.", was: policy("id", ""), now: policy("id", "default-scheduler")},
		"Other":      {reason: "Claims are by this identity.", was: policy("id", ""), now: policy("other", ""), want: []string{`metadata.labels[propagationpolicy.karmada.io/permanent-id]: Invalid value: "other"…"id"`}},
		"Removed":    {reason: "To lose it is to change it.", was: policy("id", ""), now: policy("", ""), want: []string{`metadata.labels[propagationpolicy.karmada.io/permanent-id]: Invalid value: ""`}},
		"First":      {reason: "A policy from before there was this webhook gets one.", was: policy("", ""), now: policy("id", "")},
		"Everything": {reason: "All at once.", was: policy("id", "s"), now: policy("other", "t"), want: []string{"spec.schedulerName: ", "metadata.labels"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { compare(t, c.reason, propagationPolicies().change(c.was, c.now), c.want) })
	}

	was := object[policyv1alpha1.ClusterPropagationPolicy](t, `{metadata: {labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}}}`)
	now := was.DeepCopy()
	now.Labels = nil
	now.Spec.SchedulerName = "t"
	compare(t, "The other scope has the same rules.", clusterPropagationPolicies().change(was, now), []string{
		`spec.schedulerName: `, `metadata.labels[clusterpropagationpolicy.karmada.io/permanent-id]: `,
	})
	compare(t, "Nothing was.", clusterPropagationPolicies().change(nil, now), nil)
}

// An error is read by a person: it must not have the policy in it.
func TestErrorsAreShort(t *testing.T) {
	p := object[policyv1alpha1.PropagationPolicy](t, policyHead+selecting+`suspension: {dispatching: true, dispatchingOnClusters: {clusterNames: [`+
		strings.Repeat("m1,", 1000)+`]}}, placement: {spreadConstraints: [{spreadByField: region, spreadByLabel: a}]}}`)
	for _, err := range propagationSpec(&p.Spec, "shop") {
		if len(err.Error()) > 300 {
			t.Errorf("%d characters: %.300s", len(err.Error()), err)
		}
	}
}
