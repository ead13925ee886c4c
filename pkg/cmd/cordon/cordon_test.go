package cordon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

func TestRun(t *testing.T) {
	ours := corev1.Taint{Key: "cluster.karmada.io/unschedulable", Effect: "NoSchedule"}
	others := corev1.Taint{Key: "k", Effect: "NoExecute"}
	sameKey := corev1.Taint{Key: "cluster.karmada.io/unschedulable", Effect: "NoExecute"}
	cases := map[string]struct {
		reason  string
		found   []corev1.Taint
		options Options
		want    []corev1.Taint
		out     string
		err     string
	}{
		"Cordon":          {reason: "The contract's taint, without a value or a time.", found: []corev1.Taint{others}, options: Options{Cordon: true}, want: []corev1.Taint{others, ours}, out: "m cluster cordoned\n"},
		"CordonAgain":     {reason: "There is nothing to do.", found: []corev1.Taint{ours}, options: Options{Cordon: true}, want: []corev1.Taint{ours}, out: "m cluster already cordoned\n"},
		"CordonDryRun":    {reason: "The same line, and no change.", options: Options{Cordon: true, DryRun: true}, out: "m cluster cordoned\n"},
		"Uncordon":        {reason: "Those of others stay, of whatever effect.", found: []corev1.Taint{ours, others, sameKey}, want: []corev1.Taint{others, sameKey}, out: "m cluster uncordoned\n"},
		"UncordonAgain":   {reason: "There is nothing to do.", found: []corev1.Taint{sameKey}, want: []corev1.Taint{sameKey}, out: "m cluster already uncordoned\n"},
		"UncordonBare":    {reason: "Nor is there here.", out: "m cluster already uncordoned\n"},
		"UncordonDryRun":  {reason: "The same line, and no change.", found: []corev1.Taint{ours}, options: Options{DryRun: true}, want: []corev1.Taint{ours}, out: "m cluster uncordoned\n"},
		"NoSuchCluster":   {reason: "The contract's words.", options: Options{Cordon: true, Cluster: "nope"}, err: `clusters.cluster.karmada.io "nope" not found`},
		"NoSuchClusterUn": {reason: "The contract's words.", options: Options{Cluster: "nope"}, err: `clusters.cluster.karmada.io "nope" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := registration.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			m := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1alpha1.ClusterSpec{Taints: tc.found}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).Build()
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := tc.options
			o.Client, o.IOStreams = c, streams
			if o.Cluster == "" {
				o.Cluster = "m"
			}
			err = o.Run(t.Context())
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %q: %s", err, tc.err, tc.reason)
			}
			if out.String() != tc.out {
				t.Errorf("got %q, want %q: %s", out, tc.out, tc.reason)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, m.Spec.Taints); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{"cluster name is required": nil, "more than one cluster name is not supported": {"a", "b"}} {
		if err := oneCluster(nil, args); err == nil || err.Error() != want {
			t.Errorf("got %v, want the contract's %q", err, want)
		}
	}
}
