package kwok

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
)

const (
	leaseHolder = "karmada-member"
	// leaseRenewal is how often a node shows that it lives: as seldom as stays
	// clear of the 50 s after which kube-controller-manager gives a node up,
	// because every renewal is a write.
	leaseRenewal = 30 * time.Second
	leaseSeconds = 60
	// leaseScan is how often nodes that came or went are looked for.
	leaseScan = 2 * time.Second
)

// keepLeases renews the leases of the nodes that list names, until ctx is done.
//
// It takes a kubelet's lease controller instead of kwok's. The latter decides
// with leases which of several kwoks plays a node, and one that is restarted
// lets its nodes' pods wait for a whole renewal when it sees its own old lease
// too late. Here is one process that answers for all simulated nodes.
func keepLeases(ctx context.Context, client kubernetes.Interface, list func() []string, get func(name string) (*corev1.Node, bool)) {
	stops := map[string]context.CancelFunc{}
	tick := time.NewTicker(leaseScan)
	defer tick.Stop()
	for {
		here := map[string]bool{}
		for _, name := range list() {
			here[name] = true
			if stops[name] != nil {
				continue
			}
			one, stop := context.WithCancel(ctx)
			stops[name] = stop
			own := func(l *coordinationv1.Lease) error {
				if node, ok := get(name); ok {
					l.OwnerReferences = ownedBy(node)
				}
				return nil
			}
			go lease.NewController(clock.RealClock{}, client, leaseHolder, leaseSeconds, nil, leaseRenewal, name, corev1.NamespaceNodeLease, own).Run(one)
		}
		for name, stop := range stops {
			if !here[name] {
				stop()
				delete(stops, name)
			}
		}
		select {
		case <-ctx.Done():
			for _, stop := range stops {
				stop()
			}
			return
		case <-tick.C:
		}
	}
}

// ownedBy makes a node's lease go when the node is deleted.
func ownedBy(node *corev1.Node) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
}
