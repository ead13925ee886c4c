package plane

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestLoad(t *testing.T) {
	save := func(c plane.Config, err error) string {
		t.Helper()
		if err == nil {
			err = c.ChoosePorts(func(string, int) bool { return false })
		}
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := c.Save(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	control := plane.NewConfig(plane.KindControlPlane, "karmada")
	control.AdvertiseAddress, control.PKI = "192.0.2.10", "/srv/pki"
	controlDir, memberDir := save(control, nil), save(plane.NewMemberConfig("member1", 1, 2))
	runsControl := kind{plane: plane.KindControlPlane, describe: plane.ControlPlane}
	runsMember := kind{plane: plane.KindMember, describe: plane.Member}

	cases := map[string]struct {
		reason string
		kind   kind
		dir    string
		says   string // "" is success
	}{
		"ControlPlane":    {"What init has prepared.", runsControl, controlDir, ""},
		"Member":          {"What playground has prepared.", runsMember, memberDir, ""},
		"MemberAsPlane":   {"A role runs its own kind only.", runsControl, memberDir, "holds a Member"},
		"ControlAsMember": {"The other way round, too.", runsMember, controlDir, "holds a ControlPlane"},
		"NoDirectory":     {"There is no default here: whoever starts it knows.", runsControl, "", "--data-dir is missing"},
		"Empty":           {"It installs nothing.", runsControl, t.TempDir(), "no control plane is installed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := c.kind.load(c.dir)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
			if err == nil && (p.Config.Kind != c.kind.plane || len(p.Components) == 0) {
				t.Errorf("got a %s with %d components", p.Config.Kind, len(p.Components))
			}
		})
	}
	if p, err := runsControl.load(controlDir); err != nil || p.Layout.PKI != "/srv/pki" {
		t.Errorf("got %v, %v, want the certificates where they are", p.Layout, err)
	}
}

func TestLeaveOut(t *testing.T) {
	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	whole := plane.ControlPlane(cfg, plane.NewLayout("/data", ""))
	cases := map[string]struct {
		reason  string
		without []string
		says    string // "" is success
	}{
		"Nothing":   {"The usual case.", nil, ""},
		"Together":  {"What only they wait for is left out with them.", []string{plane.KarmadaControllerManager, plane.KarmadaScheduler}, ""},
		"AnyOrder":  {"The order of names is nobody's business.", []string{plane.KarmadaScheduler, plane.KarmadaControllerManager}, ""},
		"Unknown":   {"A typo would run everything twice.", []string{"scheduler"}, `no such component`},
		"Twice":     {"The second one is not there any more.", []string{plane.KarmadaScheduler, plane.KarmadaScheduler}, `no such component`},
		"WaitedFor": {"Others would never start.", []string{plane.Etcd}, "starts after it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := whole
			err := leaveOut(&p, c.without)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
			if want := len(whole.Components) - len(c.without); err == nil && len(p.Components) != want {
				t.Errorf("%d components are left, want %d\nreason: %s", len(p.Components), want, c.reason)
			}
		})
	}
	if again := plane.ControlPlane(cfg, plane.NewLayout("/data", "")); len(again.Components) != len(whole.Components) {
		t.Errorf("the plane that others have was changed: %d components, want %d", len(whole.Components), len(again.Components))
	}
}

func TestCommands(t *testing.T) {
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	for name, cmd := range map[string]interface {
		Name() string
		ExecuteContext(context.Context) error
		SetArgs([]string)
	}{"plane": New(s, nil), "member": NewMember(s, nil)} {
		if cmd.Name() != name {
			t.Errorf("the command is %q, want %q", cmd.Name(), name)
		}
		cmd.SetArgs([]string{"--data-dir=" + t.TempDir()})
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, plane.ErrNotInstalled) {
			t.Errorf("%s: got %v, want that nothing is installed", name, err)
		}
	}
}

// The flags by which a member is described are the ones that its nodes know.
func TestNodesKnowTheirFlags(t *testing.T) {
	cfg, err := plane.NewMemberConfig("member1", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	nodes, ok := plane.Member(cfg, plane.NewLayout("/nowhere", "")).Component(plane.Nodes)
	if !ok {
		t.Fatal("a member has no nodes")
	}
	err = RunNodes(t.Context(), nodes.Args)
	if err == nil || !strings.Contains(err.Error(), "read the kubeconfig") {
		t.Errorf("got %v, want that all flags are known, and the kubeconfig is not there", err)
	}
	if err := RunNodes(t.Context(), append(nodes.Args, "--unknown=1")); err == nil || !strings.Contains(err.Error(), "unknown flag: --unknown") {
		t.Errorf("got %v, want that the flag is unknown", err)
	}
}
