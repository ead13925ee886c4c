package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The test binary is karmadactl, under both of its names.
func TestMain(m *testing.M) {
	run := func() {
		os.Exit(Main(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	testscript.Main(m, map[string]func(){"karmadactl": run, "kubectl-karmada": run})
}

// The scripts need no control plane: what they reach is a server that answers
// discovery, or none. Each starts in a home of its own, without a kubeconfig.
func TestScripts(t *testing.T) {
	kubeconfigs := t.TempDir()
	writeKubeconfigs(t, kubeconfigs)
	plugins, err := filepath.Abs("../../plugins")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			env.Setenv("HOME", home)
			env.Setenv("KUBECONFIG", "")
			env.Setenv("KUBERNETES_SERVICE_HOST", "")
			env.Setenv("KCFG", kubeconfigs)
			env.Setenv("PLUGINS", plugins)
			return nil
		},
	})
}
