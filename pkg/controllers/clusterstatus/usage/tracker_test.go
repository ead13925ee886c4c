package usage

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const gpu = corev1.ResourceName("example.com/gpu")

// resources reads "cpu=1 memory=2Gi" and so on.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func newPod(uid, node string, requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			NodeName:   node,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
}

func newNode(name string, ready bool, allocatable corev1.ResourceList) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: allocatable}}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	return n
}

// all returns a Tracker that has seen everything.
func all(nodes []*corev1.Node, pods []*corev1.Pod) *Tracker {
	t := New()
	list(t, nodes, pods)
	return t
}

func list(t *Tracker, nodes []*corev1.Node, pods []*corev1.Pod) {
	t.beginNodes()
	for _, n := range nodes {
		t.setNode(n)
	}
	t.endNodes()
	t.beginPods()
	for _, p := range pods {
		t.setPod(p)
	}
	t.endPods()
}

// plain writes quantities as strings: 1 and 1000m are the same.
func plain(list corev1.ResourceList) map[corev1.ResourceName]string {
	texts := map[corev1.ResourceName]string{}
	for name, q := range list {
		texts[name] = q.String()
	}
	return texts
}

func TestSummary(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cases := map[string]struct {
		reason                             string
		nodes                              []*corev1.Node
		pods                               []*corev1.Pod
		total, ready                       int32
		allocatable, allocating, allocated map[corev1.ResourceName]string
	}{
		"Empty": {
			reason: "No node and no pod is an answer, too.", allocatable: map[corev1.ResourceName]string{},
			allocating: map[corev1.ResourceName]string{"pods": "0"}, allocated: map[corev1.ResourceName]string{"pods": "0"},
		},
		"Nodes": {
			reason: "All nodes count, ready or not; resources that a node has none of are shown.",
			nodes: []*corev1.Node{
				newNode("a", true, resources("cpu", "1500m", "memory", "1Gi", "pods", "110", "hugepages-2Mi", "0")),
				newNode("b", false, resources("cpu", "500m", "memory", "1Gi", "pods", "110", "example.com/gpu", "2")),
			},
			total: 2, ready: 1,
			allocatable: map[corev1.ResourceName]string{"cpu": "2", "memory": "2Gi", "pods": "220", "hugepages-2Mi": "0", gpu: "2"},
			allocating:  map[corev1.ResourceName]string{"pods": "0"}, allocated: map[corev1.ResourceName]string{"pods": "0"},
		},
		"Pods": {
			reason: "A pod without a node waits, one with a node has it, one that has ended has nothing.",
			pods: []*corev1.Pod{
				newPod("1", "", resources("cpu", "1", "example.com/gpu", "1")),
				newPod("2", "a", resources("cpu", "250m", "memory", "64Mi")),
				newPod("3", "a", nil),
				func() *corev1.Pod {
					p := newPod("4", "a", resources("cpu", "7"))
					p.Status.Phase = corev1.PodSucceeded
					return p
				}(),
				func() *corev1.Pod {
					p := newPod("5", "", resources("cpu", "7"))
					p.Status.Phase = corev1.PodFailed
					return p
				}(),
			},
			allocatable: map[corev1.ResourceName]string{},
			allocating:  map[corev1.ResourceName]string{"cpu": "1", gpu: "1", "pods": "1"},
			allocated:   map[corev1.ResourceName]string{"cpu": "250m", "memory": "64Mi", "pods": "2"},
		},
		"InitContainers": {
			reason: "What a scheduler keeps free for a pod: the larger of its parts, sidecars and overhead on top.",
			pods: []*corev1.Pod{func() *corev1.Pod {
				p := newPod("1", "a", resources("cpu", "1", "memory", "100Mi"))
				p.Spec.InitContainers = []corev1.Container{
					{Name: "init", Resources: corev1.ResourceRequirements{Requests: resources("cpu", "3")}},
					{Name: "sidecar", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: resources("cpu", "100m")}},
				}
				p.Spec.Overhead = resources("memory", "28Mi")
				return p
			}()},
			allocatable: map[corev1.ResourceName]string{}, allocating: map[corev1.ResourceName]string{"pods": "0"},
			allocated: map[corev1.ResourceName]string{"cpu": "3", "memory": "128Mi", "pods": "1"},
		},
		"TwoPodsEach": {
			reason: "Init containers of one pod have nothing to do with another.",
			pods: func() []*corev1.Pod {
				var pods []*corev1.Pod
				for _, uid := range []string{"1", "2"} {
					p := newPod(uid, "a", resources("cpu", "1"))
					p.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: resources("cpu", "2")}}}
					pods = append(pods, p)
				}
				return pods
			}(),
			allocatable: map[corev1.ResourceName]string{}, allocating: map[corev1.ResourceName]string{"pods": "0"},
			allocated: map[corev1.ResourceName]string{"cpu": "4", "pods": "2"},
		},
		"Nonsense": {
			reason:      "A pod that asks for more than there is on earth must not turn the sums around.",
			pods:        []*corev1.Pod{newPod("1", "", resources("cpu", "8E", "memory", "8E")), newPod("2", "", resources("cpu", "8E", "memory", "8E"))},
			allocatable: map[corev1.ResourceName]string{}, allocated: map[corev1.ResourceName]string{"pods": "0"},
			allocating: map[corev1.ResourceName]string{"cpu": "2251799813685248m", "memory": "2Pi", "pods": "2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, known := all(tc.nodes, tc.pods).Summary(nil)
			if !known {
				t.Fatal("everything was seen")
			}
			if diff := cmp.Diff(clusterv1alpha1.NodeSummary{TotalNum: tc.total, ReadyNum: tc.ready}, s.Nodes); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			for what, pair := range map[string][2]map[corev1.ResourceName]string{
				"allocatable": {tc.allocatable, plain(s.Resources.Allocatable)},
				"allocating":  {tc.allocating, plain(s.Resources.Allocating)},
				"allocated":   {tc.allocated, plain(s.Resources.Allocated)},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s\n(-want +got):\n%s", what, tc.reason, diff)
				}
			}
		})
	}
}

