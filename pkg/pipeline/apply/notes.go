package apply

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

// patience is how long good news of a Work waits for somebody who has more to
// tell of it.
const patience = time.Second

// lowPriority is that of a Work which is done but for its good news: what is not
// applied yet goes first.
const lowPriority = -10

// Notes are the good news of Works that are not written yet: that all manifests
// were applied. Who writes what became of their objects takes them along, which
// saves a write for each; otherwise they are written after a moment. What failed
// does not wait.
type Notes struct {
	now func() time.Time

	mu    sync.Mutex
	works map[types.NamespacedName]note
}

type note struct {
	uid        types.UID
	generation int64
	conditions []metav1.Condition
	since      time.Time
	told       bool // somebody has written them
}

// NewNotes returns notes that are empty.
func NewNotes() *Notes {
	return &Notes{now: time.Now, works: map[types.NamespacedName]note{}}
}

// Pending returns the conditions that are to be written with the next status of a
// Work, nil for none.
func (n *Notes) Pending(w *workv1alpha1.Work) []metav1.Condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	is, ok := n.works[client.ObjectKeyFromObject(w)]
	if !ok || is.uid != w.UID || is.told {
		return nil
	}
	return slices.Clone(is.conditions)
}

// Told notes that the conditions that were Pending are written.
func (n *Notes) Told(w *workv1alpha1.Work, conditions []metav1.Condition) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := client.ObjectKeyFromObject(w)
	if is, ok := n.works[key]; ok && is.uid == w.UID && slices.Equal(is.conditions, conditions) {
		is.told = true
		n.works[key] = is
	}
}

// has reports whether there is a note of a Work as it is.
func (n *Notes) has(w *workv1alpha1.Work) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	is, ok := n.works[client.ObjectKeyFromObject(w)]
	return ok && is.uid == w.UID && is.generation == w.Generation
}

// put notes the conditions of a Work, and returns for how long they are to wait
// yet. told says that they need not be written any more.
func (n *Notes) put(w *workv1alpha1.Work) (wait time.Duration, told bool) {
	if n == nil {
		return 0, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := client.ObjectKeyFromObject(w)
	is, ok := n.works[key]
	if !ok || is.uid != w.UID || is.generation != w.Generation {
		is = note{uid: w.UID, generation: w.Generation, since: n.now(), conditions: slices.Clone(w.Status.Conditions)}
		n.works[key] = is
	}
	return patience - n.now().Sub(is.since), is.told
}

// drop forgets the note of a Work: it is written, or not true any more.
func (n *Notes) drop(w client.Object) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.works, client.ObjectKeyFromObject(w))
}

// isGoodNews reports whether all that is new of a Work is that it was applied: it
// said nothing before, or that it was applied as it was then.
func isGoodNews(before, w *workv1alpha1.Work) bool {
	return isApplied(w) && !isFailed(before) && meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.ConditionDispatching) &&
		!meta.IsStatusConditionFalse(before.Status.Conditions, workv1alpha1.ConditionDispatching)
}
