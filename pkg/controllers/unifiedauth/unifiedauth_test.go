package unifiedauth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

// A rule reads "group resource name,name".
func rule(text string) rbacv1.PolicyRule {
	fields := strings.Fields(text)
	r := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{fields[0]}, Resources: []string{fields[1]}}
	if len(fields) > 2 {
		r.ResourceNames = strings.Split(fields[2], ",")
	}
	return r
}

func role(name string, rules ...string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, text := range rules {
		r.Rules = append(r.Rules, rule(text))
	}
	return r
}

func TestAccess(t *testing.T) {
	cases := map[string]struct {
		reason string
		rules  []string
		want   access
	}{
		"All":           {"Without names all clusters are meant.", []string{"cluster.karmada.io clusters/proxy"}, access{all: true}},
		"Named":         {"With names, these.", []string{"cluster.karmada.io clusters/proxy m1,m2"}, access{clusters: []string{"m1", "m2"}}},
		"Several":       {"Rules add up.", []string{"cluster.karmada.io clusters/proxy m1", "cluster.karmada.io clusters/proxy m2"}, access{clusters: []string{"m1", "m2"}}},
		"AnyGroup":      {"An administrator's rule.", []string{"* *"}, access{all: true}},
		"AnyResource":   {"Everything of the group.", []string{"cluster.karmada.io *"}, access{all: true}},
		"AnyProxy":      {"Every proxy.", []string{"* */proxy m1"}, access{clusters: []string{"m1"}}},
		"AllByName":     {"The name * is how the proxy calls all clusters.", []string{"cluster.karmada.io clusters/proxy *"}, access{all: true}},
		"Search":        {"The search proxy reaches every cluster, whatever the name.", []string{"search.karmada.io proxying/proxy x"}, access{all: true}},
		"SearchAll":     {"So does everything of its group.", []string{"search.karmada.io *"}, access{all: true}},
		"OtherResource": {"Reading Clusters is not reaching them.", []string{"cluster.karmada.io clusters"}, access{}},
		"OtherGroup":    {"Nor is the proxy of another group.", []string{"example.com clusters/proxy"}, access{}},
		"Nothing":       {"A role without rules.", nil, access{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, accessOf(role("r", tc.rules...)), cmp.AllowUnexported(access{})); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// subjects read "kind:name" or "kind:namespace/name".
func subjects(texts ...string) []rbacv1.Subject {
	var all []rbacv1.Subject
	for _, text := range texts {
		kind, name, _ := strings.Cut(text, ":")
		s := rbacv1.Subject{Kind: kind, Name: name}
		if namespace, account, ok := strings.Cut(name, "/"); ok {
			s.Namespace, s.Name = namespace, account
		}
		all = append(all, s)
	}
	return all
}

func bind(name, role string, texts ...string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects(texts...),
	}
}

func TestImpersonation(t *testing.T) {
	impersonate := func(resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names}
	}
	cases := map[string]struct {
		reason   string
		subjects []rbacv1.Subject
		want     []rbacv1.PolicyRule
	}{
		"None":  {"Nobody may, nobody can be.", nil, nil},
		"Users": {"Sorted, each once; kinds of which there are none are left out.", subjects("User:b", "User:a", "User:b"), []rbacv1.PolicyRule{impersonate("users", "a", "b")}},
		"All": {
			"One rule for each kind.", subjects("Group:g", "ServiceAccount:n/s", "User:u"),
			[]rbacv1.PolicyRule{
				impersonate("users", "u"), impersonate("serviceaccounts", "s"),
				impersonate("groups", "g", "system:serviceaccounts", "system:serviceaccounts:n"),
			},
		},
		"ServiceAccounts": {
			"Whoever comes with a token of one is in its groups, which are impersonated too: those of the bound ones only, each once.",
			subjects("ServiceAccount:n/s", "ServiceAccount:m/s", "ServiceAccount:n/t", "Group:system:serviceaccounts:n"),
			[]rbacv1.PolicyRule{
				impersonate("serviceaccounts", "s", "t"),
				impersonate("groups", "system:serviceaccounts", "system:serviceaccounts:m", "system:serviceaccounts:n"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, impersonation(tc.subjects)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"},
		Spec:       clusterv1alpha1.ClusterSpec{ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name + "-impersonator"}},
	}
}

func newClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

// shipped returns the rules and subjects that the two Works of a cluster carry.
func shipped(t *testing.T, c client.Client, cluster string) (rules, who []string) {
	t.Helper()
	for _, name := range []string{"karmada-impersonator-7cbb6bd5c9", "karmada-impersonator-84f8c8f8c6"} { // spec: behaviour/14 14.1
		w := &workv1alpha1.Work{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-" + cluster, Name: name}, w); err != nil {
			t.Fatal(err)
		}
		if w.Labels["karmada.io/system"] != "true" || len(w.OwnerReferences) != 1 || w.OwnerReferences[0].Kind != "Cluster" || w.OwnerReferences[0].UID != "u" {
			t.Errorf("%s: labels %v, owners %v", name, w.Labels, w.OwnerReferences)
		}
		var manifest struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
			Subjects          []rbacv1.Subject    `json:"subjects"`
			RoleRef           rbacv1.RoleRef      `json:"roleRef"`
		}
		if err := json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest); err != nil {
			t.Fatal(err)
		}
		if manifest.Name != "karmada-impersonator" || manifest.Labels["karmada.io/system"] != "true" || manifest.Labels["karmada.io/managed"] != "true" {
			t.Errorf("%s: %s %s, labels %v", name, manifest.Kind, manifest.Name, manifest.Labels)
		}
		for _, r := range manifest.Rules {
			rules = append(rules, strings.Join(r.Resources, ",")+": "+strings.Join(r.ResourceNames, ","))
		}
		for _, s := range manifest.Subjects {
			who = append(who, s.Kind+" "+s.Namespace+"/"+s.Name+" has "+manifest.RoleRef.Name)
		}
	}
	return rules, who
}

func TestReconcile(t *testing.T) {
	c := newClient(t, interceptor.Funcs{}, cluster("m1"),
		role("one", "cluster.karmada.io clusters/proxy m1"), role("other", "cluster.karmada.io clusters/proxy m2"), role("admin", "* *"), role("reader", "cluster.karmada.io clusters"),
		bind("a", "one", "User:jane"), bind("b", "other", "User:joe"), bind("c", "admin", "Group:system:masters"), bind("d", "reader", "User:jim"), bind("e", "ghost", "User:jack"),
	)
	record := events.NewFakeRecorder(10)
	r := &Reconciler{client: c, record: record}
	if _, err := r.Reconcile(t.Context(), cluster("m1")); err != nil {
		t.Fatal(err)
	}
	rules, who := shipped(t, c, "m1")
	if diff := cmp.Diff([]string{"users: jane", "groups: system:masters"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ServiceAccount karmada-cluster/karmada-impersonator has karmada-impersonator"}, who); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	if e := <-record.Events; !strings.HasPrefix(e, "Normal SyncImpersonationConfigSucceed ") {
		t.Errorf("event %q", e)
	}

	if _, err := r.Reconcile(t.Context(), cluster("m1")); err != nil {
		t.Fatal(err)
	}
	if len(record.Events) > 0 {
		t.Errorf("nothing has changed, yet: %s", <-record.Events)
	}

	if err := c.Delete(t.Context(), bind("a", "one")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), cluster("m1")); err != nil {
		t.Fatal(err)
	}
	if rules, _ := shipped(t, c, "m1"); !slices.Equal(rules, []string{"groups: system:masters"}) {
		t.Errorf("who may not any more must not be impersonated any more: %q", rules)
	}
}

func TestReconcileOthers(t *testing.T) {
	deleted := cluster("m1")
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	without := cluster("m1")
	without.Spec.ImpersonatorSecretRef = nil
	boom := errors.New("boom")
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		fail    error
		retry   bool
		event   bool
		err     error
	}{
		"Deleted":        {"A cluster that goes gets nothing any more.", deleted, boom, false, false, nil},
		"NoImpersonator": {"Nor one that cannot impersonate.", without, boom, false, false, nil},
		"NoNamespace":    {"The namespace of a new cluster is a moment away: no reason to complain.", cluster("m1"), apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), true, false, nil},
		"Fails":          {"What fails is told, and tried again.", cluster("m1"), boom, false, true, boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.fail }})
			record := events.NewFakeRecorder(10)
			result, err := (&Reconciler{client: c, record: record}).Reconcile(t.Context(), tc.cluster)
			if !errors.Is(err, tc.err) || (result.RequeueAfter > 0) != tc.retry || (len(record.Events) > 0) != tc.event {
				t.Errorf("result %+v, %d events, %v\n%s", result, len(record.Events), err, tc.reason)
			}
		})
	}
}

