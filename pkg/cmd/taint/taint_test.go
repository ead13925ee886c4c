package taint

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute

func clusters(t *testing.T, funcs interceptor.Funcs, taints ...corev1.Taint) client.WithWatch {
	t.Helper()
	scheme, err := registration.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs)
	for _, name := range []string{"a", "b"} {
		b.WithObjects(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{Taints: taints}})
	}
	return b.Build()
}

func taintsOf(t *testing.T, c client.Client, name string) []corev1.Taint {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	return cluster.Spec.Taints
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason   string
		args     string
		clusters []string
		want     Change
		err      string
	}{
		"Value":        {reason: "The usual form.", args: "cluster a k=v:NoSchedule", clusters: []string{"a"}, want: Change{Add: []corev1.Taint{{Key: "k", Value: "v", Effect: noSchedule}}}},
		"NoValue":      {reason: "A value is not needed.", args: "clusters a b k:NoExecute", clusters: []string{"a", "b"}, want: Change{Add: []corev1.Taint{{Key: "k", Effect: noExecute}}}},
		"Prefix":       {reason: "A key may have one.", args: "clusters a x.io/k:PreferNoSchedule", clusters: []string{"a"}, want: Change{Add: []corev1.Taint{{Key: "x.io/k", Effect: corev1.TaintEffectPreferNoSchedule}}}},
		"Remove":       {reason: "By key.", args: "clusters a k-", clusters: []string{"a"}, want: Change{Remove: []corev1.Taint{{Key: "k"}}}},
		"RemoveEffect": {reason: "By key and effect.", args: "clusters a k:NoSchedule- l=v:NoExecute-", clusters: []string{"a"}, want: Change{Remove: []corev1.Taint{{Key: "k", Effect: noSchedule}, {Key: "l", Effect: noExecute}}}},
		"BothEffects":  {reason: "They are two taints.", args: "clusters a k:NoSchedule k:NoExecute", clusters: []string{"a"}, want: Change{Add: []corev1.Taint{{Key: "k", Effect: noSchedule}, {Key: "k", Effect: noExecute}}}},
		"Nodes":        {reason: "It is for clusters.", args: "nodes a k:NoSchedule", err: "invalid resource type nodes"},
		"Nothing":      {reason: "It says nothing.", args: "", err: "one or more clusters must be specified"},
		"NoCluster":    {reason: "It is about nothing.", args: "clusters k:NoSchedule", err: "one or more clusters must be specified"},
		"NoTaint":      {reason: "It does nothing.", args: "clusters a", err: "at least one taint update is required"},
		"Order":        {reason: "A cluster comes too late.", args: "clusters a k:NoSchedule b", err: "all resources must be specified before taint changes: b"},
		"BadCluster":   {reason: "There can be none of that name.", args: "clusters A k:NoSchedule", err: "invalid cluster name(A)"},
		"NoEffect":     {reason: "What would it do?", args: "clusters a k=v", err: "invalid taint spec: k=v"},
		"Effect":       {reason: "There is no such effect.", args: "clusters a k:NoRun", err: "invalid taint effect: NoRun"},
		"EmptyEffect":  {reason: "There is no such effect.", args: "clusters a k:", err: "invalid taint effect: "},
		"Colons":       {reason: "It cannot be read.", args: "clusters a k:NoSchedule:x", err: "invalid taint spec"},
		"Equals":       {reason: "It cannot be read.", args: "clusters a k=v=w:NoSchedule", err: "invalid taint spec"},
		"Key":          {reason: "It is no key.", args: "clusters a _:NoSchedule", err: "invalid taint spec: _:NoSchedule, "},
		"NoKey":        {reason: "It is no key.", args: "clusters a =v:NoSchedule", err: "invalid taint spec"},
		"BadValue":     {reason: "It is no value.", args: "clusters a k=v/w:NoSchedule", err: "invalid taint spec"},
		"Twice":        {reason: "Which value is meant?", args: "clusters a k=v:NoSchedule k=w:NoSchedule", err: "duplicated taints with the same key and effect"},
		"Both":         {reason: "Which is meant?", args: "clusters a k=v:NoSchedule k-", err: "can not both modify and remove"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			names, change, err := parse(strings.Fields(tc.args))
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("got %v, want %q: %s", err, tc.err, tc.reason)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.clusters, names); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, change); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRun(t *testing.T) {
	others := corev1.Taint{Key: "others", Effect: noSchedule}
	k := corev1.Taint{Key: "k", Value: "v", Effect: noSchedule}
	added := metav1.Now().Rfc3339Copy()
	old := corev1.Taint{Key: "k", Value: "v", Effect: noExecute, TimeAdded: &added}
	cases := map[string]struct {
		reason    string
		found     []corev1.Taint
		clusters  []string
		specs     []string
		overwrite bool
		dryRun    bool
		want      []corev1.Taint
		out       string
		err       string
	}{
		"Add":          {reason: "Those of others stay, in their order.", found: []corev1.Taint{others}, specs: []string{"k=v:NoSchedule"}, want: []corev1.Taint{others, k}, out: "cluster/a tainted\n"},
		"Remove":       {reason: "Only that one goes.", found: []corev1.Taint{k, others}, specs: []string{"k-"}, want: []corev1.Taint{others}, out: "cluster/a untainted\n"},
		"Both":         {reason: "As kubectl calls it.", found: []corev1.Taint{others}, specs: []string{"k=v:NoSchedule", "others-"}, want: []corev1.Taint{k}, out: "cluster/a modified\n"},
		"Overwrite":    {reason: "The contract's word, whatever happens.", found: []corev1.Taint{{Key: "k", Value: "x", Effect: noSchedule}, others}, specs: []string{"k=v:NoSchedule"}, overwrite: true, want: []corev1.Taint{k, others}, out: "cluster/a modified\n"},
		"SameAgain":    {reason: "One that is the same stays as old as it is.", found: []corev1.Taint{old}, specs: []string{"k=v:NoExecute"}, overwrite: true, want: []corev1.Taint{old}, out: "cluster/a modified\n"},
		"Exists":       {reason: "Nothing is replaced unasked.", found: []corev1.Taint{k}, specs: []string{"k=w:NoSchedule", "l:NoSchedule"}, want: []corev1.Taint{k}, err: "cluster a already has k taint(s) with same effect(s) and --overwrite is false"},
		"OtherEffect":  {reason: "Another effect is another taint.", found: []corev1.Taint{old}, specs: []string{"k=v:NoSchedule"}, want: []corev1.Taint{old, k}, out: "cluster/a tainted\n"},
		"Missing":      {reason: "What is not there cannot be removed.", found: []corev1.Taint{others}, specs: []string{"k:NoSchedule-", "others-"}, want: []corev1.Taint{others}, err: `taint "k:NoSchedule" not found`},
		"DryRun":       {reason: "The same line, and no change.", specs: []string{"k=v:NoSchedule"}, dryRun: true, out: "cluster/a tainted\n"},
		"DryRunExists": {reason: "And the same errors.", found: []corev1.Taint{k}, specs: []string{"k=v:NoSchedule"}, dryRun: true, want: []corev1.Taint{k}, err: "--overwrite is false"},
		"OneOfTwo":     {reason: "A cluster that is missing does not keep the other.", clusters: []string{"nope", "a"}, specs: []string{"k=v:NoSchedule"}, want: []corev1.Taint{k}, out: "cluster/a tainted\n", err: `clusters.cluster.karmada.io "nope" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusters(t, interceptor.Funcs{}, tc.found...)
			change, err := parseChange(tc.specs)
			if err != nil {
				t.Fatal(err)
			}
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			names := tc.clusters
			if names == nil {
				names = []string{"a"}
			}
			o := Options{Clusters: names, Change: change, Overwrite: tc.overwrite, DryRun: tc.dryRun, Client: c, IOStreams: streams}
			err = o.Run(t.Context())
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, taintsOf(t, c, "a")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := taintsOf(t, c, "b"); len(got) != len(tc.found) {
				t.Errorf("the other cluster has %v", got)
			}
		})
	}
}

// What somebody else does to the taints at the same time is not undone.
func TestUpdateIsNotOutrun(t *testing.T) {
	theirs := corev1.Taint{Key: "theirs", Effect: noSchedule}
	ours := corev1.Taint{Key: "ours", Effect: noSchedule}
	meddled := false
	c := clusters(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !meddled {
				meddled = true
				cluster := &clusterv1alpha1.Cluster{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), cluster); err != nil {
					return err
				}
				cluster.Spec.Taints = append(cluster.Spec.Taints, theirs)
				if err := c.Update(ctx, cluster); err != nil {
					return err
				}
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	changed, err := Update(t.Context(), c, "a", false, func(found []corev1.Taint) ([]corev1.Taint, error) { return append(found, ours), nil })
	if err != nil || !changed {
		t.Fatalf("changed: %t, %v", changed, err)
	}
	if diff := cmp.Diff([]corev1.Taint{theirs, ours}, taintsOf(t, c, "a")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	errBoom := errors.New("boom")
	c = clusters(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return errBoom
	}})
	if _, err := Update(t.Context(), c, "a", false, func([]corev1.Taint) ([]corev1.Taint, error) { return []corev1.Taint{ours}, nil }); !errors.Is(err, errBoom) {
		t.Errorf("got %v, want %v", err, errBoom)
	}
}
