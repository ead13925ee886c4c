package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func TestValidateAgentCluster(t *testing.T) {
	cases := map[string]struct{ reason, name, err string }{
		"Usual":        {"Any cluster may have an agent.", "member-3", ""},
		"NoLabel":      {"What cannot be a cluster has none.", "Member", "invalid cluster name(Member): "},
		"Generator":    {"Its agent would have the name of the one who may do everything.", "rbac-generator", "system:karmada:agent:rbac-generator"},
		"Impersonator": {"Its agent would read the token by which users are impersonated on another member.", "a-impersonator", `that of cluster "a"`},
		"Suffix":       {"Only the whole suffix is another cluster's secret.", "impersonator", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			check(t, c.reason, ValidateAgentCluster(c.name), c.err)
			_, err := AgentRights(c.name)
			check(t, c.reason, err, c.err)
			cluster, err := ClusterOfAgent(AgentUser(c.name))
			check(t, c.reason, err, c.err)
			if _, ok := ClusterOfAgentRights(AgentRightsName(c.name)); ok != (c.err == "") {
				t.Errorf("its ClusterRole is recognised: %t: %s", ok, c.reason)
			}
			if err == nil && cluster != c.name {
				t.Errorf("got cluster %q: %s", cluster, c.reason)
			}
		})
	}
	for _, user := range []string{"", "system:admin", "system:karmada:agents:x", "system:node:x"} {
		if _, err := ClusterOfAgent(user); err == nil {
			t.Errorf("user %q is taken for an agent", user)
		}
	}
}

func TestTokenOfUser(t *testing.T) {
	cases := map[string]struct {
		reason, user string
		groups       []string
		want         bool
	}{
		"Token":       {"As the API server says it.", "system:bootstrap:abcdef", []string{"system:bootstrappers", DefaultTokenGroup}, true},
		"OnlyName":    {"A certificate may have any name.", "system:bootstrap:abcdef", []string{"system:authenticated"}, false},
		"OnlyGroup":   {"A certificate may have any group.", "somebody", []string{"system:bootstrappers"}, false},
		"NoID":        {"It is no token's.", "system:bootstrap:", []string{"system:bootstrappers"}, false},
		"StrangeName": {"It is no token's.", "system:bootstrap:abcdefg", []string{"system:bootstrappers"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if id, ok := TokenOfUser(c.user, c.groups); ok != c.want || ok && id != "abcdef" {
				t.Errorf("got %q, %t: %s", id, ok, c.reason)
			}
		})
	}
}

// The contract of names, and the least of rights: a change here is a change of what an agent that is broken into can do.
func TestAgentRights(t *testing.T) {
	objects, err := AgentRights("m")
	if err != nil {
		t.Fatal(err)
	}
	want := `
ClusterRole system:karmada:m:agent
  create cluster.karmada.io/clusters
  get,list,watch,update,patch,delete cluster.karmada.io/clusters [m]
  get,update,patch cluster.karmada.io/clusters/status [m]
  get,list,watch config.karmada.io/resourceinterpretercustomizations
  get,list,watch config.karmada.io/resourceinterpreterwebhookconfigurations
  get /namespaces [karmada-cluster karmada-es-m]
  create certificates.k8s.io/certificatesigningrequests
  get,delete certificates.k8s.io/certificatesigningrequests [karmada-agent.m]
ClusterRoleBinding system:karmada:m:agent = ClusterRole system:karmada:m:agent for User system:karmada:agent:m
Namespace karmada-es-m
Role karmada-cluster/system:karmada:m:agent-secret
  create /secrets
  get,update,patch /secrets [m m-impersonator]
  create coordination.k8s.io/leases
  get,update,patch coordination.k8s.io/leases [m]
RoleBinding karmada-cluster/system:karmada:m:agent-secret = Role system:karmada:m:agent-secret for User system:karmada:agent:m
Role karmada-system/system:karmada:m:agent-lease
  create,patch /events
  create,patch events.k8s.io/events
  create coordination.k8s.io/leases
  get,update,patch coordination.k8s.io/leases [karmada-agent-m]
RoleBinding karmada-system/system:karmada:m:agent-lease = Role system:karmada:m:agent-lease for User system:karmada:agent:m
Role default/system:karmada:m:agent-event
  create,patch /events
  create,patch events.k8s.io/events
RoleBinding default/system:karmada:m:agent-event = Role system:karmada:m:agent-event for User system:karmada:agent:m
Role karmada-es-m/system:karmada:m:agent-work
  create,patch /events
  create,patch events.k8s.io/events
  get,list,watch,create,update,patch,delete work.karmada.io/works
  get,update,patch work.karmada.io/works/status
RoleBinding karmada-es-m/system:karmada:m:agent-work = Role system:karmada:m:agent-work for User system:karmada:agent:m
`
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(printRights(t, objects))); diff != "" {
		t.Errorf("rights of an agent (-want +got):\n%s", diff)
	}
}

