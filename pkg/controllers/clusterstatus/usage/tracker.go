package usage

import (
	"encoding/hex"
	"hash/fnv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// A Tracker keeps the sums of one cluster. Its zero value is not usable; New
// makes one.
type Tracker struct {
	mu    sync.Mutex
	pods  map[podKey]pod
	nodes map[string]*node

	// Sums over nodes, over pods without a node, and over pods with one.
	allocatable, allocating, allocated sum
	waiting, placed                    int64 // pods
	total, ready                       int32 // nodes

	// The number of the current list of each kind: what was not in it when it
	// ends is gone.
	podList, nodeList     uint32
	podsKnown, nodesKnown bool
	known                 chan struct{}
}

// A podKey is the UID of a pod, in half its length.
type podKey [16]byte

// A pod is what is kept of a pod that has not ended.
type pod struct {
	node    *node // nil when it has none
	cpu     int64
	memory  int64
	other   []amount
	podList uint32
}

func (p pod) requests() amounts { return amounts{cpu: p.cpu, memory: p.memory, other: p.other} }

// A node is what is kept of a node, or of one that only pods speak of.
type node struct {
	name     string
	exists   bool
	ready    bool
	has      amounts
	used     sum
	pods     int64
	nodeList uint32
}

// New returns a Tracker that knows nothing yet.
func New() *Tracker {
	return &Tracker{pods: map[podKey]pod{}, nodes: map[string]*node{}, known: make(chan struct{})}
}

// Known is closed when every node and pod has been seen once.
func (t *Tracker) Known() <-chan struct{} { return t.known }

// keyOf returns a key for a UID. UIDs that are no UUID, which no API server
// gives, are hashed.
func keyOf(uid types.UID) podKey {
	var key podKey
	digits := strings.ReplaceAll(string(uid), "-", "")
	if len(digits) == 2*len(key) {
		if _, err := hex.Decode(key[:], []byte(digits)); err == nil {
			return key
		}
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(uid)) // a hash never fails to write
	h.Sum(key[:0])
	return key
}

// setPod takes note of a pod. What it asks for is what a scheduler counts: init
// containers, overhead, and a resize that is under way.
func (t *Tracker) setPod(p *corev1.Pod) {
	key := keyOf(p.UID)
	if ended(p) {
		t.dropPod(p)
		return
	}
	requests := amountsOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}), false)

	t.mu.Lock()
	defer t.mu.Unlock()
	old, exists := t.pods[key]
	if exists && old.nodeName() == p.Spec.NodeName && old.requests().equal(requests) {
		if old.podList != t.podList {
			old.podList = t.podList
			t.pods[key] = old
		}
		return
	}
	if exists {
		t.uncount(old)
	}
	now := pod{cpu: requests.cpu, memory: requests.memory, other: requests.other, podList: t.podList}
	if p.Spec.NodeName != "" {
		now.node = t.nodeNamed(p.Spec.NodeName)
	}
	t.count(now)
	t.pods[key] = now
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (p pod) nodeName() string {
	if p.node == nil {
		return ""
	}
	return p.node.name
}

func (t *Tracker) dropPod(p *corev1.Pod) {
	key := keyOf(p.UID)
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, exists := t.pods[key]; exists {
		t.uncount(old)
		delete(t.pods, key)
	}
}

func (t *Tracker) count(p pod) {
	if p.node == nil {
		t.allocating.add(p.requests())
		t.waiting++
		return
	}
	t.allocated.add(p.requests())
	t.placed++
	p.node.used.add(p.requests())
	p.node.pods++
}

func (t *Tracker) uncount(p pod) {
	if p.node == nil {
		t.allocating.remove(p.requests())
		t.waiting--
		return
	}
	t.allocated.remove(p.requests())
	t.placed--
	p.node.used.remove(p.requests())
	p.node.pods--
	t.tidy(p.node)
}

// nodeNamed returns the record of a node, which may not have been seen yet.
func (t *Tracker) nodeNamed(name string) *node {
	n := t.nodes[name]
	if n == nil {
		n = &node{name: name}
		t.nodes[name] = n
	}
	return n
}

// tidy forgets a node that is gone once its last pod is.
func (t *Tracker) tidy(n *node) {
	if !n.exists && n.pods == 0 {
		delete(t.nodes, n.name)
	}
}

func (t *Tracker) setNode(n *corev1.Node) {
	has := amountsOf(n.Status.Allocatable, true)
	ready := isReady(n)

	t.mu.Lock()
	defer t.mu.Unlock()
	record := t.nodeNamed(n.Name)
	t.uncountNode(record)
	if record.has.equal(has) {
		has = record.has // do not keep another copy
	}
	record.exists, record.has, record.ready, record.nodeList = true, has, ready, t.nodeList
	t.allocatable.add(has)
	t.total++
	if ready {
		t.ready++
	}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (t *Tracker) dropNode(n *corev1.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if record := t.nodes[n.Name]; record != nil {
		t.uncountNode(record)
		t.tidy(record)
	}
}

func (t *Tracker) uncountNode(n *node) {
	if !n.exists {
		return
	}
	t.allocatable.remove(n.has)
	t.total--
	if n.ready {
		t.ready--
	}
	n.exists, n.ready = false, false
}

// beginPods and beginNodes begin a list; endPods and endNodes end it: what was
// there before and has not been set since is gone.
func (t *Tracker) beginPods() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.podList++
}

func (t *Tracker) endPods() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, p := range t.pods {
		if p.podList != t.podList {
			t.uncount(p)
			delete(t.pods, key)
		}
	}
	t.podsKnown = true
	t.announce()
}

func (t *Tracker) beginNodes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodeList++
}

func (t *Tracker) endNodes() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if n.exists && n.nodeList != t.nodeList {
			t.uncountNode(n)
			t.tidy(n)
		}
	}
	t.nodesKnown = true
	t.announce()
}

func (t *Tracker) announce() {
	if !t.podsKnown || !t.nodesKnown {
		return
	}
	select {
	case <-t.known:
	default:
		close(t.known)
	}
}
