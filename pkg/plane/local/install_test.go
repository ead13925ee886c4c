package local

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/preflight"
)

type silent struct{}

func (silent) Begin(string)    {}
func (silent) Progress(string) {}
func (silent) End(Step)        {}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// request asks for a control plane on loopback in a directory that is not there yet.
func request(t *testing.T, change ...func(*Request)) Request {
	t.Helper()
	loopback, port := "127.0.0.1", freePort(t)
	r := Request{DataDir: filepath.Join(t.TempDir(), "new", "data"), BindAddress: &loopback, Port: &port, Supervisor: []string{"supervisor", "run"}, Timeout: time.Minute}
	for _, f := range change {
		f(&r)
	}
	return r
}

func plan(t *testing.T, r Request) *Installation {
	t.Helper()
	i, err := Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestPlanChangesNothing(t *testing.T) {
	r := request(t)
	i := plan(t, r)
	if !i.fresh || i.running.Running() || i.restart {
		t.Errorf("fresh %t, running %t, restart %t; want a fresh one that does not run", i.fresh, i.running.Running(), i.restart)
	}
	if exists(filepath.Dir(r.DataDir)) {
		t.Errorf("%v was made", tree(t, filepath.Dir(r.DataDir)))
	}
	cfg := i.Plane.Config
	if err := cfg.Validate(); err != nil {
		t.Errorf("the planned configuration is not valid: %v", err)
	}
	if cfg.AdvertiseAddress != "127.0.0.1" || cfg.Port != *r.Port {
		t.Errorf("advertises %s:%d, want the bound address and the port that was asked for", cfg.AdvertiseAddress, cfg.Port)
	}
	if len(i.Certificates) != len(i.Plane.Certificates)+len(i.Plane.KeyPairs) {
		t.Errorf("%d certificates are planned, and the plane has %d and %d key pairs", len(i.Certificates), len(i.Plane.Certificates), len(i.Plane.KeyPairs))
	}
}

func TestPlanRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // nobody has written anything to it
	busy := taken.Addr().(*net.TCPAddr).Port
	foreign := t.TempDir()
	write(t, filepath.Join(foreign, "notes.txt"), "mine")
	member, err := plane.NewMemberConfig("member7", 7, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := member.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	membersDir := t.TempDir()
	if _, err := member.Save(membersDir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")

	cases := map[string]struct {
		reason string
		change func(*Request)
		want   []string
	}{
		"PortInUse": {
			reason: "Somebody else's server is not to be found out by ours failing.",
			change: func(r *Request) { r.Port = &busy },
			want:   []string{"port", "in use"},
		},
		"AllAtOnce": {
			reason: "Everything that is in the way is said at once.",
			change: func(r *Request) {
				ips, dns, validity := []string{"not-an-ip"}, []string{"not a name"}, time.Second
				r.Port, r.ExternalIPs, r.ExternalDNS, r.CertValidity = &busy, &ips, &dns, &validity
			},
			want: []string{"in use", `"not-an-ip"`, `"not a name"`, "validity 1s"},
		},
		"AddressElsewhere": {
			reason: "An address that this host does not have cannot be listened on.",
			change: func(r *Request) { a := "192.0.2.77"; r.BindAddress = &a },
			want:   []string{"192.0.2.77"},
		},
		"Foreign": {
			reason: "A directory with other people's files is not ours to use.",
			change: func(r *Request) { r.DataDir = foreign },
			want:   []string{foreign, "notes.txt"},
		},
		"Member": {
			reason: "A local member cluster is not a control plane.",
			change: func(r *Request) { r.DataDir = membersDir },
			want:   []string{membersDir, `"member7"`},
		},
		"NotADirectory": {
			reason: "A file cannot hold anything.",
			change: func(r *Request) { r.DataDir = filepath.Join(file, "data") },
			want:   []string{file},
		},
		"CAWithoutKey": {
			reason: "An authority without its key cannot sign.",
			change: func(r *Request) { r.CACert = "/nowhere/ca.crt" },
			want:   []string{"/nowhere/ca.crt"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t, c.change)
			_, err := Plan(r)
			if err == nil {
				t.Fatalf("no error\nreason: %s", c.reason)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %s\nreason: %s\ngot: %v", part, c.reason, err)
				}
			}
			if exists(r.DataDir) && r.DataDir != foreign && r.DataDir != membersDir {
				t.Errorf("%s was made", r.DataDir)
			}
		})
	}
}

