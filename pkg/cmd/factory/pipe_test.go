package factory

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKubeconfigPipes(t *testing.T) {
	cases := map[string]struct {
		reason string
		// write is what the other end does; nil is nobody.
		write       func(w io.Writer) error
		open        bool // the other end stays
		interrupted bool
		want        string
	}{
		"Whole":       {reason: "Shells make such of <(command).", write: func(w io.Writer) error { _, err := io.WriteString(w, kubeconfig("one")); return err }},
		"Nobody":      {reason: "It is not waited for for ever.", want: "nobody has written a whole kubeconfig into it in "},
		"Interrupted": {reason: "Nor by who has had enough.", interrupted: true, want: "interrupted"},
		"NoEnd":       {reason: "There may be more, of which nothing is known.", open: true, write: func(w io.Writer) error { _, err := io.WriteString(w, kubeconfig("one")); return err }, want: "nobody has written a whole kubeconfig"},
		"Empty":       {reason: "It says nothing.", write: func(io.Writer) error { return nil }, want: "is empty"},
		"Damaged":     {reason: "It is not read a second time to say so.", write: func(w io.Writer) error { _, err := io.WriteString(w, "a: ["); return err }, want: "is damaged or not a kubeconfig"},
		"Endless": {
			reason: "Memory has an end.", want: "more than 8 MiB",
			write: func(w io.Writer) error {
				_, err := io.WriteString(w, strings.Repeat("# filler\n", 1<<20))
				if errors.Is(err, syscall.EPIPE) {
					return nil // enough was read
				}
				return err
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			if tc.write != nil {
				go func() {
					w, err := os.OpenFile(file, os.O_WRONLY, 0)
					if err != nil {
						done <- err
						return
					}
					if tc.open {
						t.Cleanup(func() { _ = w.Close() })
						done <- tc.write(w)
						return
					}
					done <- errors.Join(tc.write(w), w.Close())
				}()
			} else {
				done <- nil
			}
			f := New(Options{Program: "karmadactl", ErrOut: io.Discard})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.interrupted {
				cancel()
			}
			f.Within(ctx)
			m := f.Member(MemberOptions{Name: "m", Kubeconfig: file, KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context"})
			m.conn.pipePatience = time.Minute
			if tc.open || (tc.write == nil && !tc.interrupted) {
				m.conn.pipePatience = 50 * time.Millisecond
			}
			cfg, err := m.ToRESTConfig()
			if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q: %s", err, tc.want, tc.reason)
			}
			if err == nil && cfg.Host != "https://one.invalid" {
				t.Errorf("got %s: %s", cfg.Host, tc.reason)
			}
			if tc.write == nil {
				// Whoever waits to open it is let go.
				if w, err := os.OpenFile(file, os.O_RDWR, 0); err == nil {
					_ = w.Close()
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
