package bind

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// full sets everything that a policy says about bindings.
func full(p policy.Object) {
	spec := p.PropagationSpec()
	spec.PropagateDeps = true
	spec.SchedulerName = "own"
	spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	spec.PreserveResourcesOnDeletion = ptr.To(true)
	spec.Suspension = &policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	spec.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: "high"}
	spec.Placement.WorkloadAffinity = &policyv1alpha1.WorkloadAffinity{Affinity: &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"}}
}

func high() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000}
}

func allGates(t *testing.T, w *world) {
	t.Helper()
	if err := w.gates.Set("ResourceQuotaEstimate=true,WorkloadAffinity=true"); err != nil {
		t.Fatal(err)
	}
}

func TestBindingOfNamespaced(t *testing.T) {
	p := aPolicy("p", full)
	w := newWorld(t, p, high(), aTemplate())
	allGates(t, w)
	requirements := &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	w.pods.requirements = requirements
	w.done(t, web)
	u, got := w.template(t, web), &workv1alpha2.ResourceBinding{}
	if b := w.bound(t, "shop", "web-deployment").(*workv1alpha2.ResourceBinding); b != nil {
		got = b
	}
	f, err := fingerprintOf(u)
	if err != nil {
		t.Fatal(err)
	}
	counted := requirements.DeepCopy()
	counted.Namespace = "shop"
	want := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", ResourceVersion: "1",
			Labels: map[string]string{
				"propagationpolicy.karmada.io/permanent-id": "p-id",
				"resourcebinding.karmada.io/permanent-id":   binding.ID(got),
			},
			Annotations: map[string]string{
				"propagationpolicy.karmada.io/namespace": "shop",
				"propagationpolicy.karmada.io/name":      "p",
				"binding.karmadactl.io/template":         f.String(),
			},
			Finalizers: []string{"karmada.io/binding-controller"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web-uid", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "web-uid", ResourceVersion: u.GetResourceVersion(),
			},
			PropagateDeps:               true,
			Replicas:                    2,
			ReplicaRequirements:         counted,
			SchedulerName:               "own",
			Placement:                   p.Spec.Placement.DeepCopy(),
			WorkloadAffinityGroups:      &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web"},
			Failover:                    p.Spec.Failover.DeepCopy(),
			ConflictResolution:          policyv1alpha1.ConflictOverwrite,
			Suspension:                  &workv1alpha2.Suspension{Suspension: *p.Spec.Suspension.DeepCopy()},
			PreserveResourcesOnDeletion: ptr.To(true),
			SchedulePriority:            &workv1alpha2.SchedulePriority{Priority: 1000},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the binding (-want +got):\n%s", diff)
	}
	w.take()
	w.done(t, web)
	wantWrites(t, w, "Nothing differs.")
}

func TestBindingOfClusterScope(t *testing.T) {
	p := aClusterPolicy("c", full)
	w := newWorld(t, p, high(), aTemplate(role))
	allGates(t, w)
	w.done(t, keyIn(roles, "", "reader"))
	spec := w.bound(t, "", "reader-clusterrole").BindingSpec()
	if spec.SchedulePriority != nil || spec.WorkloadAffinityGroups != nil {
		t.Errorf("priority and affinity are for namespaced templates: %+v", spec)
	}
	if !spec.PropagateDeps || spec.Resource.Namespace != "" || spec.Placement == nil || spec.Replicas != 0 {
		t.Errorf("everything else is the same: %+v", spec)
	}
	w.change(t, p, func() { p.Spec.PropagateDeps = false; p.Spec.SchedulerName = "other" })
	w.index.Set(p.DeepCopy())
	w.done(t, keyIn(roles, "", "reader"))
	if spec := w.bound(t, "", "reader-clusterrole").BindingSpec(); !spec.PropagateDeps || spec.SchedulerName != "other" {
		t.Errorf("propagateDeps stays as it was made, the rest does not: %+v", spec)
	}
}

