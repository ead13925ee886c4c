package registration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/names"
)

var errBoom = errors.New("boom")

const (
	ns   = "karmada-cluster"
	role = "karmada-controller-manager:karmada-m"
)

var both = Access{Cluster: "m", Namespace: ns, Credentials: true, Impersonator: true}

func TestEnsureMemberAccess(t *testing.T) {
	oldToken := func(name, account, uid string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: named(ns, name), Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("old")}}
		s.Annotations = map[string]string{corev1.ServiceAccountNameKey: account, corev1.ServiceAccountUIDKey: uid}
		return s
	}
	account := &corev1.ServiceAccount{ObjectMeta: ours(ns, "karmada-m")}
	account.UID = "sa-uid"
	cases := map[string]struct {
		reason  string
		objects []client.Object
		slow    bool
		fail    error
		access  Access
		token   string
		err     string
		is      error
	}{
		"Empty":            {reason: "All of it is made.", access: both},
		"ImpersonatorOnly": {reason: "An agent may report no more.", access: Access{Cluster: "m", Namespace: ns, Impersonator: true}},
		"CredentialsOnly":  {reason: "Or only these.", access: Access{Cluster: "m", Namespace: ns, Credentials: true}},
		"Nothing":          {reason: "Or nothing.", access: Access{Cluster: "m", Namespace: ns}},
		"Taken":            {reason: "A token that is right is taken.", objects: []client.Object{account, oldToken("karmada-m", "karmada-m", "sa-uid")}, access: both, token: "old"},
		"OldAccount":       {reason: "A token of an account that was made anew is good for nothing.", objects: []client.Object{account, oldToken("karmada-m", "karmada-m", "uid-of-before")}, access: both},
		"WrongAccount":     {reason: "A token of another account is not ours.", objects: []client.Object{account, oldToken("karmada-m", "default", "sa-uid")}, access: both},
		"RoleDrift": {
			reason: "A role with less would break the member.", access: both,
			objects: []client.Object{&rbacv1.ClusterRole{ObjectMeta: named("", role), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}},
		},
		"SubjectDrift": {
			reason: "So would a binding of somebody else.", access: both,
			objects: []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: ours("", role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}}}},
		},
		"RoleRefDrift": {
			reason: "A role reference cannot be changed: the binding is made anew.", access: both,
			objects: []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: ours("", role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}},
		},
		"InTheWay": {
			reason: "Somebody's Secret is not overwritten.", access: both,
			objects: []client.Object{&corev1.Secret{ObjectMeta: named(ns, "karmada-m"), Type: corev1.SecretTypeOpaque}},
			err:     "secret karmada-cluster/karmada-m is in the way",
		},
		"NoController": {
			reason: "Who waits in vain is told for what.", access: Access{Cluster: "m", Namespace: ns, Credentials: true, TokenTimeout: time.Millisecond}, slow: true,
			err: "serviceaccount-token controller",
		},
		"Refused": {reason: "What the server says is passed on, with what was tried.", access: both, fail: errBoom, err: "create Namespace karmada-cluster", is: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.objects...)
			c.slow = tc.slow
			c.fail = func(string, client.Object) error { return tc.fail }
			creds, err := EnsureMemberAccess(t.Context(), NewWriter(c), tc.access)
			check(t, tc.reason, err, tc.err)
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %v in it: %s", err, tc.is, tc.reason)
			}
			if err != nil {
				return
			}
			if got, want := len(creds.Token) > 0, tc.access.Credentials; got != want {
				t.Errorf("there is a token: %t, want %t: %s", got, want, tc.reason)
			}
			if got, want := len(creds.ImpersonatorToken) > 0, tc.access.Impersonator; got != want {
				t.Errorf("there is a token to impersonate with: %t, want %t: %s", got, want, tc.reason)
			}
			if (tc.token != "" || tc.access.Credentials) && (string(creds.Token) == "old") != (tc.token == "old") {
				t.Errorf("token %q: %s", creds.Token, tc.reason)
			}
			checkAccess(t, c, tc.access)

			before := c.writes.Load()
			if _, err := EnsureMemberAccess(t.Context(), NewWriter(c), tc.access); err != nil {
				t.Fatal(err)
			}
			if got := c.writes.Load() - before; got != 0 {
				t.Errorf("%d writes the second time: what is right is not written", got)
			}
		})
	}
}