// defaultModels are the first of those that a Cluster gets (spec: behaviour/09
// 9.1).
func defaultModels() []clusterv1alpha1.ResourceModel {
	var models []clusterv1alpha1.ResourceModel
	for grade, least := range [][2]string{{"0", "0"}, {"1", "4Gi"}, {"2", "16Gi"}, {"4", "32Gi"}, {"8", "64Gi"}} {
		models = append(models, clusterv1alpha1.ResourceModel{Grade: int32(grade), Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: resource.MustParse(least[0])},
			{Name: corev1.ResourceMemory, Min: resource.MustParse(least[1])},
		}})
	}
	return models
}

func TestModelings(t *testing.T) {
	free := func(name, cpu, memory string) *corev1.Node {
		return newNode(name, true, resources("cpu", cpu, "memory", memory, "pods", "10"))
	}
	full := newNode("full", true, resources("cpu", "64", "memory", "64Gi", "pods", "1"))
	cases := map[string]struct {
		reason string
		nodes  []*corev1.Node
		pods   []*corev1.Pod
		models []clusterv1alpha1.ResourceModel
		want   []int32
	}{
		"BothInGradeTwo": {"cpu 3 and memory 20Gi are both in grade 2 (spec: behaviour/14 14.12).", []*corev1.Node{free("a", "3", "20Gi")}, nil, defaultModels(), []int32{0, 0, 1, 0, 0}},
		"TheLowerCounts": {"memory 3Gi is in grade 0 (spec: behaviour/14 14.12).", []*corev1.Node{free("a", "3", "3Gi")}, nil, defaultModels(), []int32{1, 0, 0, 0, 0}},
		"LowerBoundIsIn": {"The lower bound belongs to a grade.", []*corev1.Node{free("a", "4", "32Gi")}, nil, defaultModels(), []int32{0, 0, 0, 1, 0}},
		"JustBelow":      {"The upper does not.", []*corev1.Node{free("a", "3999m", "32Gi")}, nil, defaultModels(), []int32{0, 0, 1, 0, 0}},
		"PodsTakeTheirs": {"What pods ask for is not left.", []*corev1.Node{free("a", "4", "32Gi")}, []*corev1.Pod{newPod("1", "a", resources("cpu", "2500m"))}, defaultModels(), []int32{0, 1, 0, 0, 0}},
		"OverUsed":       {"More than used up is used up.", []*corev1.Node{free("a", "1", "32Gi")}, []*corev1.Pod{newPod("1", "a", resources("cpu", "2"))}, defaultModels(), []int32{1, 0, 0, 0, 0}},
		"NoRoomForPods":  {"A node without room for a pod is in no grade, and the others still are.", []*corev1.Node{full, free("a", "3", "20Gi"), free("b", "3", "20Gi")}, []*corev1.Pod{newPod("1", "full", nil)}, defaultModels(), []int32{0, 0, 2, 0, 0}},
		"UnknownNode":    {"A node that only a pod speaks of has nothing.", nil, []*corev1.Pod{newPod("1", "ghost", resources("cpu", "1"))}, defaultModels(), []int32{0, 0, 0, 0, 0}},
		"NoModels":       {"Without models there is nothing to count by.", []*corev1.Node{free("a", "3", "20Gi")}, nil, nil, nil},
		"ResourceNobodyHas": {
			"Who has none of a resource has 0 of it.", []*corev1.Node{free("a", "3", "20Gi")}, nil,
			[]clusterv1alpha1.ResourceModel{
				{Grade: 0, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: gpu, Min: resource.MustParse("0")}}},
				{Grade: 1, Ranges: []clusterv1alpha1.ResourceModelRange{{Name: gpu, Min: resource.MustParse("1")}}},
			}, []int32{1, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := all(tc.nodes, tc.pods).Summary(tc.models)
			var got []int32
			for i, m := range s.Resources.AllocatableModelings {
				if m.Grade != tc.models[i].Grade {
					t.Errorf("entry %d has grade %d", i, m.Grade)
				}
				got = append(got, m.Count)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNotKnown(t *testing.T) {
	tracker := New()
	known := func() bool {
		select {
		case <-tracker.Known():
			return true
		default:
			return false
		}
	}
	tracker.beginNodes()
	tracker.setNode(newNode("a", true, resources("cpu", "1")))
	tracker.beginPods()
	tracker.endPods()
	if _, ok := tracker.Summary(nil); ok || known() {
		t.Error("nodes have not been seen to their end: half of a sum is not a sum")
	}
	tracker.endNodes()
	if _, ok := tracker.Summary(nil); !ok || !known() {
		t.Error("now everything has been seen")
	}
	tracker.beginNodes()
	if s, ok := tracker.Summary(nil); !ok || s.Nodes.TotalNum != 1 || !known() {
		t.Error("a list that is under way takes nothing away")
	}
	tracker.endNodes()
	if s, _ := tracker.Summary(nil); s.Nodes.TotalNum != 0 {
		t.Error("what a whole list does not have is gone")
	}
}

// A model is the plain way to compute what a Tracker keeps.
type model struct {
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
}

func (m model) summary(models []clusterv1alpha1.ResourceModel) Summary {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for _, n := range m.nodes {
		nodes = append(nodes, n)
	}
	for _, p := range m.pods {
		pods = append(pods, p)
	}
	add := func(to corev1.ResourceList, from corev1.ResourceList, zeros bool) {
		for name, q := range from {
			if q.IsZero() && !zeros {
				continue
			}
			total := to[name]
			total.Add(q)
			to[name] = total
		}
	}
	s := Summary{Resources: clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{}, Allocating: resources("pods", "0"), Allocated: resources("pods", "0"),
	}}
	for _, n := range nodes {
		s.Nodes.TotalNum++
		if n.Status.Conditions[0].Status == corev1.ConditionTrue {
			s.Nodes.ReadyNum++
		}
		add(s.Resources.Allocatable, n.Status.Allocatable, true)
	}
	for _, p := range pods {
		to := s.Resources.Allocated
		if p.Spec.NodeName == "" {
			to = s.Resources.Allocating
		}
		if p.Status.Phase == corev1.PodRunning {
			add(to, p.Spec.Containers[0].Resources.Requests, false)
			add(to, resources("pods", "1"), false)
		}
	}
	// A Tracker that has seen nothing else must agree about the rest.
	fresh, _ := all(nodes, pods).Summary(models)
	s.Resources.AllocatableModelings = fresh.Resources.AllocatableModelings
	return s
}

// TestSumsAreRight feeds random events, and lists that are cut, and compares
// with sums that are computed from what is there.
func TestSumsAreRight(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			m := model{nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}}
			tracker := New()
			list(tracker, nil, nil)
			for step := range 2000 {
				change(random, m, tracker)
				if step%97 != 0 {
					continue
				}
				if random.IntN(2) == 0 {
					relist(random, m, tracker)
				}
				want := m.summary(defaultModels())
				got, _ := tracker.Summary(defaultModels())
				if diff := cmp.Diff(want.Nodes, got.Nodes); diff != "" {
					t.Fatalf("after %d events (-want +got):\n%s", step, diff)
				}
				for what, pair := range map[string][2]corev1.ResourceList{
					"allocatable": {want.Resources.Allocatable, got.Resources.Allocatable},
					"allocating":  {want.Resources.Allocating, got.Resources.Allocating},
					"allocated":   {want.Resources.Allocated, got.Resources.Allocated},
				} {
					if diff := cmp.Diff(plain(pair[0]), plain(pair[1])); diff != "" {
						t.Fatalf("%s after %d events (-want +got):\n%s", what, step, diff)
					}
				}
				if diff := cmp.Diff(want.Resources.AllocatableModelings, got.Resources.AllocatableModelings); diff != "" {
					t.Fatalf("modelings after %d events (-want +got):\n%s", step, diff)
				}
			}
			for uid, p := range m.pods {
				tracker.dropPod(p)
				delete(m.pods, uid)
			}
			for name, n := range m.nodes {
				tracker.dropNode(n)
				delete(m.nodes, name)
			}
			if len(tracker.pods)+len(tracker.nodes)+len(tracker.allocated.other)+len(tracker.allocating.other)+len(tracker.allocatable.other) != 0 {
				t.Error("something is kept of what is gone")
			}
		})
	}
}

