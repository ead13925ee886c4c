package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
)

const (
	success = "True Success: Binding has been scheduled successfully."
	noFit   = "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint."
)

func TestReconcile(t *testing.T) {
	type fleet = []*clusterv1alpha1.Cluster
	two := fleet{cluster("m1"), cluster("m2")}
	both := []string{"patch", "patch status"}
	quota := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Reason: "QuotaExceeded", Message: "FederatedResourceQuota q: too much",
	}}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "b", errors.New("namespace is going"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
	constraint := func(b binding.Object) {
		b.BindingSpec().Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: "cluster", MinGroups: 3, MaxGroups: 3}}
	}

	type want struct {
		targets   string
		condition string
		term      string
		placed    bool // the applied placement is that of now
		observed  int64
		at        *metav1.Time // last scheduled
		writes    []string
		events    []string
		err       bool
		terminal  bool
		later     time.Duration
	}
	cases := map[string]struct {
		reason   string
		binding  binding.Object
		clusters fleet
		options  Options
		refuse   error // of the first write
		want     want
	}{
		"First": {
			reason: "Clusters in one write, what is to say in another; the generation is the one that came of it.", binding: workload(divided), clusters: two,
			want: want{
				targets: "m1:2 m2:1", condition: success, placed: true, observed: 2, at: ago(0), writes: both,
				events: []string{
					"Binding: Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result: {m1:2, m2:1}",
					"Template: Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result: {m1:2, m2:1}",
				},
			},
		},
		"Global": {
			reason: "The other scope differs in a colon.", binding: global(), clusters: two,
			want: want{
				targets: "m1:0 m2:0", condition: success, placed: true, observed: 2, at: ago(0), writes: both,
				events: []string{
					"Binding: Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result {m1:0, m2:0}",
					"Template: Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result {m1:0, m2:0}",
				},
			},
		},
		"Steady": {
			reason: "What is right costs nothing.", binding: workload(divided, on("m1:2", "m2:1"), scheduled), clusters: two,
			want: want{targets: "m1:2 m2:1", condition: success, placed: true, observed: 1, at: ago(time.Minute)},
		},
		"SteadyDuplicated": {
			reason: "Even though it is computed each time.", binding: workload(duplicated, on("m1:3", "m2:3"), scheduled), clusters: two,
			want: want{targets: "m1:3 m2:3", condition: success, placed: true, observed: 1, at: ago(time.Minute)},
		},
		"Edited": {
			reason: "An edit that moves nothing is noted, no more.", binding: workload(divided, on("m1:1", "m2:2"), scheduled, edited), clusters: two,
			want: want{targets: "m1:1 m2:2", condition: success, placed: true, observed: 2, at: ago(time.Minute), writes: both[1:]},
		},
		"EditedDuplicated": {
			reason: "One write, no event.", binding: workload(duplicated, on("m1:3", "m2:3"), scheduled, edited), clusters: two,
			want: want{targets: "m1:3 m2:3", condition: success, placed: true, observed: 2, at: ago(0), writes: both[1:]},
		},
		"NewCluster": {
			reason: "Duplicating finds clusters that have come since.", binding: workload(duplicated, on("m1:3"), scheduled), clusters: two,
			want: want{targets: "m1:3 m2:3", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:3, m2:3}")},
		},
		"NoFit": {
			reason: "What fits nowhere stays where it is, and that is said.", binding: workload(divided, toClusters("m1"), on("m2:3")), clusters: fleet{cluster("m2")},
			want: want{
				targets:   "m2:3",
				condition: "False NoClusterFit: " + noFit, placed: true, writes: both,
				events: failed(noFit),
			},
		},
		"NoFitNew": {
			reason: "What was nowhere is nowhere; that it was looked at is noted.", binding: workload(divided, toClusters("m1")), clusters: fleet{cluster("m2")},
			want: want{condition: "False NoClusterFit: " + noFit, placed: true, writes: both, events: failed(noFit)},
		},
		"NoFitLeaving": {
			reason: "A cluster that is to go must not wait for ever for what fits nowhere else.", clusters: fleet{cluster("m1", leaving), cluster("m2", tainted), cluster("m3")},
			binding: workload(divided, toClusters("m4"), on("m1:1", "m2:1", "m3:1"), scheduled),
			want: want{
				targets:   "m2:1 m3:1",
				condition: "False NoClusterFit: 0/3 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint.",
				placed:    true, writes: both, observed: 1, at: ago(time.Minute),
				events: failed("0/3 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint."),
			},
		},
		"NoFitTakenOver": {
			reason: "It is given up as soon as another cluster takes over.", clusters: two,
			binding: workload(divided, toClusters("m1"), on("m2:3"), scheduled, told(&filter.FitError{})),
			want:    want{targets: "m1:3", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:3}")},
		},
		"NoFitStill": {
			reason: "Nothing is written again.", clusters: fleet{cluster("m2")},
			binding: workload(divided, toClusters("m1"), scheduled, told(&filter.FitError{Clusters: 1, Reasons: map[string]int{"cluster(s) did not match the placement cluster affinity constraint": 1}})),
			want:    want{condition: "False NoClusterFit: " + noFit, placed: true, observed: 1, at: ago(time.Minute)},
		},
		"NoFitAnyMore": {
			reason: "As soon as a cluster fits.", clusters: two, binding: workload(divided, toClusters("m1"), scheduled, told(&filter.FitError{})),
			want: want{targets: "m1:3", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:3}")},
		},
		"NoRoom": {
			reason: "Where there is no room everything stays, and is tried again later.", binding: workload(dynamic, on("m1:1")),
			clusters: fleet{cluster("m1", withRoom("1"))},
			want: want{
				targets:   "m1:1",
				condition: "False Unschedulable: failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule.",
				writes:    both[1:], later: 5 * time.Minute,
				events: failed("failed to assign replicas: failed to scale up: Clusters available replicas 1 are not enough to schedule."),
			},
		},
		"Error": {
			reason: "Any other failure leaves everything as it is, and is tried again soon.", binding: workload(constraint, on("m1:3")), clusters: two,
			want: want{
				targets:   "m1:3",
				condition: "False SchedulerError: failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups",
				writes:    both[1:], err: true,
				events: failed("failed to select clusters: the number of feasible clusters is less than spreadConstraint.MinGroups"),
			},
		},
		"BadSelector": {
			reason: "A placement that cannot be understood is not the same as one that nothing fits.", clusters: two,
			binding: workload(on("m1:3"), func(b binding.Object) {
				b.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
				}}
			}),
			want: want{
				targets:   "m1:3",
				condition: `False SchedulerError: failed to find fit clusters: plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator`,
				writes:    both[1:], err: true,
				events: failed(`failed to find fit clusters: plugin ClusterAffinity: labelSelector: "Near" is not a valid label selector operator`),
			},
		},
		"Failover": {
			reason: "What is on a cluster that is being deleted goes elsewhere.", binding: workload(divided, on("m1:2", "m2:1"), scheduled),
			clusters: fleet{cluster("m1", leaving), cluster("m2")},
			want:     want{targets: "m2:3", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m2:3}")},
		},
		"Terms": {
			reason: "The next term is tried, with a word about the one before.", binding: workload(divided, terms("m9", "m2")), clusters: two,
			want: want{
				targets: "m2:3", condition: success, term: "m2", placed: true, observed: 2, at: ago(0), writes: both,
				events: append(failed("failed to schedule ResourceBinding(default/web-deployment) with clusterAffiliates index(0): "+
					"0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint."), succeeded("{m2:3}")...),
			},
		},
		"TermsForward": {
			reason: "Scheduling does not go back by itself.", clusters: two,
			binding: workload(divided, terms("m1", "m2"), on("m2:3"), inTermOf("m2"), scheduled, replicas(4)),
			want:    want{targets: "m2:4", condition: success, term: "m2", placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m2:4}")},
		},
		"TermsBack": {
			reason: "It does when somebody asks for it; the time is later than the one at which they did.", clusters: two,
			binding: workload(divided, terms("m1", "m2"), on("m2:3"), inTermOf("m2"), scheduled, func(b binding.Object) {
				b.BindingSpec().RescheduleTriggeredAt = ago(-time.Minute)
			}),
			want: want{
				targets: "m1:3", condition: success, term: "m1", placed: true, observed: 2, at: ago(-time.Minute - time.Second), writes: both,
				events: succeeded("{m1:3}"),
			},
		},
		"TermsNone": {
			reason: "The first failure is told; the term in use stays.", clusters: fleet{cluster("m1", tainted), cluster("m2")},
			binding: workload(divided, terms("m8", "m1", "m9"), on("m2:3"), inTermOf("m1")),
			want: want{
				targets:   "m2:3",
				condition: "False NoClusterFit: 0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had untolerated taint {a:NoSchedule}.",
				term:      "m1", placed: true, writes: both,
				events: append(failed("failed to schedule ResourceBinding(default/web-deployment) with clusterAffiliates index(1): "+
					"0/2 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 1 cluster(s) had untolerated taint {a:NoSchedule}."),
					failed("failed to schedule ResourceBinding(default/web-deployment) with clusterAffiliates index(2): "+
						"0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint.")...),
			},
		},
		"Quota": {
			reason: "A quota has its own reason, and its own words.", binding: workload(divided, on("m1:1")), clusters: two, refuse: quota,
			want: want{
				targets:   "m1:1",
				condition: "False QuotaExceeded: write the clusters of ResourceBinding(default/web-deployment): FederatedResourceQuota q: too much",
				writes:    both, err: true,
				events: failed("write the clusters of ResourceBinding(default/web-deployment): FederatedResourceQuota q: too much"),
			},
		},
		"ServerError": {
			reason: "A server that fails has not judged the binding.", binding: workload(divided), clusters: two, refuse: errors.New("boom"),
			want: want{writes: both[:1], err: true},
		},
		"NamespaceGoing": {
			reason: "There is nothing to do in a namespace that goes.", binding: workload(divided), clusters: two, refuse: terminating,
			want: want{writes: both[:1]},
		},
		"NoPlacement": {
			reason: "It will have one when it changes.", clusters: two,
			binding: workload(on("m1:3"), func(b binding.Object) { b.BindingSpec().Placement = nil }),
			want:    want{targets: "m1:3", err: true, terminal: true},
		},
		"Others": {
			reason: "What is others' is left alone.", clusters: two,
			binding: workload(func(b binding.Object) { b.BindingSpec().SchedulerName = "mine" }),
		},
		"Going": {
			reason: "A binding that goes is left alone.", clusters: two,
			binding: workload(on("m1:3"), func(b binding.Object) {
				b.SetFinalizers([]string{"a/b"})
				b.SetDeletionTimestamp(ago(0))
			}),
			want: want{targets: "m1:3"},
		},
		"Reverted": {
			reason: "What failed and was taken back is said to be in order.", clusters: two,
			binding: workload(divided, on("m1:2", "m2:1"), scheduled, told(errors.New("boom")), edited),
			want:    want{targets: "m1:2 m2:1", condition: success, placed: true, observed: 2, at: ago(time.Minute), writes: both[1:]},
		},
		"Components": {
			reason: "Components go together, to a cluster that has room for all of them.", options: Options{Components: true},
			clusters: []*clusterv1alpha1.Cluster{cluster("m1", withRoom("2")), cluster("m2", withRoom("3"))},
			binding:  workload(dynamic, components, toOne),
			want:     want{targets: "m2:0", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m2:0}")},
		},
		"ComponentsStay": {
			reason: "Where they are they have room.", options: Options{Components: true},
			clusters: []*clusterv1alpha1.Cluster{cluster("m1"), cluster("m2", withRoom("3"))},
			binding:  workload(dynamic, components, toOne, on("m1")),
			want:     want{targets: "m1:0", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:0}")},
		},
		"ComponentsNoRoom": {
			reason: "Room for some of them is none.", options: Options{Components: true},
			clusters: []*clusterv1alpha1.Cluster{cluster("m1", withRoom("2")), cluster("m2", withRoom("2"))},
			binding:  workload(dynamic, components, toOne),
			want: want{
				condition: "False SchedulerError: failed to select clusters: no enough resource when selecting 1 clusters",
				writes:    both[1:], err: true, events: failed("failed to select clusters: no enough resource when selecting 1 clusters"),
			},
		},
		"ComponentsGateOff": {
			reason: "Without the gate their room does not count.", clusters: two,
			binding: workload(dynamic, components, toOne),
			want:    want{targets: "m1:0", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:0}")},
		},
		"TermLeft": {
			reason: "A placement that has no terms any more is in none.", clusters: two,
			binding: workload(divided, inTermOf("m1")),
			want:    want{targets: "m1:2 m2:1", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:2, m2:1}")},
		},
		"Zero": {
			reason: "A workload without replicas is nowhere.", clusters: two,
			binding: workload(duplicated, replicas(0), on("m1:3", "m2:3"), scheduled, func(b binding.Object) {
				b.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
			}),
			want: want{condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{}")},
		},
		"ZeroKept": {
			reason: "Unless the flag says otherwise.", clusters: two, options: Options{KeepEmpty: true},
			binding: workload(duplicated, replicas(0), func(b binding.Object) { b.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{} }),
			want:    want{targets: "m1:0 m2:0", condition: success, placed: true, observed: 2, at: ago(0), writes: both, events: succeeded("{m1:0, m2:0}")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.binding}
			for _, c := range tc.clusters {
				objects = append(objects, c)
			}
			w := newWorld(t, objects...)
			if tc.refuse != nil {
				w.refuse = func(write string) error {
					if write == "patch" {
						return tc.refuse
					}
					return nil
				}
			}
			result, err := w.reconciler(nil, tc.options).Reconcile(t.Context(), requestFor(tc.binding))
			b := w.get(tc.binding)
			placement, _ := json.Marshal(b.BindingSpec().Placement)
			got := want{
				targets: targetsOf(b), condition: conditionOf(b), term: b.BindingStatus().SchedulerObservedAffinityName,
				placed:   b.GetAnnotations()[names.AppliedPlacementAnnotation] == string(placement),
				observed: b.BindingStatus().SchedulerObservedGeneration, at: b.BindingStatus().LastScheduledTime, writes: w.writes, events: w.events,
				err: err != nil, terminal: errors.Is(err, reconcile.TerminalError(nil)), later: result.RequeueAfter,
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nerror %v; (-want +got):\n%s", tc.reason, err, diff)
			}

			// Whatever came of it, doing it again changes nothing.
			if w.refuse != nil {
				return
			}
			w.writes, w.events = nil, nil
			if _, err := w.reconciler(nil, tc.options).Reconcile(t.Context(), requestFor(tc.binding)); (err != nil) != tc.want.err {
				t.Errorf("the second time: %v", err)
			}
			if len(w.writes) > 0 || len(w.events) > 0 {
				t.Errorf("the second time, with nothing to do, it wrote %q and told %q", w.writes, w.events)
			}
		})
	}
}

