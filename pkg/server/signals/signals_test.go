package signals_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/karmadactl/karmadactl/pkg/server/signals"
)

func TestContext(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"Terminate": syscall.SIGTERM, "Interrupt": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			exited := make(chan int, 1)
			ctx, release := signals.Context(t.Context(), func(code int) { exited <- code })
			defer release()
			if err := ctx.Err(); err != nil {
				t.Fatalf("the context has ended before any signal: %v", err)
			}

			send(t, sig)
			<-ctx.Done()
			if cause := context.Cause(ctx); !strings.Contains(cause.Error(), sig.String()) {
				t.Errorf("the cause %q does not name the signal %q", cause, sig)
			}
			select {
			case code := <-exited:
				t.Fatalf("the first signal must stop gracefully, not exit with %d", code)
			default:
			}

			send(t, sig)
			if code := <-exited; code != 1 {
				t.Errorf("the second signal exits with 1, got %d", code)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	ctx, release := signals.Context(t.Context(), func(code int) { t.Errorf("exit(%d) without a signal", code) })
	release()
	release() // safe to call again
	<-ctx.Done()
}

func TestParent(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	ctx, release := signals.Context(parent, func(code int) { t.Errorf("exit(%d) without a signal", code) })
	defer release()
	cancel()
	<-ctx.Done()
}

func send(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatalf("send %s to this process: %v", sig, err)
	}
}
