package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

// TestProcessesKilled kills the processes of a control plane that holds a user's objects. The faults come one after
// the other on the same installation: each must leave it as it found it.
func TestProcessesKilled(t *testing.T) {
	p := newPlane(t)
	if _, err := p.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	objects, err := CreateObjects(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	faults := []struct {
		name   string
		reason string
		// kill strikes; restarts is how many restarts status must count afterwards, beyond those it counted before.
		kill     func(ctx context.Context, p rig.Plane, before rig.Status) error
		restarts int
	}{
		{
			name:     "Plane",
			reason:   "The supervisor starts the control plane again, and counts that.",
			kill:     killPlane,
			restarts: 1,
		},
		{
			name:   "PlaneThenInit",
			reason: "An init that comes while the supervisor is about to start the control plane again waits for it.",
			kill: func(ctx context.Context, p rig.Plane, before rig.Status) error {
				if err := killPlane(ctx, p, before); err != nil {
					return err
				}
				_, err := p.Init(ctx)
				return err
			},
			restarts: 1,
		},
		{
			name:   "Supervisor",
			reason: "No control plane runs unwatched: it stops, and start brings it back.",
			kill: func(ctx context.Context, p rig.Plane, before rig.Status) error {
				if err := killSupervisor(p, before); err != nil {
					return err
				}
				if err := gone(ctx, p); err != nil {
					return err
				}
				if code, err := statusCode(ctx, p); code != 1 {
					return fmt.Errorf("status of a control plane that has stopped must exit with 1, got %d: %w", code, err)
				}
				return p.Start(ctx)
			},
		},
		{
			name:   "SupervisorThenStart",
			reason: "A start that comes while the old control plane is still stopping must not take it for a running one.",
			kill: func(ctx context.Context, p rig.Plane, before rig.Status) error {
				if err := killSupervisor(p, before); err != nil {
					return err
				}
				return p.Start(ctx)
			},
		},
		{
			name:   "Both",
			reason: "What etcd has acknowledged survives the death of everything.",
			kill: func(ctx context.Context, p rig.Plane, before rig.Status) error {
				if err := errors.Join(
					kill(p, target{"supervise", before.Supervisor.PID}, target{"plane", before.PID}),
					gone(ctx, p),
				); err != nil {
					return err
				}
				return p.Start(ctx)
			},
		},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			before, err := p.Status(t.Context())
			if err != nil {
				t.Fatalf("before the fault: %v", err)
			}
			watch := watchPlanes(t.Context(), p)
			err = f.kill(t.Context(), p, before)
			if err == nil {
				err = recovered(t.Context(), p, before, f.restarts)
			}
			if err == nil {
				err = Kept(t.Context(), p, objects)
			}
			if err := errors.Join(err, watch.stop()); err != nil {
				t.Errorf("%s\n%v", f.reason, err)
				// The next fault begins with a whole control plane.
				if err := errors.Join(p.KillAll(t.Context()), p.Start(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if err := Removed(t.Context(), p); err != nil {
		t.Error(err)
	}
}

func killPlane(_ context.Context, p rig.Plane, before rig.Status) error {
	return kill(p, target{"plane", before.PID})
}

func killSupervisor(p rig.Plane, before rig.Status) error {
	return kill(p, target{"supervise", before.Supervisor.PID})
}

// A target is a process as status tells of it.
type target struct {
	role string
	pid  int
}

// kill kills processes of p one right after the other. It looks for all of them first: each has to be the one that is
// meant, and the death of one can be the end of another.
func kill(p rig.Plane, targets ...target) error {
	running, err := p.Processes()
	if err != nil {
		return err
	}
	var found []rig.Process
	for _, t := range targets {
		i := slices.IndexFunc(running, func(one rig.Process) bool { return one.PID == t.pid && one.Role() == t.role })
		if i < 0 {
			return fmt.Errorf("status names process %d as its %s, but what runs is %v", t.pid, t.role, running)
		}
		found = append(found, running[i])
	}
	for _, one := range found {
		if err := one.Signal(syscall.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// gone waits until no process of p is left.
func gone(ctx context.Context, p rig.Plane) error {
	return rig.Eventually(ctx, "nothing of the control plane runs any more", func() error {
		running, err := p.Processes()
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("there is still %v", running)
		}
		return err
	})
}

func statusCode(ctx context.Context, p rig.Plane) (int, error) {
	_, err := p.Status(ctx)
	return rig.ExitCode(err), err
}

// recovered waits until a new process is healthy, and then until status counts as many restarts.
func recovered(ctx context.Context, p rig.Plane, before rig.Status, restarts int) error {
	if err := rig.Eventually(ctx, "another process of the control plane is healthy", func() error {
		now, err := p.Status(ctx)
		switch {
		case err != nil:
			return err
		case now.PID == before.PID:
			return fmt.Errorf("it is still process %d", now.PID)
		case restarts > 0 && now.Supervisor.Restarts != before.Supervisor.Restarts+restarts:
			return fmt.Errorf("status counts %d restarts, want %d", now.Supervisor.Restarts, before.Supervisor.Restarts+restarts)
		case restarts > 0 && now.Supervisor.LastError == "":
			return errors.New("status does not say why it was restarted")
		}
		return nil
	}); err != nil {
		return err
	}
	return Healthy(ctx, p)
}
