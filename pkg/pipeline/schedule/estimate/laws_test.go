package estimate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func drawRequest(t *rapid.T) corev1.ResourceList {
	request := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if n := rapid.IntRange(0, 4).Draw(t, string(name)); n > 0 {
			request[name] = resource.MustParse(fmt.Sprint(n))
		}
	}
	return request
}

func drawCluster(t *rapid.T) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: list(
		"cpu", fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "cpus")), "memory", fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "bytes")), "pods", "50")}
	for grade := range rapid.Int32Range(0, 3).Draw(t, "grades") {
		c.Spec.ResourceModels = append(c.Spec.ResourceModels, clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: "cpu", Min: *resource.NewQuantity(int64(grade)*2, resource.DecimalSI)}, {Name: "memory", Min: *resource.NewQuantity(int64(grade)*3, resource.DecimalSI)},
		}})
		c.Status.ResourceSummary.AllocatableModelings = append(c.Status.ResourceSummary.AllocatableModelings, clusterv1alpha1.AllocatableModeling{
			Grade: grade, Count: rapid.Int32Range(0, 5).Draw(t, "nodes"),
		})
	}
	return c
}

// What is reserved never makes room; what is taken back leaves no trace.
func TestReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, held := drawCluster(t), &Reserved{}
		g, r := General{Models: rapid.Bool().Draw(t, "models")}, Request{Replica: &workv1alpha2.ReplicaRequirements{ResourceRequest: drawRequest(t)}}
		empty := g.Replicas(c, r, nil)
		type added struct {
			request  corev1.ResourceList
			replicas int64
		}
		var all []added
		for range rapid.IntRange(0, 6).Draw(t, "reservations") {
			one := added{drawRequest(t), rapid.Int64Range(0, 5).Draw(t, "replicas")}
			all = append(all, one)
			held.Add(one.request, one.replicas)
			if got := g.Replicas(c, r, held); got > empty {
				t.Fatalf("room for %d, and for %d once %v was reserved", empty, got, one)
			}
		}
		for _, one := range rapid.Permutation(all).Draw(t, "order") {
			held.Remove(one.request, one.replicas)
		}
		if got := g.Replicas(c, r, held); got != empty || !held.IsEmpty() {
			t.Fatalf("room for %d before, and for %d after all was taken back", empty, got)
		}
	})
}

// Replicas that find a place one after the other are as many as there is room for.
func TestFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, held := drawCluster(t), &Reserved{}
		request := drawRequest(t)
		g, r := General{Models: rapid.Bool().Draw(t, "models")}, Request{Replica: &workv1alpha2.ReplicaRequirements{ResourceRequest: request}}
		room, placed := g.Replicas(c, r, nil), int32(0)
		for g.Replicas(c, r, held) > 0 {
			held.Add(request, 1)
			placed++
			if placed > room {
				break
			}
		}
		if placed != room {
			t.Fatalf("room for %d, and %d found a place", room, placed)
		}
	})
}

// Nodes that are alike are counted as one, and come out as if each stood alone.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		together, alone := nodesOf(c), nodes{}
		for _, n := range together {
			for range n.count {
				n.count = 1
				alone = append(alone, n)
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "workloads") {
			each, replicas := amountsOf(drawRequest(t)), rapid.Int64Range(0, 9).Draw(t, "replicas")
			var a, b int64
			together, a = together.place(each, replicas)
			alone, b = alone.place(each, replicas)
			if a != b {
				t.Fatalf("%d of %d found no place together, %d alone", a, replicas, b)
			}
		}
		if each := amountsOf(drawRequest(t)); together.room(each) != alone.room(each) {
			t.Fatalf("room for %d together, for %d alone", together.room(each), alone.room(each))
		}
	})
}