func change(random *rand.Rand, m model, tracker *Tracker) {
	name := fmt.Sprint("node-", random.IntN(10))
	uid := types.UID(fmt.Sprint("pod-", random.IntN(200)))
	switch random.IntN(8) {
	case 0, 1:
		n := newNode(name, random.IntN(2) == 0, resources(
			"cpu", fmt.Sprint(random.IntN(9000), "m"), "memory", fmt.Sprint(random.IntN(64), "Gi"), "pods", fmt.Sprint(random.IntN(40))))
		if random.IntN(3) == 0 {
			n.Status.Allocatable[gpu] = resource.MustParse(fmt.Sprint(random.IntN(3)))
		}
		m.nodes[name] = n
		tracker.setNode(n)
	case 2:
		if n := m.nodes[name]; n != nil {
			delete(m.nodes, name)
			tracker.dropNode(n)
		}
	case 3:
		if p := m.pods[uid]; p != nil {
			delete(m.pods, uid)
			tracker.dropPod(p)
		}
	default:
		p := newPod(string(uid), name, resources("cpu", fmt.Sprint(random.IntN(900), "m"), "memory", fmt.Sprint(random.IntN(64), "Mi")))
		if random.IntN(4) == 0 {
			p.Spec.NodeName = ""
		}
		if random.IntN(4) == 0 {
			p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse(fmt.Sprint(random.IntN(3)))
		}
		p.Status.Phase = corev1.PodRunning
		if random.IntN(6) == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		m.pods[uid] = p
		tracker.setPod(p)
	}
}