// checkAccess compares what a member has with the contract (spec: behaviour/01 1.7).
func checkAccess(t *testing.T, c *cluster, a Access) {
	t.Helper()
	if a.Credentials || a.Impersonator {
		n := &corev1.Namespace{ObjectMeta: named("", ns)}
		if !c.has(t, n) || !isSystem(n) {
			t.Errorf("no namespace %s with the mark of the system", ns)
		}
	}
	for account, want := range map[string]bool{"karmada-m": a.Credentials, "karmada-impersonator": a.Impersonator} {
		sa, s := &corev1.ServiceAccount{ObjectMeta: named(ns, account)}, &corev1.Secret{ObjectMeta: named(ns, account)}
		if got := c.has(t, sa) && isSystem(sa); got != want {
			t.Errorf("ServiceAccount %s is there: %t, want %t", account, got, want)
		}
		if got := c.has(t, s) && s.Type == "kubernetes.io/service-account-token" && s.Annotations["kubernetes.io/service-account.name"] == account; got != want {
			t.Errorf("its token is there: %t, want %t", got, want)
		}
	}
	r, b := &rbacv1.ClusterRole{ObjectMeta: named("", role)}, &rbacv1.ClusterRoleBinding{ObjectMeta: named("", role)}
	if got := c.has(t, r) && c.has(t, b); got != a.Credentials {
		t.Fatalf("the role is there: %t, want %t", got, a.Credentials)
	}
	if !a.Credentials {
		return
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(rules, r.Rules); diff != "" || !isSystem(r) {
		t.Errorf("rules (-want +got), or there is no mark:\n%s", diff)
	}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "karmada-m"}}
	if diff := cmp.Diff(subjects, b.Subjects); diff != "" || b.RoleRef.Name != role || !isSystem(b) {
		t.Errorf("subjects (-want +got), or another role %s, or no mark:\n%s", b.RoleRef.Name, diff)
	}
}

