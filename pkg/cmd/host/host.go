// Package host holds what the commands that manage processes on this host share: where the data directory is, where
// the karmada binary is, how progress and results are shown.
package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

// DefaultDataDir is /var/lib/karmada for root and a directory in the XDG state home for others.
func DefaultDataDir() string {
	return dataDir(os.Geteuid() == 0, os.Getenv("XDG_STATE_HOME"), os.UserHomeDir)
}

func dataDir(root bool, state string, home func() (string, error)) string {
	if root {
		return "/var/lib/karmada"
	}
	// A relative path is not valid there, and is to be ignored.
	if filepath.IsAbs(state) {
		return filepath.Join(state, "karmada")
	}
	dir, err := home()
	if err != nil {
		return "" // then it has to be named
	}
	return filepath.Join(dir, ".local", "state", "karmada")
}

// DefaultKubeconfig is where init writes the admin's kubeconfig by default.
func DefaultKubeconfig() string {
	dir := DefaultDataDir()
	if dir == "" {
		return ""
	}
	return plane.NewLayout(dir, "").AdminKubeconfig()
}

// AddDataDir adds --data-dir.
func AddDataDir(fs *pflag.FlagSet, dir *string) {
	fs.StringVar(dir, "data-dir", DefaultDataDir(), "Directory that holds everything of the control plane on this host: data, certificates, kubeconfig and log.")
}

// AddRefused adds string flags of the contract that address a host Kubernetes cluster. They are hidden, and there to
// be refused by RefuseHostCluster: nobody who meant a cluster may act on this host.
func AddRefused(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.String(name, "", "")
		MarkRefused(fs, name)
	}
}

// MarkRefused hides a flag and marks it for RefuseHostCluster.
func MarkRefused(fs *pflag.FlagSet, name string) {
	f := fs.Lookup(name)
	f.Usage = "Only for a control plane on a host Kubernetes cluster, which is not available in this version."
	f.Hidden = true
}

// RefuseHostCluster returns one error that names every flag given that was added to be refused. instead says what
// the command does without them.
func RefuseHostCluster(fs *pflag.FlagSet, instead string) error {
	var names []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) == 0 {
		return nil
	}
	pronoun := "it"
	if len(names) > 1 {
		pronoun = "them"
	}
	return fmt.Errorf("%s: only for a control plane on a host Kubernetes cluster, which is not available in this version; %s, so leave %s out if that is what you want",
		strings.Join(names, ", "), instead, pronoun)
}

// IsTerminal reports whether a stream, in or out, is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// FindKarmada returns the path of the karmada binary: beside this program, links resolved, else in PATH.
func FindKarmada() (string, error) {
	self, err := Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), "karmada")
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
		return beside, nil
	}
	found, err := exec.LookPath("karmada")
	if err != nil {
		return "", fmt.Errorf("the karmada binary, which holds the servers, is neither at %s nor in PATH: put it beside this program", beside)
	}
	return filepath.Abs(found)
}

// Executable returns the path of this program, links resolved.
func Executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return self, nil
}

// Supervisor returns the command that runs the control plane in dataDir and starts it again when it fails.
func Supervisor(dataDir string) ([]string, error) {
	self, err := Executable()
	if err != nil {
		return nil, err
	}
	karmada, err := FindKarmada()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	return []string{self, SuperviseCommand, "--data-dir=" + dir, "--karmada=" + karmada}, nil
}

// SuperviseCommand is the name of the command that Supervisor runs; it is not for people.
const SuperviseCommand = "supervise"

// Load returns the control plane that is installed in dir, or a *NotInstalledError. program is how the user calls this
// program, for the hint.
func Load(dir, program string) (plane.Plane, error) {
	p, err := LoadAny(dir, program)
	if err == nil && p.Config.Withdrawn {
		err = &NotInstalledError{Dir: p.Layout.Dir, Program: program}
	}
	return p, err
}

