package cmd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/utils/exec"

	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

func newRoot(t *testing.T, argv0 string) *cobra.Command {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root, _, err := New(argv0, streams)
	if err != nil {
		t.Fatalf("New(%q): %v", argv0, err)
	}
	return root
}

// find returns the command with that path below root, or nil.
func find(root *cobra.Command, path string) *cobra.Command {
	cmd, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		return nil
	}
	return cmd
}

// goldenFlags reads testdata/flags.tsv: command, then flag, then what is known
// about it.
func goldenFlags(t *testing.T) map[string]map[string]string {
	t.Helper()
	f, err := os.Open("testdata/flags.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	golden := make(map[string]map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 5 {
			t.Fatalf("testdata/flags.tsv: %q has %d fields, want 5", lines.Text(), len(fields))
		}
		if golden[fields[0]] == nil {
			golden[fields[0]] = make(map[string]string)
		}
		golden[fields[0]][fields[1]] = strings.Join(fields[2:], " ")
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return golden
}

// visible lists the flags that help shows, in the golden file's terms.
func visible(fs *pflag.FlagSet) map[string]string {
	flags := make(map[string]string)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, value, short := f.Value.Type(), f.DefValue, f.Shorthand
		switch kind {
		case "stringSlice":
			kind = "strings"
		case "string":
			if f.NoOptDefVal != "" {
				kind = fmt.Sprintf("string[=%q]", f.NoOptDefVal)
			}
		}
		if value == "" {
			value = `""`
		}
		if short == "" {
			short = "-"
		}
		flags[f.Name] = strings.Join([]string{short, kind, value}, " ")
	})
	return flags
}

func TestFlagsAreThoseOfTheContract(t *testing.T) {
	root := newRoot(t, "karmadactl")
	for path, want := range goldenFlags(t) {
		t.Run(path, func(t *testing.T) {
			var got map[string]string
			switch parent, _, sub := strings.Cut(path, " "); {
			case path == "(global)":
				got = visible(root.PersistentFlags())
			case sub:
				// The connection flags are inherited from the parent.
				cmd := find(root, path)
				if cmd == nil {
					t.Fatalf("there is no command %q", path)
				}
				got = visible(cmd.LocalFlags())
				inherited := visible(cmd.InheritedFlags())
				for _, name := range []string{"kubeconfig", "karmada-context", "namespace"} {
					if inherited[name] == "" {
						t.Errorf("%q does not inherit --%s from %q", path, name, parent)
					}
				}
			default:
				cmd := find(root, path)
				if cmd == nil {
					t.Fatalf("there is no command %q", path)
				}
				got = visible(cmd.LocalFlags())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("flags of %q, as shorthand, type, default (-contract +ours):\n%s", path, diff)
			}
		})
	}
}

func TestHiddenAliasesShareTheirValue(t *testing.T) {
	get := find(newRoot(t, "karmadactl"), "get")
	if err := get.ParseFlags([]string{"--selector", "app=web"}); err != nil {
		t.Fatal(err)
	}
	if got := get.Flag("labels").Value.String(); got != "app=web" {
		t.Errorf("--selector app=web made --labels %q, want app=web: they are one flag with two names", got)
	}
}

func TestUsageLines(t *testing.T) {
	root := newRoot(t, "karmadactl")
	for _, want := range []string{
		"annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		"api-resources",
		"api-versions",
		"apply (-f FILENAME | -k DIRECTORY)",
		"completion SHELL",
		"cordon CLUSTER",
		"create -f FILENAME",
		"delete ([-f FILENAME] | [-k DIRECTORY] | TYPE [(NAME | -l label | --all)])",
		"edit (RESOURCE/NAME | -f FILENAME)",
		"explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2]",
		"get [NAME | -l label | -n namespace]",
		"join CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		"label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		"options",
		"patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
		"taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		"uncordon CLUSTER",
		"unjoin CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>",
		"version",
	} {
		name, _, _ := strings.Cut(want, " ")
		cmd := find(root, name)
		if cmd == nil {
			t.Errorf("there is no command %q", name)
			continue
		}
		if cmd.Use != want || cmd.UseLine() != "karmadactl "+want {
			t.Errorf("usage line of %s is %q, want %q", name, cmd.UseLine(), "karmadactl "+want)
		}
	}
}

