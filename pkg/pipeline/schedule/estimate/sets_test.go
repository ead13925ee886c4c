package estimate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// component reads "replicas resource=amount ...".
func component(t testing.TB, text string) workv1alpha2.Component {
	t.Helper()
	fields := strings.Fields(text)
	c := workv1alpha2.Component{Name: fields[0]}
	if _, err := fmt.Sscan(fields[0], &c.Replicas); err != nil {
		t.Fatal(err)
	}
	if len(fields) > 1 {
		c.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{}}
	}
	for _, f := range fields[1:] {
		name, amount, _ := strings.Cut(f, "=")
		c.ReplicaRequirements.ResourceRequest[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return c
}

func TestSets(t *testing.T) {
	row := &clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "100")}
	// Three nodes of 2 CPUs and one of 4: together 10.
	modelled := &clusterv1alpha1.ResourceSummary{
		Allocatable:          list("cpu", "10", "memory", "40Gi", "pods", "440"),
		AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 2, Count: 1}, {Grade: 1, Count: 3}, {Grade: 0, Count: 9}},
	}
	class := func(grade int32, cpu, memory string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: "cpu", Min: resource.MustParse(cpu)}, {Name: "memory", Min: resource.MustParse(memory)},
		}}
	}
	models := []clusterv1alpha1.ResourceModel{class(0, "0", "0"), class(1, "2", "8Gi"), class(2, "4", "16Gi")}
	cases := map[string]struct {
		reason     string
		summary    *clusterv1alpha1.ResourceSummary
		off        bool // the gate of models
		components []string
		held       []string
		want       int32
	}{
		"Row14_9": {
			reason: "14.9: 4000/150 is less than 100/2; a tenth of a byte is one.", summary: row,
			components: []string{"1 cpu=50m memory=100m", "1 cpu=100m memory=100m"}, want: 26,
		},
		"Row14_9Pods":   {reason: "14.9: two pods a set.", summary: row, components: []string{"1", "1"}, want: 50},
		"Units":         {reason: "How a quantity is written does not matter.", summary: row, components: []string{"1 memory=1073741824", "1 memory=1Gi"}, want: 4},
		"Unknown":       {reason: "What the cluster does not offer fits never.", summary: row, components: []string{"1", "1 gpu=1"}, want: 0},
		"Idle":          {reason: "A component without replicas asks for nothing.", summary: row, components: []string{"0 gpu=1", "4 cpu=1"}, want: 1},
		"AllIdle":       {reason: "There is room for nothing everywhere.", summary: row, components: []string{"0", "0 cpu=1"}, want: math.MaxInt32},
		"NoSummary":     {reason: "A cluster that says nothing has no room.", components: []string{"1", "1"}, want: 0},
		"Held":          {reason: "What is reserved counts.", summary: row, components: []string{"1 cpu=1", "1 cpu=1"}, held: []string{"1 cpu=1"}, want: 1},
		"HeldPods":      {reason: "So do the places for its pods.", summary: row, components: []string{"1", "1"}, held: []string{"90"}, want: 5},
		"Huge":          {reason: "Nothing overflows.", summary: row, components: []string{"2147483647 memory=8Ei", "2147483647 cpu=9000000000000000"}, want: 0},
		"Models":        {reason: "1 + 1 on each of three nodes, and twice on the fourth.", summary: modelled, components: []string{"1 cpu=1", "1 cpu=1"}, want: 5},
		"ModelsNode":    {reason: "The sum has room for three, but only one node for the large component.", summary: modelled, components: []string{"1 cpu=3", "1"}, want: 1},
		"ModelsOff":     {reason: "Without the gate the sum counts.", summary: modelled, off: true, components: []string{"1 cpu=3", "1"}, want: 3},
		"ModelsFirst":   {reason: "Small ones fill the first nodes; the large one goes where it fits.", summary: modelled, components: []string{"4 cpu=500m", "1 cpu=2"}, want: 2},
		"ModelsOrder":   {reason: "Nodes of the lowest class come first, whatever the order of the status.", summary: modelled, components: []string{"3 cpu=2", "1 cpu=4"}, want: 1},
		"ModelsHeld":    {reason: "What is reserved has its place on nodes first.", summary: modelled, components: []string{"3 cpu=2", "1 cpu=4"}, held: []string{"1 cpu=2"}, want: 0},
		"ModelsUnknown": {reason: "What models do not tell of fits on no node.", summary: withGPU(modelled), components: []string{"1 gpu=1"}, want: 0},
		"ModelsPods":    {reason: "The sum has fewer places for pods than nodes have.", summary: modelled, components: []string{"20", "20"}, want: 11},
		"ModelsPerNode": {reason: "A node has 110 places.", summary: modelled, components: []string{"440"}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{}
			c.Spec.ResourceModels, c.Status.ResourceSummary = models, tc.summary
			r := Request{}
			for _, text := range tc.components {
				r.Components = append(r.Components, component(t, text))
			}
			held := &Reserved{}
			for _, text := range tc.held {
				hold(t, held, text)
			}
			if got := (General{Models: !tc.off}).Replicas(c, r, held); got != tc.want {
				t.Errorf("got %d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func withGPU(s *clusterv1alpha1.ResourceSummary) *clusterv1alpha1.ResourceSummary {
	s = s.DeepCopy()
	s.Allocatable["gpu"] = resource.MustParse("8")
	return s
}

// simulated counts sets as the rule is written: node by node, component by
// component (spec: behaviour/04 4.17).
func simulated(all nodes, components []workv1alpha2.Component, most int64) int64 {
	var each []nodeClass
	for _, class := range all {
		for range class.count {
			each = append(each, nodeClass{left: class.left, pods: class.pods})
		}
	}
	for n := range most {
		for _, c := range components {
			asked, left := amountsOf(requestOf(c)), int64(c.Replicas)
			for i := range each {
				fits := min(left, each[i].fits(asked))
				each[i] = each[i].less(asked, fits)
				left -= fits
			}
			if left > 0 {
				return n
			}
		}
	}
	return most
}

// TestSimulation holds the short way against the long one.
func TestSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all nodes
		for range 1 + random.IntN(3) {
			all = append(all, nodeClass{count: 1 + random.Int64N(4), left: amounts{"cpu": random.Int64N(30), "memory": random.Int64N(30)}, pods: 1 + random.Int64N(20)})
		}
		var components []workv1alpha2.Component
		for range 1 + random.IntN(4) {
			components = append(components, component(t, fmt.Sprintf("%d cpu=%dm memory=%d", random.IntN(4), random.IntN(6), random.IntN(6))))
		}
		most := random.Int64N(40)
		if got, want := newSimulation(all, components).run(most), simulated(all, components, most); got != want {
			t.Fatalf("%d sets of %v on %v, want %d", got, components, all, want)
		}
	}
}

func BenchmarkSets(b *testing.B) {
	for _, count := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			c := &clusterv1alpha1.Cluster{}
			c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{
				{Name: "cpu", Min: resource.MustParse("8")}, {Name: "memory", Min: resource.MustParse("32Gi")},
			}}}
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
				Allocatable:          list("cpu", fmt.Sprint(8*count), "memory", fmt.Sprintf("%dGi", 32*count), "pods", fmt.Sprint(110*count)),
				AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 1, Count: int32(count)}},
			}
			r := Request{Components: []workv1alpha2.Component{component(b, "1 cpu=500m memory=1Gi"), component(b, "3 cpu=700m memory=3Gi")}}
			for b.Loop() {
				if (General{Models: true}).Replicas(c, r, nil) == 0 {
					b.Fatal("no room")
				}
			}
		})
	}
}
