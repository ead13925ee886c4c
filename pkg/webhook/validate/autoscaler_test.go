package validate

import "testing"

func TestAutoscalers(t *testing.T) {
	spec := func(rest string) string {
		return `spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 5` + rest + `}`
	}
	metric := func(m string) string { return spec(`, metrics: [{` + m + `}]`) }
	behavior := func(b string) string { return spec(`, behavior: {` + b + `}`) }
	up := func(r string) string {
		return behavior(`scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1}], ` + r + `}`)
	}
	const first = `spec.metrics[0].`
	check(t, autoscalers(), "", map[string]ruleCase{
		"Least": {reason: "The rest has defaults.", object: spec(``)},
		"Everything": {reason: "What a HorizontalPodAutoscaler has.", object: spec(`, minReplicas: 5, metrics: [
  {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}},
  {type: ContainerResource, containerResource: {name: memory, container: c, target: {type: AverageValue, averageValue: 1Gi}}},
  {type: Pods, pods: {metric: {name: rps, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: 10}}},
  {type: Object, object: {describedObject: {kind: Service, name: s}, metric: {name: m}, target: {type: Value, value: 3}}},
  {type: External, external: {metric: {name: q}, target: {type: AverageValue, averageValue: 100m}}}],
behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, tolerance: 100m, policies: [{type: Pods, value: 4, periodSeconds: 1800}]},
  scaleDown: {stabilizationWindowSeconds: 3600, selectPolicy: Disabled, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}`)},
		"Target":    {reason: "Something is scaled.", object: `spec: {scaleTargetRef: {kind: "", name: a/b}, maxReplicas: 1}`, want: []string{`spec.scaleTargetRef.kind: Required value`, `spec.scaleTargetRef.name: Invalid value: "a/b"`}},
		"MinZero":   {reason: "From nothing no metric leads back.", object: spec(`, minReplicas: 0`), want: []string{`spec.minReplicas: Invalid value: 0: must be greater than or equal to 1`}},
		"MaxZero":   {reason: "Nothing is no largest number.", object: `spec: {scaleTargetRef: {kind: K, name: n}, maxReplicas: 0}`, want: []string{`spec.maxReplicas: Invalid value: 0: must be greater than 0`}},
		"MaxLess":   {reason: "A range has its lower end first.", object: spec(`, minReplicas: 6`), want: []string{"spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"}},
		"NoType":    {reason: "What is measured must be said.", object: metric(`type: ""`), want: []string{first + `type: Required value`}},
		"OtherType": {reason: "Five things can be.", object: metric(`type: Foo`), want: []string{first + `type: Unsupported value: "Foo"`}},
		"NoSource":  {reason: "The type says where to look.", object: metric(`type: Pods`), want: []string{first + `pods: Required value: must populate information for the given metric source`}},
		"OtherSource": {
			reason: "And nowhere else.",
			object: metric(`type: Pods, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1}}, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 1}}`),
			want:   []string{first + `resource: Forbidden`},
		},
		"NoResource":   {reason: "Which resource, and how much of it.", object: metric(`type: Resource, resource: {name: "", target: {type: Utilization}}`), want: []string{first + `resource.name: Required value`, first + `resource.target.averageUtilization: Required value`}},
		"TwoTargets":   {reason: "One target.", object: metric(`type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 1, averageValue: 1}}`), want: []string{first + `resource.target.averageValue: Forbidden`}},
		"Nothing":      {reason: "A target of nothing is never met.", object: metric(`type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}`), want: []string{first + `resource.target.averageUtilization: Invalid value: 0`}},
		"NoContainer":  {reason: "Which container.", object: metric(`type: ContainerResource, containerResource: {name: "", container: "", target: {type: AverageValue, averageValue: 1}}`), want: []string{first + `containerResource.name: Required value`, first + `containerResource.container: Required value`}},
		"PodsValue":    {reason: "Pods are averaged.", object: metric(`type: Pods, pods: {metric: {name: m}, target: {type: Value, value: 1}}`), want: []string{first + `pods.target.averageValue: Required value`}},
		"NoMetric":     {reason: "Metrics have names, and selectors that can be read.", object: metric(`type: Pods, pods: {metric: {name: "", selector: {matchLabels: {"a b": c}}}, target: {type: AverageValue, averageValue: 1}}`), want: []string{first + `pods.metric.name: Required value`, first + `pods.metric.selector.matchLabels: Invalid value: "a b"`}},
		"Object":       {reason: "Which object.", object: metric(`type: Object, object: {describedObject: {kind: "", name: ""}, metric: {name: m}, target: {type: Value, value: 1}}`), want: []string{first + `object.describedObject.kind: Required value`, first + `object.describedObject.name: Required value`}},
		"ObjectTarget": {reason: "How much of it.", object: metric(`type: Object, object: {describedObject: {kind: K, name: n}, metric: {name: m}, target: {type: Value, value: 1, averageValue: 1}}`), want: []string{first + `object.target.averageValue: Forbidden`}},
		"External":     {reason: "How much of what is elsewhere.", object: metric(`type: External, external: {metric: {name: m}, target: {type: Value}}`), want: []string{first + `external.target.value: Required value`}},
		"Negative":     {reason: "Targets are positive.", object: metric(`type: External, external: {metric: {name: m}, target: {type: Value, value: -1}}`), want: []string{first + `external.target.value: Invalid value: "-1": must be positive`}},
		"Zero":         {reason: "Nothing is not.", object: metric(`type: Pods, pods: {metric: {name: m}, target: {type: AverageValue, averageValue: 0}}`), want: []string{first + `pods.target.averageValue: Invalid value: "0": must be positive`}},
		"NoTargetType": {reason: "How it is compared must be said.", object: metric(`type: Pods, pods: {metric: {name: m}, target: {type: "", averageValue: 1}}`), want: []string{first + `pods.target.type: Required value`}},
		"TargetType":   {reason: "In one of three ways.", object: metric(`type: Pods, pods: {metric: {name: m}, target: {type: Foo, averageValue: 1}}`), want: []string{first + `pods.target.type: Unsupported value: "Foo"`}},

		"NoPolicies": {reason: "Rules without a policy never scale.", object: behavior(`scaleDown: {policies: []}`), want: []string{`spec.behavior.scaleDown.policies: Required value: must specify at least one Policy`}},
		"Policies":   {reason: "A policy is so many in so long.", object: behavior(`scaleDown: {policies: [{type: Foo, value: 0, periodSeconds: 0}, {type: Pods, value: 1, periodSeconds: 1801}]}`), want: []string{`spec.behavior.scaleDown.policies[0].type: Unsupported value: "Foo"`, `spec.behavior.scaleDown.policies[0].value: Invalid value: 0`, `spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 0`, `spec.behavior.scaleDown.policies[1].periodSeconds: Invalid value: 1801`}},
		"Window":     {reason: "Nobody looks back further than an hour.", object: up(`stabilizationWindowSeconds: 3601`), want: []string{`spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601`}},
		"Future":     {reason: "Or into the future.", object: up(`stabilizationWindowSeconds: -1`), want: []string{`spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1`}},
		"Select":     {reason: "Of several policies one is chosen in one of three ways.", object: up(`selectPolicy: Any`), want: []string{`spec.behavior.scaleUp.selectPolicy: Unsupported value: "Any"`}},
		"Tolerance":  {reason: "A tolerance is a distance.", object: up(`tolerance: -1m`), want: []string{`spec.behavior.scaleUp.tolerance: Invalid value: "-1m"`}},
	})
}

