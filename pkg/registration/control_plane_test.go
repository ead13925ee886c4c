package registration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

var (
	pushEntry = Entry{
		Identity:  Identity{Name: "m", ID: "id-m", Mode: clusterv1alpha1.Push, Endpoint: "https://10.0.0.1:6443"},
		Namespace: ns, Credentials: true, Impersonator: true,
	}
	someCredentials = Credentials{CABundle: []byte("ca"), Token: []byte("t"), ImpersonatorToken: []byte("i")}
)

func clusterOf(name, id string, mode clusterv1alpha1.ClusterSyncMode, endpoint string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: named("", name),
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode, APIEndpoint: endpoint},
	}
}

func TestFind(t *testing.T) {
	const push, pull = clusterv1alpha1.Push, clusterv1alpha1.Pull
	here := "https://10.0.0.1:6443"
	cases := map[string]struct {
		reason string
		name   string
		known  []*clusterv1alpha1.Cluster
		found  bool
		err    string
	}{
		"None":         {reason: "It is new.", name: "m"},
		"Others":       {reason: "Others do not matter.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("x", "id-x", push, here)}},
		"Same":         {reason: "It is repaired.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "id-m", push, "https://elsewhere")}, found: true},
		"NoID":         {reason: "One that was written by hand, without an ID, is the one at that address.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "", push, here)}, found: true},
		"NoIDNoWhere":  {reason: "Without either it may be any.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "", push, "")}, err: "has been registered: cluster m is registered in Push mode at an unknown address without an ID"},
		"OtherID":      {reason: "The name is another cluster's.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "id-x", push, "https://there")}, err: "the cluster ID id-m or the cluster name m has been registered: the name belongs to another cluster, with ID id-x at https://there: choose another name, or unjoin m first"},
		"Rebuilt":      {reason: "The same address, and another cluster.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "id-old", push, here)}, err: "the cluster there was rebuilt; unjoin m first, then repeat this"},
		"OtherName":    {reason: "One cluster has one name.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("x", "id-m", push, here)}, err: "the cluster ID id-m or the cluster name m has been registered: this cluster is registered as x: go on under that name, or unjoin x first"},
		"OtherNameToo": {reason: "Neither has more than one ID, whichever is found first.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("x", "id-m", pull, here), clusterOf("m", "id-m", push, here)}, err: "registered as x: go on under that name, or unregister x first"},
		"Pull":         {reason: "An agent serves it.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m", "id-m", pull, here)}, err: "cluster m is registered in Pull mode: unregister it first to change to Push mode"},
		"Impersonator": {reason: "Its account would be the one of users.", name: "impersonator", err: "invalid cluster name(impersonator)"},
		"SecretOf":     {reason: "Its Secret would be that of m's impersonator.", name: "m-impersonator", known: []*clusterv1alpha1.Cluster{clusterOf("m", "id-x", push, here)}, err: "invalid cluster name(m-impersonator)"},
		"SecretOfThis": {reason: "And the other way round.", name: "m", known: []*clusterv1alpha1.Cluster{clusterOf("m-impersonator", "id-x", push, here)}, err: "invalid cluster name(m)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var known []clusterv1alpha1.Cluster
			for _, k := range tc.known {
				known = append(known, *k)
			}
			found, err := Identity{Name: tc.name, ID: "id-m", Mode: push, Endpoint: here}.Find(known)
			check(t, tc.reason, err, tc.err)
			if got := found != nil; got != tc.found {
				t.Errorf("found: %t, want %t: %s", got, tc.found, tc.reason)
			}
		})
	}
}

func TestClusterID(t *testing.T) {
	system := &corev1.Namespace{ObjectMeta: named("", "kube-system")}
	system.UID = "id"
	if got, err := ClusterID(t.Context(), newCluster(t, system)); err != nil || got != "id" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, garbage := range []string{"a\nb", "\x1b[31mred", "<html>", strings.Repeat("x", 1000)} {
		system.UID = types.UID(garbage)
		_, err := ClusterID(t.Context(), newCluster(t, system))
		check(t, "It is shown to people.", err, "is not a Kubernetes API server")
		if err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 300) {
			t.Errorf("the error repeats it: %q", err)
		}
	}
	if _, err := ClusterID(t.Context(), newCluster(t)); err == nil {
		t.Error("a cluster without kube-system has an ID")
	}
}

func TestEnsureSecrets(t *testing.T) {
	owner := clusterOf("m", "id-m", clusterv1alpha1.Push, "")
	owner.UID = "uid-m"
	ownedBy := func(kind, name, uid string) metav1.ObjectMeta {
		m := ours(ns, "m")
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: "", Controller: &yes}}
		m.OwnerReferences[0].UID = types.UID(uid)
		return m
	}
	stale := map[string][]byte{"token": []byte("stale"), "extra": []byte("x")}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    map[string][]byte
		err     string
	}{
		"New":         {reason: "Both are made."},
		"Stale":       {reason: "Credentials that are no longer good are replaced, what others put there stays.", objects: []client.Object{&corev1.Secret{ObjectMeta: ours(ns, "m"), Data: stale}}, want: map[string][]byte{"extra": []byte("x")}},
		"OldOwner":    {reason: "A Secret of an earlier Cluster would be collected.", objects: []client.Object{&corev1.Secret{ObjectMeta: ownedBy("Cluster", "m", "uid-of-before"), Data: stale}}, want: map[string][]byte{"extra": []byte("x")}},
		"OtherOwner":  {reason: "It is another member's.", objects: []client.Object{&corev1.Secret{ObjectMeta: ownedBy("Cluster", "x", "uid-x")}}, err: "belongs to Cluster x"},
		"NotOurs":     {reason: "It is somebody's.", objects: []client.Object{&corev1.Secret{ObjectMeta: named(ns, "m")}}, err: "secret karmada-cluster/m of the control plane is in the way"},
		"NotOursToo":  {reason: "Neither of the two is overwritten.", objects: []client.Object{&corev1.Secret{ObjectMeta: named(ns, "m-impersonator")}}, err: "secret karmada-cluster/m-impersonator of the control plane is in the way"},
		"OwnedByThis": {reason: "Nothing is to be done.", objects: []client.Object{&corev1.Secret{ObjectMeta: ownedBy("Cluster", "m", "uid-m")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.objects...)
			err := EnsureSecrets(t.Context(), NewWriter(c), pushEntry, someCredentials, nil)
			if err == nil {
				err = EnsureSecrets(t.Context(), NewWriter(c), pushEntry, someCredentials, owner)
			}
			check(t, tc.reason, err, tc.err)
			if err != nil {
				return
			}
			want := map[string]map[string][]byte{
				"m":              {"token": []byte("t"), "caBundle": []byte("ca")},
				"m-impersonator": {"token": []byte("i")},
			}
			for k, v := range tc.want {
				want["m"][k] = v
			}
			for name, data := range want {
				s := &corev1.Secret{ObjectMeta: named(ns, name)}
				if !c.has(t, s) {
					t.Fatalf("no Secret %s: %s", name, tc.reason)
				}
				if diff := cmp.Diff(data, s.Data); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
				}
				ref := metav1.GetControllerOf(s)
				if len(s.OwnerReferences) != 1 || ref == nil || ref.UID != owner.UID || ref.Kind != "Cluster" || ref.APIVersion != "cluster.karmada.io/v1alpha1" || !isSystem(s) {
					t.Errorf("%s is not in the care of the Cluster alone, or has no mark: %v", name, s.OwnerReferences)
				}
			}
			before := c.writes.Load()
			if err := EnsureSecrets(t.Context(), NewWriter(c), pushEntry, someCredentials, owner); err != nil || c.writes.Load() != before {
				t.Errorf("the second time: %v, %d writes", err, c.writes.Load()-before)
			}
		})
	}
}

