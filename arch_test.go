package karmadactl

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/karmadactl/karmadactl"

// layers are the rows of the source tree from top to bottom. An import goes down.
var layers = [][]string{
	{"test"},
	{"cmd"},
	{"pkg/server", "pkg/cmd"},
	{
		"pkg/pipeline", "pkg/controllers", "pkg/webhook", "pkg/estimator", "pkg/aggregated", "pkg/search",
		"pkg/metricsadapter", "pkg/descheduler", "pkg/plane", "pkg/promotion",
	},
	{
		"pkg/binding", "pkg/policy", "pkg/template", "pkg/interpreter", "pkg/override", "pkg/member", "pkg/registration", "pkg/certs",
		"pkg/metrics", "pkg/features", "pkg/exempt",
	},
	{"pkg/apis", "pkg/names", "pkg/generated"},
	{"pkg/util"},
}

const layersReason = "a package can be understood, tested and replaced by what is below it alone; what two packages of one row " +
	"share is a noun with a package of its own further down"

// An exception lets from import to, each with everything below it, and says why.
type exception struct{ from, to, reason string }

// sameRow are imports between neighbours of one row.
var sameRow = []exception{
	{"pkg/override", "pkg/policy", "override policies select objects and clusters by the same rules as propagation policies"},
}

// utilImports are the imports that leaves may have among themselves.
var utilImports = []exception{
	{"pkg/util", "pkg/util/atomicfile", "whoever keeps files must not leave half of one behind, and one way of doing so is enough"},
}

// A confinement names the only packages that may import a dependency.
type confinement struct {
	dependency string
	allowed    []string
	reason     string
}

var confinements = []confinement{
	{
		"k8s.io/kubernetes", []string{"pkg/server/kube"},
		"it is no library: what it breaks between releases must break one package, and it makes any program that links it large",
	},
	{
		"go.etcd.io/etcd/server", []string{"pkg/server/kube"},
		"it is part of the upstream servers, which have one home",
	},
	{
		"sigs.k8s.io/kwok", []string{"pkg/server/kwok"},
		"simulated nodes are for playgrounds and tests; nothing else may come to depend on them",
	},
}

// heavy is what the command line program must not link.
var heavy = []string{"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/kube-aggregator", "go.etcd.io/etcd", "sigs.k8s.io/kwok"}

const heavyReason = "karmadactl runs for a moment, many times a day: it starts fast because it links client libraries only"

// A listed package is what `go list` says about it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

// packages lists every package of this module and everything they import. It is asked for once.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,Standard", "./...")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w\n%s", err, problems.String())
	}
	all := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all[p.ImportPath] = p
	}
})

