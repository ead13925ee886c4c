package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/karmadactl/karmadactl/test/chaos/rig"
)

const watchInterval = 5 * time.Millisecond

// A planeWatch looks all the time for the one thing that must never be: two control planes that hold their lock on the
// same data. A second process may come up and find the lock taken; it ends before it touches the data, and is told
// from a plane by the ports it listens on.
type planeWatch struct {
	cancel context.CancelFunc
	result chan error
}

func watchPlanes(ctx context.Context, p rig.Plane) *planeWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &planeWatch{cancel: cancel, result: make(chan error, 1)}
	go func() { w.result <- look(ctx, p) }()
	return w
}

func look(ctx context.Context, p rig.Plane) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		running, err := p.Processes()
		if err != nil {
			return err
		}
		var serving []rig.Process
		for _, one := range running {
			if one.Role() == "plane" && one.Listens() {
				serving = append(serving, one)
			}
		}
		if len(serving) > 1 {
			return fmt.Errorf("two control planes serve the same data: %v", serving)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// stop ends the watch and returns what it saw.
func (w *planeWatch) stop() error {
	w.cancel()
	return <-w.result
}
