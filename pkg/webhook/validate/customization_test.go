package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

// existing is a control plane that has these customizations.
func existing(t testing.TB, texts ...string) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, text := range texts {
		b = b.WithObjects(object[configv1alpha1.ResourceInterpreterCustomization](t, text))
	}
	return b.Build()
}

const workload = `target: {apiVersion: w.io/v1, kind: Workload}`

func TestCustomizations(t *testing.T) {
	rule := func(field, script string) string { return fmt.Sprintf("%s: {luaScript: %q}", field, script) }
	all := strings.Join([]string{
		rule("retention", "function Retain(desiredObj, observedObj)\n  desiredObj.spec.paused = observedObj.spec.paused\n  return desiredObj\nend"),
		rule("replicaResource", "local kube = require('kube')\nfunction GetReplicas(obj)\n  return obj.spec.replicas, kube.accuratePodRequirements(obj.spec.template)\nend"),
		rule("componentResource", "function GetComponents(obj) return {} end"),
		rule("replicaRevision", "function ReviseReplica(obj, replica) obj.spec.replicas = replica return obj end"),
		rule("statusReflection", "function ReflectStatus(obj) if obj.status == nil then return {} end return obj.status end"),
		rule("statusAggregation", "function AggregateStatus(obj, items)\n  for i = 1, #items do obj.status.n = obj.status.n + items[i].status.n end\n  return obj\nend"),
		rule("healthInterpretation", "InterpretHealth = function(obj) return obj.status.ready == true end"),
		rule("dependencyInterpretation", "function GetDependencies(obj) return {} end"),
	}, ", ")
	spec := func(target, rules string) string {
		return `
metadata: {name: mine}
spec: {` + target + `, customizations: {` + rules + `}}`
	}
	none := existing(t)
	check(t, customizations(none), "", map[string]ruleCase{
		"All":       {reason: "Each operation has its script.", object: spec(workload, all)},
		"None":      {reason: "A customization that says nothing does no harm.", object: spec(workload, "")},
		"Core":      {reason: "The core group has no name.", object: spec(`target: {apiVersion: v1, kind: Pod}`, all)},
		"NoTarget":  {reason: "Scripts are for a kind.", object: spec(`target: {apiVersion: "", kind: ""}`, all), want: []string{`spec.target.apiVersion: Required value`, `spec.target.kind: Required value`}},
		"BadTarget": {reason: "There is no such version.", object: spec(`target: {apiVersion: a/b/c, kind: K}`, ""), want: []string{`spec.target.apiVersion: Invalid value: "a/b/c"`}},
		"Empty":     {reason: "An empty script is none.", object: spec(workload, rule("retention", " \n"))},
		"Syntax": {
			reason: "The line is where to look.",
			object: spec(workload, rule("retention", "function Retain(a, b)\n  local x = = a\n  return a\nend")),
			want:   []string{`spec.customizations.retention.luaScript: Invalid value: line 2, near "=": syntax error`},
		},
		"Unfinished": {
			reason: "What is missing is missing at the end.",
			object: spec(workload, rule("healthInterpretation", "function InterpretHealth(obj)\n  if obj then\n  return true\nend\n")),
			want:   []string{`spec.customizations.healthInterpretation.luaScript: Invalid value: line 4: syntax error: the script ends too early`},
		},
		"Meaning": {
			reason: "What is grammatical may still be impossible.",
			object: spec(workload, rule("retention", "function Retain(a)\n  return a\nend\ngoto nowhere")),
			want:   []string{`spec.customizations.retention.luaScript: Invalid value: no visible label 'nowhere' for <goto> at line 4`},
		},
		"Several": {
			reason: "Each script is compiled, whatever is wrong with the others.",
			object: spec(workload, rule("retention", "x = (")+", "+rule("dependencyInterpretation", "y = )")+", "+rule("replicaResource", "z = 1")),
			want:   []string{`spec.customizations.retention.luaScript: `, `spec.customizations.dependencyInterpretation.luaScript: `},
		},
	})

	const theirs = `
metadata: {name: theirs}
spec: {target: {apiVersion: w.io/v1, kind: Workload}, customizations: {retention: {luaScript: x=1}, replicaResource: {luaScript: ""}, dependencyInterpretation: {luaScript: x=1}}}`
	const others = `
metadata: {name: others}
spec: {target: {apiVersion: w.io/v1, kind: Workload}, customizations: {healthInterpretation: {luaScript: x=1}}}`
	const mine = `
metadata: {name: mine}
spec: {target: {apiVersion: w.io/v1, kind: Workload}, customizations: {statusReflection: {luaScript: x=1}}}`
	check(t, customizations(existing(t, theirs, others, mine)), "", map[string]ruleCase{
		"Same":      {reason: "Only one of the two would be used.", object: spec(workload, rule("retention", "x=1")), want: []string{`spec.customizations.retention: Forbidden: conflicting with InterpreterOperation(Retain) of existing ResourceInterpreterCustomization(theirs)`}},
		"Two":       {reason: "All conflicts are told, whomever they are with.", object: spec(workload, rule("retention", "x=1")+", "+rule("healthInterpretation", "x=1")), want: []string{`spec.customizations.healthInterpretation: Forbidden: conflicting with InterpreterOperation(InterpretHealth) of existing ResourceInterpreterCustomization(others)`, `spec.customizations.retention: …(theirs)`}},
		"Different": {reason: "Two may share the operations of a kind.", object: spec(workload, rule("replicaRevision", "x=1"))},
		"Depends":   {reason: "All dependencies count.", object: spec(workload, rule("dependencyInterpretation", "x=1"))},
		"EmptyOne":  {reason: "An empty script is none, theirs as well.", object: spec(workload, rule("replicaResource", "x=1"))},
		"Itself":    {reason: "What is updated does not contradict what it was.", object: spec(workload, rule("statusReflection", "x=2"))},
		"Version":   {reason: "Another version is another kind.", object: spec(`target: {apiVersion: w.io/v2, kind: Workload}`, rule("retention", "x=1"))},
		"Kind":      {reason: "Another kind is another kind.", object: spec(`target: {apiVersion: w.io/v1, kind: Worker}`, rule("retention", "x=1"))},
		"Nothing":   {reason: "Nothing contradicts nothing.", object: spec(workload, "")},
	})

	leaving := object[configv1alpha1.ResourceInterpreterCustomization](t, theirs)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"a/b"}
	going := fake.NewClientBuilder().WithScheme(none.Scheme()).WithObjects(leaving).Build()
	check(t, customizations(going), "", map[string]ruleCase{
		"Leaving": {reason: "What is being deleted makes place.", object: spec(workload, rule("retention", "x=1"))},
	})
}

