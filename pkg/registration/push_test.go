package registration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// withID is the namespace that tells a cluster from others.
func withID(id string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: named("", metav1.NamespaceSystem)}
	n.UID = types.UID(id)
	return n
}

func serving(groups ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return groups, nil }
}

var request = Push{Name: "m", Namespace: ns}

// joiner returns one between two clusters; the member is the one that pushEntry speaks of.
func joiner(t *testing.T, plane, member *cluster) *Joiner {
	t.Helper()
	return &Joiner{
		ControlPlane: API{Client: plane, Groups: serving("policy.karmada.io", "work.karmada.io", "cluster.karmada.io")},
		Member: Member{
			API:      API{Client: member, Groups: serving("apps", "batch")},
			Endpoint: Endpoint{URL: pushEntry.Endpoint},
			Contents: func(context.Context, string) ([]string, error) { return nil, nil },
			Probe:    func(context.Context, Endpoint, []byte, []byte) error { return nil },
		},
		Progress: func(string) {},
	}
}

// nothingLeft makes sure that a failed registration leaves what was there before.
func nothingLeft(t *testing.T, reason string, plane, member *cluster) {
	t.Helper()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: named("", ns)},
		&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-m")},
		&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-impersonator")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-impersonator")},
		&rbacv1.ClusterRole{ObjectMeta: named("", role)}, &rbacv1.ClusterRoleBinding{ObjectMeta: named("", role)},
	} {
		if member.has(t, o) {
			t.Errorf("the member still has %T %s: %s", o, o.GetName(), reason)
		}
	}
	for _, name := range []string{"m", "m-impersonator"} {
		if plane.has(t, &corev1.Secret{ObjectMeta: named(ns, name)}) {
			t.Errorf("the control plane still has Secret %s: %s", name, reason)
		}
	}
}