func TestEnsureCluster(t *testing.T) {
	with := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := clusterOf("m", "id-m", clusterv1alpha1.Push, "https://old")
		change(c)
		return c
	}
	ref := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: ns, Name: name}
	}
	spec := func(change func(*clusterv1alpha1.ClusterSpec)) clusterv1alpha1.ClusterSpec {
		s := clusterv1alpha1.ClusterSpec{
			ID: "id-m", SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://10.0.0.1:6443",
			SecretRef: ref("m"), ImpersonatorSecretRef: ref("m-impersonator"),
		}
		change(&s)
		return s
	}
	entry := func(change func(*Entry)) Entry {
		e := pushEntry
		change(&e)
		return e
	}
	nothing := func(*clusterv1alpha1.ClusterSpec) {}
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	cases := map[string]struct {
		reason string
		there  *clusterv1alpha1.Cluster
		entry  Entry
		spec   clusterv1alpha1.ClusterSpec
		labels map[string]string
		err    string
	}{
		"New": {reason: "The contract's object.", entry: pushEntry, spec: spec(nothing)},
		"NewWithAll": {
			reason: "What was asked for is in it.",
			entry: entry(func(e *Entry) {
				e.Provider, e.Region, e.Zones, e.Labels = "p", "r", []string{"a", "b"}, map[string]string{"k": "v"}
				e.ProxyURL, e.Insecure = "http://proxy", true
			}),
			spec: spec(func(s *clusterv1alpha1.ClusterSpec) {
				s.Provider, s.Region, s.Zones, s.ProxyURL, s.InsecureSkipTLSVerification = "p", "r", []string{"a", "b"}, "http://proxy", true
			}),
			labels: map[string]string{"k": "v"},
		},
		"Repair": {
			reason: "What is stale is renewed, what was not spoken of stays.",
			there: with(func(c *clusterv1alpha1.Cluster) {
				c.Labels, c.Spec.Taints, c.Spec.Region, c.Spec.Zones = map[string]string{"mine": "x"}, []corev1.Taint{taint}, "r", []string{"z"}
			}),
			entry: entry(func(e *Entry) { e.Labels, e.Zones = map[string]string{"k": "v"}, []string{"a"} }),
			spec: spec(func(s *clusterv1alpha1.ClusterSpec) {
				s.Taints, s.Region, s.Zones = []corev1.Taint{taint}, "r", []string{"a"}
			}),
			labels: map[string]string{"mine": "x", "k": "v"},
		},
		"Pull": {
			reason: "An agent changes no labels: they are the administrator's from then on.",
			there: with(func(c *clusterv1alpha1.Cluster) {
				c.Spec.SyncMode, c.Labels = clusterv1alpha1.Pull, map[string]string{"k": "other"}
			}),
			entry: entry(func(e *Entry) {
				e.Mode, e.Labels, e.Credentials = clusterv1alpha1.Pull, map[string]string{"k": "v", "l": "v"}, false
			}),
			spec:   spec(func(s *clusterv1alpha1.ClusterSpec) { s.SyncMode, s.SecretRef = clusterv1alpha1.Pull, nil }),
			labels: map[string]string{"k": "other"},
		},
		"Taken":  {reason: "Another cluster's entry is never changed.", there: with(func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-x" }), entry: pushEntry, err: "has been registered"},
		"Leaves": {reason: "What is going is not taken up.", there: with(func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"f"} }), entry: pushEntry, err: "is being removed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			if tc.there != nil {
				if err := c.Create(t.Context(), tc.there); err != nil {
					t.Fatal(err)
				}
				if len(tc.there.Finalizers) > 0 {
					if err := c.Delete(t.Context(), tc.there); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := EnsureCluster(t.Context(), NewWriter(c), tc.entry)
			check(t, tc.reason, err, tc.err)
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.spec, got.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.labels, got.Labels); diff != "" {
				t.Errorf("labels: %s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemoveSecrets(t *testing.T) {
	mine, others := &corev1.Secret{ObjectMeta: ours(ns, "m")}, &corev1.Secret{ObjectMeta: named(ns, "m-impersonator")}
	c := newCluster(t, mine, others)
	for range 2 {
		if err := RemoveSecrets(t.Context(), NewWriter(c), "m", ns); err != nil {
			t.Fatal(err)
		}
	}
	if c.has(t, mine) || !c.has(t, others) {
		t.Error("want ours removed, and nobody else's")
	}
}
