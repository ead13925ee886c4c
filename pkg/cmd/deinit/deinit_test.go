package deinit

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f := &Flags{}
	fs := pflag.NewFlagSet("deinit", pflag.ContinueOnError)
	f.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagsAreThoseOfTheContract(t *testing.T) {
	data, err := os.ReadFile("testdata/contract.tsv")
	if err != nil {
		t.Fatal(err)
	}
	fs := parse(t).set
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
	if len(lines) != 6 {
		t.Errorf("the contract has %d flags here, want 6: is the table whole?", len(lines))
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 4 {
			t.Fatalf("%q has %d fields, want 4", line, len(fields))
		}
		f := fs.Lookup(fields[0])
		if f == nil {
			t.Errorf("--%s is missing", fields[0])
			continue
		}
		short, value := strings.Trim(fields[1], "-"), f.DefValue
		if f.Value.Type() == "string" {
			value = strconv.Quote(value)
		}
		if f.Shorthand != short || f.Value.Type() != fields[2] || value != fields[3] {
			t.Errorf("--%s: shorthand %q, type %s, default %s, want %v", f.Name, f.Shorthand, f.Value.Type(), value, fields[1:])
		}
	}
}

// installed makes the files of a control plane that does not run.
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestRefused(t *testing.T) {
	p := installed(t)
	dir := "--data-dir=" + p.Layout.Dir
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"HostCluster": {
			reason: "Nobody who meant a host cluster may lose what is on this host; all flags are named at once.",
			args:   []string{dir, "--yes", "--kubeconfig=x", "--context=y", "-n=z", "--purge-namespace", "-o=xml"},
			want:   []string{"--context, --kubeconfig, --namespace, --purge-namespace: only for", `"xml"`},
		},
		"NoTerminal": {
			reason: "Without a terminal nobody can be asked, and silence is not a yes.",
			args:   []string{dir},
			want:   []string{"--yes", p.Layout.Dir},
		},
		"NoTerminalPurge": {
			reason: "Least of all for data.",
			args:   []string{dir, "--purge"},
			want:   []string{"--yes"},
		},
		"Foreign": {
			reason: "Other people's files are not removed.",
			args:   []string{"--data-dir=" + foreign, "--yes", "--purge"},
			want:   []string{foreign},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, _, _, _ := genericiooptions.NewTestIOStreams()
			_, err := parse(t, c.args...).ToOptions(s, "karmadactl")
			if err == nil {
				t.Fatalf("no error\nreason: %s", c.reason)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %s\nreason: %s\ngot: %v", part, c.reason, err)
				}
			}
			if !exists(p.Layout.ConfigFile()) || !exists(filepath.Join(foreign, "notes.txt")) {
				t.Error("something was removed")
			}
		})
	}
}

func execute(t *testing.T, args ...string) string {
	t.Helper()
	s, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCmd(s, "karmadactl")
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestNothingInstalled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	if got := execute(t, "--data-dir="+dir); !strings.Contains(got, "No control plane is installed in "+dir) {
		t.Errorf("got %q", got)
	}
	if got, want := execute(t, "--data-dir="+dir, "-o=json"), "{\n  \"stopped\": false,\n  \"removed\": []\n}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if exists(dir) {
		t.Error("the directory was made")
	}
}

func TestDryRun(t *testing.T) {
	p := installed(t)
	got := execute(t, "--data-dir="+p.Layout.Dir, "--purge", "--dry-run")
	for _, path := range []string{p.Layout.ConfigFile(), filepath.Join(p.Layout.PKI, "ca.key"), "\n  " + p.Layout.Dir + "\n"} {
		if !strings.Contains(got, path) {
			t.Errorf("%s is not among what would be removed:\n%s", path, got)
		}
	}
	if !exists(p.Layout.ConfigFile()) {
		t.Error("a dry run removed something")
	}
}

func TestRemoveThenPurge(t *testing.T) {
	p := installed(t)
	if got := execute(t, "--data-dir="+p.Layout.Dir, "-f"); !strings.Contains(got, "Its data stays") {
		t.Errorf("got %q", got)
	}
	if !exists(filepath.Join(p.Layout.PKI, "ca.key")) || exists(filepath.Join(p.Layout.PKI, "admin.key")) {
		t.Error("want the authority kept, since data is worth nothing without it, and the admin's key gone")
	}
	var r local.Removal
	if err := json.Unmarshal([]byte(execute(t, "--data-dir="+p.Layout.Dir, "--purge", "-y", "-o=json")), &r); err != nil {
		t.Fatal(err)
	}
	if exists(p.Layout.Dir) || len(r.Removed) == 0 || len(r.Kept) > 0 {
		t.Errorf("got %+v, want the directory gone", r)
	}
}

func TestAsk(t *testing.T) {
	cases := map[string]struct {
		reason, answer string
		want           bool
	}{
		"Yes":   {"The whole word.", "yes\n", true},
		"Y":     {"Its first letter, in any case and with spaces.", " Y \n", true},
		"No":    {"A no is a no.", "n\n", false},
		"Empty": {"Enter alone is not a yes.", "\n", false},
		"Other": {"Nor is anything else.", "yesterday\n", false},
		"End":   {"The end of input is a no.", "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := installed(t)
			s, in, _, messages := genericiooptions.NewTestIOStreams()
			in.WriteString(c.answer)
			o := &Options{Plane: &p, DataDir: p.Layout.Dir, Purge: true, Timeout: time.Minute, IOStreams: s}
			if err := o.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := !exists(p.Layout.Dir); got != c.want {
				t.Errorf("removed %t, want %t\nreason: %s", got, c.want, c.reason)
			}
			if !strings.Contains(messages.String(), "Please type (y)es or (n)o and then press enter: ") || !strings.Contains(messages.String(), "for good") {
				t.Errorf("the question is %q", messages.String())
			}
			if said := strings.Contains(messages.String(), "Nothing was removed."); said == c.want {
				t.Errorf("says that nothing was removed: %t", said)
			}
		})
	}
}

func TestAskIsInterrupted(t *testing.T) {
	p := installed(t)
	never, end := io.Pipe()
	t.Cleanup(func() { _ = end.Close() }) // closing a pipe cannot fail
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, _, _, _ := genericiooptions.NewTestIOStreams()
	s.In = never
	o := &Options{Plane: &p, DataDir: p.Layout.Dir, Timeout: time.Minute, IOStreams: s}
	if err := o.Run(ctx); err == nil || !strings.Contains(err.Error(), "nothing was removed") {
		t.Errorf("got %v, want that nothing was removed", err)
	}
	if !exists(p.Layout.AdminKubeconfig()) && !exists(p.Layout.ConfigFile()) {
		t.Error("something was removed")
	}
}
