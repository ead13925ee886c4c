package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// read returns the object as it is now, nil when there is none.
func read[T client.Object](t *testing.T, c client.Client, o T) (T, bool) {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return o, err == nil
}

func TestReconcileLive(t *testing.T) {
	notReady := taint(clusterv1alpha1.TaintNotReady, corev1.TaintEffectNoSchedule)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		funcs   interceptor.Funcs
		err     error
		taints  []string
		label   string
		events  []string
		writes  int
	}{
		"New": {
			reason:  "Finalizer and taint are one write, the namespace is the other.",
			objects: []client.Object{member()},
			taints:  []string{clusterv1alpha1.TaintNotReady},
			label:   names.True,
			events: []string{
				"Normal TaintClusterSucceed cluster now has taints([{Key:cluster.karmada.io/not-ready,Effect:NoSchedule}])",
				"Normal CreateExecutionSpaceSucceed Created execution space(karmada-es-m1) for cluster(m1).",
			},
			writes: 2,
		},
		"Steady": {
			reason:  "Nothing is written when nothing has changed.",
			objects: []client.Object{member(finalized, ready(metav1.ConditionTrue)), space(true)},
			label:   names.True,
		},
		"NamespaceOfOthers": {
			reason:  "A namespace that exists is left as it is, without our label too.",
			objects: []client.Object{member(finalized, ready(metav1.ConditionTrue)), space(false)},
		},
		"Recovered": {
			reason:  "The taint goes as soon as the cluster is ready.",
			objects: []client.Object{member(finalized, ready(metav1.ConditionTrue), tainted(notReady)), space(true)},
			label:   names.True,
			events:  []string{"Normal TaintClusterSucceed cluster now does not have taints"},
			writes:  1,
		},
		"NamespaceFails": {
			reason:  "The cluster says why it has no execution space, and it is tried again.",
			objects: []client.Object{member(finalized, ready(metav1.ConditionTrue))},
			funcs: interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return errBoom
			}},
			err:    errBoom,
			events: []string{"Warning CreateExecutionSpaceFailed create namespace karmada-es-m1: boom"},
			writes: 1,
		},
		"TaintFails": {
			reason:  "The cluster says why it has no taint, and it is tried again.",
			objects: []client.Object{member()},
			funcs: interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return errBoom
			}},
			err:    errBoom,
			events: []string{"Warning TaintClusterFailed boom"},
			writes: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.funcs, tc.objects...)
			c, _ := read(t, w.client, member())
			_, err := w.reconciler().Reconcile(t.Context(), c)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got error %v, want %v\n%s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.events, w.events()); diff != "" {
				t.Errorf("events (-want +got):\n%s\n%s", diff, tc.reason)
			}
			if w.writes != tc.writes {
				t.Errorf("wrote %d times, want %d\n%s", w.writes, tc.writes, tc.reason)
			}
			if err != nil {
				return
			}
			c, _ = read(t, w.client, member())
			if !strings.Contains(strings.Join(c.Finalizers, " "), names.ClusterFinalizer) {
				t.Errorf("finalizers %q", c.Finalizers)
			}
			var taints []string
			for _, taint := range c.Spec.Taints {
				taints = append(taints, taint.Key)
			}
			if diff := cmp.Diff(tc.taints, taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s\n%s", diff, tc.reason)
			}
			namespace, found := read(t, w.client, space(true))
			if !found || namespace.Labels[names.SystemLabel] != tc.label {
				t.Errorf("namespace: found %v, labels %v\n%s", found, namespace.Labels, tc.reason)
			}
		})
	}
}

// TestConflict has somebody write the Cluster between the reading and the
// writing of the controller.
func TestConflict(t *testing.T) {
	cases := map[string]struct {
		reason string
		other  func(*clusterv1alpha1.Cluster)
		taints []string
		writes int
	}{
		"Taint": {
			reason: "A taint that somebody has added meanwhile must not be lost.",
			other: func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = append(c.Spec.Taints, taint("example.com/mine", corev1.TaintEffectNoExecute))
			},
			taints: []string{"example.com/mine", clusterv1alpha1.TaintNotReady},
			writes: 3, // refused, done, the namespace
		},
		"Recovered": {
			reason: "The decision is taken anew, not only the write.",
			other:  func(c *clusterv1alpha1.Cluster) { finalized(c); ready(metav1.ConditionTrue)(c) },
			writes: 2, // refused, the namespace
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interceptor.Funcs{}, member())
			seen, _ := read(t, w.client, member())

			theirs := seen.DeepCopy()
			tc.other(theirs)
			status := theirs.Status
			if err := w.client.Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			theirs.Status = status
			if err := w.client.Status().Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			w.writes = 0

			if _, err := w.reconciler().Reconcile(t.Context(), seen); err != nil {
				t.Fatal(err)
			}
			c, _ := read(t, w.client, member())
			var taints []string
			for _, taint := range c.Spec.Taints {
				taints = append(taints, taint.Key)
			}
			if diff := cmp.Diff(tc.taints, taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s\n%s", diff, tc.reason)
			}
			if w.writes != tc.writes {
				t.Errorf("wrote %d times, want %d\n%s", w.writes, tc.writes, tc.reason)
			}
		})
	}
}

// TestDeletedMeanwhile has the Cluster deleted between reading and writing.
func TestDeletedMeanwhile(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, member())
	seen, _ := read(t, w.client, member())
	if err := w.client.Delete(t.Context(), seen.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconciler().Reconcile(t.Context(), seen); err != nil {
		t.Errorf("a Cluster that is gone is no error: %v", err)
	}
	if _, found := read(t, w.client, space(true)); found {
		t.Error("nobody would remove the namespace of a Cluster that is gone")
	}
	err := w.client.Get(t.Context(), client.ObjectKey{Name: "m1"}, &clusterv1alpha1.Cluster{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Cluster came back: %v", err)
	}
}