func printRights(t *testing.T, objects []client.Object) string {
	t.Helper()
	var b strings.Builder
	rules := func(rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			fmt.Fprintf(&b, "  %s %s/%s", strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","))
			if len(r.ResourceNames) > 0 {
				fmt.Fprintf(&b, " %v", r.ResourceNames)
			}
			b.WriteString("\n")
		}
	}
	line := func(kind string, o client.Object) {
		b.WriteString(kind + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		if !isSystem(o) {
			t.Errorf("%s %s has not the label of the system", kind, o.GetName())
		}
	}
	binding := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		fmt.Fprintf(&b, " = %s %s for", ref.Kind, ref.Name)
		for _, s := range subjects {
			fmt.Fprintf(&b, " %s %s", s.Kind, s.Name)
		}
		b.WriteString("\n")
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			line("Namespace", o)
			b.WriteString("\n")
		case *rbacv1.ClusterRole:
			line("ClusterRole", o)
			b.WriteString("\n")
			rules(o.Rules)
		case *rbacv1.Role:
			line("Role", o)
			b.WriteString("\n")
			rules(o.Rules)
		case *rbacv1.ClusterRoleBinding:
			line("ClusterRoleBinding", o)
			binding(o.RoleRef, o.Subjects)
		case *rbacv1.RoleBinding:
			line("RoleBinding", o)
			binding(o.RoleRef, o.Subjects)
		default:
			t.Errorf("%T is no access rule", o)
		}
	}
	return b.String()
}

// A plane is a fake API server, and the writes that it has seen.
type plane struct {
	client.Client
	writes []string
}

