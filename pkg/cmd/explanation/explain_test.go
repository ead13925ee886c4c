package explanation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// list refuses lists that the world denies.
func (w *world) list(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	kind := strings.TrimSuffix(gvkOf(list, c.Scheme()).Kind, "List")
	if slices.Contains(w.deny, kind) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, "", nil)
	}
	return c.List(ctx, list, options...)
}

// clusterPolicy returns a ClusterPropagationPolicy for all Deployments.
func clusterPolicy(name string, priority int32) *policyv1alpha1.ClusterPropagationPolicy {
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(time.Hour), Labels: map[string]string{names.ClusterPropagationPolicyIDLabel: name}}}
	p.Spec.Priority = ptr.To(priority)
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	return p
}

// namespacePolicy returns a PropagationPolicy in the namespace of the template.
func namespacePolicy(name string, priority int32, s policyv1alpha1.ResourceSelector) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Minute), Labels: map[string]string{names.PropagationPolicyIDLabel: name}}}
	p.Spec.Priority = ptr.To(priority)
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{s}
	return p
}

func overriding(name string, path string, clusters ...string) *policyv1alpha1.OverridePolicy {
	p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte("true")}}},
	}}}
	if len(clusters) > 0 {
		p.Spec.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	return p
}

func suspension(dispatching bool, clusters ...string) policyv1alpha1.Suspension {
	s := policyv1alpha1.Suspension{}
	if dispatching {
		s.Dispatching = ptr.To(true)
	}
	if len(clusters) > 0 {
		s.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
	}
	return s
}