func TestCustomizationsUnknown(t *testing.T) {
	errBoom := errors.New("boom")
	broken := interceptor.NewClient(existing(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return errBoom },
	})
	r := customizations(broken)
	c := object[configv1alpha1.ResourceInterpreterCustomization](t, `spec: {target: {apiVersion: v1, kind: K}, customizations: {retention: {luaScript: x=1}}}`)
	if _, err := r.spec(t.Context(), c); !errors.Is(err, errBoom) {
		t.Errorf("got %v: who cannot look does not say that there is none", err)
	}
	c.Spec.Customizations.Retention = nil
	if _, err := r.spec(t.Context(), c); err != nil {
		t.Errorf("got %v: what has no script needs no look", err)
	}
}

func TestCustomizationAdvice(t *testing.T) {
	got := advise(t, customizations(existing(t)), `spec: {target: {apiVersion: v1, kind: K}, customizations: {retention: {luaScript: "function retain(a, b) return a end"}, replicaRevision: {luaScript: "ReviseReplica = f"}}}`)
	want := []string{"spec.customizations.retention.luaScript does not define the function Retain, which is what is called"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCompile(t *testing.T) {
	var names strings.Builder
	for i := range mostConstants + 1 {
		fmt.Fprintf(&names, "a%d = 1\n", i)
	}
	deep := func(n int) string {
		return "x = 1\ny = " + strings.Repeat("- ", n) + "a"
	}
	cases := map[string]struct {
		reason, script, want string // want: what the error says; empty: accepted
	}{
		"Empty":        {"Nothing is Lua.", "", ""},
		"Comment":      {"A comment is Lua.", "-- nothing", ""},
		"Dialect":      {"It is 5.1, which has no integer division.", "x = 7 // 2", "line 1"},
		"Text":         {"Prose is not.", "return the replicas", `line 1, near "replicas"`},
		"String":       {"A string ends.", "x = 'a\ny = 2", `line 2, near "a": unterminated string`},
		"Long":         {"Nobody writes so much by hand.", strings.Repeat("-", longestScript+1), "must not be longer than 65536 bytes, it has 65537"},
		"AsLong":       {"So much is allowed.", "--" + strings.Repeat("-", longestScript-2), ""},
		"Names":        {"Compiling so many takes minutes.", names.String(), "line 1024: there are more than 1024"},
		"Deep":         {"A stack that overflows would end the webhook.", deep(deepestScript + 1), "line 2: more than 2000"},
		"Parentheses":  {"These do not count: they leave nothing behind.", "x = " + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), ""},
		"NotSoDeep":    {"Ordinary depths are allowed.", deep(100), ""},
		"Registers":    {"The machine has so many registers.", "x = a" + strings.Repeat("..b", 400), "register overflow"},
		"ManyLocals":   {"And so many local variables.", strings.Repeat("local a\n", 300), "too many local variables"},
		"Break":        {"A break needs a loop.", "x = 1\nbreak", "line 2"},
		"BinaryChunk":  {"What is compiled already is not accepted.", "\x1bLua", "line 1"},
		"InvalidUTF8":  {"Strings have any bytes.", "x = '\xff'", ""},
		"NullByte":     {"Outside of strings they have not.", "x = \x00", "line 1"},
		"UnicodeQuote": {"What word processors make of quotes.", "x = “a”", "line 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := compile(c.script)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v: %s", err, c.reason)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q: %s", err, c.want, c.reason)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q: it is one line", err)
			}
		})
	}
}
