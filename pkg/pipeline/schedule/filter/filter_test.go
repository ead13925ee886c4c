package filter

import (
	"errors"
	"fmt"
	"strings"
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

func labelled(key, value string) option {
	return func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{key: value} }
}

// neighbours are in one cluster each: that to be with, and that to be apart from.
type neighbours struct{ with, apart string }

func (n neighbours) Together(cluster string) string {
	if cluster == n.with || cluster == n.apart && n.apart != n.with {
		return ""
	}
	return "alone"
}

func (n neighbours) Apart(cluster string) string {
	if cluster == n.apart {
		return "taken"
	}
	return ""
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
		others   Others
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
		"ByLabel": {
			reason: "To be spread by a label a cluster must have it.", clusters: clusters{cluster("m1", labelled("rack", "r")), cluster("m2"), cluster("m3", labelled("rack", ""))},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByLabel: "rack"}}
			},
			want: []string{"m1"},
		},
		"ByLabelOfNone": {
			reason: "The label is named, so that it can be looked for.", clusters: clusters{cluster("m1")},
			spec: func(s *workv1alpha2.ResourceBindingSpec) {
				s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByLabel: "rack"}}
			},
			err: "0/1 clusters are available: 1 cluster(s) did not have label rack.",
		},
		"OverflowWithTypo": {
			reason: "It does not matter that the first affinity matches: a mistake is told before it matters.", clusters: clusters{cluster("m1")},
			term: &policyv1alpha1.ClusterAffinityTerm{ClusterAffinity: names("m1"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{{
				ClusterAffinity: policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "planet", Operator: corev1.NodeSelectorOpExists}},
				}},
			}}},
			err: `plugin ClusterAffinity: fieldSelector.matchExpressions[0]: unsupported key "planet", must be provider, region, or zone`,
		},
		"Apart": {
			reason: "Groups refuse clusters, but not those that the binding is in.", clusters: clusters{cluster("m1"), cluster("m2"), cluster("m3"), cluster("m4")},
			spec:   func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}} },
			others: neighbours{with: "m3", apart: "m4"}, want: []string{"m1", "m3"},
		},
		"ApartFromAll": {
			reason: "Each of the two gives its reason.", clusters: clusters{cluster("m1"), cluster("m2")}, others: neighbours{with: "m2", apart: "m2"},
			err: "0/2 clusters are available: 1 alone, 1 taken.",
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
			verdict, err := Clusters(Plugins(), Subject{Spec: spec, Term: tc.term, Others: tc.others}, tc.clusters, nil)
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

// Every cluster is either let through, or refused by one plugin for one reason, or
// being deleted; each plugin is timed once.
func TestVerdict(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, Placement: &policyv1alpha1.Placement{ClusterAffinity: ptr.To(names("m1", "m2", "m4"))},
	}
	all := []*clusterv1alpha1.Cluster{
		cluster("m1"), cluster("m2", tainted("a", "", corev1.TaintEffectNoSchedule), ignorant), cluster("m3", ignorant), cluster("m4", leaving),
	}
	timed := map[string]int{}
	verdict, err := Clusters(Plugins(), Subject{Spec: spec}, all, func(plugin string) func() { return func() { timed[plugin]++ } })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range verdict.Fit {
		got = append(got, c.Name+" fits")
	}
	for _, r := range verdict.Refused {
		got = append(got, r.Cluster.Name+" "+r.Plugin+": "+r.Reason)
	}
	want := []string{
		"m1 fits", "m3 ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint",
		"m2 TaintToleration: cluster(s) had untolerated taint {a:NoSchedule}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the first plugin that refuses gives the reason (-want +got):\n%s", diff)
	}
	for _, p := range Plugins() {
		if timed[p.Name] != 1 {
			t.Errorf("%s was timed %d times", p.Name, timed[p.Name])
		}
	}
	if all[2].Name != "m3" {
		t.Error("the clusters that were given have been changed")
	}
}

// A fleet in which every cluster has a reason of its own must not make a text that
// no condition can hold.
func TestManyReasons(t *testing.T) {
	e := &FitError{Clusters: 5003, Reasons: map[string]int{"most": 3}}
	for i := range 5000 {
		e.Reasons[fmt.Sprintf("%04d %s", i, strings.Repeat("x", 400))] = 1
	}
	got := e.Error()
	if len(got) > 32768 || !strings.Contains(got, " 3 most, ") || !strings.HasSuffix(got, ", 4937 cluster(s) for other reasons.") {
		t.Errorf("got %d bytes: %.100s ... %s", len(got), got, got[len(got)-100:])
	}
}