// TestExplain compares what is printed with testdata/<case>.txt. With UPDATE_GOLDEN=1
// these are written.
func TestExplain(t *testing.T) {
	deployments := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	cases := map[string]struct {
		reason string
		change func(t *testing.T, w *world)
		codes  []Code
	}{
		"Well": {
			reason: "When all is well it says where the object is, and why not elsewhere.",
			change: func(*testing.T, *world) {},
		},
		"NoPolicy": {
			reason: "Without a policy nothing happens, and nobody says so.",
			change: func(_ *testing.T, w *world) { w.unclaimed() },
			codes:  []Code{NoPolicy},
		},
		"NearMiss": {
			reason: "A policy that was meant to select it is what users look for.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				s := deployments
				s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
				w.others = append(w.others, namespacePolicy("apps", 0, s))
			},
			codes: []Code{NoPolicy},
		},
		"NearMisses": {
			reason: "Each says by how much it misses.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				name, namespace, version, kind := deployments, deployments, deployments, deployments
				name.Name, namespace.Namespace, version.APIVersion, kind.Kind = "wbe", "shops", "apps/v1beta1", "deployment"
				elsewhere := clusterPolicy("elsewhere", 0)
				elsewhere.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{namespace}
				bad := deployments
				bad.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
				w.others = append(w.others, namespacePolicy("name", 0, name), elsewhere, namespacePolicy("version", 0, version), namespacePolicy("kind", 0, kind),
					namespacePolicy("bad", 0, bad), namespacePolicy("services", 0, policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"}))
			},
			codes: []Code{NoPolicy},
		},
		"Losers": {
			reason: "Which policy wins, and why others lose, is what the control plane decides by.",
			change: func(_ *testing.T, w *world) {
				labels := deployments
				labels.LabelSelector = &metav1.LabelSelector{}
				gone := namespacePolicy("gone", 9, deployments)
				gone.DeletionTimestamp, gone.Finalizers = ptr.To(ago(time.Minute)), []string{"x"}
				named := deployments
				named.Name = "web"
				preempts := namespacePolicy("preempts", 7, named)
				preempts.Spec.Preemption = policyv1alpha1.PreemptAlways
				w.others = append(w.others, clusterPolicy("all", 10), namespacePolicy("low", -1, deployments), namespacePolicy("labels", 0, labels),
					namespacePolicy("zzz", 0, named), namespacePolicy("late", 5, deployments), gone, preempts)
			},
		},
		"ClaimPending": {
			reason: "A policy that has not claimed the object yet may be held up, or nobody runs.",
			change: func(_ *testing.T, w *world) {
				policy.By(w.policy).Remove(w.template)
				w.without()
			},
			codes: []Code{ClaimPending},
		},
		"PolicyDeleting": {
			reason: "A policy that selects it and is being deleted propagates nothing new.",
			change: func(_ *testing.T, w *world) {
				w.policy.DeletionTimestamp, w.policy.Finalizers = ptr.To(ago(3*time.Minute)), []string{names.PropagationPolicyFinalizer}
			},
			codes: []Code{PolicyDeleting},
		},
		"PolicyGone": {
			reason: "A claim may outlive its policy for a while; what is in clusters stays.",
			change: func(_ *testing.T, w *world) { w.policy = nil },
			codes:  []Code{PolicyGone},
		},
		"PolicyReleased": {
			reason: "A policy that was changed lets go of what it does not select any more.",
			change: func(_ *testing.T, w *world) { w.policy.Spec.ResourceSelectors[0].Name = "api" },
			codes:  []Code{PolicyReleased},
		},
		"Released": {
			reason: "What no policy propagates any more stays where it is.",
			change: func(_ *testing.T, w *world) {
				policy.By(w.policy).Remove(w.template)
				policy.By(w.policy).Remove(w.binding)
				w.policy = nil
			},
			codes: []Code{Released},
		},
		"OverridesMissing": {
			reason: "A policy that waits for override policies says nothing to anybody.",
			change: func(_ *testing.T, w *world) {
				w.policy.Spec.DependentOverrides = []string{"there", "missing"}
				w.others = append(w.others, overriding("there", "/spec/paused", "m9"))
				w.without()
			},
			codes: []Code{OverridesMissing},
		},
		"Lazy": {
			reason: "A lazy policy waits for its user.",
			change: func(_ *testing.T, w *world) {
				w.policy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
				w.policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m3"}}
			},
			codes: []Code{LazyWaiting},
		},
		"BindingMissing": {
			reason: "What kept the binding from being made is in an event only.",
			change: func(_ *testing.T, w *world) {
				w.without()
				w.warn("shop", "template", names.EventApplyPolicyFailed, "Apply policy(shop/web) failed: priorityclasses.scheduling.k8s.io \"urgent\" not found")
			},
			codes: []Code{BindingMissing},
		},
		"NamespaceSkipped": {
			reason: "What is in kube-system goes nowhere, whatever policies say.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				w.template.SetNamespace("kube-system")
				w.others = append(w.others, clusterPolicy("all", 0))
			},
			codes: []Code{NamespaceSkipped},
		},
		"NamespaceReserved": {
			reason: "Nor does what is in the control plane's own namespaces.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				w.template.SetNamespace(names.SystemNamespace)
			},
			codes: []Code{NamespaceSkipped},
		},
		"KindSkipped": {
			reason: "The control plane's own kinds are not propagated.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				w.template.SetAPIVersion("policy.karmada.io/v1alpha1")
				w.template.SetKind("OverridePolicy")
			},
			codes: []Code{KindSkipped},
		},
		"ClaimedElsewhere": {
			reason: "Policies leave alone what a controller takes care of.",
			change: func(_ *testing.T, w *world) {
				w.unclaimed()
				w.template.SetLabels(map[string]string{names.ClaimedByLabel: "MultiClusterService"})
			},
			codes: []Code{ClaimedElsewhere},
		},
		"SchedulingSuspended": {
			reason: "A suspended binding stays as it is, and nobody says so.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
				w.scheduled([]workv1alpha2.TargetCluster{}, "Success", "")
				w.binding.Status.Conditions, w.works = nil, nil
			},
			codes: []Code{SchedulingSuspended},
		},
		"DispatchingSuspended": {
			reason: "Works that are suspended wait for the same thing: it is said once.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: suspension(true)}
				w.policy.Spec.Suspension = ptr.To(suspension(true))
				for _, work := range w.works {
					work.Spec.SuspendDispatching = ptr.To(true)
				}
			},
			codes: []Code{DispatchingSuspended},
		},
		"DispatchingSuspendedThere": {
			reason: "One cluster can be suspended alone.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.Suspension = &workv1alpha2.Suspension{Suspension: suspension(false, "m2")}
				w.works["m2"].Spec.SuspendDispatching = ptr.To(true)
				w.works["m2"].Status = workv1alpha1.WorkStatus{}
			},
			codes: []Code{DispatchingSuspended},
		},
		"OtherScheduler": {
			reason: "A scheduler that nobody runs chooses nothing.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.SchedulerName = "mine"
				w.binding.Spec.Clusters, w.binding.Status, w.works = nil, workv1alpha2.ResourceBindingStatus{}, nil
			},
			codes: []Code{OtherScheduler},
		},
		"SchedulingPending": {
			reason: "A scheduler that does not run says nothing; what it would decide is known.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.Clusters, w.binding.Status, w.works = nil, workv1alpha2.ResourceBindingStatus{}, nil
				delete(w.binding.Annotations, names.AppliedPlacementAnnotation)
			},
			codes: []Code{SchedulingPending},
		},
		"NoClusterFit": {
			reason: "Which filter refuses which cluster is what the user has to know.",
			change: func(_ *testing.T, w *world) {
				for _, c := range w.clusters {
					c.Spec.Taints = []corev1.Taint{{Key: "team", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
				}
				w.scheduled([]workv1alpha2.TargetCluster{}, "NoClusterFit", "0/3 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 2 cluster(s) had untolerated taint {team:NoSchedule}.")
				w.works = nil
			},
			codes: []Code{NoClusterFit},
		},
		"KeptInPlace": {
			reason: "What fits nowhere any more is not taken away.",
			change: func(t *testing.T, w *world) {
				w.policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m9"}}
				w.place(t, "m1", "m2")
				w.scheduled(nil, "NoClusterFit", "0/3 clusters are available: 3 cluster(s) did not match the placement cluster affinity constraint.")
			},
			codes: []Code{KeptInPlace},
		},
		"Unschedulable": {
			reason: "Too little room.",
			change: func(_ *testing.T, w *world) {
				w.policy.Spec.Placement.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
				placement := w.policy.Spec.Placement
				w.binding.Spec.Placement = &placement
				w.binding.Spec.Replicas = 40
				w.template.Object["spec"].(map[string]any)["replicas"] = int64(40)
				w.scheduled([]workv1alpha2.TargetCluster{}, "Unschedulable", "Clusters available replicas 4 are not enough to schedule.")
				w.works = nil
				w.warn("shop", "template", names.EventScheduleBindingFailed, "Clusters available replicas 4 are not enough to schedule.")
			},
			codes: []Code{Unschedulable},
		},
		"QuotaExceeded": {
			reason: "A quota is another's decision, and is named as such.",
			change: func(_ *testing.T, w *world) {
				w.scheduled(nil, "QuotaExceeded", "FederatedResourceQuota(shop/limits) exceeded for resource cpu: requested 8, limit 4")
			},
			codes: []Code{QuotaExceeded},
		},
		"SchedulerError": {
			reason: "Anything else is said as it is.",
			change: func(_ *testing.T, w *world) {
				w.scheduled([]workv1alpha2.TargetCluster{}, "SchedulerError", "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups")
				w.works = nil
			},
			codes: []Code{SchedulerError},
		},
		"APIMissing": {
			reason: "A cluster without the CRD cannot have the object: the way there is by the CRD.",
			change: func(_ *testing.T, w *world) {
				w.resource = "widgets"
				w.template.SetAPIVersion("example.com/v1")
				w.template.SetKind("Widget")
				w.policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "example.com/v1", Kind: "Widget"}}
				w.binding.Name, w.binding.Spec.Resource, w.binding.Spec.Replicas = "web-widget", RefOf(w.template), 0
				for _, c := range w.clusters {
					c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ConditionCompleteAPIEnablements, Status: metav1.ConditionTrue})
				}
				w.scheduled([]workv1alpha2.TargetCluster{}, "NoClusterFit", "0/3 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 2 cluster(s) did not have the API resource.")
				w.works = nil
			},
			codes: []Code{KindMissing},
		},
		"KindMissing": {
			reason: "The control plane may have thought that the cluster has the kind.",
			change: func(_ *testing.T, w *world) {
				w.refuse("m2", `Failed to apply all manifests (0/1): find the API of Deployment shop/web in cluster m2: no matches for kind "Deployment" in version "apps/v1"`)
			},
			codes: []Code{KindMissing},
		},
		"Conflict": {
			reason: "What the cluster has already is left alone unless the user says otherwise.",
			change: func(_ *testing.T, w *world) {
				w.refuse("m2", "Failed to apply all manifests (0/1): resource(kind=Deployment, shop/web) already exists in the cluster m2 and the work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource")
			},
			codes: []Code{Conflict},
		},
		"NotApplied": {
			reason: "The cluster's own words, and what was said about its Work.",
			change: func(_ *testing.T, w *world) {
				w.refuse("m2", `Failed to apply all manifests (0/1): apply Deployment shop/web to cluster m2: admission webhook "no" denied the request`)
				w.warn("karmada-es-m2", "work-m2", "SyncFailed", `admission webhook "no" denied the request`)
				w.warn("shop", "template", "SyncFailed", `admission webhook "no" denied the request`)
			},
			codes: []Code{NotApplied},
		},
		"OverrideFailed": {
			reason: "An override policy that cannot be applied to this object in this cluster is found by applying it.",
			change: func(_ *testing.T, w *world) {
				w.others = append(w.others, overriding("fine", "/spec/replicas", "m1"), overriding("wrong", "/spec/nothing/there", "m2"))
				delete(w.works, "m2")
				w.warn("shop", "template", names.EventApplyOverridePolicyFailed, "Apply override policy(shop/wrong) for cluster(m2) failed")
			},
			codes: []Code{OverrideFailed},
		},
		"OverrideFailsLater": {
			reason: "What a cluster has stays until the policy is mended, and that it is not the latest is no news then.",
			change: func(t *testing.T, w *world) {
				w.others = append(w.others, overriding("wrong", "/spec/nothing/there", "m2"))
				w.carry(t, w.works["m2"], 1)
			},
			codes: []Code{OverrideFailed},
		},
		"WorkMissing": {
			reason: "A Work that is not there yet.",
			change: func(_ *testing.T, w *world) { delete(w.works, "m2") },
			codes:  []Code{WorkMissing},
		},
		"WorkOutdated": {
			reason: "A Work that carries an earlier state.",
			change: func(t *testing.T, w *world) { w.carry(t, w.works["m1"], 1) },
			codes:  []Code{WorkOutdated},
		},
		"ApplyPending": {
			reason: "A member that has not said anything, and one that has not about the latest change.",
			change: func(_ *testing.T, w *world) {
				w.works["m1"].Status = workv1alpha1.WorkStatus{}
				w.works["m2"].Generation = 2
			},
			codes: []Code{ApplyPending, ApplyPending},
		},
		"Unhealthy": {
			reason: "The cluster has it, and it does not work.",
			change: func(_ *testing.T, w *world) {
				w.works["m2"].Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
			},
			codes: []Code{Unhealthy},
		},
		"ClusterNotReady": {
			reason: "A cluster that does not answer keeps what it has; since when is known.",
			change: func(_ *testing.T, w *world) {
				w.clusters["m2"].Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "cluster is not reachable", LastTransitionTime: ago(4 * time.Minute)}
			},
			codes: []Code{ClusterNotReady},
		},
		"ClusterGone": {
			reason: "Clusters that are chosen may be gone, or about to go.",
			change: func(_ *testing.T, w *world) {
				delete(w.clusters, "m1")
				delete(w.works, "m1")
				w.clusters["m2"].DeletionTimestamp = ptr.To(ago(time.Minute))
			},
			codes: []Code{ClusterGone, ClusterLeaving},
		},
		"Evicting": {
			reason: "What leaves a cluster says who wants it to, and since when.",
			change: func(t *testing.T, w *world) {
				w.works["m3"] = w.work(t, "m3")
				w.binding.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
					FromCluster: "m3", Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerTaintManager, CreationTimestamp: ptr.To(ago(5 * time.Minute)),
				}}
			},
			codes: []Code{Evicting},
		},
		"LeftOver": {
			reason: "A Work that is on its way out.",
			change: func(t *testing.T, w *world) {
				w.works["m3"] = w.work(t, "m3")
				w.works["m3"].DeletionTimestamp = ptr.To(ago(5 * time.Minute))
			},
			codes: []Code{WorkDeleting},
		},
		"BindingDeleting": {
			reason: "A binding that is on its way out.",
			change: func(_ *testing.T, w *world) { w.binding.DeletionTimestamp = ptr.To(ago(time.Minute)) },
			codes:  []Code{BindingDeleting},
		},
		"TemplateDeleting": {
			reason: "A template that is on its way out.",
			change: func(_ *testing.T, w *world) {
				w.template.SetDeletionTimestamp(ptr.To(ago(time.Minute)))
				w.template.SetFinalizers([]string{"example.com/hold"})
			},
			codes: []Code{TemplateDeleting},
		},
		"Required": {
			reason: "What another needs goes along with it, without a policy.",
			change: func(_ *testing.T, w *world) {
				policy.By(w.policy).Remove(w.template)
				policy.By(w.policy).Remove(w.binding)
				w.policy = nil
				w.binding.Spec.Placement, w.binding.Status.Conditions = nil, nil
				w.binding.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "app-deployment", Clusters: w.binding.Spec.Clusters}}
				w.binding.Spec.Clusters = nil
			},
		},
		"Terms": {
			reason: "Of several terms the one in use is named.",
			change: func(t *testing.T, w *world) {
				w.policy.Spec.Placement.ClusterAffinity = nil
				w.policy.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
					{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m3"}}},
					{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}},
				}
				w.place(t, "m1", "m2")
				w.binding.Status.SchedulerObservedAffinityName = "second"
			},
		},
		"Moving": {
			reason: "What the scheduler would decide now is told when it is to look again.",
			change: func(_ *testing.T, w *world) {
				w.binding.Spec.Replicas = 7
				w.binding.Generation++
			},
			codes: []Code{SchedulingPending},
		},
		"OneCluster": {
			reason: "Of one cluster everything is told, and nothing of others.",
			change: func(_ *testing.T, w *world) {
				w.cluster = "m3"
				w.clusters["m3"].Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
				delete(w.works, "m2")
			},
			codes: []Code{Refused},
		},
		"OneChosen": {
			reason: "That it is chosen is told with the scheduler's reasons.",
			change: func(_ *testing.T, w *world) {
				w.cluster = "m1"
				delete(w.works, "m2")
			},
		},
		"NamespaceEverywhere": {
			reason: "A Namespace goes everywhere without a policy.",
			change: func(t *testing.T, w *world) { w.namespace(t, "shop") },
			codes:  []Code{WorkMissing},
		},
		"NamespaceOptedOut": {
			reason: "Unless it says that it does not want to.",
			change: func(t *testing.T, w *world) {
				w.namespace(t, "shop")
				w.template.SetLabels(map[string]string{names.SkipAutoPropagationLabel: "true"})
			},
			codes: []Code{NamespaceSkipped},
		},
		"Gaps": {
			reason: "What may not be read is a gap, and not taken for what is not there.",
			change: func(_ *testing.T, w *world) {
				w.deny = []string{"PropagationPolicy", "ClusterPropagationPolicy", "Work", "Event"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(t, w)
			x, err := w.explainer(t).Explain(t.Context(), w.template, w.cluster)
			if err != nil {
				t.Fatalf("Explain: %v\n%s", err, tc.reason)
			}
			var codes []Code
			for _, f := range x.Findings {
				codes = append(codes, f.Code)
			}
			if diff := cmp.Diff(tc.codes, codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s\n%s", diff, tc.reason)
			}
			var text bytes.Buffer
			if err := Print(&text, x, Style{}, epoch); err != nil {
				t.Fatal(err)
			}
			golden(t, name, text.String(), tc.reason)
			if raw, err := json.Marshal(x); err != nil || !json.Valid(raw) {
				t.Errorf("write as JSON: %v", err)
			}
		})
	}
}

