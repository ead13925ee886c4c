package get

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

// A buffer may be read while a command writes.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newGet returns the command as a user of p has it.
func newGet(t *testing.T, p *fleettest.Plane, args ...string) (cmd *cobra.Command, out, errOut *buffer) {
	t.Helper()
	out, errOut = &buffer{}, &buffer{}
	s := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
	cmd, err := NewCmd(p.Factory(t, s), s, "karmadactl")
	if err != nil {
		t.Fatal(err)
	}
	cmd.SilenceErrors = true
	cmd.SetArgs(append([]string{"--kubeconfig", p.Kubeconfig}, args...))
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	return cmd, out, errOut
}

// aFleet is a control plane with two members.
func aFleet(t *testing.T) *fleettest.Plane {
	p := fleettest.New(t)
	p.Add(fleettest.Deployment("default", "web", "app", "web"))
	p.Join("member1",
		fleettest.Deployment("default", "web", "app", "web", "karmada.io/managed", "true"),
		fleettest.Pod("default", "web-1", "app", "web"), fleettest.Pod("other", "job-1"),
		`{"apiVersion":"example.io/v1","kind":"Gadget","metadata":{"namespace":"default","name":"g1"}}`)
	p.Join("member2",
		fleettest.Deployment("default", "web", "app", "web", "karmada.io/managed", "true"),
		fleettest.Deployment("default", "own"), fleettest.Pod("default", "web-2", "app", "web"))
	return p
}