// LoadAny is Load, but for a control plane that deinit removed all but the data of, too.
func LoadAny(dir, program string) (plane.Plane, error) {
	if dir == "" {
		return plane.Plane{}, errors.New("there is no home directory to look for a control plane in: name its directory with --data-dir")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return plane.Plane{}, fmt.Errorf("find the data directory: %w", err)
	}
	cfg, err := plane.Load(abs)
	if errors.Is(err, plane.ErrNotInstalled) {
		return plane.Plane{}, &NotInstalledError{Dir: abs, Program: program}
	}
	if err != nil {
		return plane.Plane{}, err
	}
	if cfg.Kind != plane.KindControlPlane {
		return plane.Plane{}, &plane.ForeignDirectoryError{Dir: abs, Reason: fmt.Sprintf("it holds the local member cluster %q, not a control plane", cfg.Name)}
	}
	return plane.ControlPlane(cfg, plane.NewLayout(abs, cfg.PKI)), nil
}

// A NotInstalledError says that there is no control plane in a directory.
type NotInstalledError struct {
	Dir string
	// Program is how the user calls this program.
	Program string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("no control plane is installed in %s: run `%s init --data-dir=%s`, or name another directory with --data-dir", e.Dir, e.Program, e.Dir)
}

// Unwrap lets errors.Is find plane.ErrNotInstalled.
func (e *NotInstalledError) Unwrap() error { return plane.ErrNotInstalled }

// Seconds is the value of a flag that takes whole seconds, as the contract has it, or a duration such as 2m.
type Seconds struct{ D *time.Duration }

var _ pflag.Value = Seconds{}

func (s Seconds) String() string {
	if s.D == nil {
		return ""
	}
	if *s.D%time.Second == 0 {
		return strconv.FormatInt(int64(*s.D/time.Second), 10)
	}
	return s.D.String()
}

// Set implements pflag.Value.
func (s Seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, intErr := strconv.ParseInt(text, 10, 32); intErr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil {
		return fmt.Errorf("%q is neither a number of seconds nor a duration such as 2m", text)
	}
	if d < 0 {
		return fmt.Errorf("%s is negative", text)
	}
	*s.D = d
	return nil
}

// Type implements pflag.Value.
func (s Seconds) Type() string { return "int" }

// An Output is the value of -o.
type Output string

// AddOutput adds -o with the formats that every command of this kind has.
func AddOutput(fs *pflag.FlagSet, o *Output) {
	fs.StringVarP((*string)(o), "output", "o", "", "Output format: json or yaml. Default is text for people.")
}

// Validate refuses formats that do not exist.
func (o Output) Validate() error {
	switch o {
	case "", "json", "yaml":
		return nil
	}
	return fmt.Errorf("output format %q: want json or yaml", string(o))
}

// Print writes value in the chosen format, or as text writes it.
func (o Output) Print(w io.Writer, value any, text func(io.Writer) error) error {
	switch o {
	case "json":
		data, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s\n", data)
		return err
	case "yaml":
		data, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = w.Write(data)
		return err
	}
	return text(w)
}

// Size says a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// progress shows steps: on a terminal what is going on replaces itself, elsewhere there is a line a step.
type progress struct {
	out      io.Writer
	terminal bool
	current  string
	shown    string
}

// NewProgress returns a reporter that writes to out.
func NewProgress(out io.Writer, terminal bool) local.Reporter {
	return &progress{out: out, terminal: terminal}
}

func (p *progress) Begin(step string) {
	p.current, p.shown = step, ""
	p.show(step + " …")
}

func (p *progress) Progress(text string) {
	if text != p.shown {
		p.shown = text
		p.show(p.current + " … " + text)
	}
}

func (p *progress) show(line string) {
	if p.terminal {
		fmt.Fprintf(p.out, "\r\033[K%s", line)
	}
}

func (p *progress) End(s local.Step) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
	fmt.Fprintf(p.out, "%-16s %s (%s)\n", s.Name, s.Detail, inSeconds(s.Took))
}
