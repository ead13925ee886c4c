package role

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// A noted recorder keeps what it is told.
type noted struct {
	regarding []runtime.Object
	actions   []string
	notes     []string
}

func (n *noted) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	n.AnnotatedEventf(regarding, related, nil, kind, reason, action, note, args...)
}

func (n *noted) AnnotatedEventf(regarding, _ runtime.Object, _ map[string]string, _, _, action, note string, args ...any) {
	n.regarding, n.actions = append(n.regarding, regarding), append(n.actions, action)
	n.notes = append(n.notes, fmt.Sprintf(note, args...))
}

func TestDistinctEvents(t *testing.T) {
	next := &noted{}
	r := distinctRecorder{next: next, scheme: clientgoscheme.Scheme}
	pod := func(version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "u", ResourceVersion: version}}
	}
	r.Eventf(pod("1"), nil, "Warning", "Failed", "Apply", "in %s", "m1")
	r.Eventf(pod("2"), nil, "Warning", "Failed", "Apply", "in %s", "m2")
	r.Eventf(pod("3"), nil, "Warning", "Failed", "Apply", "in %s", "m1")
	r.Eventf(pod("3"), nil, "Warning", "Failed", "Apply", "%s", "100%s")

	if next.actions[0] == next.actions[1] {
		t.Errorf("what is said of two clusters are two events, got %q", next.actions)
	}
	if next.actions[0] != next.actions[2] {
		t.Errorf("the same said again is one event, got %q", next.actions)
	}
	if diff := cmp.Diff([]string{"in m1", "in m2", "in m1", "100%s"}, next.notes); diff != "" {
		t.Errorf("notes are as they were (-want +got):\n%s", diff)
	}
	want := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "a", Name: "p", UID: "u"}
	for _, got := range next.regarding {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the version of an object tells no events apart (-want +got):\n%s", diff)
		}
	}
}