func TestJoin(t *testing.T) {
	push := clusterv1alpha1.Push
	cases := map[string]struct {
		reason string
		plane  []client.Object
		member []client.Object
		change func(*Joiner)
		// planeFail and memberFail are asked before each write.
		planeFail, memberFail func(verb string, obj client.Object) error
		err                   string
		atMember              bool
	}{
		"New":    {reason: "The usual case."},
		"Repeat": {reason: "Nothing is in the way of a second time.", plane: []client.Object{clusterOf("m", "id-m", push, "https://old")}},
		"Leftovers": {
			reason: "What an interrupted run left is taken up.",
			plane:  []client.Object{&corev1.Secret{ObjectMeta: ours(ns, "m"), Data: map[string][]byte{"token": []byte("stale")}}},
			member: []client.Object{&corev1.ServiceAccount{ObjectMeta: ours(ns, "karmada-m")}},
		},
		"Taken":     {reason: "The name is another's.", plane: []client.Object{clusterOf("m", "id-x", push, "https://x")}, err: "has been registered"},
		"OtherName": {reason: "The cluster has a name.", plane: []client.Object{clusterOf("x", "id-m", push, "https://x")}, err: "this cluster is registered as x"},
		"Itself": {
			reason: "A control plane is not its own member.", change: func(j *Joiner) { j.Member.Client = j.ControlPlane.Client },
			err: "that is the control plane itself",
		},
		"ControlPlane": {
			reason: "Nor is another one a member.", change: func(j *Joiner) { j.Member.Groups = serving("work.karmada.io") },
			err: "that is a Karmada control plane",
		},
		"NoID": {
			reason: "What answers is no cluster.", change: func(j *Joiner) { j.Member.Client = newCluster(t) },
			err: "member cluster: read namespace kube-system", atMember: true,
		},
		"MemberRefuses": {
			reason: "Nothing is left of a try.", err: "create Secret karmada-cluster/karmada-m", atMember: true,
			memberFail: func(verb string, obj client.Object) error {
				if verb == "create" && obj.GetName() == "karmada-m" {
					if _, ok := obj.(*corev1.Secret); ok {
						return errBoom
					}
				}
				return nil
			},
		},
		"SecretRefused": {
			reason: "Nothing is left of a try.", err: "create Secret karmada-cluster/m:",
			planeFail: func(verb string, obj client.Object) error {
				if verb == "create" && obj.GetName() == "m" {
					return errBoom
				}
				return nil
			},
		},
		"ClusterRefused": {
			reason: "Nothing is left of a try.", err: "create Cluster m",
			planeFail: func(_ string, obj client.Object) error {
				if _, ok := obj.(*clusterv1alpha1.Cluster); ok {
					return errBoom
				}
				return nil
			},
		},
		"NotReached": {
			reason: "A member that the control plane could not reach is not entered.", err: "reach the API server as the control plane will: boom", atMember: true,
			change: func(j *Joiner) {
				j.Member.Probe = func(context.Context, Endpoint, []byte, []byte) error { return errBoom }
			},
		},
		"Unauthorized": {
			reason: "Nor is one that does not let it in, though the tokens are new.", err: "does not accept the token", atMember: true,
			change: func(j *Joiner) {
				j.Patience = time.Millisecond
				j.Member.Probe = func(context.Context, Endpoint, []byte, []byte) error { return ErrUnauthorized }
			},
		},
		"NotOurs": {
			reason: "Somebody's Secret is not overwritten.", err: "secret karmada-cluster/m-impersonator of the control plane is in the way",
			plane: []client.Object{&corev1.Secret{ObjectMeta: named(ns, "m-impersonator")}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, member := newCluster(t, append(tc.plane, withID("id-plane"))...), newCluster(t, append(tc.member, withID("id-m"))...)
			if tc.planeFail != nil {
				plane.fail = tc.planeFail
			}
			if tc.memberFail != nil {
				member.fail = tc.memberFail
			}
			j := joiner(t, plane, member)
			if tc.change != nil {
				tc.change(j)
			}
			_, err := j.Join(t.Context(), request)
			check(t, tc.reason, err, tc.err)
			var at *MemberError
			if got := errors.As(err, &at); got != tc.atMember {
				t.Errorf("an error of the member: %t, want %t", got, tc.atMember)
			}
			if err != nil {
				if name != "NotOurs" {
					nothingLeft(t, tc.reason, plane, member)
				}
				return
			}
			checkAccess(t, member, both)
			c := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
			if !plane.has(t, c) || c.Spec.APIEndpoint != pushEntry.Endpoint || c.Spec.ID != "id-m" {
				t.Errorf("the cluster is entered as %+v", c.Spec)
			}
			for _, name := range []string{"m", "m-impersonator"} {
				s := &corev1.Secret{ObjectMeta: named(ns, name)}
				if !plane.has(t, s) || !strings.HasPrefix(string(s.Data["token"]), "token-of-karmada-") || metav1.GetControllerOf(s) == nil {
					t.Errorf("Secret %s has %q and the owners %v", name, s.Data, s.OwnerReferences)
				}
			}
			before := plane.writes.Load() + member.writes.Load()
			if _, err := j.Join(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if got := plane.writes.Load() + member.writes.Load() - before; got != 0 {
				t.Errorf("%d writes the second time: what is right is not written", got)
			}
		})
	}
}

// Wherever a registration ends, the next one takes it up.
func TestJoinAfterEveryWrite(t *testing.T) {
	for n := int64(0); ; n++ {
		plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
		// From the n-th write on nothing is possible any more, tidying up included.
		dies := func(string, client.Object) error {
			if plane.writes.Load()+member.writes.Load() >= n {
				return errBoom
			}
			return nil
		}
		plane.fail, member.fail = dies, dies
		_, failed := joiner(t, plane, member).Join(t.Context(), request)
		if failed == nil {
			if n < 8 {
				t.Errorf("a registration is %d writes, which is too few", n)
			}
			return
		}
		lives := func(string, client.Object) error { return nil }
		plane.fail, member.fail = lives, lives
		if _, err := joiner(t, plane, member).Join(t.Context(), request); err != nil {
			t.Fatalf("after %d writes, and %v: %v", n, failed, err)
		}
		checkAccess(t, member, both)
		s := &corev1.Secret{ObjectMeta: named(ns, "m")}
		if !plane.has(t, s) || metav1.GetControllerOf(s) == nil {
			t.Errorf("after %d writes the Secret has the owners %v", n, s.OwnerReferences)
		}
	}
}

// A token that the control plane may be using is given up only for one that is better.
func TestJoinWithTokensThatAreRefused(t *testing.T) {
	const old, elsewhere = "https://10.0.0.1:6443", "https://gateway"
	proxy := "https://plane:5443/apis/cluster.karmada.io/v1alpha1/clusters/m/proxy"
	cases := map[string]struct {
		reason string
		at     string // what the kubeconfig has; the Cluster has old
		// takes says which tokens are good at an address.
		takes   func(at string, isOld bool) bool
		renewed bool
		err     string
	}{
		"NewKeys":  {"The member has forgotten the old ones.", old, func(_ string, isOld bool) bool { return !isOld }, true, ""},
		"Moved":    {"So it has, and it has another address.", elsewhere, func(at string, isOld bool) bool { return at == elsewhere && !isOld }, true, ""},
		"Gateway":  {"It wants other credentials.", elsewhere, func(at string, _ bool) bool { return at == old }, false, "does not take the tokens"},
		"Proxy":    {"It wants those of the control plane.", proxy, func(at string, _ bool) bool { return at == old }, false, "give the cluster's own kubeconfig"},
		"Nobody":   {"New ones do not help.", old, func(string, bool) bool { return false }, false, "does not take the tokens"},
		"Nowhere":  {"They help neither there nor elsewhere.", elsewhere, func(string, bool) bool { return false }, false, "does not take the tokens"},
		"StillOld": {"The control plane gets in.", elsewhere, func(at string, isOld bool) bool { return at == old || !isOld }, false, "goes on reaching it at " + old},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
			first := joiner(t, plane, member)
			first.Member.Endpoint.URL = old
			if _, err := first.Join(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			accounts := []string{"karmada-m", "karmada-impersonator"}
			before := map[string]bool{}
			for _, name := range accounts {
				s := &corev1.Secret{ObjectMeta: named(ns, name)}
				member.has(t, s)
				before[string(s.Data["token"])] = true
			}
			j := joiner(t, plane, member)
			j.Member.Endpoint.URL = tc.at
			j.Patience = 100 * time.Millisecond // the old token is given up after that
			j.Member.Probe = func(_ context.Context, e Endpoint, _, token []byte) error {
				if tc.takes(e.URL, before[string(token)]) {
					return nil
				}
				return ErrUnauthorized
			}
			_, err := j.Join(t.Context(), request)
			check(t, tc.reason, err, tc.err)
			for i, name := range accounts {
				there, kept := &corev1.Secret{ObjectMeta: named(ns, name)}, &corev1.Secret{ObjectMeta: named(ns, []string{"m", "m-impersonator"}[i])}
				if !member.has(t, there) || !plane.has(t, kept) || string(there.Data["token"]) != string(kept.Data["token"]) {
					t.Errorf("the member has the token %q, the control plane %q: %s", there.Data["token"], kept.Data["token"], tc.reason)
				}
				if got := !before[string(there.Data["token"])]; got != tc.renewed {
					t.Errorf("the token of %s is new: %t, want %t: %s", name, got, tc.renewed, tc.reason)
				}
				if member.has(t, &corev1.Secret{ObjectMeta: named(ns, trialSecret(name))}) {
					t.Errorf("what was tried out for %s is left: %s", name, tc.reason)
				}
			}
			c := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
			if want := map[bool]string{true: tc.at, false: old}[tc.renewed]; !plane.has(t, c) || c.Spec.APIEndpoint != want {
				t.Errorf("the cluster is at %s, want %s: %s", c.Spec.APIEndpoint, want, tc.reason)
			}
		})
	}
}