// walk calls visit for root and everything below it.
func walk(root *cobra.Command, visit func(*cobra.Command)) {
	visit(root)
	for _, sub := range root.Commands() {
		walk(sub, visit)
	}
}

// Help speaks of the program that was called, and never of kubectl alone.
func TestHelpNamesTheProgram(t *testing.T) {
	for _, argv0 := range []string{"karmadactl", "/usr/local/bin/kubectl-karmada"} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		root, _, err := New(argv0, streams)
		if err != nil {
			t.Fatal(err)
		}
		program := root.DisplayName()
		walk(root, func(cmd *cobra.Command) {
			if cmd.Hidden {
				return
			}
			out.Reset()
			if err := cmd.Help(); err != nil {
				t.Fatalf("help of %q: %v", cmd.CommandPath(), err)
			}
			text := out.String()
			if program == "kubectl karmada" {
				text = strings.ReplaceAll(text, program, "")
				if strings.Contains(text, "karmadactl") || strings.Contains(text, `"kubectl-karmada`) {
					t.Errorf("help of %q names a program that the user did not call:\n%s", cmd.CommandPath(), text)
				}
			}
			if strings.Contains(text, "kubectl ") {
				t.Errorf("help of %q tells the user to run kubectl:\n%s", cmd.CommandPath(), text)
			}
		})
	}
}

func TestRootHelpShowsWhatExists(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root, _, err := New("karmadactl", streams)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasSuffix(line, "Commands:") {
			headings = append(headings, line)
		}
	}
	order := []string{
		"Basic Commands:", "Cluster Registration Commands:", "Control Plane Commands:", "Cluster Management Commands:",
		"Troubleshooting and Debugging Commands:", "Advanced Commands:", "Settings Commands:", "Other Commands:",
	}
	last := -1
	for _, h := range headings {
		at := slices.Index(order, h)
		if at < last {
			t.Errorf("group %q comes too late or is unknown; headings are %q", h, headings)
		}
		last = at
	}
	if bytes.Contains(out.Bytes(), []byte("Commands:\n\n")) {
		t.Errorf("a group without commands is shown:\n%s", out)
	}
	for _, cmd := range root.Commands() {
		listed := strings.Contains(out.String(), "\n  "+cmd.Name()+" ")
		if want := !cmd.Hidden && cmd.Name() != "options"; listed != want {
			t.Errorf("%q is listed: %t, want %t", cmd.Name(), listed, want)
		}
	}
}

func TestGlobalFlagsStayOutOfTheProcess(t *testing.T) {
	newRoot(t, "karmadactl")
	for _, name := range []string{"v", "vmodule", "logtostderr"} {
		if pflag.CommandLine.Lookup(name) != nil {
			t.Errorf("--%s is in pflag.CommandLine: it belongs to the root command alone", name)
		}
	}
}

func TestDescribe(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
	cases := map[string]struct {
		reason  string
		err     error
		message string
		code    int
	}{
		"None":      {reason: "Success says nothing."},
		"Plain":     {reason: "One prefix, once.", err: errors.New("boom"), message: "error: boom", code: 1},
		"Prefixed":  {reason: "A second prefix helps nobody.", err: errors.New("error: boom"), message: "error: boom", code: 1},
		"APIStatus": {reason: "Scripts know kubectl's form.", err: notFound, message: `Error from server (NotFound): deployments.apps "web" not found`, code: 1},
		"WrappedAPIStatus": {
			reason: "What was being tried must not hide that the server said no.", err: fmt.Errorf("read template: %w", notFound),
			message: `Error from server (NotFound): read template: deployments.apps "web" not found`, code: 1,
		},
		"Kubectl": {reason: "kubectl's words are shown as they are.", err: &kubectl.Exit{Message: "Error from server: x\n", Code: 3}, message: "Error from server: x\n", code: 3},
		"Silent":  {reason: "Who printed already only ends.", err: &kubectl.Exit{Code: 1}, code: 1},
		"Chosen": {
			reason: "A command may choose its exit code.", err: fmt.Errorf("status: %w", utilexec.CodeExitError{Err: errors.New("not installed"), Code: 2}),
			message: "error: status: not installed", code: 2,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			message, code := describe(tc.err)
			if message != tc.message || code != tc.code {
				t.Errorf("describe() = %q, %d; want %q, %d: %s", message, code, tc.message, tc.code, tc.reason)
			}
		})
	}
}
