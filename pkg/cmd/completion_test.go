package cmd

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// complete returns what is offered for the last of args, and fails unless that goes without a noise.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Main(append([]string{"karmadactl", cobra.ShellCompNoDescRequestCmd}, args...), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	if noise := strings.TrimSpace(errOut.String()); code != 0 || !strings.HasPrefix(noise, "Completion ended with directive") || strings.Contains(noise, "\n") {
		t.Errorf("%q: exit code %d, stderr %q", args, code, noise)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[:len(lines)-1]
}

// aFleetToComplete is a control plane with two members that answer and one that does not.
func aFleetToComplete(t *testing.T) *fleettest.Plane {
	t.Helper()
	// The deadline is a matter of the test below; this machine may be busy.
	t.Setenv(completionTimeoutEnv, "1m")
	t.Setenv("KUBECACHEDIR", t.TempDir())
	p := fleettest.New(t)
	p.Add(
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		fleettest.Deployment("default", "web"), fleettest.Deployment("default", "worker"), fleettest.Deployment("shop", "cart"),
	)
	p.Join("member1",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web-0"},"spec":{"containers":[{"name":"app"},{"name":"proxy"}]}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-a"}}`,
		fleettest.Deployment("default", "one"),
	)
	p.Join("member2", fleettest.Pod("default", "web-1"), fleettest.Deployment("default", "two"))
	t.Setenv("KUBECONFIG", p.Kubeconfig)
	return p
}

func TestCompletion(t *testing.T) {
	p := aFleetToComplete(t)
	cases := map[string]struct {
		reason, line string // what is typed; a space at its end asks for a new word
		want         []string
	}{
		"Command":              {"Its beginning is enough.", "unr", []string{"unregister"}},
		"Subcommand":           {"They are commands, too.", "create secret ", []string{"docker-registry", "generic", "tls"}},
		"Flag":                 {"There are many.", "get --sort", []string{"--sort-by"}},
		"Type":                 {"It is what a line begins with.", "get deploy", []string{"deployments.apps"}},
		"SecondType":           {"They come in lists.", "get pods,names", []string{"pods,namespaces"}},
		"Name":                 {"Of the control plane, unless told otherwise.", "get deployments w", []string{"web", "worker"}},
		"NameAfterSlash":       {"Both forms are known.", "describe deployment/wo", []string{"deployment/worker"}},
		"NameInNamespace":      {"It is given already.", "get deployments -n shop ", []string{"cart"}},
		"NameInMember":         {"The member has others.", "get deployments -C member1 ", []string{"one"}},
		"NameInMembers":        {"All that are asked.", "get deployments -C member1,member2 ", []string{"one", "two"}},
		"NameInAnyMember":      {"None is named: all are asked.", "get pods -s members ", []string{"web-0", "web-1"}},
		"NameAnywhere":         {"Both sides are asked.", "get deployments -s all ", []string{"one", "two", "web", "worker"}},
		"TypeInMember":         {"It may serve what the control plane does not.", "get -C member1 gad", []string{"gadgets.example.io"}},
		"Described":            {"So does describe.", "describe deployments -C member2 ", []string{"two"}},
		"Logs":                 {"Pods are in members.", "logs -C member1 web", []string{"web-0"}},
		"LogsOfNoMember":       {"Nobody knows which pods are meant.", "logs web", nil},
		"Container":            {"It is one of that pod.", "logs -C member1 web-0 -c ", []string{"app", "proxy"}},
		"ContainerToEnter":     {"It is one of that pod.", "exec -C member1 web-0 -c p", []string{"proxy"}},
		"ContainerToAttach":    {"It is one of that pod.", "attach -C member1 web-0 -c a", []string{"app"}},
		"Node":                 {"It is in a member.", "top node --clusters=member1 ", []string{"node-a"}},
		"Promoted":             {"It is in the member.", "promote deployment -C member1 ", []string{"one"}},
		"Demoted":              {"It is in the control plane.", "demote deployment w", []string{"web", "worker"}},
		"Why":                  {"It is in the control plane.", "why deployment/we", []string{"deployment/web"}},
		"Tree":                 {"It is in the control plane.", "tree deployment/we", []string{"deployment/web"}},
		"Edited":               {"kubectl's verbs are ours.", "edit deployments we", []string{"web"}},
		"Deleted":              {"kubectl's verbs are ours.", "delete deployments we", []string{"web"}},
		"Clusters":             {"They are names.", "get pods -C ", []string{"member1", "member2"}},
		"SecondCluster":        {"The first is given.", "get pods -C member1,", []string{"member1,member2"}},
		"ClusterWithEquals":    {"Flags may be written so.", "why deployment/web --cluster=member", []string{"member1", "member2"}},
		"ClusterOfApply":       {"It takes several.", "apply -f x -C m", []string{"member1", "member2"}},
		"ClusterOfTop":         {"It takes several.", "top pod -C m", []string{"member1", "member2"}},
		"ClusterOfTree":        {"It takes one.", "tree deployment/web -C m", []string{"member1", "member2"}},
		"ClusterOfPromote":     {"It takes one.", "promote deployment web -C m", []string{"member1", "member2"}},
		"ClusterOfExplain":     {"It takes one.", "explain pods --cluster m", []string{"member1", "member2"}},
		"ClusterOfTypes":       {"It takes one.", "api-resources --cluster m", []string{"member1", "member2"}},
		"Cordoned":             {"It is an argument.", "cordon ", []string{"member1", "member2"}},
		"CordonedOnce":         {"It takes one.", "cordon member1 ", nil},
		"Uncordoned":           {"It is an argument.", "uncordon m", []string{"member1", "member2"}},
		"Unjoined":             {"It is an argument.", "unjoin m", []string{"member1", "member2"}},
		"Unregistered":         {"Its flags have other names.", "unregister --karmada-config=" + p.Kubeconfig + " m", []string{"member1", "member2"}},
		"Tainted":              {"The word comes first.", "taint ", []string{"clusters"}},
		"TaintedSecond":        {"There can be more.", "taint clusters member1 ", []string{"member2"}},
		"Joined":               {"It is a new name.", "join ", nil},
		"Namespace":            {"They are names.", "get pods -n s", []string{"shop"}},
		"NamespaceOfCreate":    {"Its parent has the flag.", "create configmap x -n s", []string{"shop"}},
		"Context":              {"It is in the kubeconfig.", "get pods --karmada-context ", []string{"karmada-apiserver"}},
		"ContextOfMember":      {"It is in the member's.", "join x --cluster-kubeconfig=" + p.Kubeconfig + " --cluster-context ", []string{"karmada-apiserver"}},
		"ContextToRegister":    {"It is in the member's.", "register --kubeconfig=" + p.Kubeconfig + " --context ", []string{"karmada-apiserver"}},
		"Scope":                {"What it may be.", "get -s m", []string{"members"}},
		"Output":               {"What it may be.", "why deployment/web -o ", []string{"json", "yaml"}},
		"OutputOfKubectl":      {"What it may be.", "get pods -o js", []string{"json", "jsonpath", "jsonpath-as-json", "jsonpath-file"}},
		"OutputOfVersion":      {"What it may be.", "version -o ", []string{"yaml", "json"}},
		"Cascade":              {"What it may be.", "unjoin member1 --cascade ", []string{"delete", "orphan"}},
		"CascadeOfKubectl":     {"Another meaning.", "delete pods --cascade=", []string{"background", "orphan", "foreground"}},
		"SortByUsage":          {"What it may be.", "top pod --sort-by ", []string{"cpu", "memory"}},
		"Patch":                {"What it may be.", "patch deployment web --type ", []string{"json", "merge", "strategic"}},
		"Shell":                {"What it may be.", "completion ", []string{"bash", "fish", "powershell", "zsh"}},
		"NothingOfTokenToCome": {"The cluster is one that is to come.", "token create --cluster ", nil},
		"NothingOfNumber":      {"Files are no numbers.", "logs --tail ", nil},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			got := complete(t, strings.Split(tc.line, " ")...)
			if len(got) == 0 {
				got = nil
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("karmadactl %s<TAB> (-want +got): %s\n%s", tc.line, tc.reason, diff)
			}
		})
	}
}

// One member that is silent costs its own names; a control plane that is silent all. Neither keeps the prompt: the
// servers here never answer, so that a completion that waits for them does not come back at all.
func TestCompletionOfWhatIsSilent(t *testing.T) {
	p := aFleetToComplete(t)
	p.JoinAs("silent", fleettest.Silent())
	complete(t, "get", "deployments", "") // now the types are known, as they are after the first time
	t.Setenv(completionTimeoutEnv, "4s")
	if got := complete(t, "get", "pods", "-s", "members", ""); !slices.Equal(got, []string{"web-0", "web-1"}) {
		t.Errorf("with a silent member: %q, want what the others have", got)
	}

	t.Setenv(completionTimeoutEnv, "")
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer away.Close()
	config := filepath.Join(t.TempDir(), "away.config")
	if err := fleettest.WriteKubeconfig(config, away.URL); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	for _, line := range []string{
		"get ", "get pods ", "get pods -C ", "get pods -n ", "get pods -C member1 ", "get pods -s members ", "describe pods -C member1 ", "logs -C member1 ",
		"logs -C member1 web-0 -c ", "top node --clusters=member1 ", "promote deployment -C member1 ", "demote deployment ", "why deployment/", "tree deployment/",
		"unjoin ", "cordon ", "uncordon ", "taint clusters ", "token delete ", "edit deployments ", "explain ", "unregister --karmada-config=" + config + " ",
	} {
		if got := complete(t, strings.Split(line, " ")...); len(got) > 0 {
			t.Errorf("karmadactl %s<TAB> offers %q, of nothing that answers", line, got)
		}
	}
}

func TestPromptPatience(t *testing.T) {
	for wanted, want := range map[string]time.Duration{"": completionTimeout, "2s": 2 * time.Second, "soon": completionTimeout, "-1s": completionTimeout} {
		if got := promptPatience(wanted); got != want {
			t.Errorf("%s=%q: %s, want %s", completionTimeoutEnv, wanted, got, want)
		}
	}
	if completionTimeout >= 300*time.Millisecond {
		t.Errorf("a prompt waits %s: that feels broken", completionTimeout)
	}
}

// A shell offers the files of the folder where nothing else is said.
func TestOnlyFilesAreCompletedAsFiles(t *testing.T) {
	files := []string{
		"kubeconfig", "cluster-kubeconfig", "karmada-config", "filename", "patch-file", "from-file", "from-env-file", "cert", "key",
		"ca-cert-file", "ca-key-file", "log-file", "template",
	}
	walk(newRoot(t, "karmadactl"), func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
			t.Errorf("arguments of %q are completed as files", cmd.CommandPath())
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if _, ok := cmd.GetFlagCompletionFunc(f.Name); !ok && f.Value.Type() != "bool" && !slices.Contains(files, f.Name) {
				t.Errorf("--%s of %q is completed as a file", f.Name, cmd.CommandPath())
			}
		})
	})
}
