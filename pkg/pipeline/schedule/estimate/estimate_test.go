package estimate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// spec: behaviour/14 14.11, and beyond.
func TestGeneral(t *testing.T) {
	summary := &clusterv1alpha1.ResourceSummary{
		Allocatable: list("cpu", "8", "pods", "110", "memory", "10Gi"), Allocated: list("cpu", "2", "pods", "20"), Allocating: list("cpu", "1", "pods", "5"),
	}
	modelled := summary.DeepCopy()
	modelled.AllocatableModelings = []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 5}, {Grade: 1, Count: 2}, {Grade: 2, Count: 1}, {Grade: 7, Count: 9}}
	class := func(grade int32, cpu, memory string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: "cpu", Min: resource.MustParse(cpu)}, {Name: "memory", Min: resource.MustParse(memory)},
		}}
	}
	models := []clusterv1alpha1.ResourceModel{class(0, "0", "0"), class(1, "1", "4Gi"), class(2, "2", "16Gi")}
	need := func(pairs ...string) *workv1alpha2.ReplicaRequirements {
		return &workv1alpha2.ReplicaRequirements{ResourceRequest: list(pairs...)}
	}
	cases := map[string]struct {
		reason  string
		summary *clusterv1alpha1.ResourceSummary
		models  []clusterv1alpha1.ResourceModel
		off     bool // the gate
		need    *workv1alpha2.ReplicaRequirements
		held    []string // reserved: "replicas resource=amount ..."
		want    int32
	}{
		"14.11 cpu 500m":         {reason: "(8-2-1)/0.5 is less than the places for pods.", summary: summary, need: need("cpu", "500m"), want: 10},
		"14.11 unknown resource": {reason: "What the cluster does not offer it has no room for.", summary: summary, need: need("gpu", "1"), want: 0},
		"14.11 no requirements":  {reason: "A replica takes a place for a pod.", summary: summary, want: 85},
		"NoRequest":              {reason: "The same for requirements that ask for nothing.", summary: summary, need: need("cpu", "0"), want: 85},
		"Least":                  {reason: "The scarcest resource decides.", summary: summary, need: need("cpu", "100m", "memory", "3Gi"), want: 3},
		"Overcommitted": {
			reason: "There is no less than no room.", need: need("cpu", "1"), want: 0,
			summary: &clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "1", "pods", "10"), Allocated: list("cpu", "2")},
		},
		"NoSummary":        {reason: "A cluster that says nothing has no room.", need: need("cpu", "1"), want: 0},
		"14.11 models":     {reason: "1+1+2; nodes of class 0, and of classes nobody knows, count for nothing.", summary: modelled, models: models, need: need("cpu", "1"), want: 4},
		"ModelsOff":        {reason: "Without the gate the sum counts.", summary: modelled, models: models, off: true, need: need("cpu", "1"), want: 5},
		"ModelsMissing":    {reason: "Without models to read them by the sum counts.", summary: modelled, need: need("cpu", "1"), want: 5},
		"ModelsLackThat":   {reason: "What models do not tell of fits into no node.", summary: modelled, models: models, need: need("gpu", "1"), want: 0},
		"ModelsBothNeeded": {reason: "All of it must be on one node.", summary: modelled, models: models, need: need("cpu", "1", "memory", "8Gi"), want: 2},
		"ModelsAndPods":    {reason: "Places for pods are the limit there, too.", summary: modelled, models: models, need: need("cpu", "1m"), want: 85},
		"Huge": {
			reason: "A number that is too large for an answer is the largest one.", need: nil, want: math.MaxInt32,
			summary: &clusterv1alpha1.ResourceSummary{Allocatable: list("pods", "9T")},
		},

		"Held":           {reason: "(8-2-1-2*1)/0.5: what was placed there does not show yet.", summary: summary, need: need("cpu", "500m"), held: []string{"2 cpu=1"}, want: 6},
		"HeldPods":       {reason: "Each replica takes a place for a pod, too.", summary: summary, held: []string{"5 cpu=1", "3"}, want: 77},
		"HeldOther":      {reason: "What others ask for, and the replica does not, is left to them.", summary: summary, need: need("cpu", "500m"), held: []string{"2 memory=9Gi"}, want: 10},
		"HeldAll":        {reason: "There is no less than no room.", summary: summary, need: need("cpu", "500m"), held: []string{"2000000000 cpu=9000000"}, want: 0},
		"HeldTwice":      {reason: "Entries add up.", summary: summary, need: need("cpu", "1"), held: []string{"1 cpu=1", "1 cpu=1", "1 cpu=2"}, want: 1},
		"HeldTaken":      {reason: "What was taken back does not count.", summary: summary, need: need("cpu", "1"), held: []string{"1 cpu=1", "2 cpu=2", "-2 cpu=2", "-1 cpu=1"}, want: 5},
		"HeldModels":     {reason: "It takes the nodes of the lowest class first: of 1, 1 and 2 cores 2 are left.", summary: modelled, models: models, need: need("cpu", "1"), held: []string{"2 cpu=1"}, want: 2},
		"HeldModelsBig":  {reason: "What fits into the large node only takes that.", summary: modelled, models: models, need: need("cpu", "1"), held: []string{"1 cpu=2"}, want: 2},
		"HeldModelsPart": {reason: "Half a core of each small node stays, which is of no use for a whole one.", summary: modelled, models: models, need: need("cpu", "1"), held: []string{"2 cpu=500m"}, want: 3},
		"HeldModelsOver": {reason: "What finds no node takes none.", summary: modelled, models: models, need: need("cpu", "1"), held: []string{"1 cpu=3"}, want: 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{}
			c.Spec.ResourceModels, c.Status.ResourceSummary = tc.models, tc.summary
			held := &Reserved{}
			for _, text := range tc.held {
				hold(t, held, text)
			}
			if got := (General{Models: !tc.off}).Replicas(c, Request{Replica: tc.need}, held); got != tc.want {
				t.Errorf("got %d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// hold reserves "replicas resource=amount ..."; a negative number takes it back.
func hold(t *testing.T, r *Reserved, text string) {
	t.Helper()
	fields := strings.Fields(text)
	replicas, request := int64(0), corev1.ResourceList{}
	if _, err := fmt.Sscan(fields[0], &replicas); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields[1:] {
		name, amount, _ := strings.Cut(f, "=")
		request[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	if replicas < 0 {
		r.Remove(request, -replicas)
		return
	}
	r.Add(request, replicas)
}

func TestReservedIsEmpty(t *testing.T) {
	r := &Reserved{}
	for _, step := range []struct {
		text  string
		empty bool
	}{{"1 cpu=1", false}, {"2", false}, {"-1 cpu=1", false}, {"-2", true}} {
		hold(t, r, step.text)
		if r.IsEmpty() != step.empty {
			t.Errorf("after %q IsEmpty is %t: what is taken back leaves nothing", step.text, r.IsEmpty())
		}
	}
	if !(*Reserved)(nil).IsEmpty() {
		t.Error("nil is not empty")
	}
}

func TestBeside(t *testing.T) {
	replica := func(pairs ...string) Request {
		return Request{Replica: &workv1alpha2.ReplicaRequirements{ResourceRequest: list(pairs...)}}
	}
	cases := map[string]struct {
		reason  string
		answer  Answer
		request Request
		held    []string
		want    int32
	}{
		"Nothing":   {reason: "Nothing is gone.", answer: Answer{Replicas: 5}, request: replica("cpu", "1"), want: 5},
		"Alike":     {reason: "Each replica before takes the place of one.", answer: Answer{Replicas: 5}, request: replica("cpu", "1", "memory", "1Gi"), held: []string{"2 cpu=1 memory=1Gi"}, want: 3},
		"Part":      {reason: "Half a place is none.", answer: Answer{Replicas: 5}, request: replica("cpu", "1"), held: []string{"3 cpu=500m"}, want: 3},
		"Scarcest":  {reason: "What is asked for most counts.", answer: Answer{Replicas: 5}, request: replica("cpu", "1", "memory", "1Gi"), held: []string{"1 cpu=1 memory=3Gi"}, want: 2},
		"Other":     {reason: "What the request does not ask for is of no matter.", answer: Answer{Replicas: 5}, request: replica("cpu", "1"), held: []string{"9 memory=1Gi"}, want: 5},
		"Pods":      {reason: "Who asks for nothing takes a place for a pod.", answer: Answer{Replicas: 5}, held: []string{"2 cpu=1"}, want: 3},
		"All":       {reason: "There is no less than no room.", answer: Answer{Replicas: 5}, request: replica("cpu", "1"), held: []string{"9 cpu=1"}, want: 0},
		"Counted":   {reason: "Nothing is taken off twice.", answer: Answer{Replicas: 5, Counted: true}, request: replica("cpu", "1"), held: []string{"2 cpu=1"}, want: 5},
		"CannotSay": {reason: "Who cannot tell can still not.", answer: Answer{Replicas: Unknown}, request: replica("cpu", "1"), held: []string{"2 cpu=1"}, want: Unknown},
		"Sets": {
			reason: "A set takes what all its components ask for.", answer: Answer{Replicas: 5}, held: []string{"4 cpu=1"}, want: 3,
			request: Request{Components: []workv1alpha2.Component{component(t, "1 cpu=500m"), component(t, "3 cpu=500m")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			held := &Reserved{}
			for _, text := range tc.held {
				hold(t, held, text)
			}
			if got := tc.answer.Beside(held, tc.request).Replicas; got != tc.want {
				t.Errorf("got %d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}
