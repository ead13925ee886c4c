package initcmd

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

// parse returns flags as a user typed them.
func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	fs := pflag.NewFlagSet("init", pflag.ContinueOnError)
	f.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// Where a host installation has other defaults than the contract, which installs onto a cluster.
var otherDefaults = map[string]struct{ value, reason string }{
	"crds":                               {`""`, "definitions are built in, and never downloaded"},
	"karmada-data":                       {strconv.Quote(host.DefaultDataDir()), "an alias of --data-dir, which has the state of everything and not just a kubeconfig"},
	"karmada-pki":                        {`""`, "it follows the data directory"},
	"kube-image-tag":                     {`""`, "no image is used; the flag is refused"},
	"karmada-aggregated-apiserver-image": {`""`, "no image is used; the flag is refused"},
	"karmada-controller-manager-image":   {`""`, "no image is used; the flag is refused"},
	"karmada-scheduler-image":            {`""`, "no image is used; the flag is refused"},
	"karmada-webhook-image":              {`""`, "no image is used; the flag is refused"},
}

func TestFlagsAreThoseOfTheContract(t *testing.T) {
	data, err := os.ReadFile("testdata/contract.tsv")
	if err != nil {
		t.Fatal(err)
	}
	fs := parse(t).set
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			t.Fatalf("%q has %d fields, want 4", line, len(fields))
		}
		name, short, kind, value := fields[0], strings.Trim(fields[1], "-"), fields[2], fields[3]
		f := fs.Lookup(name)
		if f == nil {
			t.Errorf("--%s is missing", name)
			continue
		}
		if kind == "strings" {
			kind = "stringSlice"
		}
		if f.Shorthand != short || f.Value.Type() != kind {
			t.Errorf("--%s: shorthand %q and type %s, want %q and %s", name, f.Shorthand, f.Value.Type(), short, kind)
		}
		got := f.DefValue
		if kind == "string" {
			got = strconv.Quote(got)
		}
		if other, ok := otherDefaults[name]; ok {
			if got != other.value {
				t.Errorf("--%s: default %s, want %s: %s", name, got, other.value, other.reason)
			}
		} else if got != value {
			t.Errorf("--%s: default %s, want %s", name, got, value)
		}
	}
	if len(lines) != 60 {
		t.Errorf("the contract has %d flags here, want 60: is the table whole?", len(lines))
	}
}

