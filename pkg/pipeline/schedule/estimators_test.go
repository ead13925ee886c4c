package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

// An estimator answers as a test says.
type estimator struct {
	name   string
	answer func(ctx context.Context) (map[string]estimate.Answer, error)
}

func (e estimator) Name() string { return e.name }

func (e estimator) Estimate(ctx context.Context, _ estimate.Request, _ []*clusterv1alpha1.Cluster) (map[string]estimate.Answer, error) {
	return e.answer(ctx)
}

func says(name string, replicas map[string]int32) estimator {
	return estimator{name, func(context.Context) (map[string]estimate.Answer, error) {
		all := map[string]estimate.Answer{}
		for cluster, n := range replicas {
			all[cluster] = estimate.Answer{Replicas: n}
		}
		return all, nil
	}}
}

func fails(name string) estimator {
	return estimator{name, func(context.Context) (map[string]estimate.Answer, error) {
		return map[string]estimate.Answer{"m1": {}}, errors.New("boom")
	}}
}

// hangs answers too late.
func hangs(name string) estimator {
	return estimator{name, func(ctx context.Context) (map[string]estimate.Answer, error) {
		<-ctx.Done()
		return map[string]estimate.Answer{"m1": {}}, nil
	}}
}

func TestAsk(t *testing.T) {
	m1, m2 := cluster("m1"), cluster("m2")
	cases := map[string]struct {
		reason  string
		all     []Estimator
		timeout time.Duration
		want    map[string][]string
		silent  map[string]string
		skipped []string
	}{
		"None": {reason: "There need not be any."},
		"Several": {
			reason: "All answers are there, in the order of those who gave them; answers that nobody asked for are not.",
			all:    []Estimator{says("a", map[string]int32{"m1": 3, "m2": 4, "m9": 1}), says("b", map[string]int32{"m1": 1})},
			want:   map[string][]string{"m1": {"a:3", "b:1"}, "m2": {"a:4"}},
		},
		"Fails": {
			reason: "Nothing counts of what one says that fails; the others do.",
			all:    []Estimator{fails("a"), says("b", map[string]int32{"m1": 1})},
			want:   map[string][]string{"m1": {"b:1"}}, silent: map[string]string{"a": "boom"}, skipped: []string{"a error"},
		},
		"Hangs": {
			reason: "Nobody waits for ever; those who were in time count.", timeout: time.Second,
			all:  []Estimator{hangs("a"), says("b", map[string]int32{"m1": 1})},
			want: map[string][]string{"m1": {"b:1"}}, silent: map[string]string{"a": "no answer within 1s"}, skipped: []string{"a timeout"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var skipped []string
			p := &panel{
				all: tc.all, timeout: max(tc.timeout, time.Second), now: func() time.Time { return epoch }, resting: map[string]time.Time{},
				skipped: func(estimator, reason string) { skipped = append(skipped, estimator+" "+reason) },
			}
			answers, silent := p.ask(t.Context(), estimate.Request{}, []*clusterv1alpha1.Cluster{m1, m2})
			got, told := map[string][]string{}, map[string]string{}
			for cluster, list := range answers {
				for _, a := range list {
					got[cluster] = append(got[cluster], fmt.Sprintf("%s:%d", a.By, a.Replicas))
				}
			}
			for name, err := range silent {
				told[name] = err.Error()
			}
			if tc.want == nil {
				tc.want = map[string][]string{}
			}
			if tc.silent == nil {
				tc.silent = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.silent, told) + cmp.Diff(tc.skipped, skipped); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// An estimator that let a decision wait for nothing is left alone for a while.
func TestRest(t *testing.T) {
	var skipped []string
	now := epoch
	p := &panel{
		all: []Estimator{hangs("a")}, timeout: time.Millisecond, now: func() time.Time { return now }, resting: map[string]time.Time{},
		skipped: func(_, reason string) { skipped = append(skipped, reason) },
	}
	all := []*clusterv1alpha1.Cluster{cluster("m1")}
	for range 3 {
		if _, silent := p.ask(t.Context(), estimate.Request{}, all); silent["a"] == nil {
			t.Error("it is not said that it was not heard")
		}
	}
	now = now.Add(estimatorRest)
	p.ask(t.Context(), estimate.Request{}, all)
	if diff := cmp.Diff([]string{skippedTimeout, skippedResting, skippedResting, skippedTimeout}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// What an estimator says of a cluster counts where it is less than what the summary
// says; a failure does not stop a decision.
func TestReconcileWithEstimators(t *testing.T) {
	b := workload(dynamic, replicas(4))
	w := newWorld(t, b, cluster("m1", withRoom("9")), cluster("m2", withRoom("9")))
	r := w.reconciler(nil, Options{Estimators: []Estimator{
		says("a", map[string]int32{"m1": 1, "m2": 3}), fails("b"), says("c", map[string]int32{"m1": estimate.Unknown, "m2": 100}),
	}})
	if _, err := r.Reconcile(t.Context(), requestFor(b)); err != nil {
		t.Fatal(err)
	}
	if got := targetsOf(w.get(b)); got != "m1:1 m2:3" {
		t.Errorf("got %q", got)
	}
}

// Several bindings are scheduled, and the numbers of clusters do not change between
// them.
func TestNoRoomTwice(t *testing.T) {
	cases := map[string]struct {
		reason  string
		pending bool
		want    int // bindings that found room for two replicas each
	}{
		"Protected":   {reason: "What one has taken the next one does not get.", pending: true, want: 3},
		"Unprotected": {reason: "Off, only the numbers count.", want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{cluster("m1", withRoom("4")), cluster("m2", withRoom("2"))}
			for i := range 5 {
				b := workload(dynamic, replicas(2))
				b.Name = fmt.Sprint("web-", i)
				objects = append(objects, b)
			}
			w := newWorld(t, objects...)
			r := w.reconciler(nil, Options{Pending: tc.pending})
			got, used := 0, map[string]int32{}
			for _, o := range objects[2:] {
				b, _ := o.(binding.Object)
				result, err := r.Reconcile(t.Context(), requestFor(b))
				if err != nil {
					t.Fatal(err)
				}
				targets := w.get(b).BindingSpec().Clusters
				if len(targets) > 0 {
					got++
				} else if result.RequeueAfter != unschedulableRetry {
					t.Errorf("%s: what found no room comes again after %s", b.GetName(), result.RequeueAfter)
				}
				for _, target := range targets {
					used[target.Name] += target.Replicas
				}
			}
			if got != tc.want {
				t.Errorf("%d found room, want %d: %s", got, tc.want, tc.reason)
			}
			if tc.pending && (used["m1"] != 4 || used["m2"] != 2) {
				t.Errorf("used is %v", used)
			}
		})
	}
}
