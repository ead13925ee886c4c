package filter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

type option func(*clusterv1alpha1.Cluster)

// cluster returns a Cluster that serves Deployments.
func cluster(name string, options ...option) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	for _, o := range options {
		o(c)
	}
	return c
}

func tainted(key, value string, effect corev1.TaintEffect) option {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func leaving(c *clusterv1alpha1.Cluster) {
	c.DeletionTimestamp = ptr.To(metav1.Now())
}

func ignorant(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil }

func at(provider, region string, zones ...string) option {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Provider, c.Spec.Region, c.Spec.Zones = provider, region, zones
	}
}

func names(clusters ...string) policyv1alpha1.ClusterAffinity {
	return policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
}

func TestClusters(t *testing.T) {
	type clusters = []*clusterv1alpha1.Cluster
	spread := func(by policyv1alpha1.SpreadFieldValue) func(*workv1alpha2.ResourceBindingSpec) {
		return func(s *workv1alpha2.ResourceBindingSpec) {
			s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: by}}
		}
	}
	overflow := &policyv1alpha1.ClusterAffinityTerm{
		AffinityName: "a", ClusterAffinity: names("m1"),
		OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "b", ClusterAffinity: names("m2")}},
	}
	cases := map[string]struct {
		reason   string
		clusters clusters
		spec     func(*workv1alpha2.ResourceBindingSpec)
		term     *policyv1alpha1.ClusterAffinityTerm
		want     []string
		err      string
	}{
		"All": {reason: "A placement that says nothing means all.", clusters: clusters{cluster("m1"), cluster("m2")}, want: []string{"m1", "m2"}},
		"None": {
			reason: "There is nothing to say about no clusters.", err: "no cluster exists",
		},
		"Leaving": {
			reason: "A cluster that is being deleted is left out without a reason.", clusters: clusters{cluster("m1", leaving), cluster("m2")}, want: []string{"m2"},
		},
		"AllLeaving": {
			reason: "Something has to be said when there is no other.", clusters: clusters{cluster("m1", leaving)},
			err: "0/1 clusters are available: all of them are being deleted.",
		},
		"Affinity": {
			reason: "Names, and everything else that an affinity has.", clusters: clusters{cluster("m1"), cluster("m2")},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Placement.ClusterAffinity = ptr.To(names("m2"))
			},
			want: []string{"m2"},
		},
		"BadAffinity": {
			reason: "What cannot be understood is not the same as no cluster.", clusters: clusters{cluster("m1")},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
				}}
			},
			err: `plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator`,
		},
		"Term":     {reason: "The term that is tried counts.", clusters: clusters{cluster("m1"), cluster("m2"), cluster("m3")}, term: &policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: names("m1")}, want: []string{"m1"}},
		"Overflow": {reason: "Replicas may flow over.", clusters: clusters{cluster("m1"), cluster("m2"), cluster("m3")}, term: overflow, want: []string{"m1", "m2"}},
		"OverflowOfNothing": {
			reason: "What has no replicas does not flow.", clusters: clusters{cluster("m1"), cluster("m2")}, term: overflow,
			spec: func(s *workv1alpha2.ResourceBindingSpec) { s.Replicas = 0 }, want: []string{"m1"},
		},
		"Taints": {
			reason: "NoSchedule and NoExecute keep new bindings out, PreferNoSchedule does not.",
			clusters: clusters{
				cluster("m1", tainted("a", "", corev1.TaintEffectNoSchedule)), cluster("m2", tainted("a", "b", corev1.TaintEffectNoExecute)),
				cluster("m3", tainted("a", "", corev1.TaintEffectPreferNoSchedule)),
			},
			want: []string{"m3"},
		},
		"TaintReasons": {
			reason: "Each reason is counted; the list is sorted as text.",
			clusters: clusters{
				cluster("m1", tainted("a", "", corev1.TaintEffectNoSchedule)), cluster("m2", tainted("a", "", corev1.TaintEffectNoSchedule)),
				cluster("m3", tainted("a", "b", corev1.TaintEffectNoExecute)), cluster("m4", ignorant), cluster("m5", leaving),
			},
			err: "0/5 clusters are available: 1 cluster(s) did not have the API resource, 1 cluster(s) had untolerated taint {a=b:NoExecute}, " +
				"2 cluster(s) had untolerated taint {a:NoSchedule}.",
		},
		"Tolerated": {
			reason: "Tolerations let in.", clusters: clusters{cluster("m1", tainted("a", "b", corev1.TaintEffectNoSchedule))},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Placement.ClusterTolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
			},
			want: []string{"m1"},
		},
		"AlreadyThere": {
			reason:   "Where a binding is, neither taints nor a failure of discovery put it out.",
			clusters: clusters{cluster("m1", ignorant, tainted("a", "", corev1.TaintEffectNoExecute)), cluster("m2", ignorant)},
			spec:     func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}} },
			want:     []string{"m1"},
		},
		"AlreadyThereAndUnwanted": {
			reason: "Affinity, spreading and eviction do.", clusters: clusters{cluster("m1"), cluster("m2")},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}
				s.Placement.ClusterAffinity = ptr.To(names("m2"))
				s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
			},
			err: "0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) is in the process of eviction.",
		},
		"OtherVersion": {
			reason: "A kind is served in the version of the template, or it is not.", clusters: clusters{cluster("m1")},
			spec: func(s *workv1alpha2.ResourceBindingSpec) { s.Resource.APIVersion = "apps/v2" },
			err:  "0/1 clusters are available: 1 cluster(s) did not have the API resource.",
		},
		"ByProvider": {
			reason: "To be spread by provider a cluster must have one.", clusters: clusters{cluster("m1", at("p", "", "")), cluster("m2")},
			spec: spread(policyv1alpha1.SpreadByFieldProvider), want: []string{"m1"},
		},
		"ByRegion": {
			reason: "The same for regions.", clusters: clusters{cluster("m1")}, spec: spread(policyv1alpha1.SpreadByFieldRegion),
			err: "0/1 clusters are available: 1 cluster(s) did not have region property.",
		},
		"ByZone": {
			reason: "And for zones.", clusters: clusters{cluster("m1"), cluster("m2", at("", "", "z"))}, spec: spread(policyv1alpha1.SpreadByFieldZone),
			want: []string{"m2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Replicas: 1, Placement: &policyv1alpha1.Placement{},
			}
			if tc.spec != nil {
				tc.spec(spec)
			}
			verdict, err := Clusters(Plugins(), Subject{Spec: spec, Term: tc.term}, tc.clusters, nil)
			var got []string
			for _, c := range verdict.Fit {
				got = append(got, c.Name)
			}
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || said != tc.err {
				t.Errorf("%s\nerror %q, want %q; clusters (-want +got):\n%s", tc.reason, said, tc.err, diff)
			}
		})
	}
}

// Without plugins every cluster will do; that nothing fits is told by the type.
func TestNoPlugins(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}
	if verdict, err := Clusters(nil, Subject{Spec: spec}, []*clusterv1alpha1.Cluster{cluster("m1", ignorant)}, nil); err != nil || len(verdict.Fit) != 1 {
		t.Errorf("got %v, %v", verdict, err)
	}
	var fitError *FitError
	if _, err := Clusters(nil, Subject{Spec: spec}, nil, nil); !errors.As(err, &fitError) {
		t.Errorf("got %v, want a FitError", err)
	}
}