func TestTriggers(t *testing.T) {
	m := mapper{client: newClient(t, interceptor.Funcs{}, cluster("m1"), cluster("m2"), role("one", "cluster.karmada.io clusters/proxy m1,m3"), role("all", "* *"), role("none"))}
	cases := map[string]struct {
		reason string
		object client.Object
		want   []string
	}{
		"Role":        {"The clusters that a role names, if they exist.", role("one", "cluster.karmada.io clusters/proxy m1,m3"), []string{"m1"}},
		"Binding":     {"A binding counts for the clusters of its role.", bind("b", "one"), []string{"m1"}},
		"BindingAll":  {"Which may be all.", bind("b", "all"), []string{"m1", "m2"}},
		"BindingNone": {"Or none.", bind("b", "none"), nil},
		"NoRole":      {"A binding of a role that is not there says nothing.", bind("b", "ghost"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := m.ofRole(t.Context(), tc.object)
			if _, ok := tc.object.(*rbacv1.ClusterRoleBinding); ok {
				requests = m.ofBinding(t.Context(), tc.object)
			}
			var got []string
			for _, r := range requests {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPredicates(t *testing.T) {
	other := cluster("m1")
	other.Spec.ImpersonatorSecretRef.Namespace = "elsewhere"
	posted := cluster("m1")
	posted.Status.KubernetesVersion = "v1"
	reader, proxy := role("r", "cluster.karmada.io clusters"), role("r", "cluster.karmada.io clusters/proxy")
	cases := map[string]struct {
		reason string
		passed bool
		want   bool
	}{
		"Status":       {"The status of a cluster changes all the time.", impersonatorChanged().Update(event.UpdateEvent{ObjectOld: cluster("m1"), ObjectNew: posted}), false},
		"Impersonator": {"The impersonator rarely.", impersonatorChanged().Update(event.UpdateEvent{ObjectOld: cluster("m1"), ObjectNew: other}), true},
		"New":          {"A new cluster.", impersonatorChanged().Create(event.CreateEvent{Object: cluster("m1")}), true},
		"NoMore":       {"A role that lets nobody in any more.", accessChanged().Update(event.UpdateEvent{ObjectOld: proxy, ObjectNew: reader}), true},
		"Now":          {"One that now does.", accessChanged().Update(event.UpdateEvent{ObjectOld: reader, ObjectNew: proxy}), true},
		"Never":        {"One that has nothing to do with it.", accessChanged().Create(event.CreateEvent{Object: reader}), false},
		"RoleGone":     {"One that is deleted.", accessChanged().Delete(event.DeleteEvent{Object: proxy}), true},
	}
	for name, tc := range cases {
		if tc.passed != tc.want {
			t.Errorf("%s: passes: %v\n%s", name, tc.passed, tc.reason)
		}
	}
}
