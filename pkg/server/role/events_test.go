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
	r := eventRecorder{next: next, scheme: clientgoscheme.Scheme, limits: newLimits()}
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

func TestEventsOfSuccessAreLimited(t *testing.T) {
	next := &noted{}
	r := eventRecorder{next: next, scheme: clientgoscheme.Scheme, limits: newLimits()}
	say := func(kind, namespace, eventType string, times int) int {
		before := len(next.notes)
		for i := range times {
			r.Eventf(&corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: fmt.Sprint(i)}, nil, eventType, "Reason", "Act", "it is so")
		}
		return len(next.notes) - before
	}
	const many = 10 * successesAtOnce
	cases := []struct {
		name, reason                string
		kind, namespace, eventTypes string
		least, most                 int
	}{
		{"Works", "Our own objects have a limit of their own.", "Work", "karmada-es-m1", "Normal", onWorksAtOnce, many / 2},
		{"Others", "What was told of Works takes nothing from that.", "Deployment", "default", "Normal", successesAtOnce, many / 2},
		{"NotOurWork", "A user's kind of that name is a user's.", "Work", "default", "Normal", 0, many / 2},
		{"Failures", "What failed is always told.", "Deployment", "default", "Warning", many, many},
	}
	for _, tc := range cases {
		if got := say(tc.kind, tc.namespace, tc.eventTypes, many); got < tc.least || got > tc.most {
			t.Errorf("%s: %s Of %d events %d were recorded, want %d to %d", tc.name, tc.reason, many, got, tc.least, tc.most)
		}
	}
}