func TestPlanKeepsWhatIsInstalled(t *testing.T) {
	p := install(t, func(c *plane.Config) {
		c.Port, c.ExternalDNS, c.Withdrawn = freePort(t), []string{"k.example.com"}, true
		c.Ports = nil
		if err := c.ChoosePorts(preflight.PortInUse); err != nil {
			t.Fatal(err)
		}
	})
	i := plan(t, Request{DataDir: p.Layout.Dir})
	want := p.Config
	want.Withdrawn = false // init takes it up again
	if diff := cmp.Diff(want, i.Plane.Config); diff != "" {
		t.Errorf("the configuration changes although nobody asked for that (-installed +planned):\n%s", diff)
	}
	if i.fresh {
		t.Error("what is installed is taken for fresh")
	}
	for _, c := range i.Certificates {
		if c.Changed() {
			t.Errorf("certificate %s", c)
		}
	}

	port, dns := freePort(t), []string{"other.example.com"}
	i = plan(t, Request{DataDir: p.Layout.Dir, Port: &port, ExternalDNS: &dns})
	if got := i.Plane.Config; got.Port != port || !slices.Equal(got.ExternalDNS, dns) || got.BindAddress != p.Config.BindAddress {
		t.Errorf("got port %d and names %v, want what was asked for, and nothing else changed", got.Port, got.ExternalDNS)
	}
	var renewed []string
	for _, c := range i.Certificates {
		if c.Changed() {
			renewed = append(renewed, c.Name)
		}
	}
	if diff := cmp.Diff([]string{"apiserver"}, renewed); diff != "" {
		t.Errorf("certificates that change for another name differ (-want +got):\n%s", diff)
	}

	elsewhere := t.TempDir()
	if _, err := Plan(Request{DataDir: p.Layout.Dir, PKI: &elsewhere}); err == nil || !strings.Contains(err.Error(), p.Layout.PKI) {
		t.Errorf("got %v, want that certificates are not moved from %s", err, p.Layout.PKI)
	}
	same := p.Layout.PKI
	if i, err := Plan(Request{DataDir: p.Layout.Dir, PKI: &same}); err != nil || i.Plane.Config.PKI != "" {
		t.Errorf("naming the directory that is used anyway: %v, want no difference", err)
	}
}

func TestPlanNotesProvidedCertificates(t *testing.T) {
	pki := t.TempDir()
	spec := []certs.Spec{{Name: "ca", CommonName: "my own"}}
	if _, err := (certs.Dir{Path: pki}).Ensure(t.Context(), spec, certs.Options{}); err != nil {
		t.Fatal(err)
	}
	i := plan(t, request(t, func(r *Request) { r.PKI = &pki }))
	if diff := cmp.Diff([]string{"ca"}, i.Plane.Config.Provided); diff != "" {
		t.Errorf("what is the user's differs (-want +got):\n%s\nreason: no command may remove it", diff)
	}
}

func TestPreview(t *testing.T) {
	r := request(t)
	i := plan(t, r)
	preview, err := i.Preview()
	if err != nil {
		t.Fatal(err)
	}
	if preview.DataDir != r.DataDir || preview.Process != "started in the background: supervisor run" {
		t.Errorf("directory %s, process %q", preview.DataDir, preview.Process)
	}
	var components []string
	for _, c := range preview.Components {
		components = append(components, c.Name)
	}
	if diff := cmp.Diff([]string{"etcd", "karmada-webhook", "kube-apiserver", "kube-controller-manager", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-scheduler"}, components); diff != "" {
		t.Errorf("components differ (-want +got):\n%s", diff)
	}
	for _, object := range []string{"Namespace karmada-system", "Namespace karmada-cluster", "ClusterRole karmada-view", "ConfigMap kube-public/cluster-info", "APIService v1alpha1.cluster.karmada.io", "MutatingWebhookConfiguration mutating-config"} {
		if !slices.Contains(preview.Objects, object) {
			t.Errorf("%s is not among the objects", object)
		}
	}
	for _, path := range []string{i.Plane.Layout.ConfigFile(), i.Plane.Layout.AdminKubeconfig(), i.Plane.Files[0].Path, i.Plane.Kubeconfigs[0].Path} {
		if !slices.Contains(preview.Files, path) {
			t.Errorf("%s is not among the files", path)
		}
	}
	data, err := json.Marshal(preview)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "PRIVATE KEY") {
		t.Error("a private key is shown")
	}
	if exists(r.DataDir) {
		t.Error("a preview made the data directory")
	}
}

