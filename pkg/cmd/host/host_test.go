package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

func TestDataDir(t *testing.T) {
	home := func() (string, error) { return "/home/ada", nil }
	homeless := func() (string, error) { return "", errors.New("no home") }
	cases := map[string]struct {
		reason string
		root   bool
		state  string
		home   func() (string, error)
		want   string
	}{
		"Root":     {"Root's data is the host's, whatever the environment says.", true, "/home/ada/state", home, "/var/lib/karmada"},
		"User":     {"Others keep state in their home.", false, "", home, "/home/ada/.local/state/karmada"},
		"XDG":      {"They may say where.", false, "/mnt/state", home, "/mnt/state/karmada"},
		"Relative": {"A relative path is to be ignored there.", false, "state", home, "/home/ada/.local/state/karmada"},
		"Homeless": {"Without a home the directory has to be named: wherever the program stands is nobody's choice.", false, "", homeless, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dataDir(c.root, c.state, c.home); got != c.want {
				t.Errorf("got %s, want %s\nreason: %s", got, c.want, c.reason)
			}
		})
	}
	if got, want := DefaultKubeconfig(), filepath.Join(DefaultDataDir(), "karmada-apiserver.config"); got != want {
		t.Errorf("the kubeconfig is %s, want %s", got, want)
	}
}

func TestSeconds(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         time.Duration
		shown        string
		fails        bool
	}{
		"Number":   {reason: "The contract has whole seconds.", text: "120", want: 2 * time.Minute, shown: "120"},
		"Zero":     {reason: "That is for ever.", text: "0", want: 0, shown: "0"},
		"Duration": {reason: "People think in minutes.", text: "2m", want: 2 * time.Minute, shown: "120"},
		"Fraction": {reason: "What is no whole second is shown as it is.", text: "1.5s", want: 1500 * time.Millisecond, shown: "1.5s"},
		"Negative": {reason: "There is no waiting backwards.", text: "-1", fails: true},
		"Word":     {reason: "It has to be a time.", text: "soon", fails: true},
		"Empty":    {reason: "Nothing is not zero.", text: "", fails: true},
		"TooLarge": {reason: "It must not turn around into something small.", text: "99999999999", fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := time.Hour
			s := Seconds{&d}
			err := s.Set(c.text)
			if (err != nil) != c.fails {
				t.Fatalf("got %v\nreason: %s", err, c.reason)
			}
			if c.fails {
				if d != time.Hour {
					t.Errorf("the value became %s although it was refused", d)
				}
				return
			}
			if d != c.want || s.String() != c.shown {
				t.Errorf("got %s, shown as %s, want %s, shown as %s\nreason: %s", d, s, c.want, c.shown, c.reason)
			}
		})
	}
	if got := (Seconds{}).String(); got != "" {
		t.Errorf("without a value it shows %q: pflag asks for that", got)
	}
}

func TestOutput(t *testing.T) {
	value := map[string]any{"b": 1, "a": []string{"x"}}
	cases := map[string]struct {
		reason string
		output Output
		want   string
	}{
		"Text": {"People get text.", "", "for people\n"},
		"JSON": {"Programs get JSON.", "json", "{\n  \"a\": [\n    \"x\"\n  ],\n  \"b\": 1\n}\n"},
		"YAML": {"Or YAML with the same fields.", "yaml", "a:\n- x\nb: 1\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.output.Validate(); err != nil {
				t.Fatal(err)
			}
			err := c.output.Print(&out, value, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, "for people")
				return err
			})
			if err != nil || out.String() != c.want {
				t.Errorf("got %q, %v, want %q\nreason: %s", out.String(), err, c.want, c.reason)
			}
		})
	}
	for _, bad := range []Output{"xml", "JSON", "wide"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), string(bad)) {
			t.Errorf("%s: got %v, want an error that names it", bad, err)
		}
	}
	if err := Output("json").Print(io.Discard, func() {}, nil); err == nil {
		t.Error("what cannot be encoded was printed")
	}
}

