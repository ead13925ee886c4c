package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

func TestIncompleteOptions(t *testing.T) {
	if err := Setup(nil, Options{}); err == nil {
		t.Error("what is missing is told at start, not by a crash")
	}
}

func TestBindingChanged(t *testing.T) {
	fit := scheduled(metav1.ConditionFalse, workv1alpha2.ReasonNoClusterFit, 1)
	cases := map[string]struct {
		reason        string
		before, after []func(binding.Object)
		want          bool
	}{
		"Spec":      {"The spec is what Works are made from.", nil, []func(binding.Object){func(b binding.Object) { b.SetGeneration(2) }}, true},
		"Deleted":   {"Its Works go.", nil, []func(binding.Object){func(b binding.Object) { b.SetDeletionTimestamp(ptr.To(metav1.Now())) }}, true},
		"Identity":  {"Its Works are known by that.", nil, []func(binding.Object){func(b binding.Object) { b.SetLabels(nil) }}, true},
		"Decided":   {"Now it is certain that no cluster is eligible.", nil, []func(binding.Object){fit}, true},
		"Scheduled": {"That was said by the clusters already.", []func(binding.Object){to("m1")}, []func(binding.Object){to("m1"), fit}, false},
		"Status": {"That is somebody else's doing.", nil, []func(binding.Object){func(b binding.Object) {
			b.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}}
		}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := deployment(t)
			if got := bindingChanged().Update(event.UpdateEvent{ObjectOld: bound(template, tc.before...), ObjectNew: bound(template, tc.after...)}); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
}

func TestDisturbed(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"Spec":   {"Somebody changed what is to be there.", func(w *workv1alpha1.Work) { w.Generation++ }, true},
		"Taken":  {"Somebody took it from its binding.", func(w *workv1alpha1.Work) { w.Labels = nil }, true},
		"Status": {"That is not our doing.", func(w *workv1alpha1.Work) { w.Status.Conditions = []metav1.Condition{{Type: "Applied"}} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := aWork(bound(deployment(t)), "m1", web)
			after := before.DeepCopy()
			tc.change(after)
			if got := disturbed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
	if disturbed().Create(event.CreateEvent{Object: aWork(bound(deployment(t)), "m1", web)}) || !disturbed().Delete(event.DeleteEvent{}) {
		t.Error("a new Work is our own doing; one that is gone is made again")
	}
}

func TestSelectableChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		"Labels": {"Override policies select by them.", func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }, true},
		"Region": {"And by that.", func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "eu" }, true},
		"Zones":  {"And by these.", func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"a"} }, true},
		"Status": {"It changes all the time.", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := cluster("m1", nil)
			tc.change(after)
			if got := selectableChanged().Update(event.UpdateEvent{ObjectOld: cluster("m1", nil), ObjectNew: after}); got != tc.want {
				t.Errorf("got %t\n%s", got, tc.reason)
			}
		})
	}
}

func TestOverrideChanged(t *testing.T) {
	p := &policyv1alpha1.OverridePolicy{}
	changed := p.DeepCopy()
	changed.Generation++
	for reason, got := range map[string]bool{
		"a new one":              overrideChanged().Create(event.CreateEvent{Object: p}),
		"one that was edited":    overrideChanged().Update(event.UpdateEvent{ObjectOld: p, ObjectNew: changed}),
		"one that is gone":       overrideChanged().Delete(event.DeleteEvent{Object: p}),
		"one that was relabeled": !overrideChanged().Update(event.UpdateEvent{ObjectOld: p, ObjectNew: p.DeepCopy()}),
		"one of the start":       !overrideChanged().Create(event.CreateEvent{Object: p, IsInInitialList: true}),
	} {
		if !got {
			t.Errorf("%s is not treated as it should be", reason)
		}
	}
}

