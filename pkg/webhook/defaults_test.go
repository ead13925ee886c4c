package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// fixed are Defaults that say what they will say.
func fixed() Defaults {
	return Defaults{NewID: func() string { return "new-id" }, NewSuffix: func() string { return "abcde" }}
}

func policy(changes ...func(*policyv1alpha1.PropagationPolicy)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop"}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestPropagationPolicySpec(t *testing.T) {
	type spec = policyv1alpha1.PropagationSpec
	cases := map[string]struct {
		reason    string
		spec      spec
		want      spec
		inCluster *spec // of a ClusterPropagationPolicy, when it differs
	}{
		"Complete": {
			reason: "What is there stays.",
			spec: spec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other"}},
				Placement: policyv1alpha1.Placement{
					SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByLabel: "rack", MinGroups: 2, MaxGroups: 3}},
					ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"},
				},
				Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(5))}},
			},
			want: spec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other"}},
				Placement: policyv1alpha1.Placement{
					SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByLabel: "rack", MinGroups: 2, MaxGroups: 3}},
					ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Aggregated"},
				},
				Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(5))}},
			},
		},
		"Namespace": {
			reason:    "A policy selects in its own namespace; one of all namespaces, in all of them.",
			spec:      spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "x"}}},
			want:      spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "a", Namespace: "shop"}, {APIVersion: "v1", Kind: "Secret", Namespace: "x"}}},
			inCluster: &spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "x"}}},
		},
		"Spread": {
			reason: "What to spread by is clusters, and one group is the least.",
			spec: spec{Placement: policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{}, {SpreadByField: "region", MaxGroups: 2}, {SpreadByLabel: "rack"}, {MinGroups: 4},
			}}},
			want: spec{Placement: policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{
				{SpreadByField: "cluster", MinGroups: 1}, {SpreadByField: "region", MinGroups: 1, MaxGroups: 2}, {SpreadByLabel: "rack", MinGroups: 1}, {SpreadByField: "cluster", MinGroups: 4},
			}}},
		},
		"ServiceImport": {
			reason: "Its endpoints have to go along.",
			spec:   spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Namespace: "shop"}}},
			want:   spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Namespace: "shop"}}, PropagateDeps: true},
		},
		"OtherServiceImport": {
			reason: "Another kind of that name is something else.",
			spec:   spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.com/v1alpha1", Kind: "ServiceImport", Namespace: "shop"}}},
			want:   spec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.com/v1alpha1", Kind: "ServiceImport", Namespace: "shop"}}},
		},
		"Divided": {
			reason: "Replicas that are divided are by weight.",
			spec:   spec{Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided"}}},
			want:   spec{Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Divided", ReplicaDivisionPreference: "Weighted"}}},
		},
		"Duplicated": {
			reason: "Replicas that are not divided need no preference.",
			spec:   spec{Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Duplicated"}}},
			want:   spec{Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: "Duplicated"}}},
		},
		"Gracefully": {
			reason: "Whoever waits, waits ten minutes.",
			spec:   spec{Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Gracefully"}}},
			want:   spec{Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(600))}}},
		},
		"Directly": {
			reason: "Nobody waits.",
			spec:   spec{Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Directly"}}},
			want:   spec{Failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Directly"}}},
		},
		"ClusterFailover": {
			reason: "Failover of clusters has no such wait.",
			spec:   spec{Failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: "Gracefully"}}},
			want:   spec{Failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: "Gracefully"}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := policy(func(p *policyv1alpha1.PropagationPolicy) { p.Spec = *c.spec.DeepCopy() })
			if err := fixed().PropagationPolicy(nil, p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, p.Spec); diff != "" {
				t.Errorf("PropagationPolicy: %s\n(-want +got):\n%s", c.reason, diff)
			}
			again := p.DeepCopy()
			if err := fixed().PropagationPolicy(p, again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, again); diff != "" {
				t.Errorf("once is enough (-once +twice):\n%s", diff)
			}

			want := c.want
			if c.inCluster != nil {
				want = *c.inCluster
			}
			cpp := &policyv1alpha1.ClusterPropagationPolicy{Spec: *c.spec.DeepCopy()}
			if err := fixed().ClusterPropagationPolicy(nil, cpp); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, cpp.Spec); diff != "" {
				t.Errorf("ClusterPropagationPolicy: %s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// a meta is what identity is about.
type meta struct {
	ID         string
	Finalizers []string
	Deleted    bool
}

func (m *meta) into(o metav1.Object, label string) {
	if m.ID != "" {
		o.SetLabels(map[string]string{label: m.ID, "theirs": "x"})
	}
	o.SetFinalizers(m.Finalizers)
	if m.Deleted {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
	}
}

func metaOf(o metav1.Object, label string) meta {
	return meta{o.GetLabels()[label], o.GetFinalizers(), o.GetDeletionTimestamp() != nil}
}

func TestIdentityOfPolicies(t *testing.T) {
	ours := []string{names.PropagationPolicyFinalizer}
	cases := map[string]struct {
		reason string
		was    *meta
		now    meta
		want   meta
		err    string
	}{
		"New":            {"Claims need an identity, and an end.", nil, meta{}, meta{ID: "new-id", Finalizers: ours}, ""},
		"Copy":           {"A policy that was made from another does not share its claims.", nil, meta{ID: "other"}, meta{ID: "new-id", Finalizers: ours}, ""},
		"OtherEnds":      {"Finalizers of others stay.", nil, meta{Finalizers: []string{"a/b"}}, meta{ID: "new-id", Finalizers: []string{"a/b", ours[0]}}, ""},
		"Same":           {"An update keeps it.", &meta{ID: "id", Finalizers: ours}, meta{ID: "id", Finalizers: ours}, meta{ID: "id", Finalizers: ours}, ""},
		"Forgotten":      {"Replacing a policy from a file loses no claim.", &meta{ID: "id", Finalizers: ours}, meta{Finalizers: ours}, meta{ID: "id", Finalizers: ours}, ""},
		"Replaced":       {"Nor does it lose the end of its claims.", &meta{ID: "id", Finalizers: append([]string{"a/b"}, ours...)}, meta{}, meta{ID: "id", Finalizers: ours}, ""},
		"Changed":        {"Under another identity its claims would be nobody's.", &meta{ID: "id"}, meta{ID: "other"}, meta{}, `from "id" to "other"`},
		"Released":       {"The controller takes its finalizer off.", &meta{ID: "id", Finalizers: ours, Deleted: true}, meta{ID: "id", Deleted: true}, meta{ID: "id", Deleted: true}, ""},
		"Unlocked":       {"So may a user who knows what it is for.", &meta{ID: "id", Finalizers: ours}, meta{ID: "id"}, meta{ID: "id"}, ""},
		"Early":          {"A policy from before there was this webhook gets both.", &meta{}, meta{}, meta{ID: "new-id", Finalizers: ours}, ""},
		"EarlyDeleted":   {"Nothing can hold back what is being deleted.", &meta{Deleted: true, Finalizers: []string{"a/b"}}, meta{Deleted: true}, meta{Deleted: true}, ""},
		"ChangedDeleted": {"Nothing can hold back the end of a finalizer, and what was claimed is found to the last.", &meta{ID: "id", Finalizers: ours, Deleted: true}, meta{ID: "other", Deleted: true}, meta{ID: "id", Deleted: true}, ""},
		"EarlyGivenOne":  {"An identity that a user gives, such as from a backup, is as good.", &meta{}, meta{ID: "id"}, meta{ID: "id", Finalizers: ours}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var was *policyv1alpha1.PropagationPolicy
			if c.was != nil {
				was = policy()
				c.was.into(was, names.PropagationPolicyIDLabel)
			}
			p := policy()
			c.now.into(p, names.PropagationPolicyIDLabel)
			err := fixed().PropagationPolicy(was, p)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q: %s", err, c.err, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, metaOf(p, names.PropagationPolicyIDLabel)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}

	p := &policyv1alpha1.ClusterPropagationPolicy{}
	if err := fixed().ClusterPropagationPolicy(nil, p); err != nil {
		t.Fatal(err)
	}
	want := meta{ID: "new-id", Finalizers: []string{names.ClusterPropagationPolicyFinalizer}}
	if diff := cmp.Diff(want, metaOf(p, names.ClusterPropagationPolicyIDLabel)); diff != "" {
		t.Errorf("the other scope has a label and a finalizer of its own (-want +got):\n%s", diff)
	}
}

func TestIdentityOfServices(t *testing.T) {
	const label = names.MultiClusterServiceIDLabel
	cases := map[string]struct {
		reason string
		was    *meta
		now    meta
		want   meta
		err    string
	}{
		"New":       {"What belongs to it is known by it.", nil, meta{}, meta{ID: "new-id"}, ""},
		"Given":     {"One that is there stays.", nil, meta{ID: "id"}, meta{ID: "id"}, ""},
		"Early":     {"A service from before there was this webhook gets one.", &meta{}, meta{}, meta{ID: "new-id"}, ""},
		"Same":      {"An update keeps it.", &meta{ID: "id"}, meta{ID: "id"}, meta{ID: "id"}, ""},
		"Forgotten": {"Replacing it from a file does not lose what belongs to it.", &meta{ID: "id"}, meta{}, meta{ID: "id"}, ""},
		"Changed":   {"What belongs to it would be nobody's.", &meta{ID: "id"}, meta{ID: "other"}, meta{}, "cannot be changed"},
		"Deleted":   {"What goes needs none.", &meta{Deleted: true}, meta{Deleted: true}, meta{Deleted: true}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var was *metav1.PartialObjectMetadata
			if c.was != nil {
				was = &metav1.PartialObjectMetadata{}
				c.was.into(was, label)
			}
			s := &metav1.PartialObjectMetadata{}
			c.now.into(s, label)
			err := fixed().MultiClusterService(was, s)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q: %s", err, c.err, c.reason)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, metaOf(s, label)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestIdentityOfBindings(t *testing.T) {
	type apply = func(was, now *metav1.PartialObjectMetadata) error
	for label, apply := range map[string]apply{
		names.ResourceBindingIDLabel:        fixed().ResourceBinding,
		names.ClusterResourceBindingIDLabel: fixed().ClusterResourceBinding,
	} {
		cases := map[string]struct {
			reason    string
			now, want meta
		}{
			"New":   {"What a user makes gets one.", meta{}, meta{ID: "new-id"}},
			"Given": {"A controller has given one, and knows it.", meta{ID: "id"}, meta{ID: "id"}},
		}
		for name, c := range cases {
			t.Run(label+"/"+name, func(t *testing.T) {
				b := &metav1.PartialObjectMetadata{}
				c.now.into(b, label)
				if err := apply(nil, b); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, metaOf(b, label)); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
				}
			})
		}
	}
}

func TestOverridePolicy(t *testing.T) {
	p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret"}, {APIVersion: "v1", Kind: "Secret", Namespace: "x"}}
	if err := fixed().OverridePolicy(nil, p); err != nil {
		t.Fatal(err)
	}
	want := []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Namespace: "shop"}, {APIVersion: "v1", Kind: "Secret", Namespace: "x"}}
	if diff := cmp.Diff(want, p.Spec.ResourceSelectors); diff != "" {
		t.Errorf("a policy selects in its own namespace (-want +got):\n%s", diff)
	}
	if len(p.Labels)+len(p.Finalizers) > 0 {
		t.Errorf("an override policy claims nothing, and needs neither identity nor finalizer: %v %v", p.Labels, p.Finalizers)
	}
}

func work(manifests ...string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "w"}}
	for _, m := range manifests {
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
	}
	return w
}

