package clusterstatus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

// memberless returns a Pool that cannot reach anything.
func memberless(t *testing.T) *member.Pool {
	t.Helper()
	return member.NewPool(t.Context(), func(context.Context, *clusterv1alpha1.Cluster) (*rest.Config, error) { return nil, errBoom })
}

func TestRenew(t *testing.T) {
	want := coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("m1"), LeaseDurationSeconds: ptr.To(int32(40)), RenewTime: ptr.To(metav1.NewMicroTime(epoch)),
	}
	owner := []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "u"}}
	old := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1", UID: "before"}}},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(epoch.Add(-time.Hour)))},
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"New": {"A lease that is not there is made.", nil},
		"Old": {"One that is there is renewed, and is this Cluster's from now on.", []client.Object{old}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			h := &heartbeat{client: w.client, live: w.client, log: logr.Discard(), owner: named("m1", "u"), duration: DefaultLeaseDuration, interval: DefaultLeaseInterval, now: func() time.Time { return epoch }}
			if err := h.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease, _ := w.lease(t)
			if diff := cmp.Diff(want, lease.Spec); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(owner, lease.OwnerReferences); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}

			// Renewed again, written by somebody else, deleted: it recovers.
			for i, disturb := range []func() error{
				func() error { return nil },
				func() error { lease.Spec.HolderIdentity = ptr.To("x"); return w.client.Update(t.Context(), lease) },
				func() error { return w.client.Delete(t.Context(), lease) },
			} {
				lease, _ = w.lease(t)
				if err := disturb(); err != nil {
					t.Fatal(err)
				}
				now := epoch.Add(time.Duration(i+1) * time.Second)
				h.now = func() time.Time { return now }
				if err := h.renew(t.Context()); err != nil {
					if err := h.renew(t.Context()); err != nil { // the second try has read it anew
						t.Fatal(err)
					}
				}
				lease, _ = w.lease(t)
				if !lease.Spec.RenewTime.Time.Equal(now) {
					t.Errorf("disturbance %d: renewed at %s, want %s", i, lease.Spec.RenewTime, now)
				}
			}
		})
	}
}

// TestAgent has the heartbeat begin with the first healthy look, and not before.
func TestAgent(t *testing.T) {
	w := newWorld(t, modelled())
	server := newMemberServer(t)
	l, pass := newLoop(t, w, server.URL)
	l.o.LeaseDuration, l.o.LeaseInterval = DefaultLeaseDuration, DefaultLeaseInterval
	ctx := looking(t, l)

	server.set(func() { server.ready = 500 })
	if _, err := l.look(ctx); err == nil {
		t.Error("the reason is to be told")
	}
	if _, found := w.lease(t); found || l.beats {
		t.Error("an agent whose cluster has never been healthy says nothing")
	}
	server.set(func() { server.ready = 200 })
	mustLook(t, ctx, l)
	pass(30 * time.Second)
	mustLook(t, ctx, l)
	eventually(t, "the lease is there", func() bool { _, found := w.lease(t); return found })
}

// TestHeartbeatGoesOn has a control plane that fails twice.
func TestHeartbeatGoesOn(t *testing.T) {
	w := newWorld(t)
	failures := 0
	flaky := interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if failures++; failures <= 2 {
				return errors.New("the control plane is away")
			}
			return c.Create(ctx, o, opts...)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	h := &heartbeat{client: flaky, live: flaky, log: logr.Discard(), owner: named("m1", "u"), duration: 400 * time.Millisecond, interval: 100 * time.Millisecond, now: time.Now}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.run(ctx)
	}()
	eventually(t, "the lease is there", func() bool { _, found := w.lease(t); return found })
	cancel()
	<-done
}
