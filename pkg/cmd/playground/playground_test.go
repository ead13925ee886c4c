package playground

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

func TestRefused(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "karmada"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "absent")
	cases := map[string]struct {
		reason string
		path   string
		args   []string
		says   string
	}{
		"NoMembers": {"A playground without members is none.", bin, []string{"up", "--members=0"}, "0 members"},
		"TooMany":   {"There are address ranges for a hundred.", bin, []string{"up", "--members=101"}, "member101"},
		"TooLarge":  {"A number of nodes that no host could simulate is a slip.", bin, []string{"up", "--nodes=5001"}, "--nodes=5001"},
		"Negative":  {"There is no such number of nodes.", bin, []string{"up", "--nodes=-1"}, "--nodes=-1"},
		"NoServers": {"Members run the servers' binary.", t.TempDir(), []string{"up"}, "karmada binary"},
		"BadOutput": {"Before anything is done.", bin, []string{"down", "-o=xml"}, `"xml"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			s, _, _, _ := genericiooptions.NewTestIOStreams()
			cmd := NewCmd(s, "karmadactl")
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append(c.args, "--dir="+dir))
			if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q\nreason: %s", err, c.says, c.reason)
			}
			if _, err := os.Lstat(dir); err == nil {
				t.Error("the directory was made")
			}
		})
	}
}

func TestPrintTable(t *testing.T) {
	const want = `NAME      READY   PROCESS   NODES   SERVER                    KUBECONFIG     MESSAGE
member1   true    12        4       https://127.0.0.1:20010   /p/m1.config   
member2   false   -         2       https://127.0.0.1:20020   /p/m2.config   component etcd: gone
`
	var out bytes.Buffer
	err := printTable(&out, []local.MemberStatus{
		{Name: "member1", Running: true, Ready: true, PID: 12, Nodes: 4, Server: "https://127.0.0.1:20010", Kubeconfig: "/p/m1.config"},
		{Name: "member2", PID: 13, Nodes: 2, Server: "https://127.0.0.1:20020", Kubeconfig: "/p/m2.config", Message: "component etcd: gone"},
	})
	if err != nil || out.String() != want {
		t.Errorf("got:\n%s\n%v, want:\n%s", out.String(), err, want)
	}
}