// Credentials that nobody looks for any more would stay for good.
func TestJoinKeepsTheNamespace(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  string
		err    string
	}{
		"NotGiven": {reason: "It is where it was."},
		"Same":     {reason: "It is where it was.", given: ns},
		"Other":    {reason: "It does not move.", given: "elsewhere", err: "cluster m keeps its credentials in namespace karmada-cluster, and not in elsewhere: leave --cluster-namespace out, or unjoin it first"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
			if _, err := joiner(t, plane, member).Join(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			before := plane.writes.Load() + member.writes.Load()
			again := Push{Name: "m", Namespace: "the-default"}
			if tc.given != "" {
				again.Namespace, again.NamespaceGiven = tc.given, true
			}
			for _, again.DryRun = range []bool{true, false} {
				_, err := joiner(t, plane, member).Join(t.Context(), again)
				check(t, tc.reason, err, tc.err)
			}
			if got := plane.writes.Load() + member.writes.Load() - before; got != 0 {
				t.Errorf("%d writes: %s", got, tc.reason)
			}
		})
	}
}

func TestJoinDryRun(t *testing.T) {
	plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
	dry := request
	dry.DryRun = true
	plan, err := joiner(t, plane, member).Join(t.Context(), dry)
	if err != nil {
		t.Fatal(err)
	}
	if got := plane.writes.Load() + member.writes.Load(); got != 0 {
		t.Errorf("%d writes", got)
	}
	if len(plan.Member) != 7 || len(plan.ControlPlane) != 4 || plan.Cluster == nil {
		t.Errorf("%d and %d objects, want 7 and 4", len(plan.Member), len(plan.ControlPlane))
	}
}

