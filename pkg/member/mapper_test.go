package member

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// A fakeDiscovery answers ServerGroupsAndResources, and nothing else.
type fakeDiscovery struct {
	discovery.DiscoveryInterface
	asked int
	gate  chan struct{} // unless nil, an answer waits for it
	kinds []string
	err   error
}

func (d *fakeDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	d.asked++
	if d.gate != nil {
		<-d.gate
	}
	if d.err != nil && !discovery.IsGroupDiscoveryFailedError(d.err) {
		return nil, nil, d.err
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: "g/v1", Version: "v1"}
	group := &metav1.APIGroup{Name: "g", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	if d.err != nil && d.kinds == nil {
		return []*metav1.APIGroup{group}, nil, d.err
	}
	list := &metav1.APIResourceList{GroupVersion: "g/v1"}
	for _, kind := range d.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true})
	}
	return []*metav1.APIGroup{group}, []*metav1.APIResourceList{list}, d.err
}

func TestMapper(t *testing.T) {
	now := time.Unix(0, 0)
	d := &fakeDiscovery{kinds: []string{"A"}}
	m := newMapper(d)
	m.now = func() time.Time { return now }
	mapping := func(kind string) (string, error) {
		got, err := m.RESTMapping(schema.GroupKind{Group: "g", Kind: kind}, "v1")
		if err != nil {
			return "", err
		}
		return got.Resource.Resource, nil
	}
	steps := []struct {
		reason      string
		before      func()
		kind        string
		want        string
		wantNoMatch bool
		wantErr     error
		wantAsked   int
	}{
		{reason: "Nothing is known at first.", kind: "A", want: "as", wantAsked: 1},
		{reason: "What is known is not asked again.", kind: "A", want: "as", wantAsked: 1},
		{reason: "A kind that just was not there is not asked for again.", kind: "B", wantNoMatch: true, wantAsked: 1},
		{
			reason: "A while later it may be there, as CRDs come.",
			before: func() { now = now.Add(notAgain); d.kinds = []string{"A", "B"} },
			kind:   "B", want: "bs", wantAsked: 2,
		},
		{
			reason: "That the member does not answer does not mean that it has no such kind.",
			before: func() { now = now.Add(notAgain); d.err = context.DeadlineExceeded },
			kind:   "C", wantErr: context.DeadlineExceeded, wantAsked: 3,
		},
		{reason: "What is known is not lost by that.", kind: "B", want: "bs", wantAsked: 3},
		{
			reason: "Nor does that one of its groups is not known.",
			before: func() {
				d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "x", Version: "v1"}: context.DeadlineExceeded}}
			},
			kind: "C", wantErr: &discovery.ErrGroupDiscoveryFailed{}, wantAsked: 4,
		},
		{
			reason: "What a group served before it failed is still known.",
			before: func() {
				d.kinds = nil
				d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "g", Version: "v1"}: context.DeadlineExceeded}}
				m.Reset()
			},
			kind: "B", want: "bs", wantAsked: 5,
		},
		{
			reason: "It is asked again until all answer.",
			before: func() { d.kinds, d.err = []string{"A"}, nil },
			kind:   "C", wantNoMatch: true, wantAsked: 6,
		},
		{reason: "What the member turned out not to serve is asked anew.", before: m.Reset, kind: "A", want: "as", wantAsked: 7},
	}
	for _, s := range steps {
		if s.before != nil {
			s.before()
		}
		got, err := mapping(s.kind)
		if got != s.want || meta.IsNoMatchError(err) != s.wantNoMatch || d.asked != s.wantAsked {
			t.Errorf("%s\ngot %q, %v, asked %d times", s.reason, got, err, d.asked)
		}
		switch want := s.wantErr.(type) {
		case *discovery.ErrGroupDiscoveryFailed:
			if !errors.As(err, &want) {
				t.Errorf("%s\ngot %v", s.reason, err)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s\ngot %v", s.reason, err)
			}
		}
	}
}

func TestMapperRefreshesOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDiscovery{kinds: []string{"A"}, gate: make(chan struct{})}
		m := newMapper(d)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := m.KindFor(schema.GroupVersionResource{Resource: "as"}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(d.gate)
		all.Wait()
		if d.asked != 1 {
			t.Errorf("ten that do not know ask once, not %d times", d.asked)
		}
	})
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestBounded(t *testing.T) {
	never := roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	slowBody := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{Body: &slowReader{ctx: r.Context(), after: time.Hour}}, nil
	})
	cases := map[string]struct {
		reason  string
		url     string
		upgrade string
		server  http.RoundTripper
		want    string
		late    bool
	}{
		"NoAnswer":      {reason: "A member that hangs must not hang us.", url: "/", server: never, late: true},
		"NoAnswerWatch": {reason: "Nor before a watch begins.", url: "/?watch=true", server: never, late: true},
		"SlowBody":      {reason: "An answer that does not end is none.", url: "/", server: slowBody, late: true},
		"Watch":         {reason: "A watch is meant to last.", url: "/?watch=true", server: slowBody, want: "event"},
		"OldWatch":      {reason: "However it is spelled.", url: "/?watch=1", server: slowBody, want: "event"},
		"Upgrade":       {reason: "So is a terminal.", url: "/", upgrade: "SPDY/3.1", server: slowBody, want: "event"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://m1"+tc.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Upgrade", tc.upgrade)
				if tc.upgrade == "" {
					r.Header.Del("Upgrade")
				}
				var got []byte
				response, err := (&bounded{next: tc.server, limit: requestTimeout}).RoundTrip(r)
				if err == nil {
					got, err = io.ReadAll(response.Body)
					_ = response.Body.Close()
				}
				var late timeoutError
				if errors.As(err, &late) != tc.late || err != nil && !tc.late {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
				if diff := cmp.Diff(tc.want, string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// A slowReader has one event, but not yet.
type slowReader struct {
	ctx   context.Context
	after time.Duration
	done  bool
}

func (s *slowReader) Read(p []byte) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.after):
		s.done = true
		return copy(p, "event"), nil
	}
}

func (s *slowReader) Close() error { return nil }

func TestTokenSource(t *testing.T) {
	now, reads := time.Unix(0, 0), 0
	s := &tokenSource{token: "first", until: now.Add(tokenLifetime), now: func() time.Time { return now }}
	s.read = func(context.Context) (string, error) {
		reads++
		return "second", nil
	}
	steps := []struct {
		reason    string
		pass      time.Duration
		refused   string
		want      string
		wantReads int
	}{
		{"It may be used for five minutes.", tokenLifetime - 1, "", "first", 0},
		{"Not longer.", 1, "", "second", 1},
		{"What others refused is another one by now.", 0, "first", "second", 1},
		{"One that was refused is read again.", 0, "second", "second", 2},
	}
	for _, step := range steps {
		now = now.Add(step.pass)
		got, err := s.get(t.Context(), step.refused)
		if err != nil || got != step.want || reads != step.wantReads {
			t.Errorf("%s\ngot %q, %v after %d reads", step.reason, got, err, reads)
		}
	}
}

func TestLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDiscovery{kinds: []string{"A"}, gate: make(chan struct{})}
		m := newMapper(d)
		lookup := func(reason, kind string, want bool, asked int) {
			t.Helper()
			mapping, known := m.lookup(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: kind})
			synctest.Wait()
			if known != want || known != (mapping != nil) || d.asked != asked {
				t.Errorf("%s\nknown %t, asked %d times", reason, known, d.asked)
			}
		}
		lookup("The member is asked, and not waited for.", "A", false, 1)
		lookup("Once.", "A", false, 1)
		close(d.gate)
		synctest.Wait()
		lookup("Its answer serves later.", "A", true, 1)
		lookup("What just was not there is not asked for again.", "B", false, 1)
		d.kinds = []string{"A", "B"}
		m.expire()
		lookup("Unless there is reason to think that it came.", "B", false, 2)
		lookup("It did.", "B", true, 2)
		lookup("The others are known all the time.", "A", true, 2)
	})
}
