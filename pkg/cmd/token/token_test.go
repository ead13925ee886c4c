package token

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var (
	noon    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	errBoom = errors.New("boom")
)

const secret = "0123456789abcdef"

// ours are the flags that the contract does not have.
var ours = map[string][]string{"create": {"cluster", "output"}, "list": {"output"}}

func newCmd(t *testing.T) *cobra.Command {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd, err := NewCmd(factory.New(factory.Options{Program: "karmadactl", ErrOut: streams.ErrOut}), streams, "karmadactl")
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestFlagsAreThoseOfTheContract(t *testing.T) {
	data, err := os.ReadFile("testdata/contract.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		command, flag, _ := strings.Cut(line, "\t")
		want[command] = append(want[command], flag)
	}
	for _, cmd := range newCmd(t).Commands() {
		var got []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(ours[cmd.Name()], f.Name) || f.Name == "help" {
				return
			}
			short, kind, value := "-", f.Value.Type(), f.DefValue
			if f.Shorthand != "" {
				short = f.Shorthand
			}
			if kind == "stringSlice" {
				kind = "strings"
			}
			if kind == "string" {
				value = fmt.Sprintf("%q", value)
			}
			got = append(got, strings.Join([]string{f.Name, short, kind, value}, "\t"))
		})
		if diff := cmp.Diff(want[cmd.Name()], got); diff != "" {
			t.Errorf("flags of token %s (-contract +ours):\n%s", cmd.Name(), diff)
		}
		delete(want, cmd.Name())
	}
	if len(want) > 0 {
		t.Errorf("commands are missing: %v", slices.Sorted(maps.Keys(want)))
	}
}

func TestUsageLines(t *testing.T) {
	want := map[string]bool{"create": true, "list": true, "delete [token-value] ...": true}
	for _, cmd := range newCmd(t).Commands() {
		if !want[cmd.Use] || cmd.UseLine() != "token "+cmd.Use {
			t.Errorf("usage line %q of %s is not the contract's", cmd.UseLine(), cmd.Name())
		}
	}
}

// parse returns flags as a user typed them.
func parse(t *testing.T, args ...string) *CreateFlags {
	t.Helper()
	f := &CreateFlags{Program: "karmadactl"}
	fs := pflag.NewFlagSet("create", pflag.ContinueOnError)
	f.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// kubeconfig writes one, and returns a factory for it and its path.
func kubeconfig(t *testing.T, cluster string) *factory.Factory {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.config")
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, cluster)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return factory.New(factory.Options{Program: "karmadactl", ErrOut: streams.ErrOut})
}

