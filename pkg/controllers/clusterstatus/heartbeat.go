package clusterstatus

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// DefaultLeaseDuration is how long an agent's lease holds, and
// DefaultLeaseInterval how much of it goes by between two renewals (spec:
// behaviour/11 11.9).
const (
	DefaultLeaseDuration = 40 * time.Second
	DefaultLeaseInterval = DefaultLeaseDuration / 4
)

// A heartbeat renews the lease that says that a cluster's agent is alive. It
// neither lists nor watches leases: an agent may reach only its own.
type heartbeat struct {
	client   client.Client
	live     client.Reader
	log      logr.Logger
	owner    *clusterv1alpha1.Cluster // name and UID are enough
	duration time.Duration
	interval time.Duration // from one renewal to the next
	now      func() time.Time

	lease *coordinationv1.Lease // as it was written last, nil when it is to be read
}

// run renews the lease until ctx ends. A renewal that fails is tried again soon.
func (h *heartbeat) run(ctx context.Context) {
	failures := 0
	for {
		err := h.renew(ctx)
		pause := h.interval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause = min(pause, time.Duration(failures)*pause/8)
			if failures == 1 {
				h.log.Error(err, "Could not renew the lease of this agent; trying again")
			}
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// renew renews the lease once, and makes it when there is none.
func (h *heartbeat) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.interval)
	defer cancel()
	if h.lease == nil {
		lease := &coordinationv1.Lease{}
		err := h.live.Get(ctx, client.ObjectKey{Namespace: names.ClusterNamespace, Name: h.owner.Name}, lease)
		if apierrors.IsNotFound(err) {
			return h.create(ctx)
		}
		if err != nil {
			return fmt.Errorf("read lease %s/%s: %w", names.ClusterNamespace, h.owner.Name, err)
		}
		h.lease = lease
	}
	lease := h.lease.DeepCopy()
	h.fill(lease)
	if err := h.client.Update(ctx, lease); err != nil {
		h.lease = nil // whatever it was, read it anew
		return fmt.Errorf("renew lease %s/%s: %w", names.ClusterNamespace, h.owner.Name, err)
	}
	h.lease = lease
	return nil
}

func (h *heartbeat) create(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterNamespace, Name: h.owner.Name}}
	h.fill(lease)
	if err := h.client.Create(ctx, lease); err != nil {
		return fmt.Errorf("create lease %s/%s: %w", names.ClusterNamespace, h.owner.Name, err)
	}
	h.lease = lease
	return nil
}

func (h *heartbeat) fill(lease *coordinationv1.Lease) {
	lease.Spec.HolderIdentity = &h.owner.Name
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.duration / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(h.now()))
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: h.owner.Name, UID: h.owner.UID,
	}}
}
