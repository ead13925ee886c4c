package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const docs = "../../../docs"

func generatedFiles(t *testing.T) map[string]string {
	t.Helper()
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A reference that says something else than the program is worse than none.
func TestReferenceIsOfTheseCommands(t *testing.T) {
	want := generatedFiles(t)
	got := make(map[string]string)
	for _, folder := range []string{"cli", "man"} {
		err := filepath.WalkDir(filepath.Join(docs, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			got[filepath.Join(folder, filepath.Base(path))] = string(text)
			return err
		})
		if err != nil {
			t.Fatalf("read the reference: %v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("docs/%s is stale: run tools/generate.sh and commit what it changes (-file +commands):\n%s", name, cmp.Diff(got[name], want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("docs/%s is of no command: run tools/generate.sh and commit what it changes", name)
		}
	}
}

// What depends on who runs the generator, and where, makes a diff that nobody meant.
func TestReferenceIsOfNoMachine(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Setenv("KUBECONFIG", filepath.Join(home, "config"))
	t.Setenv("NO_COLOR", "1")
	t.Setenv("COLUMNS", "40")
	first := generatedFiles(t)
	for name, text := range first {
		if strings.Contains(text, home) {
			t.Errorf("%s names the home directory:\n%s", name, text)
		}
	}
	if diff := cmp.Diff(first, generatedFiles(t)); diff != "" {
		t.Errorf("made twice, the reference differs:\n%s", diff)
	}
}

func TestLinksOfTheReferenceLeadSomewhere(t *testing.T) {
	files := generatedFiles(t)
	for name, text := range files {
		if filepath.Dir(name) != "cli" {
			continue
		}
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, "](")
			if !ok {
				break
			}
			to, remaining, _ := strings.Cut(after, ")")
			if _, ok := files[filepath.Join("cli", to)]; !ok && !strings.HasPrefix(to, "http") {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
			rest = remaining
		}
	}
}

func TestBlocks(t *testing.T) {
	long := "First\nline.\n\n Second.\n\n  *  one,\n  *  two\n\n        $ code TYPE\n        \n        more\n\n Last."
	want := []block{
		{paragraph, "First line."}, {paragraph, "Second."}, {item, "one,"}, {item, "two"},
		{verbatim, "$ code TYPE"}, {verbatim, "more"}, {paragraph, "Last."},
	}
	if diff := cmp.Diff(want, blocks(long), cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
}

func TestEscapes(t *testing.T) {
	for name, tc := range map[string]struct{ reason, got, want string }{
		"Placeholder": {"Markdown takes it for HTML.", prose("promote <TYPE> a_b"), `promote &lt;TYPE&gt; a\_b`},
		"Request":     {"A line that begins with a dot is an order to the formatter.", roff("a\n.so x\n'b"), "a\n\\&.so x\n\\&'b"},
		"Hyphen":      {"Formatters turn it into one that no shell knows.", roff(`--all C:\x`), `\-\-all C:\ex`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q: %s", tc.got, tc.want, tc.reason)
			}
		})
	}
}
