package clusterstatus

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// modelled returns m1 with two grades of nodes.
func modelled() *clusterv1alpha1.Cluster {
	c := named("m1", "u")
	for grade, least := range []string{"0", "2"} {
		c.Spec.ResourceModels = append(c.Spec.ResourceModels, clusterv1alpha1.ResourceModel{
			Grade: int32(grade), Ranges: []clusterv1alpha1.ResourceModelRange{{Name: corev1.ResourceCPU, Min: resource.MustParse(least)}},
		})
	}
	return c
}

func readiness(c *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + " " + ready.Reason
}

// looking returns a context for looks of a loop, which ends what they start.
func looking(t *testing.T, l *loop) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		l.streams.Wait()
		l.beat.Wait()
	})
	return ctx
}

func mustLook(t *testing.T, ctx context.Context, l *loop) time.Duration {
	t.Helper()
	next, err := l.look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestFirstLook(t *testing.T) {
	w := newWorld(t, modelled())
	server := newMemberServer(t)
	l, pass := newLoop(t, w, server.URL)
	ctx := looking(t, l)
	mustLook(t, ctx, l)

	c := w.cluster(t)
	if w.writes != 1 {
		t.Errorf("wrote %d times: the first status is one write, capacity included", w.writes)
	}
	if got := readiness(c); got != "True ClusterReady" {
		t.Errorf("Ready is %s", got)
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionCompleteAPIEnablements) {
		t.Errorf("conditions %v", c.Status.Conditions)
	}
	if c.Status.KubernetesVersion != "v1.37.2" || len(c.Status.APIEnablements) != 3 {
		t.Errorf("version %q, enablements %v", c.Status.KubernetesVersion, describe(c.Status.APIEnablements))
	}
	want := &clusterv1alpha1.ResourceSummary{
		Allocatable:          corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")},
		Allocating:           corev1.ResourceList{"pods": resource.MustParse("0")},
		Allocated:            corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("1")},
		AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 0}, {Grade: 1, Count: 1}},
	}
	if diff := cmp.Diff(want, c.Status.ResourceSummary); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&clusterv1alpha1.NodeSummary{TotalNum: 1, ReadyNum: 1}, c.Status.NodeSummary); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}

	version := c.ResourceVersion
	sent := server.discoverer.bodies
	for range 10 {
		pass(10 * time.Second)
		mustLook(t, ctx, l)
	}
	if w.writes != 1 || w.cluster(t).ResourceVersion != version {
		t.Errorf("wrote %d times more although nothing has changed", w.writes-1)
	}
	if server.discoverer.bodies != sent {
		t.Errorf("%d documents were sent although nothing has changed", server.discoverer.bodies-sent)
	}
}

func TestDown(t *testing.T) {
	w := newWorld(t, modelled())
	server := newMemberServer(t)
	l, pass := newLoop(t, w, server.URL)
	ctx := looking(t, l)
	mustLook(t, ctx, l)
	before := w.cluster(t)

	server.set(func() { server.ready = http.StatusInternalServerError })
	pass(10 * time.Second)
	if next, err := l.look(ctx); err == nil || next > 12*time.Second {
		t.Errorf("the reason is to be told, got %v; next look in %s", err, next)
	}
	pass(25 * time.Second)
	if next, _ := l.look(ctx); next != 5*time.Second {
		t.Errorf("the next look is in %s, not when the threshold is reached", next)
	}
	if got := readiness(w.cluster(t)); got != "True ClusterReady" || w.writes != 1 {
		t.Errorf("Ready is %s, %d writes: the threshold has not been reached", got, w.writes)
	}
	pass(5 * time.Second)
	if _, err := l.look(ctx); err == nil {
		t.Error("the reason is to be told")
	}
	c := w.cluster(t)
	if got := readiness(c); got != "False ClusterNotReady" {
		t.Errorf("Ready is %s", got)
	}
	if diff := cmp.Diff(before.Status.ResourceSummary, c.Status.ResourceSummary); diff != "" || len(c.Status.APIEnablements) != 3 {
		t.Errorf("what was known of a cluster that is down stays known:\n%s", diff)
	}

	server.set(func() { server.ready = http.StatusOK })
	mustLook(t, ctx, l)
	pass(30 * time.Second)
	mustLook(t, ctx, l)
	if got := readiness(w.cluster(t)); got != "True ClusterReady" {
		t.Errorf("Ready is %s: it is back", got)
	}
}

