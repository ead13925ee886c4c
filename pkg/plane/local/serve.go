package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/pidlock"
)

// Serve runs the plane that is installed in the data directory of p until ctx is done. It holds the lock of the
// directory, so that no two processes ever run on the same data, and reports its state there. Certificates that are
// about to expire are renewed before a component reads them. onReady is called once, when every component is ready.
func Serve(ctx context.Context, p plane.Plane, runners map[string]Runner, onReady func()) (err error) {
	if err := makeDirs(p.Layout); err != nil {
		return err
	}
	lock, err := pidlock.Acquire(p.Layout.PlaneLock())
	if err != nil {
		return fmt.Errorf("run the plane in %s: %w", p.Layout.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()

	if err := Prepare(ctx, p); err != nil {
		return err
	}
	var writeErr error
	wasReady := false
	err = Run(ctx, p, runners, func(s State) {
		if err := writeState(p.Layout.PlaneState(), s); err != nil && writeErr == nil {
			writeErr = err
		}
		if !wasReady && s.AllReady() {
			wasReady = true
			onReady()
		}
	})
	return errors.Join(err, writeErr)
}
