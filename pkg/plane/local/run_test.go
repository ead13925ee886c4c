package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

var errBoom = errors.New("boom")

// A stage has components that exist as far as Run can tell: a runner that does what a test wants, and a health endpoint.
type stage struct {
	t       *testing.T
	plane   plane.Plane
	runners map[string]Runner
	actors  map[string]*actor

	mu     sync.Mutex
	events []string
	states []State
}

type actor struct {
	healthy atomic.Bool
	fail    chan error // what the runner returns by itself
	onStop  error      // what it returns when it is asked to stop
}

func newStage(t *testing.T) *stage {
	return &stage{t: t, runners: map[string]Runner{}, actors: map[string]*actor{}}
}

// add adds a component that becomes healthy as soon as it runs, unless it is sick.
func (s *stage) add(name string, sick bool, after ...string) *actor {
	a := &actor{fail: make(chan error, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !a.healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "[+]ping ok\n[-]"+name+" failed: reason withheld\n")
		}
	}))
	s.t.Cleanup(server.Close)
	s.actors[name] = a
	s.plane.Components = append(s.plane.Components, plane.Component{
		Name: name, Role: name + "-role", Args: []string{"--name=" + name}, After: after, Health: plane.HealthCheck{URL: server.URL},
	})
	s.runners[name+"-role"] = func(ctx context.Context, args []string) error {
		for _, before := range after {
			if !s.actors[before].healthy.Load() {
				s.t.Errorf("%s started before %s was ready", name, before)
			}
		}
		if diff := cmp.Diff([]string{"--name=" + name}, args); diff != "" {
			s.t.Errorf("arguments of %s differ (-want +got):\n%s", name, diff)
		}
		s.note("start " + name)
		a.healthy.Store(!sick)
		defer func() {
			a.healthy.Store(false)
			s.note("stop " + name)
		}()
		select {
		case <-ctx.Done():
			return a.onStop
		case err := <-a.fail:
			return err
		}
	}
	return a
}

func (s *stage) note(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

func (s *stage) happened(event string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.events, event)
}

// stops are the components that stopped, in order.
func (s *stage) stops() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, e := range s.events {
		if name, ok := strings.CutPrefix(e, "stop "); ok {
			names = append(names, name)
		}
	}
	return names
}

// last is the state that was reported last.
func (s *stage) last() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.states) == 0 {
		return State{}
	}
	return s.states[len(s.states)-1]
}

func (s *stage) component(name string) ComponentState {
	for _, c := range s.last().Components {
		if c.Name == name {
			return c
		}
	}
	return ComponentState{}
}

// run runs the plane until the test is over with it; the error comes on the channel.
func (s *stage) run(ctx context.Context) <-chan error {
	var reporting atomic.Int32
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, s.plane, s.runners, func(state State) {
			if reporting.Add(1) != 1 {
				s.t.Error("two reports at a time")
			}
			s.mu.Lock()
			s.states = append(s.states, state)
			s.mu.Unlock()
			reporting.Add(-1)
		})
	}()
	return done
}

// four is the shape of the control plane: the third and the fourth start side by side.
func four(t *testing.T) *stage {
	s := newStage(t)
	s.add("etcd", false)
	s.add("api", false, "etcd")
	s.add("kcm", false, "api")
	s.add("ours", false, "api")
	return s
}