func succeeded(result string) []string {
	const text = " Normal ScheduleBindingSucceed: Binding has been scheduled successfully. Result: "
	return []string{"Binding:" + text + result, "Template:" + text + result}
}

func failed(note string) []string {
	return []string{"Binding: Warning ScheduleBindingFailed: " + note, "Template: Warning ScheduleBindingFailed: " + note}
}

// stale is a cache that does not know some Clusters, and has a binding as it was.
func stale(w *world, binding client.Object, unknown string) client.Client {
	return interceptor.NewClient(w.client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if b, ok := o.(*workv1alpha2.ResourceBinding); ok && binding != nil {
				binding.(*workv1alpha2.ResourceBinding).DeepCopyInto(b)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			if clusters, ok := list.(*clusterv1alpha1.ClusterList); ok {
				var known []clusterv1alpha1.Cluster
				for _, c := range clusters.Items {
					if c.Name != unknown {
						known = append(known, c)
					}
				}
				clusters.Items = known
			}
			return nil
		},
	})
}

// A cache that is behind must not put a workload out of a cluster.
func TestUnknownClusters(t *testing.T) {
	cases := map[string]struct {
		reason  string
		there   bool // the cluster that the cache does not know
		binding *workv1alpha2.ResourceBinding
		want    string
		err     bool
	}{
		"There":      {reason: "The cache is behind: nothing is changed.", there: true, binding: workload(divided, on("m1:2", "m2:1"), scheduled), want: "m1:2 m2:1", err: true},
		"ThereNoFit": {reason: "Nor is anything emptied.", there: true, binding: workload(divided, toClusters("m2"), on("m2:3"), scheduled), want: "m2:3", err: true},
		"Gone":       {reason: "It is really gone.", binding: workload(divided, on("m1:2", "m2:1"), scheduled), want: "m1:3"},
		"GoneNoFit":  {reason: "It is really gone, and nothing else fits.", binding: workload(divided, toClusters("m2"), on("m2:3"), scheduled), want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.binding, cluster("m1")}
			if tc.there {
				objects = append(objects, cluster("m2"))
			}
			w := newWorld(t, objects...)
			_, err := w.reconciler(stale(w, nil, "m2"), Options{}).Reconcile(t.Context(), requestFor(tc.binding))
			if got := targetsOf(w.get(tc.binding)); got != tc.want || (err != nil) != tc.err || w.lists != 1 {
				t.Errorf("got %q, %v and %d live lists, want %q: %s", got, err, w.lists, tc.want, tc.reason)
			}
			if tc.err && len(w.writes) > 0 {
				t.Errorf("it wrote %q", w.writes)
			}
		})
	}
}