func TestCronAutoscalers(t *testing.T) {
	spec := func(target, rules string) string {
		return `spec: {scaleTargetRef: {` + target + `}, rules: [` + rules + `]}`
	}
	const federated = `apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, name: h`
	const template = `apiVersion: apps/v1, kind: Deployment, name: d`
	at := func(when string) string { return spec(template, `{name: r, targetReplicas: 1, `+when+`}`) }
	bounds := func(b string) string { return spec(federated, `{name: r, schedule: "* * * * *"`+b+`}`) }
	const first = `spec.rules[0].`
	check(t, cronAutoscalers(), "", map[string]ruleCase{
		"Template":     {reason: "A template is scaled directly, to nothing as well.", object: spec(template, `{name: a, schedule: "0 8 * * 1-5", targetReplicas: 3, timeZone: UTC}, {name: b, schedule: "@daily", targetReplicas: 0, suspend: true}`)},
		"Federated":    {reason: "An autoscaler by its bounds.", object: bounds(`, targetMinReplicas: 2, targetMaxReplicas: 2`)},
		"MinAlone":     {reason: "One bound is enough.", object: bounds(`, targetMinReplicas: 2`)},
		"MaxAlone":     {reason: "Either.", object: bounds(`, targetMaxReplicas: 2`)},
		"NoRules":      {reason: "Nothing is ever due.", object: spec(template, ``)},
		"OtherKind":    {reason: "Of this group one kind can be scaled.", object: spec(`apiVersion: autoscaling.karmada.io/v1alpha1, kind: CronFederatedHPA, name: h`, ``), want: []string{`spec.scaleTargetRef.kind: Invalid value: "CronFederatedHPA": must be FederatedHPA`}},
		"NoTarget":     {reason: "Something is scaled.", object: spec(`apiVersion: apps/v1, kind: "", name: ""`, ``), want: []string{`spec.scaleTargetRef.kind: Required value`, `spec.scaleTargetRef.name: Required value`}},
		"SameName":     {reason: "Histories are by name.", object: spec(template, `{name: a, schedule: "* * * * *", targetReplicas: 3}, {name: a, schedule: "* * * * *", targetReplicas: 3}`), want: []string{`spec.rules[1].name: Duplicate value: "a"`}},
		"NoReplicas":   {reason: "To how many must be said.", object: spec(template, `{name: a, schedule: "* * * * *", targetMinReplicas: 1}`), want: []string{first + `targetReplicas: Required value`}},
		"Negative":     {reason: "There are no negative replicas.", object: spec(template, `{name: a, schedule: "* * * * *", targetReplicas: -1}`), want: []string{first + `targetReplicas: Invalid value: -1`}},
		"NoBounds":     {reason: "Of an autoscaler one of two bounds is set.", object: bounds(`, targetReplicas: 3`), want: []string{`spec.rules[0]: Required value: targetMinReplicas or targetMaxReplicas`}},
		"ZeroBounds":   {reason: "An autoscaler does not go to nothing.", object: bounds(`, targetMinReplicas: 0, targetMaxReplicas: 0`), want: []string{first + `targetMinReplicas: Invalid value: 0`, first + `targetMaxReplicas: Invalid value: 0`}},
		"WrongBounds":  {reason: "A range has its lower end first.", object: bounds(`, targetMinReplicas: 3, targetMaxReplicas: 2`), want: []string{first + `targetMinReplicas: Invalid value: 3…2`}},
		"Seconds":      {reason: "Seconds are not a field.", object: at(`schedule: "0 0 8 * * *"`), want: []string{first + `schedule: Invalid value: "0 0 8 * * *"…five fields`}},
		"NoSchedule":   {reason: "Never is not said so.", object: at(`schedule: ""`), want: []string{first + `schedule: Invalid value: ""`}},
		"Range":        {reason: "An hour has sixty minutes.", object: at(`schedule: "60 * * * *"`), want: []string{first + `schedule: Invalid value: "60 * * * *"`}},
		"Zone":         {reason: "There is no such place.", object: at(`schedule: "0 8 * * *", timeZone: Europe/Atlantis`), want: []string{first + `timeZone: Invalid value: "Europe/Atlantis"`}},
		"EmptyZone":    {reason: "It would be that of the machine.", object: at(`schedule: "0 8 * * *", timeZone: ""`), want: []string{first + `timeZone: Invalid value: ""`}},
		"LocalZone":    {reason: "So would this.", object: at(`schedule: "0 8 * * *", timeZone: local`), want: []string{first + `timeZone: Invalid value: "local"`}},
		"PathZone":     {reason: "A zone is no way to a file.", object: at(`schedule: "0 8 * * *", timeZone: ../../etc/passwd`), want: []string{first + `timeZone: Invalid value: "../../etc/passwd"`}},
		"ZoneInside":   {reason: "What the parser understands stays allowed.", object: at(`schedule: "CRON_TZ=UTC 0 8 * * *"`)},
		"TwoZones":     {reason: "One of the two would be ignored.", object: at(`schedule: "TZ=UTC 0 8 * * *", timeZone: UTC`), want: []string{first + `schedule: Invalid value…timeZone`}},
		"ZoneAlone":    {reason: "The parser takes something to follow.", object: at(`schedule: "TZ=UTC"`), want: []string{first + `schedule: Invalid value: "TZ=UTC": there is nothing after the time zone`}},
		"UnknownZone":  {reason: "There is no such place here, either.", object: at(`schedule: "TZ=Nowhere 0 8 * * *"`), want: []string{first + `schedule: Invalid value`}},
		"EveryAndZone": {reason: "Descriptors have zones as well.", object: at(`schedule: "TZ=UTC @hourly"`)},
	})
}
