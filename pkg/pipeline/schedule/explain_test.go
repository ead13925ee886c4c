package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/diagnosis"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

// written is a diagnosis as text: a line for each term, indented ones for clusters.
func written(d diagnosis.Diagnosis) string {
	var lines []string
	for _, t := range d.Terms {
		lines = append(lines, fmt.Sprintf("%d %q: %v", t.Index, t.Name, t.Err))
		for _, c := range t.Clusters {
			lines = append(lines, fmt.Sprintf("  %s %s", c.Name, c.Verdict(epoch)))
		}
	}
	return strings.Join(lines, "\n")
}

func TestExplain(t *testing.T) {
	overflow := func(b binding.Object) {
		term := &b.BindingSpec().Placement.ClusterAffinities[0]
		term.OverflowAffinities = []policyv1alpha1.OverflowAffinityTerm{{AffinityName: "more", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}}}
	}
	held := &estimate.Reserved{}
	held.Add(nil, 4)
	cases := map[string]struct {
		reason    string
		options   Options
		binding   *workv1alpha2.ResourceBinding
		snapshot  Snapshot
		cause     cause
		targets   string
		condition string
		want      string
	}{
		"Everything": {
			reason:  "Each cluster says how far it came, and what that depended on.",
			binding: workload(dynamic, spreadOver("cluster 1 2"), replicas(6), on("m2:1")),
			snapshot: Snapshot{
				Clusters: []*clusterv1alpha1.Cluster{
					cluster("m6", withRoom("9")), cluster("m1", leaving), cluster("m2", withRoom("9"), tainted), cluster("m3", withRoom("90"), tainted),
					cluster("m4", withRoom("2")), cluster("m5"),
				},
				Reserved:     map[string]*estimate.Reserved{"m6": held},
				Answers:      map[string][]estimate.Answer{"m2": {{Replicas: 3, By: "accurate", At: epoch.Add(-5 * time.Second)}}, "m4": {{Replicas: estimate.Unknown, By: "accurate"}}},
				SummarizedAt: map[string]time.Time{"m2": epoch.Add(-70 * time.Second)},
			},
			cause: causePlacement, targets: "m2:3 m6:3", condition: "True Success: Binding has been scheduled successfully.",
			want: `0 "": <nil>
  m1 is being deleted
  m2 assigned 3, has 1; score 100; room for 9 more (general-estimator, 1m10s ago); room for 3 more (accurate, 5s ago)
  m3 refused by TaintToleration: cluster(s) had untolerated taint {a:NoSchedule}
  m4 not selected by spread constraints; room for 2 more (general-estimator); accurate cannot tell
  m5 not selected by spread constraints; room for 0 more (general-estimator)
  m6 assigned 3, has 0; room for 5 more (general-estimator)`,
		},
		"Terms": {
			reason:  "Each term that was tried is told of, and what replicas flow over to.",
			binding: workload(terms("m9", "m1"), dynamic, replicas(6), func(b binding.Object) { overflow(b); swap(b) }),
			snapshot: Snapshot{
				Clusters: fleetWith("m1:4", "m2:9"),
			},
			cause: causePlacement, targets: "m2:6", condition: "True Success: Binding has been scheduled successfully.",
			want: `0 "m1": failed to assign replicas: failed to scale up: Clusters available replicas 4 are not enough to schedule.
  m1 selected, but without a replica; room for 4 more (general-estimator)
  m2 refused by ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint
1 "m9": <nil>
  m1 refused by ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint
  m2 assigned 6, has 0; overflow 1; room for 9 more (general-estimator)`,
		},
		"NoFit": {
			reason:   "Where nothing fits a workload stays.",
			binding:  workload(scheduled, toClusters("m9"), on("m1:3")),
			snapshot: Snapshot{Clusters: fleetWith("m1")}, cause: causePlacement, targets: "m1:3",
			condition: "False NoClusterFit: 0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint.",
			want: `0 "": 0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint.
  m1 refused by ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint`,
		},
		"NotUnderstood": {
			reason:   "When nothing can be told of clusters that is what is told.",
			binding:  workload(terms("m1"), typo),
			snapshot: Snapshot{Clusters: fleetWith("m1")}, cause: causePlacement,
			condition: `False SchedulerError: failed to find fit clusters: plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator`,
			want: `0 "m1": failed to find fit clusters: plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator
  m1 not looked at`,
		},
		"TooFew": {
			reason:   "Clusters that fit, and still are too few, are no less fit for it.",
			binding:  workload(duplicated, spreadOver("cluster 2 2")),
			snapshot: Snapshot{Clusters: fleetWith("m1:7")}, cause: causePlacement,
			condition: "False SchedulerError: failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups",
			want: `0 "": failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups
  m1 may be used; room for 7 more (general-estimator)`,
		},
		"Steady": {
			reason:   "What would stay as it is has no cause; what would come out otherwise is told all the same.",
			binding:  workload(divided, on("m1:2", "m2:1"), scheduled),
			snapshot: Snapshot{Clusters: fleetWith("m1", "m2")}, cause: causeNone, targets: "m1:2 m2:1", condition: "True Success: Binding has been scheduled successfully.",
			want: `0 "": <nil>
  m1 assigned 2, has 2; score 100
  m2 assigned 1, has 1; score 100`,
		},
		"Plugins": {
			reason:   "A plugin that is off refuses nothing.",
			options:  Options{Enabled: func(plugin string) bool { return plugin != "TaintToleration" }},
			binding:  workload(duplicated),
			snapshot: Snapshot{Clusters: []*clusterv1alpha1.Cluster{cluster("m1", tainted)}}, cause: causePlacement, targets: "m1:3",
			condition: "True Success: Binding has been scheduled successfully.",
			want: `0 "": <nil>
  m1 assigned 3, has 0`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.binding.DeepCopy()
			d := Explain(tc.options, tc.binding, tc.snapshot)
			if diff := cmp.Diff(before, tc.binding); diff != "" {
				t.Errorf("who explains must change nothing (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, written(d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			condition := fmt.Sprintf("%s %s: %s", d.Condition.Status, d.Condition.Reason, d.Condition.Message)
			if condition != tc.condition || d.Cause != string(tc.cause) {
				t.Errorf("%s\ngot %q because of %q, want %q because of %q", tc.reason, condition, d.Cause, tc.condition, tc.cause)
			}
			tc.binding.Spec.Clusters = d.Targets
			if got := targetsOf(tc.binding); got != tc.targets {
				t.Errorf("targets are %q, want %q: %s", got, tc.targets, tc.reason)
			}
		})
	}
}

// typo makes the last term one that cannot be understood.
func typo(b binding.Object) {
	all := b.BindingSpec().Placement.ClusterAffinities
	all[len(all)-1].LabelSelector = badSelector()
}

// swap exchanges the first two terms.
func swap(b binding.Object) {
	all := b.BindingSpec().Placement.ClusterAffinities
	all[0], all[1] = all[1], all[0]
}

func TestExplainWithoutPlacement(t *testing.T) {
	b := workload()
	b.Spec.Placement = nil
	d := Explain(Options{}, b, Snapshot{})
	if d.Err == nil || d.Err.Error() != "failed to get placement from resourceBinding(default/web-deployment)" || d.Condition.Message != d.Err.Error() {
		t.Errorf("got %v, %v: there is nothing to schedule by", d.Err, d.Condition)
	}
}

func TestExplainSilent(t *testing.T) {
	silent := map[string]error{"accurate": errors.New("late")}
	if d := Explain(Options{}, workload(), Snapshot{Silent: silent}); d.Silent["accurate"] == nil {
		t.Error("whoever gave no answer is to be told of")
	}
}
