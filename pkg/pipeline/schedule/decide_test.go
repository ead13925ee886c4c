package schedule

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
)

// spec: behaviour/04 4.2
func TestIsOurs(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(b *workv1alpha2.ResourceBinding)
		want   bool
	}{
		"Ours":   {reason: "Without a name the default scheduler is meant.", change: func(*workv1alpha2.ResourceBinding) {}, want: true},
		"ByName": {reason: "It may be named.", change: func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "default-scheduler" }, want: true},
		"Others": {reason: "Others have their own.", change: func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "mine" }},
		"Suspended": {reason: "Nothing is moved while somebody says so.", change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
		}},
		"SuspendedOtherwise": {
			reason: "Dispatching is another matter.",
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
			},
			want: true,
		},
		"Attached": {reason: "What follows others is not scheduled.", change: func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }},
		"ManagedBy": {reason: "Others than policies make bindings, too.", change: func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{names.BindingManagedByLabel: "MultiClusterService"}
		}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := workload()
			tc.change(b)
			if got := isOurs(b, names.DefaultScheduler); got != tc.want {
				t.Errorf("got %t: %s", got, tc.reason)
			}
		})
	}
}

// spec: behaviour/04 4.3
func TestWhySchedule(t *testing.T) {
	steady := []option{divided, on("m1:2", "m2:1"), scheduled}
	after := func(more ...option) *workv1alpha2.ResourceBinding { return workload(append(steady, more...)...) }
	affinities := func(more ...option) *workv1alpha2.ResourceBinding {
		return workload(append([]option{divided, terms("m1", "m2"), on("m1:3"), inTermOf("m1"), scheduled}, more...)...)
	}
	placement := func(change func(*policyv1alpha1.Placement)) option {
		return func(b binding.Object) { change(b.BindingSpec().Placement) }
	}
	asked := func(at *metav1.Time) option {
		return func(b binding.Object) { b.BindingSpec().RescheduleTriggeredAt = at }
	}
	noFit := told(&filter.FitError{})
	cases := map[string]struct {
		reason   string
		binding  binding.Object
		clusters []clusterv1alpha1.Cluster
		sets     bool
		want     cause
	}{
		"New":     {reason: "What was never scheduled is.", binding: workload(divided), want: causePlacement},
		"Steady":  {reason: "What is where it should be stays there.", binding: after()},
		"Edited":  {reason: "An edit that changes nothing here moves nothing.", binding: after(edited)},
		"Garbled": {reason: "An annotation that nobody can read moves nothing.", binding: after(func(b binding.Object) { b.GetAnnotations()[names.AppliedPlacementAnnotation] = "?" })},
		"Affinity": {
			reason: "Another affinity.", binding: after(toClusters("m1")), want: causePlacement,
		},
		"Tolerations": {
			reason: "Other tolerations.", want: causePlacement,
			binding: after(placement(func(p *policyv1alpha1.Placement) {
				p.ClusterTolerations = append(p.ClusterTolerations, toleration("a"))
			})),
		},
		"Spread": {
			reason: "Other constraints.", want: causePlacement,
			binding: after(placement(func(p *policyv1alpha1.Placement) {
				p.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{MinGroups: 1}}
			})),
		},
		"Strategy": {reason: "Another strategy.", want: causePlacement, binding: after(dynamic)},
		"Workload affinity": {
			reason:  "Workload affinity concerns new clusters only.",
			binding: after(placement(func(p *policyv1alpha1.Placement) { p.WorkloadAffinity = &policyv1alpha1.WorkloadAffinity{} })),
		},
		"Terms": {reason: "Affinity terms that are as they were.", binding: affinities()},
		"OtherTerm": {
			reason:  "A term that is not in use may change.",
			binding: affinities(placement(func(p *policyv1alpha1.Placement) { p.ClusterAffinities[1].ClusterNames = []string{"m9"} })),
		},
		"TermInUse": {
			reason: "The one that is in use may not.", want: causePlacement,
			binding: affinities(placement(func(p *policyv1alpha1.Placement) { p.ClusterAffinities[0].ClusterNames = []string{"m9"} })),
		},
		"TermGone": {
			reason: "Nor may it go.", want: causePlacement,
			binding: affinities(placement(func(p *policyv1alpha1.Placement) { p.ClusterAffinities = p.ClusterAffinities[1:] })),
		},
		"NoTermInUse": {
			reason: "Without a term in use every change counts.", want: causePlacement,
			binding: affinities(inTermOf(""), placement(func(p *policyv1alpha1.Placement) { p.ClusterAffinities[1].ClusterNames = nil })),
		},
		"Killed": {
			reason: "The clusters were written, the term was not: it is scheduled once more.", want: causePlacement,
			binding:  affinities(on("m2:3"), edited),
			clusters: []clusterv1alpha1.Cluster{*cluster("m1"), *cluster("m2")},
		},
		"Relabelled": {
			reason:   "A cluster that has left the term while nothing else changed keeps what it has.",
			binding:  affinities(on("m2:3")),
			clusters: []clusterv1alpha1.Cluster{*cluster("m1"), *cluster("m2")},
		},
		"Scaled":     {reason: "The sum must be right.", binding: after(replicas(4)), want: causeScale},
		"Evicted":    {reason: "Also when a cluster was taken out.", binding: after(on("m1:2")), want: causeScale},
		"Duplicated": {reason: "Each cluster must have all.", binding: workload(duplicated, on("m1:3", "m2:2"), scheduled), want: causeScale},
		"DuplicatedSteady": {
			reason: "Duplicating again costs nothing, and new clusters are found.", binding: workload(duplicated, on("m1:3"), scheduled), want: causeAlways,
		},
		"NoStrategy": {reason: "The same without a strategy; replicas are not looked at.", binding: workload(on("m1:1"), scheduled), want: causeAlways},
		"NoWorkload": {reason: "And for what has no replicas.", binding: workload(divided, replicas(0), on("m1"), scheduled), want: causeAlways},
		"Components": {
			reason: "Components have no sum; with their gate they need somewhere to be.", sets: true, want: causeScale,
			binding: workload(divided, replicas(0), scheduled, func(b binding.Object) { b.BindingSpec().Components = []workv1alpha2.Component{{Name: "a"}} }),
		},
		"ComponentsTold": {
			reason: "What a target tells is right.", sets: true,
			binding: workload(dynamic, components, toOne, placedWhole(1, 2), scheduled),
		},
		"ComponentsScaled": {
			reason: "What a target tells must be right.", sets: true, want: causeScale,
			binding: workload(dynamic, components, toOne, placedWhole(1, 1), scheduled),
		},
		"ComponentsUntold": {
			reason: "A target need not tell.", sets: true,
			binding: workload(dynamic, components, toOne, on("m1"), scheduled),
		},
		"ComponentsScaledOff": {
			reason: "Without the gate nobody looks.", binding: workload(dynamic, components, toOne, placedWhole(1, 1), scheduled),
		},
		"Asked":      {reason: "Somebody asked for a fresh start.", binding: after(asked(ago(0))), want: causeFresh},
		"AskedOnce":  {reason: "That was before the last time.", binding: after(asked(ago(time.Hour)))},
		"AskedThen":  {reason: "In the same second, and looked at.", binding: after(asked(ago(time.Minute)))},
		"AskedAfter": {reason: "In the same second, and not looked at.", binding: after(asked(ago(time.Minute)), edited), want: causeFresh},
		"Leaving": {
			reason: "A cluster goes.", binding: after(), want: causeFailover,
			clusters: []clusterv1alpha1.Cluster{*cluster("m1", leaving), *cluster("m2")},
		},
		"Gone": {reason: "A cluster is gone.", binding: after(), clusters: []clusterv1alpha1.Cluster{*cluster("m1")}, want: causeFailover},
		"Nowhere": {
			reason: "There was nowhere to go, and nobody had to change the binding for that to change.", want: causeRetry,
			binding: workload(divided, replicas(0), func(b binding.Object) { b.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{} }, scheduled, noFit),
		},
		"Failed": {reason: "What failed and was taken back is in order again.", binding: after(told(errors.New("boom")))},
	}
	both := []clusterv1alpha1.Cluster{*cluster("m1"), *cluster("m2")}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clusters := tc.clusters
			if clusters == nil {
				clusters = both
			}
			if got := whySchedule(tc.binding, tc.sets, newFleet(clusters)); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}