// A flag of the contract does what it says, or is refused. None is silently ignored.
func TestEveryFlagActsOrIsRefused(t *testing.T) {
	acts := []string{
		"advertise-address", "bind-address", "ca-cert-file", "ca-key-file", "cert-external-dns", "cert-external-ip", "cert-validity-period",
		"data-dir", "dry-run", "karmada-apiserver-advertise-address", "karmada-data", "karmada-pki", "namespace", "output", "pki-dir",
		"port", "target", "wait-component-ready-timeout",
	}
	var got, refused []string
	fs := parse(t).set
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			refused = append(refused, "--"+f.Name+"="+map[string]string{"int32": "1"}[f.Value.Type()])
			return
		}
		got = append(got, f.Name)
		if f.Usage == "" {
			t.Errorf("--%s has no help", f.Name)
		}
	})
	if diff := cmp.Diff(acts, got); diff != "" {
		t.Errorf("flags that act differ (-want +got):\n%s", diff)
	}
	err := parse(t, refused...).validate()
	if err == nil {
		t.Fatal("flags for a host cluster were accepted")
	}
	for _, flag := range refused {
		name, _, _ := strings.Cut(flag, "=")
		if !strings.Contains(err.Error(), name+",") && !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("flags for a host cluster are refused one by one: %v", err)
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Defaults": {reason: "Nobody has to say anything."},
		"Everything": {
			reason: "Every flag that acts.",
			args: []string{
				"-d=/srv/k", "--karmada-pki=/srv/pki", "--bind-address=::", "--karmada-apiserver-advertise-address=2001:db8::1", "-p=5443",
				"--ca-cert-file=ca.crt", "--ca-key-file=ca.key", "--cert-external-ip=203.0.113.7, 2001:db8::7,", "--cert-external-dns=a.example.com",
				"--cert-validity-period=24h", "--wait-component-ready-timeout=0", "-n=karmada-system", "--target=host", "-o=json", "--dry-run",
			},
		},
		"Mistakes": {
			reason: "All mistakes are named at once.",
			args: []string{
				"--kubeconfig=x", "--context=y", "--port=0", "--bind-address=all", "--advertise-address=eth0", "--cert-external-ip=203.0.113.7,not-an-ip,fe80::1%eth0",
				"--ca-cert-file=ca.crt", "-n=other", "-o=xml", "--target=moon", "--data-dir=",
			},
			want: []string{
				"--context, --kubeconfig: only for", "--port=0", `--bind-address: "all"`, `--advertise-address: "eth0"`, `--cert-external-ip: "not-an-ip"`,
				`--cert-external-ip: "fe80::1%eth0"`, "--ca-cert-file and --ca-key-file", "--namespace=other", `"xml"`, "--target=moon", "--data-dir is empty",
			},
		},
		"Cluster": {
			reason: "Nobody who meant a host cluster may get a host installation.",
			args:   []string{"--target=cluster"},
			want:   []string{"not available in this version"},
		},
		"Aliases": {
			reason: "Of two names for one thing, which may differ, none wins.",
			args: []string{
				"--data-dir=a", "--karmada-data=b", "--pki-dir=a", "--karmada-pki=b",
				"--advertise-address=192.0.2.1", "--karmada-apiserver-advertise-address=192.0.2.2",
			},
			want: []string{"--data-dir and --karmada-data", "--pki-dir and --karmada-pki", "--advertise-address and --karmada-apiserver-advertise-address"},
		},
		"KeyWithoutCertificate": {
			reason: "They go together, whichever is missing.",
			args:   []string{"--ca-key-file=ca.key"},
			want:   []string{"--ca-cert-file and --ca-key-file"},
		},
		"PortTooLarge": {
			reason: "There is no such port.",
			args:   []string{"--port=65536"},
			want:   []string{"--port=65536"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := parse(t, c.args...).validate()
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("got %v, want %d mistakes\nreason: %s", err, len(c.want), c.reason)
			}
			if err == nil {
				return
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %s\nreason: %s\ngot: %v", part, c.reason, err)
				}
			}
			if got := strings.Count(err.Error(), "\n") + 1; got != len(c.want) {
				t.Errorf("got %d mistakes, want %d\nreason: %s\ngot: %v", got, len(c.want), c.reason, err)
			}
		})
	}
}

