package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A moment is a look of the monitor at seconds after the epoch. It also looks
// every second in between.
type moment struct {
	at      int
	renewed int  // the agent renews its lease, at its own time of that many seconds; 0 does not
	failed  bool // leases cannot be listed, until the next moment
	says    metav1.ConditionStatus
	want    metav1.ConditionStatus // after the look; "" is no condition
}

func TestMonitor(t *testing.T) {
	const true_, unknown, false_ = metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse
	never := "Cluster status controller never posted cluster status."
	stopped := "Cluster status controller stopped posting cluster status."
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		moments []moment
		message string
		writes  int
	}{
		"NeverPosted": {
			reason: "A new cluster has the longer of the two graces, from its creation.", cluster: member(pull, finalized),
			moments: []moment{{at: 0}, {at: 45}, {at: 60}, {at: 61, want: unknown}, {at: 70, want: unknown}},
			message: never, writes: 1,
		},
		"NeverPostedLongAgo": {
			reason: "A new leader need not wait again.", cluster: member(pull, finalized),
			moments: []moment{{at: 3600, want: unknown}}, message: never, writes: 1,
		},
		"Stopped": {
			reason: "From the last renewal on.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 0, renewed: 1, want: true_}, {at: 5, renewed: 5, want: true_}, {at: 45, want: true_}, {at: 46, want: unknown}, {at: 90, want: unknown}},
			message: stopped, writes: 1,
		},
		"StoppedWhenDown": {
			reason: "What an agent said before it stopped is not known to be true any more.", cluster: member(pull, finalized, ready(false_)),
			moments: []moment{{at: 0, want: false_}, {at: 41, want: unknown}}, message: stopped, writes: 1,
		},
		"ClockOfTheAgent": {
			reason: "Times of an agent are compared with its own only: its clock may be years off.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 0, renewed: -90000000, want: true_}, {at: 30, renewed: -89999970, want: true_}, {at: 60, want: true_}, {at: 71, want: unknown}},
			message: stopped, writes: 1,
		},
		"Speaks": {
			reason: "A condition that changes is a sign of life, too.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 0, want: true_}, {at: 35, says: false_, want: false_}, {at: 70, want: false_}, {at: 76, want: unknown}},
			message: stopped, writes: 1,
		},
		"Back": {
			reason: "An agent that comes back says so itself; it is then watched as before.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 0, want: true_}, {at: 41, want: unknown}, {at: 50, renewed: 50, says: true_, want: true_}, {at: 89, want: true_}, {at: 91, want: unknown}},
			message: stopped, writes: 2,
		},
		"NewLeader": {
			reason: "A lease that was renewed last year says nothing about now: a new leader gives everybody the full grace.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 1000, renewed: 1, want: true_}, {at: 1040, want: true_}, {at: 1041, want: unknown}},
			message: stopped, writes: 1,
		},
		"Blind": {
			reason: "The time in which leases could not be read is not the agents' silence.", cluster: member(pull, finalized, ready(true_)),
			moments: []moment{{at: 0, want: true_}, {at: 5, failed: true, want: true_}, {at: 60, failed: true, want: true_}, {at: 100, want: true_}, {at: 105, renewed: 105, want: true_}, {at: 140, want: true_}, {at: 150, want: unknown}},
			message: stopped, writes: 1,
		},
		"Push": {
			reason: "The status of a push mode cluster is not an agent's.", cluster: member(finalized, ready(true_)),
			moments: []moment{{at: 0, want: true_}, {at: 400, want: true_}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			failed := false
			w := newWorld(t, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if _, ok := l.(*coordinationv1.LeaseList); ok && failed {
						return errBoom
					}
					return c.List(ctx, l, opts...)
				},
			}, tc.cluster)
			m := newMonitor(w.client, w.client, logr.Discard(), Options{MonitorPeriod: 5 * time.Second, MonitorGracePeriod: 40 * time.Second, StartupGracePeriod: 60 * time.Second})
			look := func(seconds int) {
				m.now = func() time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
				if err := m.look(t.Context()); (err != nil) != failed {
					t.Fatalf("at %d s: %v", seconds, err)
				}
			}
			for i, at := range tc.moments {
				for s := tc.moments[max(0, i-1)].at + 1; s < at.at; s++ {
					look(s)
				}
				before := w.writes
				if at.renewed != 0 {
					renew(t, w.client, epoch.Add(time.Duration(at.renewed)*time.Second))
				}
				if at.says != "" {
					say(t, w.client, at.says)
				}
				w.writes = before
				failed = at.failed
				look(at.at)

				c, _ := read(t, w.client, member())
				condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
				got := metav1.ConditionStatus("")
				if condition != nil {
					got = condition.Status
				}
				if got != at.want {
					t.Fatalf("at %d s Ready is %q, want %q\n%s", at.at, got, at.want, tc.reason)
				}
				if got == unknown && condition.Message != tc.message {
					t.Errorf("message %q", condition.Message)
				}
			}
			if w.writes != tc.writes {
				t.Errorf("wrote %d times, want %d\n%s", w.writes, tc.writes, tc.reason)
			}
		})
	}
}

func renew(t *testing.T, c client.Client, at time.Time) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterNamespace, Name: "m1"}}
	_, found := read(t, c, lease)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(at))
	var err error
	if found {
		err = c.Update(t.Context(), lease)
	} else {
		err = c.Create(t.Context(), lease)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, c client.Client, status metav1.ConditionStatus) {
	t.Helper()
	cluster, _ := read(t, c, member())
	cluster.Status.Conditions = nil
	ready(status)(cluster)
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// TestMonitorConflict has the agent speak after it was found silent.
func TestMonitorConflict(t *testing.T) {
	spoken := false
	w := newWorld(t, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if !spoken {
				spoken = true
				say(t, c, metav1.ConditionFalse)
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}, member(pull, finalized, ready(metav1.ConditionTrue)))
	m := newMonitor(w.client, w.client, logr.Discard(), Options{MonitorPeriod: time.Second, MonitorGracePeriod: 40 * time.Second})
	for _, seconds := range []int{0, 41} {
		m.now = func() time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
		m.looked = m.now()
		if err := m.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := read(t, w.client, member())
	got := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	if diff := cmp.Diff(metav1.ConditionFalse, got.Status); diff != "" || !spoken {
		t.Errorf("an agent that has spoken at the last moment is not silent (-want +got):\n%s", diff)
	}
}