func TestRefuseHostCluster(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string // "" is accepted
	}{
		"None": {"Flags of this host are accepted.", []string{"--mine=1"}, ""},
		"One":  {"The flag is named, with the way out.", []string{"--kubeconfig=x"}, "--kubeconfig: only for a control plane on a host Kubernetes cluster, which is not available in this version; it acts here, so leave it out if that is what you want"},
		"All":  {"All of them are named at once.", []string{"--kubeconfig=x", "--mine=1", "--context=", "--number=3"}, "--context, --kubeconfig, --number: only for a control plane on a host Kubernetes cluster, which is not available in this version; it acts here, so leave them out if that is what you want"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			fs.String("mine", "", "")
			AddRefused(fs, "kubeconfig", "context")
			fs.Int("number", 1, "")
			MarkRefused(fs, "number")
			if err := fs.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			err := RefuseHostCluster(fs, "it acts here")
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got  %v\nwant %s\nreason: %s", err, c.want, c.reason)
			}
		})
	}
}

func TestFindKarmada(t *testing.T) {
	empty, dir, plain := t.TempDir(), t.TempDir(), t.TempDir()
	program := filepath.Join(dir, "karmada")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plain, "karmada"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join([]string{empty, plain, dir}, string(filepath.ListSeparator)))
	if got, err := FindKarmada(); err != nil || got != program {
		t.Errorf("got %s, %v, want the one in PATH that can be run: %s", got, err, program)
	}
	command, err := Supervisor("some/dir")
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if len(command) != 4 || command[1] != "supervise" || command[2] != "--data-dir="+filepath.Join(wd, "some", "dir") || command[3] != "--karmada="+program {
		t.Errorf("the supervisor is %q: it runs in another directory, so its paths are absolute", command)
	}
	t.Setenv("PATH", empty)
	if _, err := FindKarmada(); err == nil || !strings.Contains(err.Error(), "karmada") {
		t.Errorf("got %v, want that it is nowhere", err)
	}
}

func TestLoad(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	var notInstalled *NotInstalledError
	if _, err := Load(absent, "karmadactl"); !errors.As(err, &notInstalled) || notInstalled.Dir != absent || !errors.Is(err, plane.ErrNotInstalled) {
		t.Errorf("got %v, want that nothing is installed in %s", err, absent)
	} else if !strings.Contains(err.Error(), "init --data-dir="+absent) {
		t.Errorf("got %v, want the command that installs", err)
	}

	cfg := plane.NewConfig(plane.KindControlPlane, "karmada")
	cfg.AdvertiseAddress = "192.0.2.10"
	cfg.PKI = "/srv/pki"
	if err := cfg.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	save := func(c plane.Config) {
		t.Helper()
		if _, err := c.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	save(cfg)
	if p, err := Load(dir, "karmadactl"); err != nil || p.Layout.PKI != "/srv/pki" || len(p.Components) == 0 {
		t.Errorf("got %v, %v, want the control plane with its certificates elsewhere", p.Layout, err)
	}
	cfg.Withdrawn = true
	save(cfg)
	if _, err := Load(dir, "karmadactl"); !errors.As(err, &notInstalled) {
		t.Errorf("got %v: what deinit removed all but the data of is not installed", err)
	}
	if _, err := LoadAny(dir, "karmadactl"); err != nil {
		t.Errorf("got %v: deinit --purge has to find it", err)
	}
	member, err := plane.NewMemberConfig("member1", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := member.ChoosePorts(func(string, int) bool { return false }); err != nil {
		t.Fatal(err)
	}
	save(member)
	var foreign *plane.ForeignDirectoryError
	if _, err := LoadAny(dir, "karmadactl"); !errors.As(err, &foreign) || !strings.Contains(err.Error(), `"member1"`) {
		t.Errorf("got %v, want that it is a member", err)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0.0 KiB", 1536: "1.5 KiB", 3 << 20: "3.0 MiB", 5 << 30: "5.0 GiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d bytes: got %s, want %s", n, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	tell := func(terminal bool) string {
		var out bytes.Buffer
		p := NewProgress(&out, terminal)
		p.Begin("start")
		p.Progress("waiting for etcd")
		p.Progress("waiting for etcd")
		p.End(local.Step{Name: "start", Detail: "etcd 0.4s", Took: 1234 * time.Millisecond})
		return out.String()
	}
	const line = "start            etcd 0.4s (1.23s)\n"
	if got := tell(false); got != line {
		t.Errorf("into a file: got %q, want a line a step: %q", got, line)
	}
	const clear = "\r\033[K"
	if got, want := tell(true), clear+"start …"+clear+"start … waiting for etcd"+clear+line; got != want {
		t.Errorf("on a terminal: got %q, want %q", got, want)
	}
	if IsTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is taken for a terminal")
	}
}