func TestRunStartsInOrderAndStopsInReverse(t *testing.T) {
	s := four(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.run(ctx)
	eventually(t, "every component becomes ready", func() bool { return s.last().AllReady() })
	if stops := s.stops(); len(stops) > 0 {
		t.Errorf("%v stopped while nobody asked them to", stops)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run returned %v, want nil when it was asked to stop", err)
	}
	if diff := cmp.Diff([]string{"ours", "kcm", "api", "etcd"}, s.stops()); diff != "" {
		t.Errorf("order of stopping differs (-want +got):\n%s\nreason: what is written while one stops needs those it came after", diff)
	}
	for _, c := range s.last().Components {
		if c.Phase != Stopped || c.Message != "" {
			t.Errorf("%s is %s (%s) in the end, want %s", c.Name, c.Phase, c.Message, Stopped)
		}
	}
}

func TestRunReportsHowItGoes(t *testing.T) {
	s := newStage(t)
	s.add("etcd", false)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.run(ctx)
	eventually(t, "the component becomes ready", func() bool { return s.last().AllReady() })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var phases []Phase
	for _, state := range s.states {
		phases = append(phases, state.Components[0].Phase)
	}
	if diff := cmp.Diff([]Phase{Waiting, Starting, Ready, Stopping, Stopped}, slices.Compact(phases)); diff != "" {
		t.Errorf("phases differ (-want +got):\n%s", diff)
	}
}

func TestRunFails(t *testing.T) {
	cases := map[string]struct {
		reason    string
		make      func(t *testing.T) *stage
		provoke   func(s *stage) // called when all that can be ready is
		settled   func(s *stage) bool
		component string
		err       error
		stops     []string // in order; the failing one stops first, by itself
	}{
		"WhileRunning": {
			reason:    "When one ends the others cannot do without it: all end, and the culprit is named.",
			make:      four,
			settled:   func(s *stage) bool { return s.last().AllReady() },
			provoke:   func(s *stage) { s.actors["api"].fail <- errBoom },
			component: "api", err: errBoom,
			stops: []string{"api", "ours", "kcm", "etcd"},
		},
		"WithoutAWord": {
			reason:    "A server that returns without an error has failed, too: it was to run.",
			make:      four,
			settled:   func(s *stage) bool { return s.last().AllReady() },
			provoke:   func(s *stage) { s.actors["ours"].fail <- nil },
			component: "ours", err: errStoppedByItself,
			stops: []string{"ours", "kcm", "api", "etcd"},
		},
		"WhileStarting": {
			reason: "One that fails before it is ready is not waited for.",
			make: func(t *testing.T) *stage {
				s := newStage(t)
				s.add("etcd", false)
				s.add("api", true, "etcd")
				s.add("kcm", false, "api")
				return s
			},
			settled:   func(s *stage) bool { return s.happened("start api") },
			provoke:   func(s *stage) { s.actors["api"].fail <- errBoom },
			component: "api", err: errBoom,
			stops: []string{"api", "etcd"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := c.make(t)
			done := s.run(t.Context())
			eventually(t, "the scene is set", func() bool { return c.settled(s) })
			c.provoke(s)
			err := <-done
			var failed *ComponentError
			if !errors.As(err, &failed) || failed.Component != c.component || !errors.Is(err, c.err) {
				t.Fatalf("got %v, want a failure of %s: %v\nreason: %s", err, c.component, c.err, c.reason)
			}
			if diff := cmp.Diff(c.stops, s.stops()); diff != "" {
				t.Errorf("order of stopping differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			if got := s.component(c.component); got.Phase != Failed || got.Message != c.err.Error() {
				t.Errorf("the last report says %s (%s), want %s (%v): status shows it until the next start", got.Phase, got.Message, Failed, c.err)
			}
			culprit, ok := s.last().failure()
			if !ok || culprit.Name != c.component {
				t.Errorf("the failure reported is %q, want %s", culprit.Name, c.component)
			}
		})
	}
}

func TestRunCannotAskForHealth(t *testing.T) {
	s := four(t)
	s.plane.Components[1].Health.CAFile = "/nowhere/ca.crt"
	err := <-s.run(t.Context())
	var failed *ComponentError
	if !errors.As(err, &failed) || failed.Component != "api" || !strings.Contains(err.Error(), "/nowhere/ca.crt") {
		t.Errorf("got %v, want a failure of api that names the file", err)
	}
	if got := s.stops(); !slices.Contains(got, "api") || !slices.Contains(got, "etcd") {
		t.Errorf("only %v stopped: what was started must not be left behind", got)
	}
}

func TestRunIsAskedToStopWhileStarting(t *testing.T) {
	s := newStage(t)
	s.add("etcd", false)
	s.add("api", true, "etcd")
	s.add("kcm", false, "api")
	ctx, cancel := context.WithCancel(t.Context())
	done := s.run(ctx)
	eventually(t, "it is told why the API server is not ready", func() bool { return s.component("api").Message == "not ready: api" })
	if got := s.component("kcm"); got.Phase != Waiting {
		t.Errorf("what comes after is %s, want %s", got.Phase, Waiting)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil: being asked to stop is no failure", err)
	}
	if s.happened("start kcm") {
		t.Error("a component was started after the one before it was never ready")
	}
	if diff := cmp.Diff([]string{"api", "etcd"}, s.stops()); diff != "" {
		t.Errorf("order of stopping differs (-want +got):\n%s", diff)
	}
}

func TestRunKeepsErrorsOfStopping(t *testing.T) {
	s := four(t)
	s.actors["kcm"].onStop = errBoom
	ctx, cancel := context.WithCancel(t.Context())
	done := s.run(ctx)
	eventually(t, "every component becomes ready", func() bool { return s.last().AllReady() })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v: a complaint while stopping must not look like a failure to the supervisor", err)
	}
	if got := s.component("kcm"); got.Phase != Stopped || got.Message != "boom" {
		t.Errorf("the last report says %s (%s), want %s (boom)", got.Phase, got.Message, Stopped)
	}
}

func TestRunWithoutTheRole(t *testing.T) {
	s := four(t)
	delete(s.runners, "ours-role")
	err := <-s.run(t.Context())
	var failed *ComponentError
	if !errors.As(err, &failed) || failed.Component != "ours" || !strings.Contains(err.Error(), `"ours-role"`) {
		t.Errorf("got %v, want a failure of ours that names the role", err)
	}
	if len(s.events) > 0 {
		t.Errorf("%v happened, although it was known before that the plane cannot run", s.events)
	}
}

func TestServe(t *testing.T) {
	s := four(t)
	s.plane.Config, s.plane.Layout = plane.NewConfig(plane.KindMember, "member1"), newLayout(t)
	s.plane.Files = []plane.File{{Path: s.plane.Layout.ConfigDir() + "/some.yaml", Content: []byte("a: b\n")}}
	var ready atomic.Int32
	serve := func(ctx context.Context) error {
		return Serve(ctx, s.plane, s.runners, func() { ready.Add(1) })
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	var state State
	eventually(t, "the state in the data directory says that all are ready", func() bool {
		var err error
		if state, err = readState[State](s.plane.Layout.PlaneState()); err != nil {
			t.Fatal(err)
		}
		return state.AllReady()
	})
	if !exists(s.plane.Files[0].Path) {
		t.Error("the file that components read was not written before they started")
	}
	if err := serve(t.Context()); err == nil {
		t.Error("a second one ran on the same data directory")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil when it was asked to stop", err)
	}
	if got := ready.Load(); got != 1 {
		t.Errorf("told %d times that all are ready, want once", got)
	}
	if state, err := readState[State](s.plane.Layout.PlaneState()); err != nil || state.Components[0].Phase != Stopped {
		t.Errorf("the state left behind is %+v, %v, want stopped components", state, err)
	}
}
