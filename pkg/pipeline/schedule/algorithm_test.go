package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

func untimed(string) func() { return func() {} }

// algorithmFor returns the algorithm with all plugins.
func algorithmFor(o Options) algorithm {
	o.Enabled = func(string) bool { return true }
	return o.algorithm(untimed)
}

// weights divides by weights, "name:weight" each.
func weights(rules ...string) option {
	return func(b binding.Object) {
		divided(b)
		p := &policyv1alpha1.ClusterPreferences{}
		for _, r := range rules {
			name, number, _ := strings.Cut(r, ":")
			w := int64(0)
			_, _ = fmt.Sscan(number, &w)
			p.StaticWeightList = append(p.StaticWeightList, policyv1alpha1.StaticClusterWeight{
				TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: w,
			})
		}
		b.BindingSpec().Placement.ReplicaScheduling.WeightPreference = p
	}
}

func aggregated(b binding.Object) {
	divided(b)
	b.BindingSpec().Placement.ReplicaScheduling.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated
}

func ofTemplate(uid types.UID) option {
	return func(b binding.Object) { b.BindingSpec().Resource.UID = uid }
}

// spreadOver adds a constraint, "field least most".
func spreadOver(constraints ...string) option {
	return func(b binding.Object) {
		for _, text := range constraints {
			c := policyv1alpha1.SpreadConstraint{}
			_, _ = fmt.Sscan(text, &c.SpreadByField, &c.MinGroups, &c.MaxGroups)
			b.BindingSpec().Placement.SpreadConstraints = append(b.BindingSpec().Placement.SpreadConstraints, c)
		}
	}
}

func inRegion(region string) clusterOption {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Region = region }
}

// fleetWith returns clusters, "name:pods" or "name:pods@region" each.
func fleetWith(texts ...string) []*clusterv1alpha1.Cluster {
	var all []*clusterv1alpha1.Cluster
	for _, text := range texts {
		text, region, _ := strings.Cut(text, "@")
		name, pods, found := strings.Cut(text, ":")
		if !found {
			pods = "0"
		}
		all = append(all, cluster(name, withRoom(pods), inRegion(region)))
	}
	return all
}

