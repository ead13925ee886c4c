package registration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A credential plugin that never answers ends no later than a server that does not.
func TestSilentPlugin(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "plugin")
	// It ends when the test has, and has removed it.
	if err := os.WriteFile(plugin, []byte("#!/bin/sh\nwhile [ -e \"$0\" ]; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	api, err := NewAPI(&rest.Config{
		Host: "https://127.0.0.1:1", Timeout: 50 * time.Millisecond,
		ExecProvider: &clientcmdapi.ExecConfig{Command: plugin, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ClusterID(t.Context(), api.Client)
	check(t, "It may wait for ever for somebody.", err, "getting credentials: exec: "+plugin+" has not answered in time")
	if err != nil && strings.Contains(err.Error(), "is not a Kubernetes API server") {
		t.Errorf("it is put down to the server: %v", err)
	}
}