func newPlane(t *testing.T, objects ...client.Object) *plane {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{}
	note := func(verb string, o client.Object) {
		p.writes = append(p.writes, verb+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	p.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			note("update", o)
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete", o)
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	return p
}

func (p *plane) role(t *testing.T, cluster string) *rbacv1.ClusterRole {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := p.Get(t.Context(), client.ObjectKey{Name: AgentRightsName(cluster)}, &role); err != nil {
		t.Fatal(err)
	}
	return &role
}

func TestGrantAgentRights(t *testing.T) {
	grant := Grant{At: noon, TokenID: someID}
	owner := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid-1"}}
	rights, err := AgentRights("m")
	if err != nil {
		t.Fatal(err)
	}
	given := func(change func([]client.Object)) []client.Object {
		var copies []client.Object
		for _, o := range rights {
			o, _ := o.DeepCopyObject().(client.Object)
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				grant.note(role)
			}
			copies = append(copies, o)
		}
		if change != nil {
			change(copies)
		}
		return copies
	}
	const first = "system:karmada:m:agent"
	cases := map[string]struct {
		reason string
		there  []client.Object
		owner  *clusterv1alpha1.Cluster
		grant  *Grant // nil mends
		writes []string
		want   Grant
		err    string
	}{
		"New": {
			reason: "Everything is made, the note of the grant first.", grant: &grant, want: grant,
			writes: []string{
				"create " + first, "create " + first, "create karmada-es-m",
				"create karmada-cluster/" + first + "-secret", "create karmada-cluster/" + first + "-secret",
				"create karmada-system/" + first + "-lease", "create karmada-system/" + first + "-lease",
				"create default/" + first + "-event", "create default/" + first + "-event",
				"create karmada-es-m/" + first + "-work", "create karmada-es-m/" + first + "-work",
			},
		},
		"Again": {reason: "What is right is not written.", there: given(nil), grant: &grant, want: grant},
		"OtherToken": {
			reason: "The grant is that of the last token.", there: given(nil), grant: &Grant{At: noon.Add(time.Hour), TokenID: "ghijkl"},
			writes: []string{"update " + first}, want: Grant{At: noon.Add(time.Hour), TokenID: "ghijkl"},
		},
		"NamedToken": {
			reason: "What kind of token it was is noted too.", there: given(nil), grant: &Grant{At: noon, TokenID: someID, Named: true},
			writes: []string{"update " + first}, want: Grant{At: noon, TokenID: someID, Named: true},
		},
		"NoToken": {
			reason: "An administrator's request has none, and ends the one before.", there: given(nil), grant: &Grant{At: noon.Add(time.Hour)},
			writes: []string{"update " + first}, want: Grant{At: noon.Add(time.Hour)},
		},
		"Drift": {
			reason: "Rules that were widened, and a subject that was added, go.",
			there: given(func(all []client.Object) {
				all[0].(*rbacv1.ClusterRole).Rules = []rbacv1.PolicyRule{rule("*", "*", []string{"*"})}
				all[1].(*rbacv1.ClusterRoleBinding).Subjects = append(all[1].(*rbacv1.ClusterRoleBinding).Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
			}),
			writes: []string{"update " + first, "update " + first}, want: grant,
		},
		"OtherRole": {
			reason: "What a binding is for cannot be changed: it is made anew.",
			there: given(func(all []client.Object) {
				all[1].(*rbacv1.ClusterRoleBinding).RoleRef.Name = "cluster-admin"
			}),
			writes: []string{"delete " + first, "create " + first}, want: grant,
		},
		"ForeignNamespace": {
			reason: "A namespace that is there stays as it is.",
			there: given(func(all []client.Object) {
				all[2].SetLabels(nil)
			}),
			want: grant,
		},
		"Tie": {
			reason: "All but the namespace go with the Cluster.", there: given(nil), owner: owner, want: grant,
			writes: []string{
				"update " + first, "update " + first,
				"update karmada-cluster/" + first + "-secret", "update karmada-cluster/" + first + "-secret",
				"update karmada-system/" + first + "-lease", "update karmada-system/" + first + "-lease",
				"update default/" + first + "-event", "update default/" + first + "-event",
				"update karmada-es-m/" + first + "-work", "update karmada-es-m/" + first + "-work",
			},
		},
		"Leaving": {
			reason: "Roles that are made in a namespace that goes would go too.",
			there: given(func(all []client.Object) {
				all[2].SetFinalizers([]string{"x/y"})
				all[2].SetDeletionTimestamp(&metav1.Time{Time: noon})
			}),
			want: grant, err: "Namespace karmada-es-m is being removed",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, c.there...)
			w := NewWriter(p)
			var err error
			if c.grant != nil {
				err = GrantAgentRights(t.Context(), w, "m", c.owner, *c.grant)
			} else {
				err = MendAgentRights(t.Context(), w, "m", c.owner)
			}
			check(t, c.reason, err, c.err)
			if diff := cmp.Diff(c.writes, p.writes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			role := p.role(t, "m")
			if got, ok := GrantOf(role); !ok || got != c.want {
				t.Errorf("got grant %v, want %v: %s", got, c.want, c.reason)
			}
			if uid, tied := OwnerOfAgentRights(role); c.err == "" && tied != (c.owner != nil) || tied && uid != c.owner.UID {
				t.Errorf("it goes with %q: %s", uid, c.reason)
			}
			if c.err != "" {
				return
			}
			for _, o := range rights {
				found := bare(o)
				if err := p.Get(t.Context(), client.ObjectKeyFromObject(o), found); err != nil {
					t.Errorf("%v: %s", err, c.reason)
				}
				if err := mend(found, o); err != nil {
					t.Errorf("%s: %v: %s", o.GetName(), err, c.reason)
				}
			}
		})
	}
}

// A client asks no server where a kind is served: one that it does not know could be neither given nor removed.
func TestClientKnowsAgentRights(t *testing.T) {
	c, err := NewClient(&rest.Config{Host: "https://192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	rights, err := AgentRights("m")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rights {
		if namespaced, err := c.IsObjectNamespaced(o); err != nil || namespaced != (o.GetNamespace() != "") {
			t.Errorf("%T in a namespace: %t, %v", o, namespaced, err)
		}
	}
}

func TestRemoveAgentRights(t *testing.T) {
	rights, err := AgentRights("m")
	if err != nil {
		t.Fatal(err)
	}
	rights[0].SetLabels(nil) // somebody else's
	p := newPlane(t, rights...)
	for range 2 {
		if err := RemoveAgentRights(t.Context(), NewWriter(p), "m"); err != nil {
			t.Fatal(err)
		}
	}
	p.role(t, "m")
	if err := p.Get(t.Context(), client.ObjectKey{Name: "karmada-es-m"}, &corev1.Namespace{}); err != nil {
		t.Errorf("the execution namespace, which holds Works: %v", err)
	}
	if len(p.writes) != len(rights)-2 || slices.ContainsFunc(p.writes, func(w string) bool { return !strings.HasPrefix(w, "delete ") }) {
		t.Errorf("want each role and binding deleted once, but not the one that is not ours: %v", p.writes)
	}
}

func TestEndGrant(t *testing.T) {
	token := func(cluster string) *corev1.Secret {
		made := Token{ID: someID, Secret: someSecret, Usages: TokenUsages(), Groups: []string{DefaultTokenGroup}}
		if cluster != "" {
			made.Groups, made.Cluster = []string{ClusterTokenGroup(cluster), NamedClusterTokenGroup}, cluster
		}
		return made.ToSecret()
	}
	role := func(g Grant) *rbacv1.ClusterRole {
		role := &rbacv1.ClusterRole{ObjectMeta: systemMeta("", AgentRightsName("m"))}
		g.note(role)
		return role
	}
	cases := map[string]struct {
		reason string
		there  []client.Object
		writes []string
	}{
		"Used":    {"A token for the cluster is used up.", []client.Object{role(Grant{At: noon, TokenID: someID}), token("m")}, []string{"delete kube-system/bootstrap-token-abcdef", "update system:karmada:m:agent"}},
		"Classic": {"A classic token may be for more clusters.", []client.Object{role(Grant{At: noon, TokenID: someID}), token("")}, []string{"update system:karmada:m:agent"}},
		"Another": {"A token of that id is for another cluster.", []client.Object{role(Grant{At: noon, TokenID: someID}), token("n")}, []string{"update system:karmada:m:agent"}},
		"Expired": {"The token is gone.", []client.Object{role(Grant{At: noon, TokenID: someID})}, []string{"update system:karmada:m:agent"}},
		"Ended":   {"There is nothing left to end.", []client.Object{role(Grant{At: noon}), token("m")}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, c.there...)
			check(t, c.reason, EndGrant(t.Context(), NewWriter(p), "m"), "")
			if diff := cmp.Diff(c.writes, p.writes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if g, ok := GrantOf(p.role(t, "m")); !ok || g.TokenID != "" {
				t.Errorf("got %v: %s", g, c.reason)
			}
		})
	}
	if err := EndGrant(t.Context(), NewWriter(newPlane(t)), "m"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v for rights that are gone", err)
	}
}