func TestApplyTakesAFirstInstallationBackThatFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		// there makes what was there before, and returns what must be there afterwards.
		there func(t *testing.T, r Request) []string
	}{
		"Nothing": {
			reason: "What was made for it goes, up to the first directory that was there.",
			there:  func(*testing.T, Request) []string { return nil },
		},
		"EmptyDirectory": {
			reason: "A directory that somebody made for it stays, empty as it was.",
			there: func(t *testing.T, r Request) []string {
				if err := os.MkdirAll(r.DataDir, 0o700); err != nil {
					t.Fatal(err)
				}
				return []string{r.DataDir}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := request(t)
			want := c.there(t, r)
			r.Supervisor = actAs(t, "fails", plane.NewLayout(r.DataDir, ""))
			_, err := plan(t, r).Apply(t.Context(), silent{})
			var start *StartError
			if !errors.As(err, &start) || !strings.Contains(err.Error(), "the child fails") {
				t.Fatalf("got %v, want that it does not start, in its own words", err)
			}
			if diff := cmp.Diff(want, tree(t, filepath.Dir(r.DataDir)), emptyIsNil()); diff != "" {
				t.Errorf("what is left differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
			if _, err := plane.Load(r.DataDir); !errors.Is(err, plane.ErrNotInstalled) {
				t.Errorf("got %v, want that the next init finds nothing", err)
			}
		})
	}
}

func TestApplyKeepsAnInstallationThatDoesNotStart(t *testing.T) {
	p := install(t)
	before := tree(t, p.Layout.Dir)
	_, err := plan(t, Request{DataDir: p.Layout.Dir, Supervisor: actAs(t, "fails", p.Layout), Timeout: time.Minute}).Apply(t.Context(), silent{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, path := range before {
		if !exists(path) && !strings.HasPrefix(path, p.Layout.RunDir()) {
			t.Errorf("%s is gone: only a first installation is taken back", path)
		}
	}
}

func TestApplyNoticesOtherCommands(t *testing.T) {
	r := request(t)
	i := plan(t, r)
	other := plan(t, r)
	if err := Prepare(t.Context(), other.Plane); err != nil {
		t.Fatal(err)
	}
	before := tree(t, r.DataDir)
	if _, err := i.Apply(t.Context(), silent{}); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("got %v, want that another command was faster", err)
	}
	after := slices.DeleteFunc(tree(t, r.DataDir), func(path string) bool { return path == i.Plane.Layout.CommandLock() })
	before = slices.DeleteFunc(before, func(path string) bool { return path == i.Plane.Layout.RunDir() }) // the lock is in it now
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the other one's installation changed (-before +after):\n%s", diff)
	}
}

// Until plane.yaml stands the directory must look free, or nothing could take up what was interrupted.
func TestPrepareMarksTheDirectoryFirst(t *testing.T) {
	i := plan(t, request(t))
	l := i.Plane.Layout
	lock, err := LockCommands(l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Load(l.Dir); !errors.Is(err, plane.ErrNotInstalled) {
		t.Errorf("killed with nothing but its lock taken: %v, want a directory that is free", err)
	}
	if _, err := LockCommands(l); err == nil || !strings.Contains(err.Error(), "another karmadactl") {
		t.Errorf("got %v, want that only one command changes an installation at a time", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(l.ConfigFile(), "in-the-way"), "")
	if err := Prepare(t.Context(), i.Plane); err == nil {
		t.Fatal("no error although the configuration cannot be written")
	}
	for _, dir := range []string{l.PKI, l.ConfigDir(), l.KubeconfigDir(), l.LogDir()} {
		if exists(dir) {
			t.Errorf("%s was made before plane.yaml", dir)
		}
	}
}

func TestPrepareTwice(t *testing.T) {
	p := install(t)
	before := map[string]time.Time{}
	for _, path := range tree(t, p.Layout.Dir) {
		before[path] = modified(t, path)
	}
	if err := Prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for path, when := range before {
		if !modified(t, path).Equal(when) {
			t.Errorf("%s was written again, although it was right", path)
		}
	}
	for _, path := range tree(t, p.Layout.Dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if secret := filepath.Ext(path) == ".key" || filepath.Ext(path) == ".config"; secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
	}
	for _, dir := range []string{p.Layout.Dir, p.Layout.PKI, p.Layout.RunDir(), p.Layout.LogDir(), p.Layout.ConfigDir(), p.Layout.KubeconfigDir()} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want mode 700", dir, info.Mode(), err)
		}
	}
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestStartAndStop(t *testing.T) {
	p := install(t)
	l := p.Layout
	r := Request{DataDir: l.Dir, Supervisor: actAs(t, "plane", l), Timeout: time.Minute}
	t.Cleanup(func() { _, _ = Stop(t.Context(), l) }) // only where the test has failed is there anything to stop

	for i, want := range []bool{true, false} {
		did, err := Start(t.Context(), r, silent{})
		if err != nil || did != want {
			t.Fatalf("start %d: %t, %v, want %t: one that runs is left alone", i, did, err, want)
		}
	}
	h, err := FindProcesses(l)
	if err != nil || h.Plane == 0 || h.Supervisor != 0 {
		t.Errorf("got %+v, %v, want the plane's process alone", h, err)
	}
	s, err := GetStatus(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if s.PID != h.Plane || s.Version != "v0.0.0-test" || s.Healthy {
		t.Errorf("got process %d, version %q, healthy %t; want what the process reports, and a look at components that do not answer", s.PID, s.Version, s.Healthy)
	}
	if c := s.Components[0]; c.Phase != Ready || c.Healthy || c.Message == "" {
		t.Errorf("etcd is %+v, want one that says it is ready and does not answer", c)
	}
	for i, want := range []bool{true, false} {
		did, err := Stop(t.Context(), l)
		if err != nil || did != want {
			t.Errorf("stop %d: %t, %v, want %t", i, did, err, want)
		}
	}
	if h, err := FindProcesses(l); err != nil || h.Running() {
		t.Errorf("got %+v, %v, want that nothing runs", h, err)
	}
}

func TestRemoveStopsFirst(t *testing.T) {
	p := install(t)
	r := Request{DataDir: p.Layout.Dir, Supervisor: actAs(t, "plane", p.Layout), Timeout: time.Minute}
	if _, err := Start(t.Context(), r, silent{}); err != nil {
		t.Fatal(err)
	}
	removal, err := Remove(t.Context(), p, true)
	if err != nil || !removal.Stopped {
		t.Errorf("got %+v, %v, want that what ran was stopped", removal, err)
	}
	if exists(p.Layout.Dir) {
		t.Errorf("%v is left", tree(t, p.Layout.Dir))
	}
}

func TestStartError(t *testing.T) {
	p := install(t)
	r := Request{DataDir: p.Layout.Dir, Supervisor: actAs(t, "reports", p.Layout), Timeout: time.Minute}
	_, err := Start(t.Context(), r, silent{})
	var start *StartError
	if !errors.As(err, &start) || start.Log != p.Layout.LogFile() {
		t.Errorf("got %v, want an error that names the log", err)
	}
}

func TestStatusOfAStoppedPlane(t *testing.T) {
	p := install(t)
	if err := os.Remove(filepath.Join(p.Layout.PKI, "etcd-client.crt")); err != nil {
		t.Fatal(err)
	}
	failed := State{PID: 1, Components: []ComponentState{{Name: plane.Etcd, Phase: Ready}, {Name: plane.KubeAPIServer, Phase: Failed, Message: "no space left"}}}
	if err := writeState(p.Layout.PlaneState(), failed); err != nil {
		t.Fatal(err)
	}
	before := tree(t, p.Layout.Dir)

	s, err := GetStatus(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if s.Healthy || s.PID != 0 || s.Supervisor != nil || s.Version != "" {
		t.Errorf("got %+v, want one that does not run", s)
	}
	want := []ComponentStatus{
		{Name: plane.Etcd, Phase: Stopped},
		{Name: plane.KarmadaWebhook, Phase: Stopped},
		{Name: plane.KubeAPIServer, Phase: Failed, Message: "no space left"},
		{Name: plane.KubeControllerManager, Phase: Stopped},
		{Name: plane.KarmadaAggregatedAPIServer, Phase: Stopped},
		{Name: plane.KarmadaControllerManager, Phase: Stopped},
		{Name: plane.KarmadaScheduler, Phase: Stopped},
	}
	for i := range want {
		want[i].Address = p.Components[i].Listen[0].Address()
	}
	if diff := cmp.Diff(want, s.Components); diff != "" {
		t.Errorf("components differ (-want +got):\n%s\nreason: why it failed in its last life is what one wants to know", diff)
	}
	if s.DataBytes != int64(len("data")) {
		t.Errorf("the data has %d bytes, want those of etcd's directory", s.DataBytes)
	}
	if got := s.Certificates; len(got.Broken) != 1 || !strings.HasPrefix(got.Broken[0], "etcd-client: ") || got.DaysLeft < 363 || got.DaysLeft > 365 || got.NextToEnd == "" {
		t.Errorf("certificates: %+v, want a year left, and the missing one named", got)
	}
	if diff := cmp.Diff(before, tree(t, p.Layout.Dir)); diff != "" {
		t.Errorf("looking changed something (-before +after):\n%s", diff)
	}
}

func TestSizeOfNothing(t *testing.T) {
	if n, err := size(filepath.Join(t.TempDir(), "absent")); n != 0 || err != nil {
		t.Errorf("got %d, %v, want nothing: a plane that never ran has no data", n, err)
	}
}

func TestReadyOrFailed(t *testing.T) {
	ready := []ComponentState{{Name: "etcd", Phase: Ready}}
	cases := map[string]struct {
		reason     string
		state      State
		supervisor SupervisorState
	}{
		"Stale":           {"A state whose writer is gone says nothing about now.", State{PID: 1, Components: ready}, SupervisorState{}},
		"StaleFailure":    {"Nor does its failure.", State{PID: 1, Components: []ComponentState{{Name: "etcd", Phase: Failed}}}, SupervisorState{}},
		"StaleSupervisor": {"Nor do the restarts of a supervisor that is gone.", State{}, SupervisorState{PID: 1, Restarts: 5, LastError: "boom"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLayout(t)
			if err := errors.Join(writeState(l.PlaneState(), c.state), writeState(l.SupervisorState(), c.supervisor)); err != nil {
				t.Fatal(err)
			}
			ok, err := readyOrFailed(l, 0, func(State) { t.Error("a stale state was reported") })
			if ok || err != nil {
				t.Errorf("got %t, %v, want neither\nreason: %s", ok, err, c.reason)
			}
		})
	}
}

func TestStepper(t *testing.T) {
	s := stepper{reporter: silent{}}
	s.step("one", func() (string, bool, error) { return "kept", false, nil })
	s.step("two", func() (string, bool, error) { return "", true, errBoom })
	s.step("three", func() (string, bool, error) { t.Error("went on after an error"); return "", false, nil })
	if !errors.Is(s.err, errBoom) || !strings.HasPrefix(s.err.Error(), "two: ") {
		t.Errorf("got %v, want the error with the name of its step", s.err)
	}
	if s.changed || len(s.steps) != 1 || s.steps[0].Name != "one" {
		t.Errorf("changed %t, steps %v, want the one that was done and changed nothing", s.changed, s.steps)
	}
}