// agentOf returns the rights of m's agent, as they were given to somebody with a classic token.
func agentOf(t *testing.T) []client.Object {
	t.Helper()
	rights, err := AgentRights("m")
	if err != nil {
		t.Fatal(err)
	}
	Grant{At: noon, TokenID: someID}.note(rights[0])
	return rights
}

// Whoever has asked for the identity of an agent before the name was a push member's must not read its credentials.
func TestJoinLocksAgentsOut(t *testing.T) {
	unmarked := func(all []client.Object) []client.Object {
		for _, o := range all {
			o.SetLabels(nil)
		}
		return all
	}
	cases := map[string]struct {
		reason  string
		rights  []client.Object
		dryRun  bool
		during  bool // they are given again once the Secrets are there
		removed int
		said    string
		err     string
	}{
		"None":   {reason: "There is nothing to say."},
		"Early":  {reason: "The certificate is still valid, and good for nothing.", rights: agentOf(t), removed: 10, said: "bootstrap token abcdef, at 2026-05-04T12:00:00Z, has got the rights of an agent of cluster m, which is to be in push mode and has none: they are removed"},
		"DryRun": {reason: "It is listed.", rights: agentOf(t), dryRun: true, removed: 10, said: "to be removed"},
		"Others": {reason: "A binding gives the rights, whoever made it.", rights: unmarked(agentOf(t)), removed: 5, said: "somebody has got the rights"},
		"During": {reason: "What was read cannot be taken back.", during: true, said: "are removed", err: "delete that token"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, member := newCluster(t, append(tc.rights, withID("id-plane"))...), newCluster(t, withID("id-m"))
			given := func() (n int) {
				for _, o := range agentOf(t) {
					if _, ok := o.(*corev1.Namespace); !ok && plane.has(t, bare(o)) && isFor(o, AgentUser("m")) {
						n++
					}
				}
				return n
			}
			plane.fail = func(_ string, obj client.Object) error {
				switch obj.(type) {
				case *corev1.Secret:
					if n := given(); n > 0 {
						t.Errorf("a Secret is written while %d bindings are for the agent: %s", n, tc.reason)
					}
				case *clusterv1alpha1.Cluster:
					if tc.during {
						tc.during = false
						return GrantAgentRights(t.Context(), NewWriter(plane), "m", nil, Grant{At: noon, TokenID: someID})
					}
				}
				return nil
			}
			j := joiner(t, plane, member)
			var said []string
			j.Progress = func(line string) { said = append(said, line) }
			p := request
			p.DryRun = tc.dryRun
			plan, err := j.Join(t.Context(), p)
			check(t, tc.reason, err, tc.err)
			if got := strings.Join(said, "\n"); !strings.Contains(got, tc.said) || tc.said == "" && got != "" || len(said) > 1 {
				t.Errorf("said %q, want one line with %q: %s", got, tc.said, tc.reason)
			}
			removed := 0
			for _, c := range plan.ControlPlane {
				if c.Action == Delete {
					removed++
				}
			}
			if removed != tc.removed {
				t.Errorf("%d objects are removed, want %d: %s", removed, tc.removed, tc.reason)
			}
			if n := given(); !tc.dryRun && n > 0 || tc.dryRun && plane.writes.Load() > 0 {
				t.Errorf("%d bindings are for the agent after %d writes: %s", n, plane.writes.Load(), tc.reason)
			}
		})
	}

	j := joiner(t, newCluster(t, withID("id-plane")), newCluster(t, withID("id-m")))
	_, err := j.Join(t.Context(), Push{Name: "a-impersonator", Namespace: ns})
	check(t, "The agent of cluster a may read the Secret of that name.", err, "invalid cluster name(a-impersonator)")
}