func golden(t *testing.T, name, got, reason string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("text (-want +got):\n%s\n%s", diff, reason)
	}
}

// namespace makes the template a Namespace, with Works in m1 and m2.
func (w *world) namespace(t *testing.T, name string) {
	t.Helper()
	w.unclaimed()
	w.resource = "namespaces"
	w.template.Object = map[string]any{"apiVersion": "v1", "kind": "Namespace"}
	w.template.SetName(name)
	w.works = map[string]*workv1alpha1.Work{}
	for _, cluster := range []string{"m1", "m2"} {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionNamespace(cluster), Name: names.Work("Namespace", name, "")}}
		work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
		w.works[cluster] = work
	}
}

func TestExplainFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*world)
		want   string
	}{
		"UnknownCluster": {"In the words that scripts know from get.", func(w *world) { w.cluster = "m9" }, "clusters don't exist: m9"},
		"NoClusters":     {"Without clusters there is nothing to tell.", func(w *world) { w.deny = []string{"Cluster"} }, "clusters is forbidden"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			x, err := w.explainer(t).Explain(t.Context(), w.template, w.cluster)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %q: %s", x, err, tc.want, tc.reason)
			}
		})
	}
}

// TestStyles has one answer in several styles.
func TestStyles(t *testing.T) {
	w := newWorld(t)
	w.others = append(w.others, overriding("fine", "/spec/replicas", "m1"))
	w.refuse("m2", "Failed to apply all manifests (0/1): apply Deployment shop/web to cluster m2: no")
	x, err := w.explainer(t).Explain(t.Context(), w.template, "")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		style  Style
	}{
		"StyleNarrow": {"Text is broken, and columns that can be spared are left out, rather than lines be broken by the terminal.", Style{Width: 50}},
		"StyleColor":  {"Colours do not count when columns are lined up.", Style{Width: 100, Color: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := Print(&text, x, tc.style, epoch); err != nil {
				t.Fatal(err)
			}
			golden(t, name, text.String(), tc.reason)
		})
	}
	if s := StyleOf(&bytes.Buffer{}); s != (Style{}) {
		t.Errorf("what is no terminal has style %+v", s)
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"short": "short", "exactly ten": "exactly t…", "└─ äöü ßßß": "└─ äöü ßßß"} {
		if got := (Style{Width: 10}).Clip(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (Style{}).Clip("no limit at all"); got != "no limit at all" {
		t.Errorf("got %q", got)
	}
}

// TestJSON holds what programs read.
func TestJSON(t *testing.T) {
	w := newWorld(t)
	w.others = append(w.others, overriding("fine", "/spec/replicas", "m1"), clusterPolicy("all", 10))
	w.refuse("m2", "Failed to apply all manifests (0/1): no")
	x, err := w.explainer(t).Explain(t.Context(), w.template, "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "JSON", string(raw)+"\n", "Scripts rely on the names of fields.")
}

func TestManyClusters(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		c := w.clusters["m3"].DeepCopy()
		c.Name, c.UID = fmt.Sprintf("z%02d", i), types.UID(fmt.Sprintf("z%02d", i))
		w.clusters[c.Name] = c
	}
	x, err := w.explainer(t).Explain(t.Context(), w.template, "")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Print(&text, x, Style{}, epoch); err != nil {
		t.Fatal(err)
	}
	if want := "  m3, z00, z01, z02, z03, z04, z05, z06 and 23 more: refused by ClusterAffinity: "; !strings.Contains(text.String(), want) {
		t.Errorf("clusters that are refused for the same reason share a line: %q is not in\n%s", want, text.String())
	}
}

func TestOneObject(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"Slash":       {[]string{"deployment/web"}, ""},
		"Two":         {[]string{"deployment", "web"}, ""},
		"None":        {nil, "no object is given"},
		"NoName":      {[]string{"deployment"}, `"deployment" has no name`},
		"EmptyName":   {[]string{"deployment/"}, `"deployment/" has no name`},
		"NoType":      {[]string{"/web"}, `"/web" has no type`},
		"TwoSlashes":  {[]string{"deployment/web", "deployment/api"}, "more than one object is given"},
		"Three":       {[]string{"deployment", "web", "api"}, "more than one object is given"},
		"SeveralType": {[]string{"deployment,service", "web"}, `"deployment,service/web" is not one object`},
		"Deep":        {[]string{"a/b/c"}, `"a/b/c" is not one object`},
		"Blank":       {[]string{"deployment", ""}, "is not one object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := OneObject(nil, tc.args)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
