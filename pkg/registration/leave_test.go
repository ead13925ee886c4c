package registration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const space = "karmada-es-m"

func workOf(name string, system bool, manifests ...string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: named(space, name)}
	if system {
		markSystem(w)
	}
	for _, m := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
	}
	return w
}

func TestPropagated(t *testing.T) {
	c := newCluster(t,
		workOf("a", false, `{"kind":"Deployment","metadata":{"name":"web","namespace":"default"}}`, `{"kind":"Namespace","metadata":{"name":"n"}}`),
		workOf("b", true, `{"kind":"ClusterRole","metadata":{"name":"karmada-impersonator"}}`),
		workOf("c", false, `{}`),
	)
	got, err := Propagated(t.Context(), c, "m")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Deployment default/web", "Namespace n", "an object that cannot be read"}, got); diff != "" {
		t.Errorf("what users propagated (-want +got):\n%s", diff)
	}
}

// leavingCluster is one that something holds back, with its execution namespace and a Work.
func leavingCluster() (*clusterv1alpha1.Cluster, *corev1.Namespace, *workv1alpha1.Work) {
	c, n, w := clusterOf("m", "id-m", clusterv1alpha1.Push, ""), &corev1.Namespace{ObjectMeta: ours("", space)}, workOf("w", false)
	c.UID, c.Finalizers = "uid-m", []string{names.ClusterFinalizer}
	n.Finalizers = []string{"kubernetes"}
	w.Finalizers = []string{names.WorkFinalizer}
	return c, n, w
}

func TestRemoveCluster(t *testing.T) {
	cases := map[string]struct {
		reason  string
		uid     string
		change  func(*clusterv1alpha1.Cluster, *corev1.Namespace)
		removal Removal
		fail    func(verb string, obj client.Object) error
		gone    bool
		cascade string // of the Cluster that is left
		err     string
		stuck   bool
	}{
		"Free":       {reason: "Nothing holds it back.", change: func(c *clusterv1alpha1.Cluster, _ *corev1.Namespace) { c.Finalizers = nil }, gone: true},
		"AnotherOne": {reason: "One that has taken the name is not meant.", uid: "uid-of-before"},
		"Stuck":      {reason: "What holds it back is said.", err: "1 Works are left in namespace karmada-es-m (w)", stuck: true},
		"Orphan":     {reason: "It is said beforehand what stays.", removal: Removal{Orphan: true}, cascade: "orphan", err: "has not gone", stuck: true},
		"Delete": {
			reason: "An earlier wish is taken back.", cascade: "delete", err: "has not gone", stuck: true,
			change: func(c *clusterv1alpha1.Cluster, _ *corev1.Namespace) {
				c.Annotations = map[string]string{names.ClusterCascadeAnnotation: names.CascadeOrphan}
			},
		},
		"Force": {reason: "Nothing is left to hold it back.", removal: Removal{Force: true}, gone: true},
		"ForceForeign": {
			reason: "A namespace that is not ours stays, and that is told.", removal: Removal{Force: true}, gone: true, err: "namespace karmada-es-m stays",
			change: func(_ *clusterv1alpha1.Cluster, n *corev1.Namespace) { n.Labels = nil },
		},
		"ForceFails": {
			reason: "What fails is told, and the rest is done.", removal: Removal{Force: true}, gone: true, err: "take the finalizers off Work karmada-es-m/w: boom",
			fail: func(verb string, obj client.Object) error {
				if _, ok := obj.(*workv1alpha1.Work); ok && verb == "patch" {
					return errBoom
				}
				return nil
			},
		},
		"Refused": {
			reason: "Who may not, may not.", err: "delete cluster m: boom",
			fail: func(verb string, _ client.Object) error {
				if verb == "delete" {
					return errBoom
				}
				return nil
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, n, w := leavingCluster()
			if tc.change != nil {
				tc.change(found, n)
			}
			c := newCluster(t, found, n, w)
			if tc.fail != nil {
				c.fail = tc.fail
			}
			r := tc.removal
			r.Name, r.UID, r.Wait, r.Progress = "m", "uid-m", time.Millisecond, func(string) {}
			if tc.uid != "" {
				r.UID = tc.uid
			}
			err := RemoveCluster(t.Context(), c, r)
			check(t, tc.reason, err, tc.err)
			var stuck *StuckError
			if got := errors.As(err, &stuck); got != tc.stuck {
				t.Errorf("stuck: %t, want %t: %v", got, tc.stuck, err)
			}
			left := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
			if got := !c.has(t, left); got != tc.gone {
				t.Errorf("gone: %t, want %t: %s", got, tc.gone, tc.reason)
			}
			if got := left.Annotations[names.ClusterCascadeAnnotation]; got != tc.cascade {
				t.Errorf("the annotation says %q, want %q: %s", got, tc.cascade, tc.reason)
			}
			if name == "Force" && c.has(t, &corev1.Namespace{ObjectMeta: named("", space)}) {
				t.Error("the execution namespace is left")
			}
		})
	}
}

// Whoever decides at the same time about the Cluster that it orphans is not overlooked.
func TestRemoveClusterIsNotOutrun(t *testing.T) {
	found := clusterOf("m", "id-m", clusterv1alpha1.Push, "")
	found.UID = "uid-m"
	c := newCluster(t, found)
	meddled := false
	c.fail = func(verb string, _ client.Object) error {
		if verb != "delete" || meddled {
			return nil
		}
		meddled = true
		m := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
		c.has(t, m)
		m.Labels = map[string]string{"k": "v"}
		return c.Update(context.Background(), m)
	}
	r := Removal{Name: "m", UID: "uid-m", Wait: time.Minute, Progress: func(string) {}}
	if err := RemoveCluster(t.Context(), c, r); err != nil {
		t.Fatal(err)
	}
	if c.has(t, &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}) {
		t.Error("it is still there")
	}
}

func TestWhyItStays(t *testing.T) {
	going := metav1.Now()
	found, n, w := leavingCluster()
	terminating := n.DeepCopy()
	terminating.DeletionTimestamp = &going
	terminating.Status.Conditions = []corev1.NamespaceCondition{{Status: corev1.ConditionTrue, Message: "some content"}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    string
	}{
		"Works":      {reason: "They have to go first.", objects: []client.Object{n, w}, want: "1 Works are left"},
		"Namespace":  {reason: "Somebody has to delete it.", objects: []client.Object{n}, want: "nobody has begun to delete it"},
		"Going":      {reason: "What its controller says is repeated.", objects: []client.Object{terminating}, want: "some content"},
		"Finalizers": {reason: "They are all that is left.", want: names.ClusterFinalizer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := whyItStays(t.Context(), newCluster(t, tc.objects...), found); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it: %s", got, tc.want, tc.reason)
			}
		})
	}
}