func mustList(t *testing.T) map[string]listed {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ours returns the packages of this module by their path in it, in order.
func ours(all map[string]listed) []string {
	var paths []string
	for path := range all {
		if local, ok := inModule(path); ok {
			paths = append(paths, local)
		}
	}
	slices.Sort(paths)
	return paths
}

// inModule returns the path of a package inside this module, "" for the root.
func inModule(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func importPath(local string) string {
	if local == "" {
		return module
	}
	return module + "/" + local
}

// within reports whether path is root or below it.
func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// rowOf returns the row of a package and the entry that put it there; row -1 when there is none.
func rowOf(local string) (row int, entry string) {
	for i, entries := range layers {
		for _, e := range entries {
			if within(local, e) {
				return i, e
			}
		}
	}
	return -1, ""
}

// layerProblem says what is wrong with the import of to by from, "" when nothing is.
func layerProblem(from, to string) string {
	fromRow, fromEntry := rowOf(from)
	toRow, toEntry := rowOf(to)
	switch {
	case fromEntry == "pkg/util":
		if allows(utilImports, from, to) {
			return ""
		}
		return "pkg/util has leaves only, which import nothing of this module (but pkg/util/atomicfile): a helper that knows our nouns is not a utility"
	case within(from, "pkg/pipeline") && within(to, "pkg/pipeline") && stageOf(from) != stageOf(to):
		return "stages of the pipeline never import each other: they meet only in API objects, so that each can be replaced and tested alone"
	case toRow < fromRow:
		return fmt.Sprintf("an import goes down, never up (%s is above %s): %s", toEntry, fromEntry, layersReason)
	case toRow == fromRow && toEntry != fromEntry && !allows(sameRow, from, to):
		return fmt.Sprintf("neighbours of one row do not import each other (%s, %s): %s", fromEntry, toEntry, layersReason)
	}
	return ""
}

func stageOf(local string) string {
	stage, _, _ := strings.Cut(strings.TrimPrefix(local, "pkg/pipeline/"), "/")
	return stage
}

func allows(list []exception, from, to string) bool {
	return slices.ContainsFunc(list, func(e exception) bool { return within(from, e.from) && within(to, e.to) })
}

func TestLayers(t *testing.T) {
	all := mustList(t)
	for _, from := range ours(all) {
		if from == "" {
			continue
		}
		if row, _ := rowOf(from); row < 0 {
			t.Errorf("%s has no place in the layers: give it one in arch_test.go\nwhy: %s", from, layersReason)
			continue
		}
		for _, path := range all[importPath(from)].Imports {
			to, ok := inModule(path)
			if !ok {
				continue
			}
			if problem := layerProblem(from, to); problem != "" {
				t.Errorf("%s imports %s\nrule: %s", from, to, problem)
			}
		}
	}
}

// TestLayerRules makes sure that the rules above would be noticed.
func TestLayerRules(t *testing.T) {
	cases := map[string]struct {
		reason   string
		from, to string
		allowed  bool
	}{
		"Down":             {"The usual direction.", "pkg/cmd/initcmd", "pkg/plane/local", true},
		"DownManyRows":     {"Rows may be skipped.", "cmd/karmadactl", "pkg/util/version", true},
		"Up":               {"A description must not know the commands.", "pkg/plane/local", "pkg/cmd/host", false},
		"UpToServers":      {"A stage must not know the process that it runs in.", "pkg/pipeline/apply", "pkg/server/flags", false},
		"SamePackage":      {"What belongs together may be split into packages.", "pkg/plane/local", "pkg/plane", true},
		"Neighbours":       {"The command line must stay light.", "pkg/cmd/initcmd", "pkg/server/plane", false},
		"NeighboursBelow":  {"Two nouns of one row.", "pkg/member", "pkg/binding", false},
		"Stages":           {"Stages meet in API objects.", "pkg/pipeline/bind", "pkg/pipeline/match", false},
		"SameStage":        {"A stage may have packages.", "pkg/pipeline/schedule/score", "pkg/pipeline/schedule", true},
		"StageFromTests":   {"A test may use everything.", "test/bench", "pkg/pipeline/apply", true},
		"Util":             {"Leaves know no names of ours.", "pkg/util/daemon", "pkg/names", false},
		"UtilToUtil":       {"Leaves are independent of one another.", "pkg/util/help", "pkg/util/version", false},
		"UtilToAtomicfile": {"The one exception.", "pkg/util/kubeconfig", "pkg/util/atomicfile", true},
		"NamesToAPIs":      {"The names stand for themselves.", "pkg/names", "pkg/apis/work/v1alpha2", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := layerProblem(c.from, c.to); (got == "") != c.allowed {
				t.Errorf("%s -> %s: got %q, want allowed %t\nreason: %s", c.from, c.to, got, c.allowed, c.reason)
			}
		})
	}
}

func TestConfinedDependencies(t *testing.T) {
	all := mustList(t)
	for _, local := range ours(all) {
		p := all[importPath(local)]
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for _, c := range confinements {
				home := slices.ContainsFunc(c.allowed, func(root string) bool { return within(local, root) })
				if within(path, c.dependency) && !home {
					t.Errorf("%s imports %s\nrule: only %s may\nwhy: %s", local, path, strings.Join(c.allowed, ", "), c.reason)
				}
			}
		}
	}
}