func TestCreateToOptions(t *testing.T) {
	classic := registration.TokenRequest{
		TTL: 24 * time.Hour, Usages: []string{"signing", "authentication"},
		Groups: []string{"system:bootstrappers:karmada:default-cluster-token"},
	}
	with := func(change func(*registration.TokenRequest)) registration.TokenRequest {
		r := classic
		change(&r)
		return r
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   registration.TokenRequest
		err    string
	}{
		"Defaults":       {reason: "The contract's token.", want: classic},
		"Cluster":        {reason: "It is short-lived, and has no group of a classic token.", args: []string{"--cluster=member3"}, want: with(func(r *registration.TokenRequest) { r.TTL, r.Groups, r.Cluster = 15*time.Minute, nil, "member3" })},
		"ClusterTTL":     {reason: "Who says how long is taken at their word.", args: []string{"--cluster=member3", "--ttl=24h"}, want: with(func(r *registration.TokenRequest) { r.Groups, r.Cluster = nil, "member3" })},
		"ClusterForEver": {reason: "That goes for 0 as well.", args: []string{"--cluster=member3", "--ttl=0"}, want: with(func(r *registration.TokenRequest) { r.TTL, r.Groups, r.Cluster = 0, nil, "member3" })},
		"Groups": {reason: "They replace the default.", args: []string{"--groups=system:bootstrappers:a,system:bootstrappers:b"}, want: with(func(r *registration.TokenRequest) {
			r.Groups = []string{"system:bootstrappers:a", "system:bootstrappers:b"}
		})},
		"NoCluster":        {reason: "A variable that is not set must not make a token for any cluster.", args: []string{"--cluster="}, err: "invalid cluster name()"},
		"BadCluster":       {reason: "Nothing could be registered with it.", args: []string{"--cluster=Member"}, err: "invalid cluster name(Member)"},
		"NoAgent":          {reason: "Whoever registered with it would be denied.", args: []string{"--cluster=m-impersonator"}, err: "does not end with -impersonator"},
		"LongCluster":      {reason: "Nothing could be registered with it.", args: []string{"--cluster=" + strings.Repeat("a", 49)}, err: "invalid cluster name("},
		"ClusterAndGroups": {reason: "More groups are more rights.", args: []string{"--cluster=member3", "--groups=system:bootstrappers:a"}, err: "exclude each other"},
		"NegativeTTL":      {reason: "It would be expired.", args: []string{"--ttl=-1h"}, err: "negative"},
		"Usage":            {reason: "A typo.", args: []string{"--usages=sign"}, err: "sign"},
		"NoUsage":          {reason: "It would be good for nothing.", args: []string{"--usages="}, err: "good for nothing"},
		"Group":            {reason: "A token is no administrator.", args: []string{"--groups=system:masters"}, err: `"system:masters"`},
		"Output":           {reason: "There is no such format.", args: []string{"-o", "xml"}, err: `"xml"`},
		"CannotRegister":   {reason: "The command printed would fail.", args: []string{"--print-register-command", "--usages=authentication"}, err: `without usage "signing"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, _, _ := genericiooptions.NewTestIOStreams()
			o, err := parse(t, c.args...).ToOptions(kubeconfig(t, `server: "https://10.0.0.1:5443"`), streams)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q: %s", err, c.err, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, o.Request); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// creator makes the same token always.
type creator struct {
	asked *int
	err   error
}

func (c creator) Create(_ context.Context, r registration.TokenRequest) (registration.Token, error) {
	*c.asked++
	if c.err != nil {
		return registration.Token{}, c.err
	}
	return registration.Token{ID: "abcdef", Secret: secret, Expires: noon, Usages: r.Usages, Groups: r.Groups, Cluster: r.Cluster}, nil
}

func TestCreateRun(t *testing.T) {
	here := &registration.Discovery{Endpoint: "10.0.0.1:5443", CAHashes: []string{"sha256:aa"}}
	cases := map[string]struct {
		reason  string
		options CreateOptions
		err     error
		want    string
	}{
		"Token":   {reason: "A script takes all of stdout.", want: "abcdef." + secret + "\n"},
		"Command": {reason: "One line to run.", options: CreateOptions{Discovery: here}, want: "karmadactl register 10.0.0.1:5443 --token abcdef." + secret + " --discovery-token-ca-cert-hash sha256:aa --agent=process\n"},
		"JSON": {
			reason: "For programs, all of it.", options: CreateOptions{Output: "json"},
			want: "{\n  \"token\": \"abcdef." + secret + "\",\n  \"id\": \"abcdef\",\n  \"expires\": \"2026-05-04T12:00:00Z\",\n  \"expired\": true,\n  \"usages\": [\n    \"signing\"\n  ],\n  \"groups\": []\n}\n",
		},
		"YAML": {
			reason: "The command has its place.", options: CreateOptions{Output: "yaml", Discovery: here, Request: registration.TokenRequest{Cluster: "m"}},
			want: "cluster: m\nexpired: true\nexpires: \"2026-05-04T12:00:00Z\"\ngroups: []\nid: abcdef\nregisterCommand: karmadactl register 10.0.0.1:5443 --token abcdef." + secret + "\n  --discovery-token-ca-cert-hash sha256:aa --cluster-name m --agent=process\ntoken: abcdef." + secret + "\nusages:\n- signing\n",
		},
		"Failed": {reason: "Nothing that looks like a token is printed.", err: errBoom},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			asked := 0
			o := c.options
			o.Request.Usages = []string{"signing"}
			o.Creator, o.Program, o.IOStreams = creator{&asked, c.err}, "karmadactl", streams
			o.FindCluster = func(context.Context, string) (*clusterv1alpha1.Cluster, error) { return nil, nil }
			if err := o.Run(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if asked != 1 {
				t.Errorf("%d tokens were asked for, want one", asked)
			}
		})
	}
}

func TestCreateForCluster(t *testing.T) {
	member := func(mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	}
	leaving := member(clusterv1alpha1.Push)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	cases := map[string]struct {
		reason  string
		classic bool
		there   *clusterv1alpha1.Cluster
		findErr error
		fails   error
		errOut  string // a part
		err     string
	}{
		"New":       {reason: "There is nothing to warn of."},
		"Pull":      {reason: "The token can replace an agent.", there: member(clusterv1alpha1.Pull), errOut: "warning: there is a cluster m already: whoever registers with this token replaces its agent"},
		"PullFails": {reason: "There is no token to warn of.", there: member(clusterv1alpha1.Pull), fails: errBoom, err: "boom"},
		"Push":      {reason: "Nobody could register with it.", there: member(clusterv1alpha1.Push), err: `"karmadactl unjoin m" first`},
		"Leaving":   {reason: "It can be used when that one is gone.", there: leaving},
		"Unknown":   {reason: "The token does not depend on it.", findErr: errBoom, errOut: "warning: it cannot be seen whether there is a cluster m already"},
		"Classic":   {reason: "It is for no cluster that is there.", classic: true, findErr: errBoom},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			asked := 0
			o := CreateOptions{Creator: creator{&asked, c.fails}, Program: "karmadactl", IOStreams: streams, Request: registration.TokenRequest{Cluster: "m"}}
			if c.classic {
				o.Request.Cluster = ""
			}
			o.FindCluster = func(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
				if name != "m" {
					t.Errorf("looked for cluster %q", name)
				}
				return c.there, c.findErr
			}
			err := o.Run(t.Context())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want an error with %q: %s", err, c.err, c.reason)
			}
			if got := errOut.String(); !strings.Contains(got, c.errOut) || c.errOut == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("stderr %q, want one line with %q: %s", got, c.errOut, c.reason)
			}
			if made := out.Len() > 0; made != (c.err == "") || asked > 0 != (c.err == "" || c.fails != nil) {
				t.Errorf("printed %q, and asked for %d tokens: %s", out, asked, c.reason)
			}
		})
	}
}

type lister struct {
	tokens []registration.Token
	broken []error
	err    error
}

func (l lister) List(context.Context) ([]registration.Token, []error, error) {
	return l.tokens, l.broken, l.err
}

func TestListRun(t *testing.T) {
	some := lister{
		tokens: []registration.Token{
			{ID: "aaaaaa", Secret: secret},
			{ID: "bbbbbb", Secret: secret, Expires: noon.Add(90 * time.Minute), Usages: []string{"authentication", "signing"}, Description: "for May", Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}},
			{ID: "cccccc", Secret: secret, Expires: noon.Add(-time.Second), Description: "two\nlines\x1b[2J", Cluster: "m", Groups: []string{registration.ClusterTokenGroup("m")}},
		},
		broken: []error{errBoom},
	}
	cases := map[string]struct {
		reason string
		lister lister
		output host.Output
		err    error
		out    string
		errOut string
	}{
		"Table": {
			reason: "The contract's columns; what is broken is told and left out.", lister: some, errOut: "left out: boom\n",
			out: `
TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION     EXTRA GROUPS
aaaaaa.0123456789abcdef   <forever>   <never>                <none>                   <none>          <none>
bbbbbb.0123456789abcdef   1h          2026-05-04T13:30:00Z   authentication,signing   for May         system:bootstrappers:a,system:bootstrappers:b
cccccc.0123456789abcdef   <invalid>   2026-05-04T11:59:59Z   <none>                   two lines [2J   system:bootstrappers:karmada:cluster:m
`,
		},
		"Name": {
			reason: "One line for each, which delete takes.", lister: some, output: "name", errOut: "left out: boom\n",
			out: "\nsecret/bootstrap-token-aaaaaa\nsecret/bootstrap-token-bbbbbb\nsecret/bootstrap-token-cccccc\n",
		},
		"YAML": {
			reason: "No secrets.", lister: some, output: "yaml", errOut: "left out: boom\n",
			out: `
items:
- groups: []
  id: aaaaaa
  usages: []
- description: for May
  expires: "2026-05-04T13:30:00Z"
  groups:
  - system:bootstrappers:a
  - system:bootstrappers:b
  id: bbbbbb
  usages:
  - authentication
  - signing
- cluster: m
  description: "two\nlines\e[2J"
  expired: true
  expires: "2026-05-04T11:59:59Z"
  groups:
  - system:bootstrappers:karmada:cluster:m
  id: cccccc
  usages: []
`,
		},
		"NoneJSON": {reason: "An empty list is a list.", output: "json", out: "\n{\n  \"items\": []\n}\n"},
		"None":     {reason: "The columns are the same.", out: "\nTOKEN   TTL   EXPIRES   USAGES   DESCRIPTION   EXTRA GROUPS\n"},
		"NoneName": {reason: "Nothing is nothing.", output: "name", out: "\n"},
		"Failed":   {reason: "That there are none is not the same.", lister: lister{err: errBoom}, err: errBoom, out: "\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := ListOptions{Lister: c.lister, Output: c.output, Now: func() time.Time { return noon }, IOStreams: streams}
			if err := o.Run(t.Context()); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.out[1:], out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.errOut, errOut.String()); diff != "" {
				t.Errorf("stderr: %s (-want +got):\n%s", c.reason, diff)
			}
			if c.output != "" && strings.Contains(out.String(), secret) {
				t.Error("a secret is printed")
			}
		})
	}
}

func TestParseIDs(t *testing.T) {
	const pattern = `given token didn't match pattern "^([a-z0-9]{6})$" or "^([a-z0-9]{6})$"`
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
		errs   []string
	}{
		"ID":      {reason: "The public half will do.", args: []string{"abcdef"}, want: []string{"abcdef"}},
		"Whole":   {reason: "As it was printed.", args: []string{"abcdef." + secret}, want: []string{"abcdef"}},
		"Name":    {reason: "As list -o name prints it.", args: []string{"secret/bootstrap-token-abcdef"}, want: []string{"abcdef"}},
		"Several": {reason: "Each once.", args: []string{"abcdef", "012345", "abcdef." + secret}, want: []string{"abcdef", "012345"}},
		"None":    {reason: "Nothing is not everything.", errs: []string{"missing argument", `"karmadactl token list"`}},
		"Bad":     {reason: "The contract's words.", args: []string{"ABCDEF"}, errs: []string{pattern}},
		"BadTwo":  {reason: "All that are wrong, by their place: they may be secrets.", args: []string{"abcdef", "x", "y"}, errs: []string{"argument 2: " + pattern, "argument 3: " + pattern}},
		"Other":   {reason: "Other secrets are not tokens.", args: []string{"secret/admin"}, errs: []string{pattern}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseIDs("karmadactl", c.args)
			if (err != nil) != (len(c.errs) > 0) {
				t.Fatalf("got %v: %s", err, c.reason)
			}
			for _, text := range c.errs {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("got %q, want %q in it: %s", err, text, c.reason)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" && err == nil {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// deleter fails for the ids in it.
type deleter map[string]error

func (d deleter) Delete(_ context.Context, id string) error { return d[id] }

func TestDeleteRun(t *testing.T) {
	errOther := errors.New("other")
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := DeleteOptions{IDs: []string{"aaaaaa", "bbbbbb", "cccccc", "dddddd"}, Deleter: deleter{"bbbbbb": errBoom, "dddddd": errOther}, IOStreams: streams}
	err := o.Run(t.Context())
	if !errors.Is(err, errBoom) || !errors.Is(err, errOther) {
		t.Errorf("got %v, want both errors", err)
	}
	const want = "bootstrap token \"aaaaaa\" deleted\nbootstrap token \"cccccc\" deleted\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("one that fails must not keep the others (-want +got):\n%s", diff)
	}
	o.IDs = o.IDs[:1]
	if err := o.Run(t.Context()); err != nil {
		t.Errorf("got %v, want none", err)
	}
}

func TestDiscover(t *testing.T) {
	cases := map[string]struct{ reason, cluster, err string }{
		"NoCA":  {"Nobody answers there, which comes first.", `server: "https://127.0.0.1:1"`, "connection refused"},
		"HTTP":  {"There is nothing to recognise it by.", `server: "http://127.0.0.1:1"`, "https://"},
		"Login": {"A password must not be handed on.", `server: "https://a:s3cret@127.0.0.1:1"`, "credentials in it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := discover(kubeconfig(t, c.cluster)); err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v, want %q in it: %s", err, c.err, c.reason)
			}
		})
	}
}