// withKarmada puts a karmada binary, which nobody runs, in PATH.
func withKarmada(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "karmada"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestRequest(t *testing.T) {
	withKarmada(t)
	pointer := func(s string) *string { return &s }
	port, validity := 5443, 24*time.Hour
	ips, dns, none := []string{"203.0.113.7", "2001:db8::7"}, []string{"a.example.com"}, []string(nil)
	cases := map[string]struct {
		reason string
		args   []string
		want   local.Request
	}{
		"Nothing": {
			reason: "What nobody names stays as it is installed.",
			want:   local.Request{DataDir: host.DefaultDataDir(), Timeout: 2 * time.Minute},
		},
		"Everything": {
			reason: "What is named is asked for.",
			args: []string{
				"--data-dir=/srv/k", "--pki-dir=/srv/pki", "--bind-address=0.0.0.0", "--advertise-address=192.0.2.1", "--port=5443",
				"--cert-validity-period=24h", "--cert-external-ip=203.0.113.7, 2001:db8::7,", "--cert-external-dns=a.example.com",
				"--ca-cert-file=ca.crt", "--ca-key-file=ca.key", "--wait-component-ready-timeout=30",
			},
			want: local.Request{
				DataDir: "/srv/k", PKI: pointer("/srv/pki"), BindAddress: pointer("0.0.0.0"), AdvertiseAddress: pointer("192.0.2.1"), Port: &port,
				CertValidity: &validity, ExternalIPs: &ips, ExternalDNS: &dns, CACert: "ca.crt", CAKey: "ca.key", Timeout: 30 * time.Second,
			},
		},
		"Aliases": {
			reason: "The contract's names mean the same.",
			args:   []string{"-d=/srv/k", "--karmada-pki=/srv/pki", "--karmada-apiserver-advertise-address=192.0.2.1", "-p=5443"},
			want: local.Request{
				DataDir: "/srv/k", PKI: pointer("/srv/pki"), AdvertiseAddress: pointer("192.0.2.1"), Port: &port, Timeout: 2 * time.Minute,
			},
		},
		"Emptied": {
			reason: "A name that was given once can be taken back.",
			args:   []string{"--data-dir=/srv/k", "--cert-external-dns="},
			want:   local.Request{DataDir: "/srv/k", ExternalDNS: &none, Timeout: 2 * time.Minute},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(t, c.args...).request()
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Supervisor) == 0 {
				t.Error("nobody supervises")
			}
			got.Supervisor = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("request differs (-want +got):\n%s\nreason: %s", diff, c.reason)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := parse(t).request(); err == nil || !strings.Contains(err.Error(), "karmada binary") {
		t.Errorf("got %v, want that the servers are missing", err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestDryRun(t *testing.T) {
	withKarmada(t)
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"--dry-run", "--data-dir=" + dir, "--bind-address=127.0.0.1", "--port=" + freePort(t)}
	run := func(more ...string) string {
		t.Helper()
		s, _, out, _ := genericiooptions.NewTestIOStreams()
		cmd := NewCmd(s, "karmadactl")
		cmd.SetArgs(slices.Concat(args, more))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := run()
	for _, part := range []string{"Would install the control plane in " + dir, "Component etcd:", "--data-dir=" + dir + "/etcd", "  ca: created", "  Namespace karmada-system", "Process:\n  started in the background: "} {
		if !strings.Contains(text, part) {
			t.Errorf("the text does not say %q:\n%s", part, text)
		}
	}
	var preview local.Preview
	if err := json.Unmarshal([]byte(run("-o=json")), &preview); err != nil || preview.DataDir != dir {
		t.Errorf("got %v, %v, want a preview of %s", preview.DataDir, err, dir)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("a dry run made the data directory")
	}
}

func TestNothingWasChanged(t *testing.T) {
	withKarmada(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	_, err := parse(t, "--data-dir="+dir).ToOptions(s, "karmadactl")
	if err == nil || !strings.HasPrefix(err.Error(), "nothing was changed: ") || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("got %v, want that nothing was changed, and why", err)
	}
}

func TestPrintResult(t *testing.T) {
	r := local.Result{
		DataDir: "/srv/k", Server: "https://192.0.2.1:32443", Kubeconfig: "/srv/k/karmada-apiserver.config", Context: "karmada-apiserver",
		ValidFor: []string{"localhost", "192.0.2.1"}, Log: "/srv/k/log/plane.log",
	}
	for changed, head := range map[bool]string{true: "Karmada is installed successfully.", false: "nothing had to be changed"} {
		r.Changed = changed
		var out bytes.Buffer
		if err := (&Options{Program: "kubectl karmada"}).printResult(&out, r); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{
			head, r.Server, "localhost, 192.0.2.1", "export KUBECONFIG=" + r.Kubeconfig, "kubectl karmada status --data-dir=/srv/k",
			"kubectl karmada stop --data-dir=/srv/k", r.Log, "(context karmada-apiserver)",
		} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("changed %t: the text does not say %q:\n%s", changed, part, out.String())
			}
		}
	}
}