// A server that cannot tell whether a cluster is there is no proof that it is not.
func TestUnknownClustersUnserved(t *testing.T) {
	b := workload(divided, on("m2:3"), scheduled)
	w := newWorld(t, b, cluster("m1"))
	r := w.reconciler(stale(w, nil, "m2"), Options{})
	r.live = interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, "")
		},
	})
	// Even when the error says that something is not found.
	if _, err := r.Reconcile(t.Context(), requestFor(b)); err == nil {
		t.Error("want an error, so that it is tried again")
	}
	if got := targetsOf(w.get(b)); got != "m2:3" {
		t.Errorf("targets are %q", got)
	}
}

// Others write at the same time.
func TestConflicts(t *testing.T) {
	cases := map[string]struct {
		reason    string
		meanwhile func(b *workv1alpha2.ResourceBinding)
		want      string
		writes    int
		condition bool
	}{
		"Status": {
			reason: "A new status concerns nobody here: the clusters are written, and the status keeps what others say.",
			meanwhile: func(b *workv1alpha2.ResourceBinding) {
				b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: "FullyApplied", Status: "False", Reason: "x"})
			},
			want: "m1:2 m2:1", writes: 3, condition: true,
		},
		"Spec": {
			reason:    "A new spec may need other clusters: it comes by its own event.",
			meanwhile: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Generation = 9, 2 },
			want:      "", writes: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := workload(divided)
			w := newWorld(t, before, cluster("m1"), cluster("m2"))
			cached, _ := w.get(before).(*workv1alpha2.ResourceBinding)
			current := cached.DeepCopy()
			tc.meanwhile(current)
			if err := w.client.Update(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			tc.meanwhile(current)
			if err := w.client.Status().Update(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			if _, err := w.reconciler(stale(w, cached, ""), Options{}).Reconcile(t.Context(), requestFor(before)); err != nil {
				t.Errorf("got %v: %s", err, tc.reason)
			}
			now := w.get(before)
			if got := targetsOf(now); got != tc.want || len(w.writes) != tc.writes {
				t.Errorf("got %q by %q, want %q: %s", got, w.writes, tc.want, tc.reason)
			}
			if tc.condition && (len(now.BindingStatus().Conditions) != 2 || conditionOf(now) != success) {
				t.Errorf("conditions are %v: %s", now.BindingStatus().Conditions, tc.reason)
			}
		})
	}
}

func BenchmarkAlgorithm(b *testing.B) {
	var clusters []*clusterv1alpha1.Cluster
	for i := range 100 {
		clusters = append(clusters, cluster(fmt.Sprintf("m%03d", i), func(c *clusterv1alpha1.Cluster) {
			c.Labels = map[string]string{"tier": "a"}
		}))
	}
	rb := workload(divided, replicas(1000), func(b binding.Object) {
		b.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}}
	})
	a := Options{Enabled: func(string) bool { return true }}.algorithm(func(string) func() { return func() {} })
	for b.Loop() {
		if _, err := a.run(rb, Snapshot{Clusters: clusters}, false); err != nil {
			b.Fatal(err)
		}
	}
}