// relist changes what is there without a word, reads half of it, is cut, and
// reads all of it.
func relist(random *rand.Rand, m model, tracker *Tracker) {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for name, n := range m.nodes {
		if random.IntN(3) == 0 {
			delete(m.nodes, name)
			continue
		}
		nodes = append(nodes, n)
	}
	for uid, p := range m.pods {
		if random.IntN(3) == 0 {
			delete(m.pods, uid)
			continue
		}
		pods = append(pods, p)
	}
	tracker.beginNodes()
	for _, n := range nodes[:len(nodes)/2] {
		tracker.setNode(n)
	}
	tracker.beginPods()
	for _, p := range pods[:len(pods)/2] {
		tracker.setPod(p)
	}
	list(tracker, nodes, pods)
}

func TestKeyOf(t *testing.T) {
	uid := "00112233-4455-6677-8899-aabbccddeeff"
	want := podKey{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	if got := keyOf(types.UID(uid)); got != want {
		t.Errorf("a UUID is its own key, got %x", got)
	}
	if keyOf("a") == keyOf("b") || keyOf("a") == (podKey{}) {
		t.Error("other UIDs have keys of their own, too")
	}
}

// fill makes a cluster of 5,000 nodes and the given number of pods: objects as
// they come from an API server, each with its own strings.
func fill(tracker *Tracker, pods int) {
	tracker.beginNodes()
	for i := range 5000 {
		tracker.setNode(newNode(fmt.Sprint("node-", i), true, resources(
			"cpu", "16", "memory", "64Gi", "ephemeral-storage", "200Gi", "hugepages-2Mi", "0", "pods", "110")))
	}
	tracker.endNodes()
	tracker.beginPods()
	for i := range pods {
		p := newPod(string(uuid.NewUUID()), fmt.Sprint("node-", i%5000), resources("cpu", fmt.Sprint(i%4000, "m"), "memory", "128Mi"))
		if i%10 == 0 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		}
		tracker.setPod(p)
	}
	tracker.endPods()
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory holds still what a large member costs.
func TestMemory(t *testing.T) {
	const pods = 100_000
	before := heap()
	tracker := New()
	fill(tracker, 0)
	nodes := heap()
	fill(tracker, pods)
	after := heap()
	perNode, perPod := (nodes-before)/5000, (after-nodes)/pods
	t.Logf("%d bytes a node, %d bytes a pod, %.1f MiB in all", perNode, perPod, float64(after-before)/(1<<20))
	if perPod > 200 {
		t.Errorf("%d bytes a pod are too many: what keeps an object?", perPod)
	}
	if s, _ := tracker.Summary(nil); s.Nodes.TotalNum != 5000 {
		t.Error("the nodes are gone") // also keeps the tracker in use until here
	}
}

func BenchmarkSetPod(b *testing.B) {
	tracker := New()
	fill(tracker, 0)
	pods := make([]*corev1.Pod, 1000)
	for i := range pods {
		pods[i] = newPod(string(uuid.NewUUID()), fmt.Sprint("node-", i), resources("cpu", "100m", "memory", "128Mi"))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tracker.setPod(pods[i%len(pods)])
	}
}

func BenchmarkSummary(b *testing.B) {
	tracker := New()
	fill(tracker, 100_000)
	models := defaultModels()
	b.ReportAllocs()
	for b.Loop() {
		tracker.Summary(models)
	}
}