// TestUpdate has what others put on a binding.
func TestUpdate(t *testing.T) {
	now := metav1.Unix(5000, 0)
	b := boundBy(t, aPolicy("old"), aTemplate(), func(b binding.Object) {
		b.SetLabels(with(b.GetLabels(), "theirs", "x"))
		b.SetAnnotations(with(b.GetAnnotations(), "policy.karmada.io/applied-placement", "{}"))
		b.SetFinalizers(append([]string{"theirs/first"}, b.GetFinalizers()...))
		b.SetOwnerReferences(append(b.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "s"}))
		spec := b.BindingSpec()
		spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
		spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
		spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "by"}}
		spec.RescheduleTriggeredAt = &now
		spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true), Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
		b.BindingStatus().SchedulerObservedGeneration = 3
	})
	cpp := aClusterPolicy("c")
	w := newWorld(t, cpp, b, aTemplate())
	w.done(t, web)
	wantWrites(t, w, "All in one.", "patch Deployment web", "update ResourceBinding web-deployment")
	got := w.bound(t, "shop", "web-deployment")
	if !isClaimedBy(got, cpp) || got.GetLabels()["propagationpolicy.karmada.io/permanent-id"] != "" {
		t.Errorf("the claim of another scope is taken off: %v", got.GetLabels())
	}
	if got.GetLabels()["theirs"] != "x" || got.GetAnnotations()["policy.karmada.io/applied-placement"] != "{}" || binding.ID(got) != binding.ID(b) {
		t.Errorf("labels and annotations of others stay: %v, %v", got.GetLabels(), got.GetAnnotations())
	}
	if diff := cmp.Diff([]string{"theirs/first", "karmada.io/binding-controller"}, got.GetFinalizers()); diff != "" {
		t.Errorf("finalizers of others stay, in their order (-want +got):\n%s", diff)
	}
	if owners := got.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Deployment" {
		t.Errorf("owners are replaced: %v", owners)
	}
	spec := got.BindingSpec()
	if len(spec.Clusters) != 1 || len(spec.GracefulEvictionTasks) != 1 || len(spec.RequiredBy) != 1 || !spec.RescheduleTriggeredAt.Equal(&now) {
		t.Errorf("what others decide stays: %+v", spec)
	}
	if diff := cmp.Diff(&workv1alpha2.Suspension{Scheduling: ptr.To(true)}, spec.Suspension); diff != "" {
		t.Errorf("only the policy's part of the suspension goes (-want +got):\n%s", diff)
	}
	if spec.Placement.ClusterAffinity.ClusterNames[0] != "c-cluster" || spec.PropagateDeps || spec.ConflictResolution != policyv1alpha1.ConflictAbort {
		t.Errorf("the rest is the new policy's: %+v", spec)
	}
}

