package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

const (
	// probeInterval is how often a starting component is asked whether it is ready.
	probeInterval = 20 * time.Millisecond
	// stopTimeout is how long one component may take to stop before the next one is stopped regardless.
	stopTimeout = 30 * time.Second
)

// A Runner runs one role of the karmada binary with its flags. It returns when ctx is done and the role has stopped,
// or with an error when it fails.
type Runner func(ctx context.Context, args []string) error

// A ComponentError says which component of a plane ended it.
type ComponentError struct {
	Component string
	Err       error
}

func (e *ComponentError) Error() string { return fmt.Sprintf("component %s: %v", e.Component, e.Err) }
func (e *ComponentError) Unwrap() error { return e.Err }

var errStoppedByItself = errors.New("stopped by itself without saying why")

// Run starts the components of p, each when those it comes after are ready, and keeps them until ctx is done; then it
// stops them in reverse order and returns nil. When one fails the others are stopped and a *ComponentError tells of
// it: an upstream component cannot be started twice in a process, so starting anew is the supervisor's business.
//
// Every change is handed to report, one call at a time.
func Run(ctx context.Context, p plane.Plane, runners map[string]Runner, report func(State)) error {
	for _, c := range p.Components {
		if runners[c.Role] == nil {
			return &ComponentError{c.Name, fmt.Errorf("this program has no role %q", c.Role)}
		}
	}
	r := &running{report: report, state: newState(p), failed: make(chan *ComponentError, 2*len(p.Components))}
	r.publish(func(*State) {})

	startCtx, stopStarting := context.WithCancel(ctx)
	defer stopStarting()
	var starts sync.WaitGroup
	units := make(map[string]*unit, len(p.Components))
	for _, c := range p.Components {
		units[c.Name] = newUnit(ctx, c)
	}
	for _, c := range p.Components {
		starts.Go(func() { r.start(startCtx, units, c, runners[c.Role]) })
	}

	var failure *ComponentError
	select {
	case <-ctx.Done():
	case failure = <-r.failed:
	}
	stopStarting()
	starts.Wait()
	for i := len(p.Components) - 1; i >= 0; i-- {
		r.stop(units[p.Components[i].Name])
	}
	if failure != nil {
		return failure
	}
	return nil
}

// A unit is one component while it runs.
type unit struct {
	component plane.Component
	cancel    context.CancelFunc
	ctx       context.Context
	ready     chan struct{} // closed when its health check has answered
	done      chan struct{} // closed when its runner has returned, nil when it never ran
	err       error         // what the runner said when it was asked to stop; read after done
}

// newUnit detaches the component from the context of the plane: it is cancelled in its turn, not with all others.
func newUnit(ctx context.Context, c plane.Component) *unit {
	u := &unit{component: c, ready: make(chan struct{})}
	u.ctx, u.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return u
}

type running struct {
	report func(State)
	failed chan *ComponentError

	mu    sync.Mutex
	state State
}

func (r *running) publish(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
	r.report(r.state.clone())
}

func (r *running) setPhase(name string, phase Phase, err error) {
	r.publish(func(s *State) { s.set(name, phase, err) })
}

// start waits for what c comes after, runs it, and waits until it is ready. ctx ends the waiting only.
func (r *running) start(ctx context.Context, units map[string]*unit, c plane.Component, run Runner) {
	u := units[c.Name]
	for _, name := range c.After {
		select {
		case <-ctx.Done():
			return
		case <-units[name].ready:
		}
	}
	if ctx.Err() != nil {
		return
	}
	r.setPhase(c.Name, Starting, nil)
	u.done = make(chan struct{})
	go func() {
		defer close(u.done)
		err := run(u.ctx, c.Args)
		if u.ctx.Err() != nil {
			u.err = err
			return
		}
		if err == nil {
			err = errStoppedByItself
		}
		r.setPhase(c.Name, Failed, err)
		r.failed <- &ComponentError{c.Name, err}
	}()

	probe, err := newProbe(c.Health)
	if err != nil {
		r.setPhase(c.Name, Failed, err)
		r.failed <- &ComponentError{c.Name, err}
		return
	}
	defer probe.close()
	said := ""
	for {
		err := probe.ask(ctx)
		if err == nil {
			close(u.ready)
			r.setPhase(c.Name, Ready, nil)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if err.Error() != said {
			said = err.Error()
			r.publish(func(s *State) { s.note(c.Name, said) })
		}
		select {
		case <-ctx.Done():
			return
		case <-u.done:
			return
		case <-time.After(probeInterval):
		}
	}
}

// stop ends a component and waits until it has stopped.
func (r *running) stop(u *unit) {
	u.cancel()
	if u.done == nil {
		return
	}
	select {
	case <-u.done:
		return
	default:
	}
	r.setPhase(u.component.Name, Stopping, nil)
	select {
	case <-u.done:
		r.setPhase(u.component.Name, Stopped, u.err)
	case <-time.After(stopTimeout):
		r.setPhase(u.component.Name, Failed, fmt.Errorf("did not stop within %s", stopTimeout))
	}
}