// spec: behaviour/14, every row on division and selection, through the whole
// algorithm. Rows about groups and their scores are in package spread, those about
// estimates in package estimate.
func TestWorkedExamples(t *testing.T) {
	const even, odd = types.UID("a"), types.UID("b")
	any := []types.UID{"", even, odd, "11111111-1111-1111-1111-111111111111"}
	options := func(all ...option) []option { return all }
	cases := map[string]struct {
		binding []option
		uids    []types.UID
		fleet   []string
		fresh   bool
		want    string
		err     string
	}{
		"14.2 9 by 1:2":         {binding: options(weights("m1:1", "m2:2"), replicas(9)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:3 m2:6"},
		"14.2 9 by 1:3":         {binding: options(weights("m1:1", "m2:3"), replicas(9)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:2 m2:7"},
		"14.2 12 by 3:2:1":      {binding: options(weights("m1:3", "m2:2", "m3:1"), replicas(12)), uids: any, fleet: []string{"m1", "m2", "m3"}, want: "m1:6 m2:4 m3:2"},
		"14.2 13 by 3:2:1":      {binding: options(weights("m1:3", "m2:2", "m3:1"), replicas(13)), uids: any, fleet: []string{"m1", "m2", "m3"}, want: "m1:7 m2:4 m3:2"},
		"14.2 14 by 3:2:1":      {binding: options(weights("m1:3", "m2:2", "m3:1"), replicas(14)), uids: any, fleet: []string{"m1", "m2", "m3"}, want: "m1:7 m2:5 m3:2"},
		"14.2 5 by 1:1, even":   {binding: options(weights("m1:1", "m2:1"), replicas(5)), uids: []types.UID{"", even}, fleet: []string{"m1", "m2"}, want: "m1:3 m2:2"},
		"14.2 5 by 1:1, odd":    {binding: options(weights("m1:1", "m2:1"), replicas(5)), uids: any[2:], fleet: []string{"m1", "m2"}, want: "m1:2 m2:3"},
		"14.2 7 by 1:1:1, even": {binding: options(weights("m1:1", "m2:1", "m3:1"), replicas(7)), uids: []types.UID{"", even}, fleet: []string{"m1", "m2", "m3"}, want: "m1:3 m2:2 m3:2"},
		"14.2 10 by 6:8:10":     {binding: options(weights("m1:6", "m2:8", "m3:10"), replicas(10)), uids: any, fleet: []string{"m1", "m2", "m3"}, want: "m1:3 m2:3 m3:4"},
		"14.2 3 by 5:1":         {binding: options(weights("m1:5", "m2:1"), replicas(3)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:2 m2:1"},
		"14.2 2 by 1000:1":      {binding: options(weights("m1:1000", "m2:1"), replicas(2)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:2"},
		"14.2 from 12 to 13":    {binding: options(weights("m1:3", "m2:2", "m3:1"), replicas(13), on("m1:4", "m2:4", "m3:4")), uids: any, fleet: []string{"m1", "m2", "m3"}, want: "m1:7 m2:4 m3:2"},

		"14.3 replicas 3":    {binding: options(duplicated, replicas(3)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:3 m2:3"},
		"14.3 changed to 5":  {binding: options(duplicated, replicas(5), on("m1:3", "m2:3")), uids: any, fleet: []string{"m1", "m2"}, want: "m1:5 m2:5"},
		"14.3 a ConfigMap":   {binding: options(replicas(0)), uids: any, fleet: []string{"m1", "m2"}, want: "m1:0 m2:0"},
		"14.4 first":         {binding: options(dynamic, replicas(3)), uids: []types.UID{"", even}, fleet: []string{"m1:10", "m2:10", "m3:1"}, want: "m1:2 m2:1"},
		"14.4 scale up":      {binding: options(dynamic, replicas(10), on("m1:2", "m2:3")), uids: any, fleet: []string{"m1:10", "m2:5"}, want: "m1:5 m2:5"},
		"14.4 not enough":    {binding: options(dynamic, replicas(10), on("m1:2", "m2:3")), uids: any, fleet: []string{"m1:3", "m2:1"}, err: "failed to assign replicas: failed to scale up: Clusters available replicas 4 are not enough to schedule."},
		"14.4 steady":        {binding: options(dynamic, replicas(5), on("m1:5")), uids: any, fleet: []string{"m1:0", "m2:90"}, want: "m1:5"},
		"14.4 rebalance":     {binding: options(dynamic, replicas(10), on("m1:2", "m2:3")), uids: any, fleet: []string{"m1:10", "m2:5"}, fresh: true, want: "m1:6 m2:4"},
		"14.4 scale down":    {binding: options(dynamic, replicas(9), on("m1:4", "m2:8")), uids: any, fleet: []string{"m1:0", "m2:0"}, want: "m1:3 m2:6"},
		"14.5 first":         {binding: options(aggregated, replicas(12)), uids: any, fleet: []string{"m1:6", "m2:8", "m3:10"}, want: "m2:5 m3:7"},
		"14.5 down to 9":     {binding: options(aggregated, replicas(9), on("m1:4", "m2:8")), uids: any, fleet: []string{"m1:0", "m2:0"}, want: "m1:3 m2:6"},
		"14.5 down to 7":     {binding: options(aggregated, replicas(7), on("m1:4", "m2:8")), uids: any, fleet: []string{"m1:0", "m2:0"}, want: "m2:7"},
		"14.5 up to 3":       {binding: options(aggregated, replicas(3), on("m1:2")), uids: any, fleet: []string{"m1:1", "m2:50"}, want: "m1:3"},
		"14.5 up to 5":       {binding: options(aggregated, replicas(5), on("m1:2")), uids: any, fleet: []string{"m1:1", "m2:50"}, want: "m1:2 m2:3"},
		"14.6 first two":     {binding: options(dynamic, replicas(10), spreadOver("cluster 1 2")), uids: any, fleet: []string{"m1:6", "m2:5", "m3:1"}, want: "m1:5 m2:5"},
		"14.6 locality":      {binding: options(dynamic, replicas(10), spreadOver("cluster 1 2"), on("m3:1")), uids: any, fleet: []string{"m1:6", "m2:5", "m3:0"}, want: "m1:5 m2:5"},
		"14.6 minGroups":     {binding: options(dynamic, replicas(1), spreadOver("cluster 3 5")), uids: any, fleet: []string{"m1:6", "m2:5"}, err: "failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups"},
		"14.7 two regions":   {binding: options(duplicated, spreadOver("cluster 1 1", "region 2 2")), uids: any, fleet: []string{"m1:9@1", "m2:9@2", "m3:9"}, want: "m1:3 m2:3"},
		"14.7 to one region": {binding: options(duplicated, spreadOver("cluster 1 1", "region 1 1"), on("m1:3", "m2:3")), uids: any, fleet: []string{"m1:9@1", "m2:9@2", "m3:9"}, want: "m1:3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, uid := range tc.uids {
				b := workload(append(tc.binding, ofTemplate(uid))...)
				r, err := algorithmFor(Options{}).run(b, Snapshot{Clusters: fleetWith(tc.fleet...)}, tc.fresh)
				b.Spec.Clusters = r.targets
				said := ""
				if err != nil {
					said = err.Error()
				}
				if got := targetsOf(b); got != tc.want || said != tc.err {
					t.Errorf("uid %q: got %q, %q, want %q, %q", uid, got, said, tc.want, tc.err)
				}
			}
		})
	}
}

// What is not in the examples.
func TestRun(t *testing.T) {
	answers := func(all ...string) map[string][]estimate.Answer {
		by := map[string][]estimate.Answer{}
		for _, text := range all {
			name, number, _ := strings.Cut(text, ":")
			a := estimate.Answer{By: "accurate"}
			_, _ = fmt.Sscan(number, &a.Replicas)
			by[name] = append(by[name], a)
		}
		return by
	}
	held := func(cluster string, pods int64) map[string]*estimate.Reserved {
		r := &estimate.Reserved{}
		r.Add(nil, pods)
		return map[string]*estimate.Reserved{cluster: r}
	}
	cases := map[string]struct {
		reason   string
		binding  *workv1alpha2.ResourceBinding
		snapshot Snapshot
		want     string
		term     string
		err      string
		noFit    bool
	}{
		"Reserved": {
			reason:  "What was placed a moment ago takes room.",
			binding: workload(dynamic, replicas(12)), snapshot: Snapshot{Clusters: fleetWith("m1:10", "m2:10"), Reserved: held("m1", 6)}, want: "m1:3 m2:9",
		},
		"ReservedAll": {
			reason:  "Two bindings do not take the same room.",
			binding: workload(aggregated, replicas(12)), snapshot: Snapshot{Clusters: fleetWith("m1:10", "m2:5"), Reserved: held("m1", 6)},
			err: "failed to assign replicas: failed to scale up: Clusters available replicas 9 are not enough to schedule.",
		},
		"Answers": {
			reason:  "The smallest answer counts, and an estimator that cannot tell does not.",
			binding: workload(dynamic, replicas(6)), snapshot: Snapshot{Clusters: fleetWith("m1:10", "m2:10"), Answers: answers("m1:2", "m1:99", "m2:-1")}, want: "m1:1 m2:5",
		},
		"AnswersBeside": {
			reason:  "Others may have taken just the room that an estimator has seen.",
			binding: workload(aggregated, replicas(6)), snapshot: Snapshot{Clusters: fleetWith("m1:100", "m2:3"), Answers: answers("m1:5"), Reserved: held("m1", 2)}, want: "m1:3 m2:3",
		},
		"SecondTerm": {
			reason:  "A term that nothing fits makes room for the next.",
			binding: workload(terms("m9", "m2")), snapshot: Snapshot{Clusters: fleetWith("m1", "m2")}, want: "m2:3", term: "m2",
		},
		"Forward": {
			reason:  "Scheduling never goes back to an earlier term by itself.",
			binding: workload(terms("m1", "m2"), inTermOf("m2")), snapshot: Snapshot{Clusters: fleetWith("m1", "m2")}, want: "m2:3", term: "m2",
		},
		"ForwardNowhere": {
			reason:  "Not even when nothing fits the later ones.",
			binding: workload(terms("m1", "m9"), inTermOf("m9")), snapshot: Snapshot{Clusters: fleetWith("m1")}, noFit: true,
			err: "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint.",
		},
		"AllTermsFail": {
			reason:  "The first term decides what is said.",
			binding: workload(terms("m8", "m9")), snapshot: Snapshot{Clusters: fleetWith("m1")}, noFit: true,
			err: "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint.",
		},
		"TermWithTypo": {
			reason:  "A typing error in a later term must not be taken for a decision that nothing fits.",
			binding: workload(terms("m9", "m1"), typo), snapshot: Snapshot{Clusters: fleetWith("m1")},
			err: `failed to find fit clusters: plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator`,
		},
		"TermWithoutRoom": {
			reason:  "A term that has no room now may have some later.",
			binding: workload(terms("m9", "m1"), dynamic), snapshot: Snapshot{Clusters: fleetWith("m1:2")},
			err: "failed to assign replicas: failed to scale up: Clusters available replicas 2 are not enough to schedule.",
		},
		"NoMaxGroups": {
			reason:  "An absent largest number is none.",
			binding: workload(duplicated, spreadOver("cluster 1 0")), snapshot: Snapshot{Clusters: fleetWith("m1", "m2")}, want: "m1:3 m2:3",
		},
		"DuplicatedRegionsWithoutRoom": {
			reason:  "No room is no reason to fail where each cluster gets all.",
			binding: workload(duplicated, spreadOver("cluster 1 2", "region 1 2")), snapshot: Snapshot{Clusters: fleetWith("m1:0@a", "m2:0@b")}, want: "m1:3",
		},
		"Apart": {
			reason:  "Clusters where others of the group are can be left out.",
			binding: workload(), snapshot: Snapshot{Clusters: fleetWith("m1", "m2"), Others: others{"m2"}}, want: "m2:3",
		},
		"ApartButThere": {
			reason:  "Not where the binding is.",
			binding: workload(on("m1:3")), snapshot: Snapshot{Clusters: fleetWith("m1", "m2"), Others: others{"m2"}}, want: "m1:3 m2:3",
		},
		"ApartFromAll": {
			reason:  "That may be all of them.",
			binding: workload(), snapshot: Snapshot{Clusters: fleetWith("m1"), Others: others{""}}, noFit: true, err: "0/1 clusters are available: 1 away.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := algorithmFor(Options{}).run(tc.binding, tc.snapshot, false)
			tc.binding.Spec.Clusters = r.targets
			said := ""
			if err != nil {
				said = err.Error()
			}
			if got := targetsOf(tc.binding); got != tc.want || said != tc.err || r.term != tc.term || isNoFit(err) != tc.noFit {
				t.Errorf("%s\ngot %q of term %q, %q, want %q of %q, %q", tc.reason, got, r.term, said, tc.want, tc.term, tc.err)
			}
		})
	}
}

// others are in one cluster.
type others struct{ cluster string }

func (o others) Together(string) string { return "" }
func (o others) Apart(cluster string) string {
	if cluster != o.cluster {
		return "away"
	}
	return ""
}

// Estimators are asked about the clusters of all terms that may be tried.
func TestAsks(t *testing.T) {
	cases := map[string]struct {
		reason  string
		binding *workv1alpha2.ResourceBinding
		fresh   bool
		want    []string
	}{
		"Dynamic":   {reason: "Weights depend on room.", binding: workload(dynamic, toClusters("m1", "m3")), want: []string{"m1", "m3"}},
		"Static":    {reason: "These do not.", binding: workload(divided)},
		"Spread":    {reason: "A choice does.", binding: workload(duplicated, spreadOver("cluster 1 1")), want: []string{"m1", "m2", "m3"}},
		"Nothing":   {reason: "No replica needs room.", binding: workload(dynamic, replicas(0))},
		"NoCluster": {reason: "There is nobody to ask about.", binding: workload(dynamic, toClusters("m9"))},
		"Terms":     {reason: "Each cluster once.", binding: workload(dynamic, terms("m1", "m9", "m2", "m1")), want: []string{"m1", "m2"}},
		"LaterTerm": {reason: "Earlier ones are not tried again.", binding: workload(dynamic, terms("m1", "m2"), inTermOf("m2")), want: []string{"m2"}},
		"Fresh":     {reason: "But from the beginning.", binding: workload(dynamic, terms("m1", "m2"), inTermOf("m2")), fresh: true, want: []string{"m1", "m2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, clusters := algorithmFor(Options{}).asks(tc.binding, Snapshot{Clusters: fleetWith("m1", "m2", "m3")}, tc.fresh)
			var got []string
			for _, c := range clusters {
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// drawFleet returns clusters with some room, in some region.
func drawFleet(t *rapid.T) []string {
	var fleet []string
	for i := range rapid.IntRange(1, 8).Draw(t, "clusters") {
		fleet = append(fleet, fmt.Sprintf("m%d:%d@%s", i, rapid.IntRange(0, 20).Draw(t, "room"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "region")))
	}
	return fleet
}

func drawStrategy(t *rapid.T) option {
	return rapid.SampledFrom([]option{divided, dynamic, aggregated, duplicated}).Draw(t, "strategy")
}

// Whoever looks again, once what was decided shows in the numbers, decides the same.
func TestRunIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := fleetWith(drawFleet(t)...)
		least := rapid.IntRange(1, 3).Draw(t, "least")
		constraints := rapid.SampledFrom([]option{
			func(binding.Object) {}, spreadOver(fmt.Sprintf("cluster %d %d", least, least+1)), spreadOver(fmt.Sprintf("cluster %d 0", least)),
			spreadOver(fmt.Sprintf("cluster %d %d", least, least+2), "region 1 2"), spreadOver("cluster 1 0", fmt.Sprintf("region %d %d", least, least)),
		}).Draw(t, "constraints")
		b := workload(drawStrategy(t), constraints, replicas(rapid.Int32Range(0, 60).Draw(t, "replicas")))
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		a := algorithmFor(Options{})
		first, err := a.run(b, Snapshot{Clusters: fleet}, false)
		if err != nil {
			t.Skip(err)
		}
		b.Spec.Clusters = first.targets
		for _, target := range first.targets {
			i := slices.IndexFunc(fleet, func(c *clusterv1alpha1.Cluster) bool { return c.Name == target.Name })
			used := fleet[i].Status.ResourceSummary
			used.Allocated = corev1.ResourceList{corev1.ResourcePods: quantity(fmt.Sprint(target.Replicas))}
		}
		again, err := a.run(b, Snapshot{Clusters: fleet}, false)
		if diff := cmp.Diff(first.targets, again.targets); diff != "" || err != nil {
			t.Fatalf("%v; once more (-first +again):\n%s", err, diff)
		}
	})
}

// However many bindings come one after the other, before any of them shows, they
// never take more than there is; and the order of clusters in a cache is of no
// importance.
func TestRoomIsTakenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet := fleetWith(drawFleet(t)...)
		a, reserved, taken := algorithmFor(Options{}), map[string]*estimate.Reserved{}, map[string]int64{}
		for range rapid.IntRange(1, 10).Draw(t, "bindings") {
			b := workload(rapid.SampledFrom([]option{dynamic, aggregated}).Draw(t, "strategy"), replicas(rapid.Int32Range(0, 30).Draw(t, "replicas")))
			r, err := a.run(b, Snapshot{Clusters: fleet, Reserved: reserved}, false)
			other, otherErr := a.run(b, Snapshot{Clusters: rapid.Permutation(fleet).Draw(t, "order"), Reserved: reserved}, false)
			if diff := cmp.Diff(r.targets, other.targets); diff != "" || (err == nil) != (otherErr == nil) {
				t.Fatalf("the order of clusters matters: %v, %v\n%s", err, otherErr, diff)
			}
			for _, target := range r.targets {
				if reserved[target.Name] == nil {
					reserved[target.Name] = &estimate.Reserved{}
				}
				reserved[target.Name].Add(nil, int64(target.Replicas))
				taken[target.Name] += int64(target.Replicas)
			}
		}
		for _, c := range fleet {
			pods := c.Status.ResourceSummary.Allocatable[corev1.ResourcePods]
			if taken[c.Name] > pods.Value() {
				t.Fatalf("%s has room for %d and was given %d", c.Name, pods.Value(), taken[c.Name])
			}
		}
	})
}

func BenchmarkRun(b *testing.B) {
	request := corev1.ResourceList{"cpu": quantity("100m"), "memory": quantity("64Mi")}
	for _, n := range []int{3, 10, 100, 1000, 5000} {
		var clusters []*clusterv1alpha1.Cluster
		for i := range n {
			c := cluster(fmt.Sprintf("m%05d", i), withRoom(fmt.Sprint(100+i%50)))
			c.Status.ResourceSummary.Allocatable["cpu"], c.Status.ResourceSummary.Allocatable["memory"] = quantity("100"), quantity("400Gi")
			c.Status.ResourceSummary.Allocated = corev1.ResourceList{"cpu": quantity("50"), "memory": quantity("100Gi"), "pods": quantity("5")}
			clusters = append(clusters, c)
		}
		for name, o := range map[string][]option{
			"dynamic": {dynamic, replicas(10)}, "aggregated": {aggregated, replicas(int32(n))}, "spread": {dynamic, spreadOver("cluster 2 10"), replicas(100)},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				rb, a := workload(o...), algorithmFor(Options{})
				rb.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: request}
				for b.Loop() {
					if _, err := a.run(rb, Snapshot{Clusters: clusters}, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func badSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
}
