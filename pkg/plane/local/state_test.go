package local

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestState(t *testing.T) {
	type change func(*State)
	set := func(phase Phase, err error) change { return func(s *State) { s.set("b", phase, err) } }
	note := func(text string) change { return func(s *State) { s.note("b", text) } }
	type want struct {
		phase   Phase
		message string
		timed   bool
	}
	cases := map[string]struct {
		reason  string
		changes []change
		want    want
	}{
		"New":              {"Nothing has happened yet.", nil, want{phase: Waiting}},
		"Starting":         {"It runs, and is not ready.", []change{set(Starting, nil)}, want{phase: Starting}},
		"Noted":            {"Why it is not ready is worth knowing while it starts.", []change{set(Starting, nil), note("etcd is slow")}, want{phase: Starting, message: "etcd is slow"}},
		"NotedTooEarly":    {"What waits has not been asked.", []change{note("etcd is slow")}, want{phase: Waiting}},
		"NotedTooLate":     {"An answer that came late says nothing about now.", []change{set(Starting, nil), set(Ready, nil), note("etcd is slow")}, want{phase: Ready, timed: true}},
		"Ready":            {"What kept it is forgotten; how long it took is not.", []change{set(Starting, nil), note("slow"), set(Ready, nil)}, want{phase: Ready, timed: true}},
		"Failed":           {"The error is kept.", []change{set(Starting, nil), set(Failed, errBoom)}, want{phase: Failed, message: "boom"}},
		"FirstFailureWins": {"What fails later fails because of the first.", []change{set(Failed, errBoom), set(Failed, errors.New("also")), set(Stopped, nil)}, want{phase: Failed, message: "boom"}},
		"Stopped":          {"A clean stop has no message.", []change{set(Starting, nil), set(Ready, nil), set(Stopping, nil), set(Stopped, nil)}, want{phase: Stopped, timed: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newState(plane.Plane{Components: []plane.Component{{Name: "a"}, {Name: "b"}}})
			for i := range s.Components {
				s.Components[i].Since = time.Now().Add(-time.Minute)
			}
			other := s.Components[0]
			for _, change := range c.changes {
				change(&s)
			}
			got := want{s.Components[1].Phase, s.Components[1].Message, s.Components[1].StartedIn > 0}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("state differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			if s.Components[0] != other {
				t.Errorf("the other component changed to %+v", s.Components[0])
			}
		})
	}
}

func TestAllReadyAndFailure(t *testing.T) {
	of := func(phases ...Phase) State {
		var s State
		for i, p := range phases {
			s.Components = append(s.Components, ComponentState{Name: string(rune('a' + i)), Phase: p})
		}
		return s
	}
	cases := map[string]struct {
		reason string
		state  State
		ready  bool
		failed string
	}{
		"None":     {"A state that nobody has written is not that of a ready plane.", State{}, false, ""},
		"All":      {"Every one counts.", of(Ready, Ready), true, ""},
		"Starting": {"One that starts holds all back.", of(Ready, Starting), false, ""},
		"Failed":   {"The first that failed is named.", of(Ready, Failed, Failed), false, "b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.state.AllReady(); got != c.ready {
				t.Errorf("AllReady: got %t\nreason: %s", got, c.reason)
			}
			if got, ok := c.state.failure(); ok != (c.failed != "") || got.Name != c.failed {
				t.Errorf("failure: got %q, %t, want %q\nreason: %s", got.Name, ok, c.failed, c.reason)
			}
		})
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := State{Components: []ComponentState{{Name: "a", Phase: Starting}}}
	c := s.clone()
	s.set("a", Ready, nil)
	if c.Components[0].Phase != Starting {
		t.Error("what was reported changed later")
	}
}

func TestStateFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	if got, err := readState[SupervisorState](path); err != nil || got != (SupervisorState{}) {
		t.Errorf("a missing state: got %+v, %v, want nothing", got, err)
	}
	want := SupervisorState{PID: 12, Restarts: 3, LastError: "boom", Started: time.Unix(1_700_000_000, 0).UTC()}
	if err := writeState(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := readState[SupervisorState](path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differs from written (-written +read):\n%s", diff)
	}
	write(t, path, "{")
	if _, err := readState[SupervisorState](path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged state: got %v, want an error that names %s", err, path)
	}
	if err := writeState(filepath.Join(dir, "absent", "state.json"), want); err == nil {
		t.Error("writing where there is no directory succeeded")
	}
}
