// Package signals turns SIGINT and SIGTERM into the end of a context, for the
// commands of server roles. It is the command's business alone: what runs below
// it ends when its context does.
package signals

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Context returns a context that the first SIGINT or SIGTERM cancels, which is
// the call to stop gracefully. A second one calls exit with code 1: whoever
// sends it does not want to wait any longer. The signal is the context's cause.
//
// The returned function releases the signals, and cancels the context.
func Context(parent context.Context, exit func(code int)) (context.Context, context.CancelFunc) {
	// Room for both, so that none is lost while the first is dealt with.
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)

	ctx, cancel := context.WithCancelCause(parent)
	released := make(chan struct{})
	go watch(received, released, cancel, exit)
	return ctx, sync.OnceFunc(func() {
		signal.Stop(received)
		cancel(context.Canceled)
		close(released)
	})
}

func watch(received <-chan os.Signal, released <-chan struct{}, cancel context.CancelCauseFunc, exit func(int)) {
	select {
	case s := <-received:
		cancel(fmt.Errorf("received signal: %s", s))
	case <-released:
		return
	}
	select {
	case <-received:
		exit(1)
	case <-released:
	}
}
