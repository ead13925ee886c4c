package usage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var errBoom = errors.New("boom")

// A script is what a server answers, request by request; the last one hangs
// until the test is over.
type script struct {
	t       *testing.T
	answers []answer
	done    chan struct{}
	log     []string // what was asked, and what it did to the sums
	told    []string
}

// An answer is a page of a list, or the events of a watch.
type answer struct {
	err    error
	page   []string // pods; a list is only answered by this
	more   string   // continue
	events []watch.Event
	hang   bool // the watch stays open after its events
}

func podAt(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func added(name, version string) watch.Event {
	return watch.Event{Type: watch.Added, Object: podAt(name, version)}
}

func deletedEvent(name, version string) watch.Event {
	return watch.Event{Type: watch.Deleted, Object: podAt(name, version)}
}

func bookmark(version string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: podAt("", version)}
}

func complete(version string) watch.Event {
	e := bookmark(version)
	e.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return e
}

func failed(err *apierrors.StatusError) watch.Event {
	return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
}

func (s *script) next(asked string) answer {
	s.log = append(s.log, asked)
	if len(s.answers) == 0 {
		close(s.done)
		return answer{hang: true}
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a
}

func (s *script) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	asked := "watch from " + o.ResourceVersion
	if o.SendInitialEvents != nil {
		asked = "stream"
	}
	a := s.next(asked)
	if a.err != nil {
		return nil, a.err
	}
	w := watch.NewFakeWithChanSize(len(a.events), false)
	for _, e := range a.events {
		w.Action(e.Type, e.Object)
	}
	if !a.hang {
		w.Stop()
	}
	return w, nil
}

func (s *script) list(_ context.Context, o metav1.ListOptions, each func(*corev1.Pod)) (metav1.ListMeta, error) {
	a := s.next(strings.TrimSpace("list " + o.Continue))
	for _, name := range a.page {
		each(podAt(name, ""))
	}
	return metav1.ListMeta{ResourceVersion: "100", Continue: a.more}, a.err
}

func (s *script) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	note := func(text string) func() { return func() { s.log = append(s.log, text) } }
	st := &stream[*corev1.Pod]{
		what: "pods", watch: s.watch, list: s.list,
		begin: note("begin"), end: note("end"),
		set:  func(p *corev1.Pod) { s.log = append(s.log, "set "+p.Name) },
		drop: func(p *corev1.Pod) { s.log = append(s.log, "drop "+p.Name) },
		log:  funcr.New(func(_, args string) { s.told = append(s.told, args) }, funcr.Options{}),
		// A server that is silent for longer than this cannot stream.
		stalled: 50 * time.Millisecond,
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		st.run(ctx)
	}()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.t.Errorf("the stream never asked for what the script ends with; it did:\n%s", strings.Join(s.log, "\n"))
	}
	cancel()
	<-finished
}

func TestStream(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	cases := map[string]struct {
		reason  string
		answers []answer
		want    []string
		told    int
	}{
		"Streamed": {
			reason:  "One watch brings what is there and what changes; the next goes on from there.",
			answers: []answer{{events: []watch.Event{added("a", "1"), added("b", "2"), complete("5"), deletedEvent("a", "6"), bookmark("9")}}},
			want:    []string{"begin", "stream", "set a", "set b", "end", "drop a", "watch from 9"},
			told:    1, // the server ended the watch at once
		},
		"CutWhileStreaming": {
			reason:  "Half of a stream says nothing about what is gone: it is read anew.",
			answers: []answer{{events: []watch.Event{added("a", "1")}}, {events: []watch.Event{added("b", "2"), complete("5")}}},
			want:    []string{"begin", "stream", "set a", "begin", "stream", "set b", "end", "watch from 5"},
			told:    2,
		},
		"CannotStream": {
			reason:  "A server that knows no streaming refuses it; then pages are read.",
			answers: []answer{{err: apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)}, {page: []string{"a"}, more: "next"}, {page: []string{"b"}}},
			want:    []string{"begin", "stream", "begin", "list", "set a", "list next", "set b", "end", "watch from 100"},
		},
		"NeverComplete": {
			reason:  "An old server sends everything and never says that this was all.",
			answers: []answer{{events: []watch.Event{added("a", "1")}, hang: true}, {page: []string{"a"}}},
			want:    []string{"begin", "stream", "set a", "begin", "list", "set a", "end", "watch from 100"},
		},
		"ListFails": {
			reason:  "A list that fails on its second page takes nothing away.",
			answers: []answer{{err: apierrors.NewInvalid(schema.GroupKind{}, "", nil)}, {page: []string{"a"}, more: "next"}, {err: errBoom}, {page: []string{"a", "b"}}},
			want:    []string{"begin", "stream", "begin", "list", "set a", "list next", "begin", "list", "set a", "set b", "end", "watch from 100"},
			told:    1,
		},
		"Forbidden": {
			reason:  "Who may not look knows nothing, and asks again.",
			answers: []answer{{err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errBoom)}, {err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errBoom)}},
			want:    []string{"begin", "stream", "begin", "stream", "begin", "stream"},
			told:    1, // the same words are not repeated
		},
		"Expired": {
			reason:  "A version that the server has forgotten: everything is read anew, and what is known stays until then.",
			answers: []answer{{events: []watch.Event{complete("5"), failed(expired)}}, {events: []watch.Event{added("a", "7"), complete("8")}}},
			want:    []string{"begin", "stream", "end", "begin", "stream", "set a", "end", "watch from 8"},
			told:    1,
		},
		"ExpiredAtOnce": {
			reason:  "The same, as the answer to the request.",
			answers: []answer{{events: []watch.Event{complete("5")}}, {err: expired}},
			want:    []string{"begin", "stream", "end", "watch from 5", "begin", "stream"},
			told:    1,
		},
		"Garbage": {
			reason: "What is no pod is an error.",
			answers: []answer{
				{events: []watch.Event{complete("5"), {Type: watch.Added, Object: &corev1.Secret{}}}},
				{events: []watch.Event{failed(apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", schema.GroupResource{}, "", "", 0, true))}},
			},
			want: []string{"begin", "stream", "end", "watch from 5", "watch from 5"},
			told: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for each other's back-off otherwise
			s := &script{t: t, answers: tc.answers, done: make(chan struct{})}
			s.run()
			if diff := cmp.Diff(tc.want, s.log); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if len(s.told) != tc.told {
				t.Errorf("told %d things, want %d: %s\n%s", len(s.told), tc.told, fmt.Sprint(s.told), tc.reason)
			}
			if slices.ContainsFunc(s.told, func(l string) bool { return !strings.Contains(l, "pods") }) {
				t.Errorf("what could not be followed is not said: %q", s.told)
			}
		})
	}
}
