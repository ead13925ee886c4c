package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

func TestGoodNewsWait(t *testing.T) {
	suspendedBefore := func(w *workv1alpha1.Work) { suspended(w); markDispatching(w); w.Spec.SuspendDispatching = nil }
	failedBefore := func(w *workv1alpha1.Work) { markDispatching(w); markApplied(w, 0, 1, errBoom) }
	appliedBefore := func(w *workv1alpha1.Work) {
		markDispatching(w)
		markApplied(w, 1, 1, nil)
		w.Generation = 2
	}
	fresh := func(*workv1alpha1.Work) {}
	cases := map[string]struct {
		reason  string
		before  func(*workv1alpha1.Work)
		fails   bool
		then    func(*world)
		writes  []string // of the first pass
		waits   bool
		further []string // of the second one
	}{
		"Alone":     {"Nobody else has anything to write, so it is written after a moment.", fresh, false, nil, nil, true, []string{"patch status"}},
		"Edited":    {"That a new state was applied can wait, too.", appliedBefore, false, nil, nil, true, []string{"patch status"}},
		"Failed":    {"Who looks must hear of a failure at once.", fresh, true, nil, []string{"patch status"}, false, []string{"patch status"}},
		"Mended":    {"And that it is mended.", failedBefore, false, nil, []string{"patch status"}, false, nil},
		"Continued": {"And that it is dispatched again.", suspendedBefore, false, nil, []string{"patch status"}, false, nil},
		"Taken": {
			"Somebody had more to tell, and has written it along.", fresh, false,
			func(w *world) { work := w.cached; w.notes.Told(work, w.notes.Pending(work)) }, nil, true, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t)
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}, tc.before))
			now := time.Unix(1000, 0)
			w.notes = NewNotes()
			w.notes.now = func() time.Time { return now }
			m.before = func(call string) error {
				if tc.fails && strings.HasPrefix(call, "create") {
					return errBoom
				}
				return nil
			}
			result, err := w.reconcile(t)
			if got := w.take(); (err != nil) != tc.fails || (result.RequeueAfter > 0) != tc.waits || !slices.Equal(got, tc.writes) {
				t.Errorf("%s First it wrote %q and is to wait for %s (%v)", tc.reason, got, result.RequeueAfter, err)
			}
			w.cached = w.work(t)
			if tc.then != nil {
				tc.then(w)
			}
			tc.fails = false
			now = now.Add(patience)
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := w.take(); !slices.Equal(got, tc.further) {
				t.Errorf("%s Then it wrote %q, want %q", tc.reason, got, tc.further)
			}
			if told := len(w.events.take()); told == 0 {
				t.Errorf("%s Nobody was told", tc.reason)
			}
		})
	}
}

func TestNotesAreOfOneWork(t *testing.T) {
	n := NewNotes()
	work := aWork(t, nil, func(w *workv1alpha1.Work) { w.UID = "a"; markDispatching(w); markApplied(w, 0, 0, nil) })
	n.put(work)
	successor := work.DeepCopy()
	successor.UID = "b"
	if n.Pending(successor) != nil || n.has(successor) {
		t.Error("what is true of a Work is not of its successor")
	}
	if got := n.Pending(work); len(got) != 2 {
		t.Errorf("pending are %+v", got)
	}
	edited := work.DeepCopy()
	edited.Generation++
	if n.has(edited) {
		t.Error("an edited Work has to be applied again")
	}
	r := &Reconciler{notes: n, written: newWritten()}
	r.workChanged().Update(event.UpdateEvent{ObjectOld: work, ObjectNew: work})
	if n.Pending(work) != nil {
		t.Error("what the cache knows to be written is not pending")
	}
}
