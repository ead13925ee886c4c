package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/exec"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

// execute returns what is printed, and the exit code.
func execute(t *testing.T, args ...string) (string, int, error) {
	t.Helper()
	s, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCmd(s, "karmadactl")
	cmd.SilenceErrors = true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	var exit exec.CodeExitError
	switch {
	case err == nil:
		return out.String(), 0, nil
	case errors.As(err, &exit):
		return out.String(), exit.Code, err
	}
	return out.String(), 1, err
}

func installed(t *testing.T) plane.Plane {
	t.Helper()
	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	cfg.BindAddress, cfg.AdvertiseAddress = "127.0.0.1", "127.0.0.1"
	if err := cfg.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	p := plane.ControlPlane(cfg, plane.NewLayout(filepath.Join(t.TempDir(), "data"), ""))
	if err := local.Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestExitCodes(t *testing.T) {
	p := installed(t)
	withdrawn := installed(t)
	if _, err := local.Remove(t.Context(), withdrawn, false); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"Nothing":   {"A script can tell that there is nothing from that it is broken.", []string{"--data-dir=" + filepath.Join(t.TempDir(), "absent")}, 2, "no control plane is installed"},
		"Withdrawn": {"What deinit left behind is not installed.", []string{"--data-dir=" + withdrawn.Layout.Dir}, 2, "no control plane is installed"},
		"Stopped":   {"What does not run is not healthy, and the command that starts it is named.", []string{"--data-dir=" + p.Layout.Dir}, 1, "karmadactl start --data-dir=" + p.Layout.Dir},
		"Waited":    {"Waiting ends.", []string{"--data-dir=" + p.Layout.Dir, "--wait", "--timeout=1ns"}, 1, "not running"},
		"BadOutput": {"A mistake is one of the user.", []string{"-o=xml"}, 1, `"xml"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, code, err := execute(t, c.args...)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %d, %v, want %d and %q\nreason: %s", code, err, c.code, c.says, c.reason)
			}
		})
	}
}

func TestOutputOfAStoppedPlane(t *testing.T) {
	p := installed(t)
	out, _, _ := execute(t, "--data-dir="+p.Layout.Dir, "-o=json") // its error is tested above
	var s local.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if s.Healthy || s.DataDir != p.Layout.Dir || len(s.Components) != len(p.Components) || s.KubernetesVersion != plane.KubernetesVersion {
		t.Errorf("got %+v", s)
	}
}

func TestDiagnose(t *testing.T) {
	next := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	cases := map[string]struct {
		reason string
		status local.Status
		want   string
	}{
		"KeepsFailing": {
			"Between two starts the supervisor knows most.",
			local.Status{Log: "/log", Supervisor: &local.SupervisorState{Restarts: 3, LastError: "component etcd: disk full", NextStart: next}},
			"the control plane does not stay up (3 restarts): component etcd: disk full; it is started again at 03:04:05, or run `kubectl karmada stop`; its log is /log",
		},
		"Stopped": {
			"The next command is named.",
			local.Status{DataDir: "/data"},
			"the control plane is not running: run `kubectl karmada start --data-dir=/data`",
		},
		"OneSick": {
			"The first component that is not healthy is named, with what it said.",
			local.Status{PID: 7, Log: "/log", Components: []local.ComponentStatus{{Name: "etcd", Healthy: true}, {Name: "kube-apiserver", Phase: local.Ready, Message: "not ready: etcd"}}},
			"component kube-apiserver is not healthy: not ready: etcd; the log is /log",
		},
		"OneStarting": {
			"What has said nothing is at some point of its life.",
			local.Status{PID: 7, Log: "/log", Components: []local.ComponentStatus{{Name: "etcd", Phase: local.Starting}}},
			"component etcd is not healthy: Starting; the log is /log",
		},
		"Unclear": {
			"There is always a log.",
			local.Status{PID: 7, Log: "/log"},
			"the control plane is not healthy; the log is /log",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := diagnose(c.status, "kubectl karmada"); got != c.want {
				t.Errorf("got  %s\nwant %s\nreason: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	s := local.Status{
		DataDir: "/data", Healthy: true, Server: "https://192.0.2.1:32443", Version: "v1.2.3", KubernetesVersion: "1.37", PID: 7, Started: began,
		Supervisor: &local.SupervisorState{PID: 6, Restarts: 1, LastExit: began, LastError: "boom"}, DataBytes: 3 << 20,
		Components:   []local.ComponentStatus{{Name: "etcd", Address: "127.0.0.1:32444", Phase: local.Ready, Healthy: true}, {Name: "kube-apiserver", Phase: local.Starting, Message: "not ready: etcd"}},
		Certificates: local.CertificateStatus{DaysLeft: 364, NextToEnd: "apiserver", Broken: []string{"admin: it is missing"}},
	}
	const want = `control plane  running since 2026-01-02 03:04:05 (process 7)
API server     https://192.0.2.1:32443
version        v1.2.3, Kubernetes 1.37
data           3.0 MiB in /data
certificates   364 days left (apiserver ends first)
               admin: it is missing
supervisor     process 6, 1 restarts
               last at 2026-01-02 03:04:05: boom

COMPONENT        HEALTHY   PHASE      ADDRESS           MESSAGE
etcd             true      Ready      127.0.0.1:32444   
kube-apiserver   false     Starting                     not ready: etcd
`
	var out bytes.Buffer
	if err := print(&out, s); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	out.Reset()
	if err := print(&out, local.Status{DataDir: "/data"}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"control plane  stopped\n", "unknown while stopped", "(none ends first)"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("a stopped one: %q is missing in:\n%s", part, out.String())
		}
	}
}