func TestSuspend(t *testing.T) {
	own := policyv1alpha1.Suspension{Dispatching: ptr.To(true)}
	other := policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}}
	cases := map[string]struct {
		reason string
		now    *workv1alpha2.Suspension
		policy *policyv1alpha1.Suspension
		want   *workv1alpha2.Suspension
	}{
		"None":       {"Nobody suspends.", nil, nil, nil},
		"New":        {"The policy suspends.", nil, &own, &workv1alpha2.Suspension{Suspension: own}},
		"Replaced":   {"It suspends otherwise.", &workv1alpha2.Suspension{Suspension: own}, &other, &workv1alpha2.Suspension{Suspension: other}},
		"Over":       {"It suspends no longer.", &workv1alpha2.Suspension{Suspension: own}, nil, nil},
		"Scheduling": {"Others suspend the scheduling.", &workv1alpha2.Suspension{Scheduling: ptr.To(true), Suspension: own}, nil, &workv1alpha2.Suspension{Scheduling: ptr.To(true)}},
		"NotScheduling": {
			"Also when they say that they do not.",
			&workv1alpha2.Suspension{Scheduling: ptr.To(false)}, &own, &workv1alpha2.Suspension{Scheduling: ptr.To(false), Suspension: own},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{Suspension: tc.now}
			suspend(spec, tc.policy)
			if diff := cmp.Diff(tc.want, spec.Suspension); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInterpret(t *testing.T) {
	requirements := &workv1alpha2.ReplicaRequirements{PriorityClassName: "high"}
	components := []workv1alpha2.Component{{Name: "manager", Replicas: 1}}
	cases := map[string]struct {
		reason   string
		gates    string
		fake     fakeInterpreter
		template *unstructured.Unstructured
		want     pods
		err      bool
		events   []string
	}{
		"Replicas":         {reason: "A workload.", fake: fakeInterpreter{requirements: requirements}, template: aTemplate(), want: pods{replicas: 2, requirements: requirements}},
		"NoRequirements":   {reason: "One that asks for nothing.", gates: "ResourceQuotaEstimate=true", template: aTemplate(), want: pods{replicas: 2}},
		"Other":            {reason: "What has no replicas.", template: aTemplate(role)},
		"ComponentsOff":    {reason: "Components are for the gate.", fake: fakeInterpreter{components: components}, template: aTemplate(), want: pods{replicas: 2}},
		"Components":       {reason: "Then replicas stay empty.", gates: "MultiplePodTemplatesScheduling=true", fake: fakeInterpreter{components: components, requirements: requirements}, template: aTemplate(), want: pods{components: components}},
		"ComponentsFailed": {"An error stops, and is told.", "MultiplePodTemplatesScheduling=true", fakeInterpreter{components: components, err: errBoom}, aTemplate(), pods{}, true, []string{"Warning GetComponentsFailed: boom"}},
		"NoComponents":     {reason: "A kind without components has replicas.", gates: "MultiplePodTemplatesScheduling=true", template: aTemplate(), want: pods{replicas: 2}},
		"Quota": {
			reason: "Quotas count by namespace.", gates: "ResourceQuotaEstimate=true", fake: fakeInterpreter{requirements: requirements}, template: aTemplate(),
			want: pods{replicas: 2, requirements: &workv1alpha2.ReplicaRequirements{Namespace: "shop", PriorityClassName: "high"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			*w.pods = tc.fake
			if tc.gates != "" {
				if err := w.gates.Set(tc.gates); err != nil {
					t.Fatal(err)
				}
			}
			got, err := w.interpret(t.Context(), tc.template)
			if (err != nil) != tc.err {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			got.reason, got.action, got.note = "", "", ""
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(pods{})); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			wantEvents(t, w, tc.reason, tc.events...)
		})
	}
}

func TestPriority(t *testing.T) {
	cases := map[string]struct {
		reason string
		source policyv1alpha1.PriorityClassSource
		class  string
		want   int32
		err    bool
	}{
		"Class":   {"Its value.", policyv1alpha1.KubePriorityClass, "high", 1000, false},
		"Missing": {"A class that is not there is no priority.", policyv1alpha1.KubePriorityClass, "low", 0, true},
		"Source":  {"There is one source.", "Elsewhere", "high", 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, high())
			got, err := w.priorityOf(t.Context(), &policyv1alpha1.SchedulePriority{PriorityClassSource: tc.source, PriorityClassName: tc.class})
			if (err != nil) != tc.err || err == nil && got.Priority != tc.want {
				t.Errorf("%s\n%v, %v", tc.reason, got, err)
			}
		})
	}
	w := newWorld(t, aPolicy("p", full), aTemplate())
	if result, err := w.reconcile1(t, web); err != nil || result.RequeueAfter != patiently {
		t.Errorf("a template whose priority class is missing waits for that, without backing off: %v, %v", result, err)
	}
	if w.exists(t, &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}) {
		t.Error("a template whose priority cannot be told is not bound")
	}
	if err := w.gates.Set("PriorityBasedScheduling=false"); err != nil {
		t.Fatal(err)
	}
	w.done(t, web)
	if spec := w.bound(t, "shop", "web-deployment").BindingSpec(); spec.SchedulePriority != nil || spec.WorkloadAffinityGroups != nil {
		t.Errorf("what the gates do not let in: %+v", spec)
	}
}

func TestGroups(t *testing.T) {
	term := &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"}
	anti := &policyv1alpha1.WorkloadAntiAffinityTerm{GroupByLabelKey: "tier"}
	cases := map[string]struct {
		reason   string
		affinity *policyv1alpha1.WorkloadAffinity
		labels   map[string]string
		want     *workv1alpha2.WorkloadAffinityGroups
	}{
		"None":     {"The policy has no groups.", nil, map[string]string{"app": "web"}, nil},
		"Affinity": {"One.", &policyv1alpha1.WorkloadAffinity{Affinity: term}, map[string]string{"app": "web"}, &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web"}},
		"Both": {
			"Two.", &policyv1alpha1.WorkloadAffinity{Affinity: term, AntiAffinity: anti}, map[string]string{"app": "web", "tier": ""},
			&workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=web", AntiAffinityGroup: "tier="},
		},
		"NoLabel": {"A template without the label is in no group.", &policyv1alpha1.WorkloadAffinity{Affinity: term, AntiAffinity: anti}, map[string]string{"x": "y"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, groupsOf(tc.affinity, tc.labels)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