func TestWork(t *testing.T) {
	w := work(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"d","uid":"u","resourceVersion":"3","labels":{"app":"web"}},"data":{"big":"x"},"status":{}}`,
		`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"d"},"spec":{"ttlSecondsAfterFinished":10,"completions":9007199254740993}}`,
	)
	if err := fixed().Work(nil, w); err != nil {
		t.Fatal(err)
	}
	if id := w.Labels[names.WorkIDLabel]; id != "new-id" {
		t.Errorf("identity %q", id)
	}
	want := []string{`{
		"apiVersion": "v1", "kind": "ConfigMap", "data": {"big": "x"},
		"metadata": {
			"name": "c", "namespace": "d",
			"labels": {"app": "web", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "new-id"},
			"annotations": {
				"resourcetemplate.karmada.io/managed-annotations": "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/name,work.karmada.io/namespace",
				"resourcetemplate.karmada.io/managed-labels": "app,karmada.io/managed,work.karmada.io/permanent-id",
				"resourcetemplate.karmada.io/uid": "u",
				"work.karmada.io/name": "w", "work.karmada.io/namespace": "karmada-es-m1"
			}
		}
	}`, `{
		"apiVersion": "batch/v1", "kind": "Job", "spec": {"completions": 9007199254740993},
		"metadata": {
			"name": "j", "namespace": "d",
			"labels": {"karmada.io/managed": "true", "work.karmada.io/permanent-id": "new-id"},
			"annotations": {
				"resourcetemplate.karmada.io/managed-annotations": "resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,work.karmada.io/name,work.karmada.io/namespace",
				"resourcetemplate.karmada.io/managed-labels": "karmada.io/managed,work.karmada.io/permanent-id",
				"work.karmada.io/name": "w", "work.karmada.io/namespace": "karmada-es-m1"
			}
		}
	}`}
	for i, m := range w.Spec.Workload.Manifests {
		if diff := cmp.Diff(indented(t, want[i]), indented(t, string(m.Raw))); diff != "" {
			t.Errorf("manifest %d is such as our controllers write them (-want +got):\n%s", i, diff)
		}
	}

	once := w.DeepCopy()
	if err := fixed().Work(once, w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, w); diff != "" {
		t.Errorf("once is enough (-once +twice):\n%s", diff)
	}

	forgetful := work(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	if err := fixed().Work(once, forgetful); err != nil {
		t.Fatal(err)
	}
	if id := forgetful.Labels[names.WorkIDLabel]; id != "new-id" {
		t.Errorf("identity %q: an update that leaves it out keeps it", id)
	}
}

// indented is JSON in one form, whatever its order and spaces. Numbers stay as they are written.
func indented(t *testing.T, s string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWorkWithoutName(t *testing.T) {
	w := work(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)
	w.Name, w.GenerateName = "", strings.Repeat("x", 70)
	if err := fixed().Work(nil, w); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("x", 58) + "abcde"; w.Name != want {
		t.Errorf("name %q, want %q", w.Name, want)
	}
	if m := string(w.Spec.Workload.Manifests[0].Raw); !strings.Contains(m, `"work.karmada.io/name":"`+w.Name+`"`) {
		t.Errorf("by its marks the object does not lead back to its Work: %s", m)
	}
}

func TestWorkThatWasUnreadable(t *testing.T) {
	const unreadable = `{"metadata":{"name":"d"}}`
	now := metav1.Now()
	cases := map[string]struct {
		reason   string
		was, now *workv1alpha1.Work
		err      bool
		want     string // the last manifest
	}{
		"Unchanged": {
			reason: "Labels of a Work from before there was this webhook can be changed.",
			was:    work(unreadable), now: work(unreadable), want: unreadable,
		},
		"OtherPlace": {
			reason: "Another manifest that is no object is a mistake of now.",
			was:    work(unreadable), now: work(unreadable, unreadable), err: true,
		},
		"Changed": {
			reason: "Who changes it has to make it one.",
			was:    work(unreadable), now: work(`{"metadata":{"name":"e"}}`), err: true,
		},
		"Deleted": {
			reason: "Finalizers of what goes can be taken off, whatever it holds.",
			was:    work(`{}`),
			now: func() *workv1alpha1.Work {
				w := work(unreadable)
				w.DeletionTimestamp = &now
				return w
			}(),
			want: unreadable,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := fixed().Work(c.was, c.now)
			if (err != nil) != c.err {
				t.Fatalf("got %v: %s", err, c.reason)
			}
			if last := c.now.Spec.Workload.Manifests[len(c.now.Spec.Workload.Manifests)-1].Raw; err == nil && string(last) != c.want {
				t.Errorf("manifest %s, want %s: %s", last, c.want, c.reason)
			}
		})
	}
}

func TestWorkUnreadable(t *testing.T) {
	err := fixed().Work(nil, work(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
		`{"metadata":{"name":"d"}}`, `{"kind":"X","metadata":{"name":"e"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`))
	for _, want := range []string{"spec.workload.manifests[1]", "spec.workload.manifests[2] is no object that can be applied: it has no apiVersion",
		"spec.workload.manifests[3] is no object that can be applied: it has no metadata.name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that says %q, of all that are wrong at once", err, want)
		}
	}
}
