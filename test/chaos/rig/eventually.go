package rig

import (
	"context"
	"fmt"
	"time"
)

const (
	eventuallyInterval = 50 * time.Millisecond
	// eventuallyLimit is when to give up on a machine that does many other things: it is no expectation.
	eventuallyLimit = 3 * time.Minute
)

// Eventually asks check until it returns nil. When it gives up, or ctx is done, the error names what was waited for
// and what check said last.
func Eventually(ctx context.Context, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, eventuallyLimit)
	defer cancel()
	ticker := time.NewTicker(eventuallyInterval)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited until %s (%w), but: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