func TestGet(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		fleet  func(*fleettest.Plane)
		out    string
		errOut string
		err    string
	}{
		"ControlPlane": {
			reason: "The default scope says where rows are from, too.", args: []string{"deploy"},
			out: "NAME   CLUSTER   READY   ADOPTION\nweb    Karmada   1/1     -\n",
		},
		"Members": {
			reason: "Rows are in the order of clusters, and say which are ours.", args: []string{"deployments", "-s", "members"},
			out: "NAME   CLUSTER   READY   ADOPTION\nweb    member1   1/1     Y\nweb    member2   1/1     Y\nown    member2   1/1     N\n",
		},
		"All": {
			reason: "The control plane comes first.", args: []string{"deployments", "web", "-s", "all"},
			out: "NAME   CLUSTER   READY   ADOPTION\nweb    Karmada   1/1     -\nweb    member1   1/1     Y\nweb    member2   1/1     Y\n",
		},
		"NamedClusters": {
			reason: "Naming clusters is asking for them.", args: []string{"deployments", "-C", "member2"},
			out: "NAME   CLUSTER   READY   ADOPTION\nweb    member2   1/1     Y\nown    member2   1/1     N\n",
		},
		"PodsHideAdoption": {
			reason: "A pod is never managed itself.", args: []string{"po", "-s", "members"},
			out: "NAME    CLUSTER   READY\nweb-1   member1   1/1\nweb-2   member2   1/1\n",
		},
		"Wide": {
			reason: "Wide shows all columns, ADOPTION last.", args: []string{"po", "-s", "members", "-o", "wide"},
			out: "NAME    CLUSTER   READY   NODE    ADOPTION\nweb-1   member1   1/1     node1   N\nweb-2   member2   1/1     node1   N\n",
		},
		"AllNamespaces": {
			reason: "NAMESPACE comes before NAME.", args: []string{"po", "-A", "-C", "member1"},
			out: "NAMESPACE   NAME    CLUSTER   READY\ndefault     web-1   member1   1/1\nother       job-1   member1   1/1\n",
		},
		"ManyTypes": {
			reason: "Core types first, each with its own header and kind.", args: []string{"deploy,po", "-C", "member1"},
			out: "NAME        CLUSTER   READY\npod/web-1   member1   1/1\n\nNAME                  CLUSTER   READY   ADOPTION\ndeployment.apps/web   member1   1/1     Y\n",
		},
		"ADOPTIONStaysForLaterKinds": {
			reason: "What pods hide is not hidden of what follows.", args: []string{"po,deploy", "-s", "members", "--no-headers"},
			out: "pod/web-1   member1   1/1\npod/web-2   member2   1/1\ndeployment.apps/web   member1   1/1   Y\ndeployment.apps/web   member2   1/1   Y\ndeployment.apps/own   member2   1/1   N\n",
		},
		"Labels": {
			reason: "A selector goes to every cluster.", args: []string{"deploy", "-s", "members", "-l", "app=web", "-L", "app"},
			out: "NAME   CLUSTER   READY   ADOPTION   APP\nweb    member1   1/1     Y          web\nweb    member2   1/1     Y          web\n",
		},
		"Selector": {
			reason: "kubectl's name of the flag works.", args: []string{"deploy", "-s", "members", "--selector", "app!=web"},
			out: "NAME   CLUSTER   READY   ADOPTION\nown    member2   1/1     N\n",
		},
		"FieldSelector": {
			reason: "Fields select, too.", args: []string{"deploy", "-s", "members", "--field-selector", "metadata.name=own"},
			out: "NAME   CLUSTER   READY   ADOPTION\nown    member2   1/1     N\n",
		},
		"SortBy": {
			reason: "Rows of all clusters are sorted together.", args: []string{"deploy", "-s", "members", "--sort-by", "{.metadata.name}"},
			out: "NAME   CLUSTER   READY   ADOPTION\nown    member2   1/1     N\nweb    member1   1/1     Y\nweb    member2   1/1     Y\n",
		},
		"ShowKind": {
			reason: "The kind is on each row.", args: []string{"deploy", "-C", "member1", "--show-kind"},
			out: "NAME                  CLUSTER   READY   ADOPTION\ndeployment.apps/web   member1   1/1     Y\n",
		},
		"Name": {
			reason: "Names come in the order of clusters.", args: []string{"deploy", "-s", "all", "-o", "name"},
			out: "deployment.apps/web\ndeployment.apps/web\ndeployment.apps/web\ndeployment.apps/own\n",
		},
		"JSONPath": {
			reason: "A template sees the list of all.", args: []string{"deploy", "-s", "members", "-o", "jsonpath={.items[*].metadata.name}"},
			out: "web web own",
		},
		"JSONPathOfOne": {
			reason: "One object is no list.", args: []string{"deploy", "web", "-C", "member1", "-o", `jsonpath={.metadata.annotations.resource\.karmada\.io/query-from-cluster}`},
			out: "member1",
		},
		"CustomColumns": {
			reason: "There is one header.", args: []string{"deploy", "-s", "members", "-o", `custom-columns=NAME:.metadata.name,AT:.metadata.annotations.resource\.karmada\.io/query-from-cluster`},
			out: "NAME   AT\nweb    member1\nweb    member2\nown    member2\n",
		},
		"NoTables": {
			reason: "An API that makes no tables still has rows.", args: []string{"deploy", "-C", "plain"},
			fleet: func(p *fleettest.Plane) { p.Join("plain", fleettest.Deployment("default", "web")).NoTables = true },
			out:   "NAME   CLUSTER   AGE         ADOPTION\nweb    plain     <unknown>   N\n",
		},
		"TypeOfMembersOnly": {
			reason: "What the control plane does not know a member may.", args: []string{"gadgets", "-C", "member1"},
			out: "NAME   CLUSTER   READY   ADOPTION\ng1     member1   1/1     N\n",
		},
		"TypeOfControlPlaneOnly": {
			reason: "What only the control plane has is missing in members.", args: []string{"pp", "-C", "member1"},
			err: `cluster(member1): the server doesn't have a resource type "pp"`,
		},
		"UnknownType": {
			reason: "Nobody knows it.", args: []string{"frobs"},
			err: `the server doesn't have a resource type "frobs"`,
		},
		"Missing": {
			reason: "One that is missing in one cluster is said, and the others are shown.", args: []string{"deploy", "own", "-s", "members"},
			out: "NAME   CLUSTER   READY   ADOPTION\nown    member2   1/1     N\n",
			err: `cluster(member1): deployments.apps "own" not found`,
		},
		"IgnoreNotFound": {
			reason: "Unless nobody minds.", args: []string{"deploy", "own", "-s", "members", "--ignore-not-found"},
			out: "NAME   CLUSTER   READY   ADOPTION\nown    member2   1/1     N\n",
		},
		"MissingInControlPlane": {
			reason: "The words are kubectl's.", args: []string{"deploy", "own"},
			err: `deployments.apps "own" not found`,
		},
		"MissingAsYAML": {
			reason: "No format swallows an error.", args: []string{"deploy", "own", "-C", "member1", "-o", "yaml"},
			err: `cluster(member1): deployments.apps "own" not found`,
		},
		"Nothing": {
			reason: "There being none is no failure.", args: []string{"cm", "-s", "all"},
			errOut: "No resources found in default namespace.\n",
		},
		"NothingAnywhere": {
			reason: "Nor is it in all namespaces.", args: []string{"cm", "-s", "members", "-A"},
			errOut: "No resources found\n",
		},
		"UnknownCluster": {
			reason: "Clusters that do not exist are named before anything is asked.", args: []string{"deploy", "-C", "member1,a,b,a"},
			err: "clusters don't exist: a,b",
		},
		"PathAsCluster": {
			reason: "A name is no path.", args: []string{"deploy", "-C", "member1/proxy/../member2"},
			err: "clusters don't exist: member1/proxy/../member2",
		},
		"Silent": {
			reason: "One silent member costs its own rows.", args: []string{"deploy", "web", "-s", "members", "--cluster-timeout", "300ms"},
			fleet: func(p *fleettest.Plane) { p.JoinAs("dead", fleettest.Silent()) },
			out:   "NAME   CLUSTER   READY   ADOPTION\nweb    member1   1/1     Y\nweb    member2   1/1     Y\n",
			err:   "basic connection test to cluster(dead) failed, please check authorization or network: no answer within 300ms",
		},
		"SilentAsJSONPath": {
			reason: "In any format.", args: []string{"deploy", "web", "-s", "members", "--cluster-timeout", "300ms", "-o", "jsonpath={.items[*].metadata.name}"},
			fleet: func(p *fleettest.Plane) { p.JoinAs("dead", fleettest.Silent()) },
			out:   "web web",
			err:   "basic connection test to cluster(dead) failed, please check authorization or network: no answer within 300ms",
		},
		"Unreachable": {
			reason: "The proxy's reason is passed on.", args: []string{"deploy", "web", "-s", "members"},
			fleet: func(p *fleettest.Plane) { p.JoinAs("broken", fleettest.Broken()) },
			out:   "NAME   CLUSTER   READY   ADOPTION\nweb    member1   1/1     Y\nweb    member2   1/1     Y\n",
			err:   "basic connection test to cluster(broken) failed, please check authorization or network: cluster broken, https://192.0.2.1:6443, cannot be reached: connection refused",
		},
		"Liar": {
			reason: "An answer that ends too soon is none.", args: []string{"deploy", "-C", "liar,member1"},
			fleet: func(p *fleettest.Plane) { p.JoinAs("liar", fleettest.Liar()) },
			out:   "NAME   CLUSTER   READY   ADOPTION\nweb    member1   1/1     Y\n",
			err:   "unexpected EOF",
		},
		"Throttled": {
			reason: "A member that says to come back in an hour is not waited for.", args: []string{"deploy", "-C", "busy,member1"},
			fleet: func(p *fleettest.Plane) {
				p.JoinAs("busy", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "3600")
					fleettest.Status(w, http.StatusTooManyRequests, "TooManyRequests", "too many requests")
				}))
			},
			out: "NAME   CLUSTER   READY   ADOPTION\nweb    member1   1/1     Y\n",
			err: "cluster(busy): too many requests",
		},
		"Forbidden": {
			reason: "What a member does not allow is no matter of connection.", args: []string{"deploy", "-C", "strict"},
			fleet: func(p *fleettest.Plane) {
				p.JoinAs("strict", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					fleettest.Status(w, http.StatusForbidden, "Forbidden", "deployments.apps is forbidden")
				}))
			},
			err: "cluster(strict): deployments.apps is forbidden",
		},
		"NoType":             {reason: "A type is needed.", err: "Required resource not specified.\n"},
		"ScopeAndClusters":   {reason: "A cluster is no part of the control plane.", args: []string{"deploy", "-s", "karmada", "-C", "member1"}, err: "--operation-scope=karmada is the control plane, and --clusters=member1 are member clusters"},
		"EmptyCluster":       {reason: "An empty name is a mistake in a script.", args: []string{"deploy", "-C", ""}, out: "NAME   CLUSTER   READY   ADOPTION\nweb    Karmada   1/1     -\n"},
		"EmptyAmongClusters": {reason: "Also among others.", args: []string{"deploy", "-C", "member1,,member2"}, err: "--clusters has an empty name"},
		"Format":             {reason: "A format is checked first.", args: []string{"deploy", "-o", "nonsense"}, err: `unable to match a printer suitable for the output format "nonsense"`},
		"ShowLabelsOfJSON":   {reason: "As kubectl.", args: []string{"deploy", "--show-labels", "-o", "json"}, err: "--show-labels option cannot be used with json printer"},
		"EventsUnwatched":    {reason: "As kubectl.", args: []string{"deploy", "--output-watch-events"}, err: "--output-watch-events option can only be used with --watch or --watch-only"},
		"SortByNothing":      {reason: "A field that nobody has is a mistake.", args: []string{"deploy", "-s", "members", "--sort-by", "{.spec.nonsense}"}, err: `couldn't find any field with path "{.spec.nonsense}"`},
		"BadSelector":        {reason: "It is found here.", args: []string{"deploy", "-l", "a=b=c"}, err: "found '='"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			p := aFleet(t)
			if tc.fleet != nil {
				tc.fleet(p)
			}
			cmd, out, errOut := newGet(t, p, tc.args...)
			err := cmd.ExecuteContext(t.Context())
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got error %v: %s", err, tc.reason)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want %q: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("output (-want +got): %s\n%s", tc.reason, diff)
			}
			if tc.err == "" {
				if diff := cmp.Diff(tc.errOut, errOut.String()); diff != "" {
					t.Errorf("standard error (-want +got): %s\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestNoMembers(t *testing.T) {
	cmd, out, errOut := newGet(t, fleettest.New(t), "deploy", "-s", "members")
	if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != "" {
		t.Errorf("got %v, %q: a control plane without members is no failure", err, out)
	}
	if want := "No member Clusters found in Karmada control plane\n"; errOut.String() != want {
		t.Errorf("standard error is %q, want %q", errOut, want)
	}
}

// A document is the same whether it is written piece by piece or at once.
func TestDocuments(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		names  []string // "" for one object
	}{
		"List":          {reason: "All objects are in one list.", args: []string{"deploy", "-s", "members"}, names: []string{"web@member1", "web@member2", "own@member2"}},
		"All":           {reason: "What is of the control plane has no mark.", args: []string{"deploy", "web", "-s", "all"}, names: []string{"web@", "web@member1", "web@member2"}},
		"ListOfOne":     {reason: "A list stays one.", args: []string{"deploy", "-C", "member1"}, names: []string{"web@member1"}},
		"Empty":         {reason: "An empty list is a list.", args: []string{"cm", "-s", "members"}, names: []string{}},
		"Object":        {reason: "One name in one place is one object.", args: []string{"deploy", "web", "-C", "member1"}},
		"NamedInMany":   {reason: "One name in many places is a list.", args: []string{"deploy", "own", "-s", "members", "--ignore-not-found"}, names: []string{"own@member2"}},
		"ManyTypes":     {reason: "Types may be mixed.", args: []string{"po,deploy", "-C", "member1"}, names: []string{"web-1@member1", "web@member1"}},
		"Sorted":        {reason: "Sorted, too.", args: []string{"deploy", "-s", "members", "--sort-by", ".metadata.name"}, names: []string{"own@member2", "web@member1", "web@member2"}},
		"ManagedFields": {reason: "Whose fields they are is not shown.", args: []string{"cm", "-C", "fields"}, names: []string{"x@fields"}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			p := aFleet(t)
			if name == "ManagedFields" {
				p.Join("fields", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x","managedFields":[{"manager":"me"}]},"data":{"a":"<b> & \"c\"\n"}}`)
			}
			cmd, out, _ := newGet(t, p, append(tc.args, "-o", "json")...)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatalf("%v: %s\n%s", err, tc.reason, out)
			}
			if strings.Contains(out.String(), "managedFields") {
				t.Errorf("managedFields are shown:\n%s", out)
			}
			indented, err := json.MarshalIndent(got, "", "    ")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(indented)+"\n", out.String()); diff != "" {
				t.Errorf("not as kubectl writes it (-kubectl +ours):\n%s", diff)
			}
			object := got.(map[string]any)
			if tc.names == nil {
				if object["kind"] != "Deployment" {
					t.Errorf("got a %s: %s", object["kind"], tc.reason)
				}
			} else {
				names := []string{}
				for _, item := range object["items"].([]any) {
					metadata := item.(map[string]any)["metadata"].(map[string]any)
					annotations, _ := metadata["annotations"].(map[string]any)
					from, _ := annotations["resource.karmada.io/query-from-cluster"].(string)
					names = append(names, metadata["name"].(string)+"@"+from)
				}
				if diff := cmp.Diff(tc.names, names); diff != "" {
					t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
				}
			}

			asYAML, text, _ := newGet(t, p, append(tc.args, "-o", "yaml")...)
			if err := asYAML.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			want, err := toYAML(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, text.String()); diff != "" {
				t.Errorf("not as kubectl writes it (-kubectl +ours):\n%s", diff)
			}
		})
	}
}

// Pages are followed, and what is many is shown before all of it is there.
func TestManyPods(t *testing.T) {
	p := fleettest.New(t)
	const members, pods = 5, 1200
	for m := range members {
		var all []string
		for i := range pods {
			all = append(all, fleettest.Pod("default", fmt.Sprintf("pod-%04d", i)))
		}
		p.Join(fmt.Sprintf("member%d", m), all...)
	}
	hold := make(chan struct{})
	p.JoinAs("late", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		fleettest.Status(w, http.StatusForbidden, "Forbidden", "too late")
	}))
	cmd, out, _ := newGet(t, p, "pods", "-s", "members")
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(t.Context()) }()
	eventually(t, "all rows of the others are shown while one member is waited for", func() bool {
		return strings.Count(out.String(), "\n") == members*pods+1
	})
	close(hold)
	if err := <-done; err == nil || err.Error() != "cluster(late): too late" {
		t.Errorf("got error %v: the one that failed is missing", err)
	}
	if n := strings.Count(out.String(), "NAME "); n != 1 {
		t.Errorf("there are %d headers, want 1", n)
	}
}

// What a type is called is asked of the control plane, and of members only when
// that does not help.
func TestMembersAreNotDiscovered(t *testing.T) {
	p := fleettest.New(t)
	m := p.Join("member1", fleettest.Pod("default", "web"))
	cmd, _, _ := newGet(t, p, "po", "-s", "members")
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /api/v1/namespaces/default/pods?limit=500"}
	if diff := cmp.Diff(want, m.Requests()); diff != "" {
		t.Errorf("requests to the member (-want +got):\n%s", diff)
	}
}

func TestInterrupted(t *testing.T) {
	p := aFleet(t)
	began := make(chan struct{}, 10)
	p.JoinAs("dead", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	}))
	for _, args := range [][]string{{"deploy", "-s", "members"}, {"deploy", "-s", "members", "-o", "json"}, {"deploy", "-s", "members", "-w"}} {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _, _ := newGet(t, p, args...)
		done := make(chan error, 1)
		go func() { done <- cmd.ExecuteContext(ctx) }()
		<-began
		cancel()
		var exit *kubectl.Exit
		if err := <-done; !errors.As(err, &exit) || exit.Code != 130 || exit.Message != "" {
			t.Errorf("get %q ended with %v: an interrupted command ends at once, without a word, as shells expect", args, err)
		}
	}
}

func TestOutputCannotBeWritten(t *testing.T) {
	p := aFleet(t)
	s := genericiooptions.IOStreams{In: strings.NewReader(""), Out: failing{}, ErrOut: io.Discard}
	for _, format := range []string{"", "wide", "json", "yaml", "name", "jsonpath={.items}"} {
		cmd, err := NewCmd(p.Factory(t, s), s, "karmadactl")
		if err != nil {
			t.Fatal(err)
		}
		cmd.SilenceErrors = true
		cmd.SetArgs([]string{"--kubeconfig", p.Kubeconfig, "deploy", "-s", "members", "-o", format})
		if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, errFull) {
			t.Errorf("-o %q: got %v: what could not be written is a failure", format, err)
		}
	}
}

var errFull = errors.New("no space left")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// eventually waits for what happens by itself.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-limit.C:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
