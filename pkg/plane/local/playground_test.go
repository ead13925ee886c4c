package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/plane"
)

func TestPlaygroundNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"member10", "member2", "member1", "memberX", "member", "other3"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "member3"), "a file")
	write(t, filepath.Join(dir, "member1.config"), "")
	got, err := Playground{Dir: dir}.names()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"member1", "member2", "member10"}, got); diff != "" {
		t.Errorf("members differ (-want +got):\n%s\nreason: they are counted, not spelt", diff)
	}
}

func TestPlaygroundThatIsNotThere(t *testing.T) {
	p := Playground{Dir: filepath.Join(t.TempDir(), "absent")}
	if all, err := p.List(t.Context()); err != nil || all == nil || len(all) > 0 {
		t.Errorf("list: got %#v, %v, want an empty list, not none: scripts count it", all, err)
	}
	for _, purge := range []bool{false, true} {
		if stopped, err := p.Down(t.Context(), purge); err != nil || stopped == nil || len(stopped) > 0 {
			t.Errorf("down, purge %t: got %#v, %v, want an empty list", purge, stopped, err)
		}
	}
	if exists(p.Dir) {
		t.Error("looking made the directory")
	}
}

func TestPlaygroundRefuses(t *testing.T) {
	foreign := t.TempDir()
	write(t, filepath.Join(foreign, "notes.txt"), "mine")
	cases := map[string]struct {
		reason string
		dir    string
		count  int
		says   string
	}{
		"NoMembers": {"A playground without members is none.", t.TempDir(), 0, "0 members"},
		"TooMany":   {"There are ranges for a hundred.", t.TempDir(), 101, "member101"},
		"Foreign":   {"Other people's files are not to be mixed with ours.", foreign, 1, "notes.txt"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := tree(t, c.dir)
			_, err := Playground{Dir: c.dir, Karmada: "/nowhere/karmada"}.Up(t.Context(), c.count, 1, func(MemberStatus) { t.Error("something was started") })
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
			if diff := cmp.Diff(before, tree(t, c.dir)); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// The members here hold their lock and report that they are ready, but are not.
func TestPlaygroundUpAndDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "playground")
	p := Playground{Dir: dir, Karmada: actAs(t, "plane", plane.NewLayout(dir, ""))[0]}
	t.Cleanup(func() { _, _ = p.Down(t.Context(), false) }) // only where the test has failed does anything run

	up := func(members, nodes int) (all []MemberStatus, started []string) {
		t.Helper()
		all, err := p.Up(t.Context(), members, nodes, func(m MemberStatus) {
			if m.StartedIn > 0 {
				started = append(started, m.Name)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return all, started
	}
	_, started := up(1, 2)
	if diff := cmp.Diff([]string{"member1"}, started); diff != "" {
		t.Errorf("started members differ (-want +got):\n%s", diff)
	}
	all, started := up(2, 2)
	if diff := cmp.Diff([]string{"member2"}, started); diff != "" {
		t.Errorf("a larger number starts what is missing (-want +got):\n%s", diff)
	}
	if len(all) != 2 || !all[0].Running || all[0].PID == all[1].PID {
		t.Errorf("got %+v, want two members that run", all)
	}
	all, started = up(2, 3)
	if diff := cmp.Diff([]string{"member1", "member2"}, started); diff != "" {
		t.Errorf("more nodes are for those that run, too (-want +got):\n%s", diff)
	}
	if all[0].Nodes != 3 || all[1].Nodes != 3 {
		t.Errorf("got %+v, want three nodes each", all)
	}
	for _, m := range all {
		if !exists(m.Kubeconfig) {
			t.Errorf("%s has no kubeconfig", m.Name)
		}
		if m.Ready || m.Message == "" {
			t.Errorf("%s is ready %t (%s), and its components do not answer", m.Name, m.Ready, m.Message)
		}
	}
	merged, err := os.ReadFile(p.AllKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, context := range []string{"name: member1", "name: member2"} {
		if !strings.Contains(string(merged), context) {
			t.Errorf("the kubeconfig of all has no %q", context)
		}
	}

	stopped, err := p.Down(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"member1", "member2"}, stopped); diff != "" {
		t.Errorf("stopped members differ (-want +got):\n%s", diff)
	}
	if !exists(filepath.Join(dir, "member1", "plane.yaml")) {
		t.Error("stopping removed a member")
	}
	all, _ = up(1, 5)
	if all[0].Nodes != 5 {
		t.Errorf("member1 has %d nodes, want the larger number that was asked for", all[0].Nodes)
	}
	if stopped, err = p.Down(t.Context(), true); err != nil || len(stopped) != 1 {
		t.Errorf("stopped %v, %v, want the one that ran", stopped, err)
	}
	if exists(dir) {
		t.Errorf("%v is left", tree(t, dir))
	}
}

func TestPlaygroundPlansFreePorts(t *testing.T) {
	taken := map[int]bool{20011: true, 20012: true, 20020: true}
	inUse := func(_ string, port int) bool { return taken[port] }
	p := Playground{Dir: filepath.Join(t.TempDir(), "playground")}
	seen := map[int]string{}
	for i, name := range []string{"member1", "member2", "member3"} {
		one, err := p.plan(name, i+1, 1, inUse)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range one.Endpoints() {
			if taken[e.Port] {
				t.Errorf("%s gets port %d, which %s has", name, e.Port, seen[e.Port])
			}
			taken[e.Port], seen[e.Port] = true, name
		}
	}
}

func TestPlaygroundNamesAPortThatIsLost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Playground{Dir: t.TempDir()}
	cfg, err := plane.NewMemberConfig("member1", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port = l.Addr().(*net.TCPAddr).Port
	if err := cfg.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.memberDir("member1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.Save(p.memberDir("member1")); err != nil {
		t.Fatal(err)
	}
	_, err = p.Up(t.Context(), 1, 1, func(MemberStatus) {})
	if err == nil || !strings.Contains(err.Error(), "member1") || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v, want that the port of member1 is in use", err)
	}
	var foreign *plane.ForeignDirectoryError
	if errors.As(err, &foreign) {
		t.Errorf("got %v: the directory is a playground", err)
	}
}
