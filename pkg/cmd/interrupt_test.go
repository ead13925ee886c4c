package cmd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// hangLimit is when a command counts as one that hangs. It is no expectation: this machine may do other things.
const hangLimit = time.Minute

// Ctrl-C ends every command of ours at once, also one that waits for a server that does not answer. (kubectl's own know
// no context; the signal ends their process.)
func TestCommandsEndWhenTheyAreInterrupted(t *testing.T) {
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, line := range []string{
		"get deployments", "get pods -C member1", "get pods -s members --watch", "why deployment/web", "tree deployment/web",
		"promote deployment web -C member1", "promote --all -C member1", "demote deployment/web", "top node", "top pod -C member1",
		"cordon member1", "uncordon member1", "taint clusters member1 a=b:NoSchedule", "token create", "token list", "token delete abcdef",
		"join member1 --cluster-kubeconfig=CONFIG", "unjoin member1 --cascade=orphan", "unregister member1 --karmada-config=CONFIG --cluster-kubeconfig=CONFIG --cascade=orphan",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var once sync.Once
			released := make(chan struct{})
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				once.Do(interrupt) // the command waits now
				select {
				case <-r.Context().Done():
				case <-released:
				}
			}))
			defer silent.Close()
			defer close(released)
			config := filepath.Join(t.TempDir(), "config")
			if err := fleettest.WriteKubeconfig(config, silent.URL); err != nil {
				t.Fatal(err)
			}
			t.Setenv("KUBECONFIG", config)
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			root, _, err := New("karmadactl", streams)
			if err != nil {
				t.Fatal(err)
			}
			root.SetArgs(strings.Fields(strings.ReplaceAll(line, "CONFIG", config)))
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(ctx) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Errorf("it ends as if it had done its work:\n%s", out)
				}
			case <-time.After(hangLimit):
				t.Error("it goes on waiting for a server that does not answer")
			}
		})
	}
}
