package filter

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// What costs most: names of half the clusters, labels, tolerations, and a binding
// that is in a quarter of them already.
func BenchmarkClusters(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := make([]*clusterv1alpha1.Cluster, 0, n)
			spec := &workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: 1,
				Placement: &policyv1alpha1.Placement{
					ClusterAffinity:    &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}},
					ClusterTolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}},
					SpreadConstraints:  []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldRegion}},
				},
			}
			for i := range n {
				c := cluster(fmt.Sprintf("m%05d", i), tainted("a", "", corev1.TaintEffectNoSchedule), at("p", "r", "z"))
				c.Labels = map[string]string{"tier": "a"}
				all = append(all, c)
				if i%2 == 0 {
					spec.Placement.ClusterAffinity.ClusterNames = append(spec.Placement.ClusterAffinity.ClusterNames, c.Name)
				}
				if i%4 == 0 {
					spec.Clusters = append(spec.Clusters, workv1alpha2.TargetCluster{Name: c.Name, Replicas: 1})
				}
			}
			for b.Loop() {
				if _, err := Clusters(Plugins(), Subject{Spec: spec}, all, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
