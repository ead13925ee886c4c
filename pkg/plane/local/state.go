package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

// A Phase is how far a component has come.
type Phase string

// The phases of a component.
const (
	Waiting  Phase = "Waiting" // for the components it comes after
	Starting Phase = "Starting"
	Ready    Phase = "Ready"
	Stopping Phase = "Stopping"
	Stopped  Phase = "Stopped"
	Failed   Phase = "Failed"
)

// A State is what the process of a plane reports about itself.
type State struct {
	PID        int              `json:"pid"`
	Version    string           `json:"version"`
	Started    time.Time        `json:"started"`
	Components []ComponentState `json:"components"`
}

// A ComponentState is the state of one component.
type ComponentState struct {
	Name  string    `json:"name"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// StartedIn is how long it took from Starting to Ready.
	StartedIn time.Duration `json:"startedIn,omitempty"`
	// Message is its last error, or why it is not ready yet.
	Message string `json:"message,omitempty"`
}

func newState(p plane.Plane) State {
	now := time.Now()
	s := State{PID: os.Getpid(), Version: version.Get().GitVersion, Started: now}
	for _, c := range p.Components {
		s.Components = append(s.Components, ComponentState{Name: c.Name, Phase: Waiting, Since: now})
	}
	return s
}

func (s State) clone() State {
	s.Components = slices.Clone(s.Components)
	return s
}

func (s *State) set(name string, phase Phase, err error) {
	now := time.Now()
	for i := range s.Components {
		c := &s.Components[i]
		if c.Name != name || c.Phase == Failed {
			continue // the first failure is the one that tells something
		}
		if c.Phase == Starting && phase == Ready {
			c.StartedIn = now.Sub(c.Since)
		}
		c.Phase, c.Since, c.Message = phase, now, ""
		if err != nil {
			c.Message = err.Error()
		}
	}
}

// note keeps why a component is not ready yet.
func (s *State) note(name, message string) {
	for i := range s.Components {
		if c := &s.Components[i]; c.Name == name && c.Phase == Starting {
			c.Message = message
		}
	}
}

// AllReady reports whether every component is.
func (s State) AllReady() bool {
	return len(s.Components) > 0 && !slices.ContainsFunc(s.Components, func(c ComponentState) bool { return c.Phase != Ready })
}

// failure returns the first component that failed.
func (s State) failure() (ComponentState, bool) {
	i := slices.IndexFunc(s.Components, func(c ComponentState) bool { return c.Phase == Failed })
	if i < 0 {
		return ComponentState{}, false
	}
	return s.Components[i], true
}

// starting names the components that have begun to start and are not ready.
func (s State) starting() []string {
	var names []string
	for _, c := range s.Components {
		if c.Phase == Starting {
			names = append(names, c.Name)
		}
	}
	return names
}

// A SupervisorState is what the supervisor reports.
type SupervisorState struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Restarts counts how often the plane's process ended without being asked to.
	Restarts int `json:"restarts"`
	// LastExit and LastError tell of the last such end.
	LastExit  time.Time `json:"lastExit,omitzero"`
	LastError string    `json:"lastError,omitempty"`
	// NextStart is set while the supervisor waits before it starts the plane again.
	NextStart time.Time `json:"nextStart,omitzero"`
}

// writeState keeps a state for other processes. What it holds is only good as long as its writer lives, so it is not
// worth the wait for the disk.
func writeState(path string, state any) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	if err := atomicfile.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	return nil
}

// readState reads a state. A missing one is a zero value.
func readState[T any](path string) (T, error) {
	var state T
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("read the state: %w", err)
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("read the state in %s: %w", path, err)
	}
	return state, nil
}