// A control plane that was made a moment ago does not serve Clusters yet.
func TestJoinWaitsForTheControlPlane(t *testing.T) {
	clusters := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	unavailable := apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	notServed := apierrors.NewGenericServerResponse(404, "get", clusters, "", "404 page not found", 0, true)
	cases := map[string]struct {
		reason   string
		answers  []error
		groups   []string
		patience time.Duration
		err      string
	}{
		"Unavailable":  {reason: "Its server is starting.", answers: []error{unavailable, unavailable}},
		"NotServedYet": {reason: "Its server is not registered yet.", answers: []error{notServed}, groups: []string{"work.karmada.io"}},
		"NotKarmada":   {reason: "It will never be.", answers: []error{notServed}, groups: []string{"apps"}, err: "list the clusters of the control plane: "},
		"Forbidden":    {reason: "Nor will that change.", answers: []error{apierrors.NewForbidden(clusters, "", errBoom)}, err: "forbidden"},
		"Never":        {reason: "The wait ends.", answers: slices.Repeat([]error{unavailable}, 1000), patience: time.Millisecond, err: "karmada-aggregated-apiserver"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
			j := joiner(t, plane, member)
			j.Patience = tc.patience
			j.ControlPlane.Groups = serving(tc.groups...)
			asked := 0
			j.ControlPlane.Client = interceptor.NewClient(plane.WithWatch, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, ok := list.(*clusterv1alpha1.ClusterList); ok && asked < len(tc.answers) {
						asked++
						return tc.answers[asked-1]
					}
					return c.List(ctx, list, opts...)
				},
			})
			_, err := j.Join(t.Context(), request)
			check(t, tc.reason, err, tc.err)
			if err == nil && asked != len(tc.answers) {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// The name of a cluster that is going can be taken once it is gone.
func TestJoinWaitsForRemoval(t *testing.T) {
	leaving := clusterOf("m", "id-x", clusterv1alpha1.Push, "https://x")
	leaving.Finalizers = []string{"f"}
	plane, member := newCluster(t, leaving, withID("id-plane")), newCluster(t, withID("id-m"))
	c := &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}
	if err := plane.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	impatient := joiner(t, plane, member)
	impatient.Patience = time.Millisecond
	_, err := impatient.Join(t.Context(), request)
	check(t, "It is not waited for for ever.", err, "a cluster m is being removed")

	j := joiner(t, plane, member)
	j.Progress = func(string) {
		if plane.has(t, c) {
			c.Finalizers = nil
			if err := plane.Update(context.Background(), c); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := j.Join(t.Context(), request); err != nil {
		t.Errorf("the name is free: %v", err)
	}
}

// Who interrupts a registration finds nothing of it afterwards.
func TestJoinInterrupted(t *testing.T) {
	plane, member := newCluster(t, withID("id-plane")), newCluster(t, withID("id-m"))
	ctx, cancel := context.WithCancelCause(t.Context())
	j := joiner(t, plane, member)
	j.Member.Probe = func(ctx context.Context, _ Endpoint, _, _ []byte) error {
		cancel(errBoom)
		return context.Cause(ctx)
	}
	if _, err := j.Join(ctx, request); !errors.Is(err, errBoom) {
		t.Errorf("got %v, want %v", err, errBoom)
	}
	nothingLeft(t, "The user has had enough.", plane, member)
}