func TestEnsureMemberAccessDryRun(t *testing.T) {
	c := newCluster(t)
	w := NewDryWriter(c)
	if _, err := EnsureMemberAccess(t.Context(), w, both); err != nil {
		t.Fatal(err)
	}
	if got := c.writes.Load(); got != 0 {
		t.Errorf("%d writes", got)
	}
	var got []string
	for _, change := range w.Changes() {
		got = append(got, string(change.Action)+" "+w.Describe(change.Object))
	}
	want := []string{
		"create Namespace karmada-cluster",
		"create ServiceAccount karmada-cluster/karmada-impersonator",
		"create ServiceAccount karmada-cluster/karmada-m",
		"create ClusterRole " + role,
		"create ClusterRoleBinding " + role,
		"create Secret karmada-cluster/karmada-impersonator",
		"create Secret karmada-cluster/karmada-m",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndo(t *testing.T) {
	there := &corev1.ServiceAccount{ObjectMeta: ours(ns, names.ImpersonatorServiceAccount)}
	c := newCluster(t, there)
	w := NewWriter(c)
	if _, err := EnsureMemberAccess(t.Context(), w, both); err != nil {
		t.Fatal(err)
	}
	if err := w.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-m")},
		&corev1.Secret{ObjectMeta: named(ns, names.ImpersonatorServiceAccount)}, &rbacv1.ClusterRole{ObjectMeta: named("", role)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", role)},
	} {
		if c.has(t, o) {
			t.Errorf("%s is still there", w.Describe(o))
		}
	}
	if !c.has(t, there) {
		t.Error("what was there before is gone")
	}
}

func TestRemoveMemberAccess(t *testing.T) {
	subject := func(namespace string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: names.ImpersonatorServiceAccount}}
	}
	managed := metav1.ObjectMeta{Name: names.ImpersonatorServiceAccount, Labels: map[string]string{names.ManagedLabel: names.True}}
	cases := map[string]struct {
		reason   string
		before   []client.Object // beside what EnsureMemberAccess makes
		contents []string
		err      error
		gone     []client.Object
		stays    []client.Object
		kept     []string
	}{
		"All": {
			reason: "Nothing is left.",
			before: []client.Object{&rbacv1.ClusterRole{ObjectMeta: managed}, &rbacv1.ClusterRoleBinding{ObjectMeta: managed, Subjects: subject(ns)}},
			gone: []client.Object{
				&corev1.Namespace{ObjectMeta: named("", ns)},
				&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-m")},
				&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-impersonator")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-impersonator")},
				&rbacv1.ClusterRole{ObjectMeta: named("", role)}, &rbacv1.ClusterRoleBinding{ObjectMeta: named("", role)},
				&rbacv1.ClusterRole{ObjectMeta: named("", "karmada-impersonator")}, &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "karmada-impersonator")},
			},
		},
		"NamespaceOfOthers": {
			reason: "A namespace that was there before stays.",
			before: []client.Object{&corev1.Namespace{ObjectMeta: named("", ns)}},
			gone:   []client.Object{&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}, &corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-impersonator")}},
			stays:  []client.Object{&corev1.Namespace{ObjectMeta: named("", ns)}},
			kept:   []string{"it was there before"},
		},
		"NamespaceInUse": {
			reason: "A namespace that holds anything else stays.", contents: []string{"ConfigMap/mine"},
			gone:  []client.Object{&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}},
			stays: []client.Object{&corev1.Namespace{ObjectMeta: named("", ns)}},
			kept:  []string{"there is more in it: ConfigMap/mine"},
		},
		"CannotTell": {
			reason: "Not to know is not to know that there is nothing.", err: errBoom,
			stays: []client.Object{&corev1.Namespace{ObjectMeta: named("", ns)}},
			kept:  []string{"cannot be told"},
		},
		"TwoControlPlanes": {
			reason: "The other one still reaches the member.",
			before: []client.Object{&corev1.ServiceAccount{ObjectMeta: ours(ns, "karmada-other")}},
			gone:   []client.Object{&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}, &rbacv1.ClusterRole{ObjectMeta: named("", role)}},
			stays: []client.Object{
				&corev1.Namespace{ObjectMeta: named("", ns)}, &corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-other")},
				&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-impersonator")}, &corev1.Secret{ObjectMeta: named(ns, "karmada-impersonator")},
			},
			kept: []string{"they also serve ServiceAccount karmada-other"},
		},
		"ImpersonatorOfOthers": {
			reason: "Another control plane may have its ServiceAccounts elsewhere.",
			before: []client.Object{&rbacv1.ClusterRole{ObjectMeta: managed}, &rbacv1.ClusterRoleBinding{ObjectMeta: managed, Subjects: subject("elsewhere")}},
			stays:  []client.Object{&rbacv1.ClusterRole{ObjectMeta: named("", "karmada-impersonator")}, &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "karmada-impersonator")}},
		},
		"Foreign": {
			reason: "What has no mark is not ours.",
			before: []client.Object{&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}},
			stays:  []client.Object{&corev1.ServiceAccount{ObjectMeta: named(ns, "karmada-m")}},
			gone:   []client.Object{&rbacv1.ClusterRole{ObjectMeta: named("", role)}},
			kept:   []string{"ServiceAccount karmada-cluster/karmada-m stays"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.before...)
			if _, err := EnsureMemberAccess(t.Context(), NewWriter(c), both); err != nil {
				t.Fatal(err)
			}
			contents := func(context.Context, string) ([]string, error) { return tc.contents, tc.err }

			dry := NewDryWriter(c)
			before := c.writes.Load()
			if _, err := RemoveMemberAccess(t.Context(), dry, contents, "m", ns); err != nil {
				t.Fatal(err)
			}
			if got := c.writes.Load() - before; got != 0 {
				t.Errorf("a dry run writes %d times", got)
			}

			kept, err := RemoveMemberAccess(t.Context(), NewWriter(c), contents, "m", ns)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range tc.gone {
				if c.has(t, o) {
					t.Errorf("%s is still there: %s", dry.Describe(o), tc.reason)
				}
			}
			for _, o := range tc.stays {
				if !c.has(t, o) {
					t.Errorf("%s is gone: %s", dry.Describe(o), tc.reason)
				}
			}
			if len(kept) != len(tc.kept) {
				t.Errorf("kept %q, want %q: %s", kept, tc.kept, tc.reason)
			}
			for i, want := range tc.kept {
				if i < len(kept) && !strings.Contains(kept[i], want) {
					t.Errorf("kept %q, want %q in it", kept[i], want)
				}
			}
			if _, err := RemoveMemberAccess(t.Context(), NewWriter(c), contents, "m", ns); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}
