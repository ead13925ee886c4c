package schedule

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// placedWhole puts components of so many replicas each on m1.
func placedWhole(a, b int32) option {
	return func(o binding.Object) {
		o.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Components: []workv1alpha2.TargetComponent{{Name: "a", Replicas: a}, {Name: "b", Replicas: b}}}}
	}
}

// TestComponentsScaled changes a workload of components that a cluster has no more
// room for.
func TestComponentsScaled(t *testing.T) {
	b := workload(dynamic, components, toOne, placedWhole(1, 1), scheduled, edited)
	w := newWorld(t, b, cluster("m1"), cluster("m2", withRoom("100")))
	r := w.reconciler(nil, Options{Components: true})
	if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workload(placedWhole(1, 2)).Spec.Clusters, w.get(b).BindingSpec().Clusters); diff != "" {
		t.Errorf("It stays where it is, and that is told as it is now (-want +got):\n%s", diff)
	}
	w.writes = nil
	if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil || len(w.writes) > 0 {
		t.Errorf("error %v, writes %q the second time, with nothing to do", err, w.writes)
	}
}

// TestComponentsUnderReservation places workloads of components one right after the
// other: six of 150m fit into one CPU, the seventh is told so
// (spec: behaviour/04 4.17).
func TestComponentsUnderReservation(t *testing.T) {
	small := func(b binding.Object) {
		part := func(name, cpu string) workv1alpha2.Component {
			return workv1alpha2.Component{Name: name, Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: quantity(cpu)}}}
		}
		b.BindingSpec().Replicas, b.BindingSpec().Components = 0, []workv1alpha2.Component{part("jobmanager", "50m"), part("taskmanager", "100m")}
	}
	m1 := cluster("m1", withRoom("100"))
	m1.Status.ResourceSummary.Allocatable["cpu"] = quantity("1")
	var (
		objects = []client.Object{m1}
		all     []*workv1alpha2.ResourceBinding
	)
	for i := range 7 {
		b := member(fmt.Sprintf("flink-%d", i), "", "", dynamic, small)
		b.Spec.WorkloadAffinityGroups = nil
		all, objects = append(all, b), append(objects, b)
	}
	w := newWorld(t, objects...)
	r := w.reconciler(nil, Options{Components: true, Pending: true})
	var got []string
	for _, b := range all {
		_, err := r.Reconcile(t.Context(), requestFor(b))
		now := w.get(b)
		if err != nil {
			got = append(got, conditionOf(now))
			continue
		}
		for _, target := range now.BindingSpec().Clusters {
			got = append(got, fmt.Sprint(target))
		}
	}
	want := append(strings.Split(strings.Repeat("{m1 0 [{jobmanager 1} {taskmanager 1}]}|", 6), "|")[:6],
		"False SchedulerError: failed to select clusters: no enough resource when selecting 1 clusters")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("What was placed a moment ago does not show in the cluster's numbers yet (-want +got):\n%s", diff)
	}
}