func requested(requests []reconcile.Request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, r.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestMapper(t *testing.T) {
	template, role := deployment(t), clusterRole(t, "view")
	other := object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"other","name":"c","labels":{"app":"c"}}}`)
	b, global, elsewhere := bound(template, to("m1")), bound(role, to("m1")), bound(other, to("m2"))
	selecting := func(s ...policyv1alpha1.ResourceSelector) policyv1alpha1.OverrideSpec {
		return policyv1alpha1.OverrideSpec{ResourceSelectors: s}
	}
	cop := func(s ...policyv1alpha1.ResourceSelector) client.Object {
		return &policyv1alpha1.ClusterOverridePolicy{Spec: selecting(s...)}
	}
	op := func(namespace string, s ...policyv1alpha1.ResourceSelector) client.Object {
		return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: selecting(s...)}
	}
	byLabel := func(app string) policyv1alpha1.ResourceSelector {
		return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	}
	cases := map[string]struct {
		reason     string
		of         client.Object
		namespaced []string
		global     []string
	}{
		"All":       {"Without selectors everything is selected.", cop(), []string{"default/web-deployment", "other/c-configmap"}, []string{"/view-clusterrole"}},
		"Namespace": {"An OverridePolicy is for its namespace.", op("other"), []string{"other/c-configmap"}, nil},
		"Kind":      {"One kind.", cop(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}), []string{"default/web-deployment"}, nil},
		"Name":      {"One object.", cop(policyv1alpha1.ResourceSelector{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "view"}), nil, []string{"/view-clusterrole"}},
		"Label":     {"By labels, which the template has.", op("default", byLabel("web")), []string{"default/web-deployment"}, nil},
		"NoLabel":   {"By labels that it does not have.", op("default", byLabel("x")), nil, nil},
	}
	w := newWorld(t, template, role, other, b, global, elsewhere, aWork(b, "m1", web), aWork(global, "m1", "view"), aWork(elsewhere, "m2", "c"))
	rb, crb := mapper{client: w.client, templates: w, namespaced: true}, mapper{client: w.client, templates: w}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.namespaced, requested(rb.ofOverride(t.Context(), tc.of))); diff != "" {
				t.Errorf("%s\nResourceBindings (-want +got):\n%s", tc.reason, diff)
			}
			if tc.of.GetNamespace() != "" {
				return // a ClusterResourceBinding does not hear of it
			}
			if diff := cmp.Diff(tc.global, requested(crb.ofOverride(t.Context(), tc.of))); diff != "" {
				t.Errorf("%s\nClusterResourceBindings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("Unreadable", func(t *testing.T) {
		w.failing = errBoom
		defer func() { w.failing = nil }()
		if got := requested(rb.ofOverride(t.Context(), op("default", byLabel("x")))); len(got) != 1 {
			t.Errorf("a template whose labels are not known may be selected: %q", got)
		}
	})
	t.Run("Work", func(t *testing.T) {
		work := aWork(b, "m1", web)
		if got := requested(rb.ofWork(t.Context(), work)); !slices.Equal(got, []string{"default/web-deployment"}) || len(crb.ofWork(t.Context(), work)) > 0 {
			t.Errorf("a Work belongs to the binding that its annotations name: %q", got)
		}
	})
	t.Run("Cluster", func(t *testing.T) {
		if got := requested(rb.ofCluster(t.Context(), cluster("m1", nil))); len(got) > 0 {
			t.Errorf("without override policies nothing depends on what a cluster is like: %q", got)
		}
		if err := w.client.Create(t.Context(), &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		if got := requested(rb.ofCluster(t.Context(), cluster("m1", nil))); !slices.Equal(got, []string{"default/web-deployment"}) {
			t.Errorf("with them, what has a Work there does: %q", got)
		}
		if got := requested(crb.ofCluster(t.Context(), cluster("m1", nil))); !slices.Equal(got, []string{"/view-clusterrole"}) {
			t.Errorf("of this scope, too: %q", got)
		}
	})
}