// TestSlowCapacity has a member that takes its time with its pods.
func TestSlowCapacity(t *testing.T) {
	w := newWorld(t, modelled())
	server := newMemberServer(t)
	hold := make(chan struct{})
	server.hold = hold
	l, _ := newLoop(t, w, server.URL)
	l.patience = time.Millisecond
	ctx := looking(t, l)

	done := make(chan struct{})
	running, stop := context.WithCancel(ctx)
	go func() {
		defer close(done)
		l.run(running, 0)
	}()
	defer func() {
		stop()
		<-done
	}()
	eventually(t, "it is ready before its capacity is known", func() bool { return readiness(w.cluster(t)) == "True ClusterReady" })
	if c := w.cluster(t); c.Status.ResourceSummary != nil || c.Status.NodeSummary != nil {
		t.Errorf("capacity that is not known must not be written: %v", c.Status.ResourceSummary)
	}
	close(hold)
	eventually(t, "capacity follows as soon as it is known, not with the next look", func() bool { return w.cluster(t).Status.ResourceSummary != nil })
}

// eventually waits for something that is bound to come: there is a minute for
// it, and the next regular look is 10 s away.
func eventually(t *testing.T, reason string, is func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("still not: %s", reason)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestRestart has a process that begins with a status of its predecessor, and a
// member whose pods it may not see.
func TestRestart(t *testing.T) {
	c := modelled()
	c.Status = full()
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "Mine", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)})
	w := newWorld(t, c)
	server := newMemberServer(t)
	server.forbidden = true
	l, _ := newLoop(t, w, server.URL)
	ctx := looking(t, l)
	mustLook(t, ctx, l)

	got := w.cluster(t)
	want := full()
	if diff := cmp.Diff(want.ResourceSummary, got.Status.ResourceSummary); diff != "" {
		t.Errorf("capacity stays until it is known anew (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.RemedyActions, got.Status.RemedyActions); diff != "" {
		t.Errorf("what others write stays (-want +got):\n%s", diff)
	}
	if meta.FindStatusCondition(got.Status.Conditions, "Mine") == nil {
		t.Error("conditions of others stay")
	}
}

func TestWrite(t *testing.T) {
	cases := map[string]struct {
		reason string
		refuse func(calls int) error
		writes int
		ready  string
		listed bool
		err    bool
	}{
		"Conflict": {
			"Somebody else was faster: read anew and write once more.",
			func(calls int) error {
				if calls == 1 {
					return apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "m1", errBoom)
				}
				return nil
			}, 2, "True ClusterReady", true, false,
		},
		"TooLarge": {
			"A member that serves more than a Cluster can hold is ready all the same.",
			func(calls int) error {
				if calls == 1 {
					return apierrors.NewRequestEntityTooLargeError("no")
				}
				return nil
			}, 2, "True ClusterReady", false, true,
		},
		"Refused": {
			"What cannot be written is told.",
			func(int) error { return errBoom }, 2, "", false, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, modelled())
			w.refuse = func(client.Object) error { return tc.refuse(w.writes) }
			l, _ := newLoop(t, w, newMemberServer(t).URL)
			_, err := l.look(looking(t, l))
			if (err != nil) != tc.err {
				t.Errorf("error %v\n%s", err, tc.reason)
			}
			c := w.cluster(t)
			if readiness(c) != tc.ready || (len(c.Status.APIEnablements) > 0) != tc.listed || w.writes != tc.writes {
				t.Errorf("Ready is %q, enablements %d, writes %d\n%s", readiness(c), len(c.Status.APIEnablements), w.writes, tc.reason)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t, modelled())
	server := newMemberServer(t)
	host := server.URL
	server.Server.Close()
	l, _ := newLoop(t, w, host)
	_, err := l.look(looking(t, l))
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the reason is to be told, got %v", err)
	}
	c := w.cluster(t)
	if got := readiness(c); got != "False ClusterNotReachable" || len(c.Status.Conditions) != 1 {
		t.Errorf("Ready is %s, conditions %v", got, c.Status.Conditions)
	}
}

func TestNoClient(t *testing.T) {
	w := newWorld(t, modelled())
	l, _ := newLoop(t, w, "")
	l.o.Pool = memberless(t)
	if _, err := l.look(looking(t, l)); err == nil {
		t.Error("the reason is to be told")
	}
	ready := meta.FindStatusCondition(w.cluster(t).Status.Conditions, clusterv1alpha1.ConditionReady)
	if ready == nil || ready.Reason != "StatusCollectionFailed" || ready.Message != "failed to create a ClusterClient: boom" {
		t.Errorf("Ready is %v", ready)
	}
}

// TestOtherCluster has another Cluster of the same name, whose loop is about to
// begin.
func TestOtherCluster(t *testing.T) {
	w := newWorld(t, named("m1", "other"))
	l, _ := newLoop(t, w, newMemberServer(t).URL)
	mustLook(t, looking(t, l), l)
	if w.writes != 0 {
		t.Error("its status is not ours to write")
	}
}