func TestCommandLineStaysLight(t *testing.T) {
	all := mustList(t)
	start := importPath("cmd/karmadactl")
	if _, ok := all[start]; !ok {
		t.Fatalf("%s is not among the packages: did it move?", start)
	}
	importer := map[string]string{start: ""}
	for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
		for _, next := range all[queue[0]].Imports {
			if _, seen := importer[next]; !seen {
				importer[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	for _, root := range heavy {
		for _, path := range sorted(importer) {
			if within(path, root) {
				t.Errorf("cmd/karmadactl links %s: %s\nwhy not: %s", root, chain(importer, path), heavyReason)
				break
			}
		}
	}
}

func sorted(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// chain writes how the first package came to import path.
func chain(importer map[string]string, path string) string {
	var steps []string
	for ; path != ""; path = importer[path] {
		steps = append(steps, strings.TrimPrefix(path, module+"/"))
	}
	slices.Reverse(steps)
	return strings.Join(steps, " -> ")
}

func TestPackageComments(t *testing.T) {
	all := mustList(t)
	for _, local := range ours(all) {
		p := all[importPath(local)]
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		var comments []string
		name := ""
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatalf("parse %s: %v", file, err)
			}
			name = f.Name.Name
			if f.Doc != nil {
				comments = append(comments, f.Doc.Text())
			}
		}
		const why = "the comment is what a reader meets first, here and in the documentation"
		switch {
		case len(comments) == 0:
			t.Errorf("%q has no package comment\nwhy it needs one: %s", local, why)
		case len(comments) > 1:
			t.Errorf("%q has %d package comments: keep one\nwhy: %s", local, len(comments), why)
		case name != "main" && !strings.HasPrefix(comments[0], "Package "+name+" "):
			t.Errorf("the comment of %q begins with %.40q, not with \"Package %s \"\nwhy it should: %s", local, comments[0], name, why)
		}
	}
}

// A ban is something that must not stand in our own code.
type ban struct {
	what, why string
	found     func(ast.Node) bool
}

var bans = []ban{
	{
		"a context that nobody ends", "a request that nothing can cancel outlives whoever asked; take the context that is handed in",
		func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return false
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			return ok && s.Sel.Name == "TODO" && isIdent(s.X, "context")
		},
	},
	{
		"a call that ends the process on an error", "an error is returned once, with what was being tried, and its end is decided at the top",
		func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return false
			}
			switch f := call.Fun.(type) {
			case *ast.Ident:
				return strings.HasSuffix(f.Name, "OrDie")
			case *ast.SelectorExpr:
				return strings.HasSuffix(f.Sel.Name, "OrDie")
			}
			return false
		},
	},
	{
		"an init function", "what happens on import cannot be chosen, ordered or tested; wire it where it is used",
		func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			return ok && f.Name.Name == "init" && f.Recv == nil
		},
	},
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestBans(t *testing.T) {
	eachFile(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Errorf("parse %s: %v", path, err)
			return
		}
		if ast.IsGenerated(f) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, b := range bans {
				if n != nil && b.found(n) {
					t.Errorf("%s: %s\nwhy not: %s", files.Position(n.Pos()), b.what, b.why)
				}
			}
			return true
		})
	})
}

// TestBansAreFound makes sure that the bans recognise what they are after, and nothing else.
func TestBansAreFound(t *testing.T) {
	const source = `package p
func init() {}
func (T) init() {}
func f() { f2(context.TODO(), context.Background()); c := kubernetes.NewForConfigOrDie(x); fooOrDie(); orDieTrying(c) }`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, len(bans))
	ast.Inspect(f, func(n ast.Node) bool {
		for i, b := range bans {
			if n != nil && b.found(n) {
				counts[i]++
			}
		}
		return true
	})
	if want := []int{1, 2, 1}; !slices.Equal(counts, want) {
		t.Errorf("found %v, want %v", counts, want)
	}
}

// The words are put together here, so that this file does not have them.
var leftovers = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

func TestNoLeftovers(t *testing.T) {
	eachFile(t, func(path string) {
		if !slices.Contains([]string{".go", ".md", ".sh", ".yaml", ".txtar", ".mod", ""}, filepath.Ext(path)) {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("read %s: %v", path, err)
			return
		}
		for i, line := range strings.Split(string(data), "\n") {
			line = strings.ReplaceAll(line, "context.TO"+"DO", "")
			line = strings.ReplaceAll(line, `"TO`+`DO"`, "")
			if word := leftovers.FindString(line); word != "" {
				t.Errorf("%s:%d: %s\nwhy not: a note in the code is read by nobody who plans; do it, or say it where work is planned", path, i+1, word)
			}
		}
	})
}

// eachFile hands every file of the source tree to do. What is hidden, built or made at run time is left out, as by the
// go command.
func eachFile(t *testing.T, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && strings.ContainsAny(name[:1], "._") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			do(path)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("walk the source tree: %v", err)
	}
}
