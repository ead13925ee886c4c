package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

// A description that names a role which the binary does not have would show only when a plane starts.
func TestEveryComponentHasARunner(t *testing.T) {
	l := plane.NewLayout("/data", "")
	cases := map[string]struct {
		plane   plane.Plane
		runners map[string]local.Runner
	}{
		"ControlPlane": {plane.ControlPlane(plane.NewConfig(plane.KindControlPlane, "karmada"), l), controlPlaneRunners()},
		"Member":       {plane.Member(plane.NewConfig(plane.KindMember, "member1"), l), memberRunners()},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			used := map[string]bool{}
			for _, component := range c.plane.Components {
				used[component.Role] = true
				if c.runners[component.Role] == nil {
					t.Errorf("component %s: nothing runs the role %q", component.Name, component.Role)
				}
			}
			for role := range c.runners {
				if !used[role] {
					t.Errorf("role %q is run by nobody", role)
				}
			}
		})
	}
}

func TestSharedManager(t *testing.T) {
	shared := newSharedManager()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shared.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that who waits ends with the process", err)
	}
	mgr := struct{ manager.Manager }{}
	go shared.publish(mgr)
	for range 2 {
		if got, err := shared.wait(t.Context()); err != nil || got != manager.Manager(mgr) {
			t.Errorf("got %v, %v: everybody who waits gets the manager", got, err)
		}
	}
}

// Only the role that is asked for is made, since upstream's constructors install signal handlers: here, none.
func TestHelpNamesEveryRole(t *testing.T) {
	s, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd, err := NewCommand([]string{"/usr/bin/karmada"}, s)
	if err != nil {
		t.Fatal(err)
	}
	cmd.SetArgs(nil)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"plane", "member", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "karmada-controller-manager", "karmada-scheduler"} {
		if !strings.Contains(out.String(), "\n  "+role+" ") {
			t.Errorf("%s is not in the help:\n%s", role, out.String())
		}
	}
	cmd.SetArgs([]string{"karmada-nothing"})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "karmada-nothing") {
		t.Errorf("got %v, want that there is no such role", err)
	}
}

func TestCalledByTheNameOfARole(t *testing.T) {
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	for _, args := range [][]string{{"/usr/bin/member"}, {"plane", "--data-dir=x"}} {
		cmd, err := NewCommand(args, s)
		if err != nil || !slices.Contains([]string{"plane", "member"}, cmd.Name()) {
			t.Errorf("called as %s: got %q, %v", args[0], cmd.Name(), err)
		}
	}
	cmd, err := NewCommand([]string{"karmada", "plane"}, s)
	if err != nil {
		t.Fatal(err)
	}
	if found, _, err := cmd.Find([]string{"plane"}); err != nil || found.Flags().Lookup("data-dir") == nil && found.PersistentFlags().Lookup("data-dir") == nil {
		t.Errorf("karmada plane has no --data-dir: %v", err)
	}
}
