package kwok

import (
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A podIPs hands out pod addresses. kwok has a pool of its own, but that one
// starts empty in each process and would give the addresses of running pods
// away again after a restart.
type podIPs struct {
	// list returns all pods that are bound to a node. It is asked when a range
	// is used for the first time, and each time it was gone through to its end.
	list func() ([]corev1.Pod, error)

	mu     sync.Mutex
	ranges map[netip.Prefix]*podRange
}

// A podRange is one CIDR that addresses are taken from in turn, so that the
// address of a pod that has just gone does not come back at once.
type podRange struct {
	prefix netip.Prefix
	last   netip.Addr // handed out last
	owner  map[netip.Addr]types.UID
	addr   map[types.UID]netip.Addr
}

func newPodIPs(list func() ([]corev1.Pod, error)) *podIPs {
	return &podIPs{list: list, ranges: map[netip.Prefix]*podRange{}}
}

// get returns the address of the pod in the CIDR, always the same for one UID
// as long as the pod lives.
func (p *podIPs) get(cidr string, uid types.UID) (string, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return "", fmt.Errorf("pod range: %w", err)
	}
	prefix = prefix.Masked()

	p.mu.Lock()
	defer p.mu.Unlock()

	r, ok := p.ranges[prefix]
	if !ok {
		r = &podRange{prefix: prefix, last: prefix.Addr()}
		if err := p.recount(r); err != nil {
			return "", err
		}
		p.ranges[prefix] = r
	}
	if a, ok := r.addr[uid]; ok {
		return a.String(), nil
	}
	a, ok := r.next()
	if !ok {
		if err := p.recount(r); err != nil {
			return "", err
		}
		r.last = prefix.Addr()
		if a, ok = r.next(); !ok {
			return "", fmt.Errorf("pod range %s is used up", prefix)
		}
	}
	r.take(a, uid)
	return a.String(), nil
}

// recount forgets the addresses of pods that are gone. An address that was
// handed out to a pod that does not show it yet stays taken.
func (p *podIPs) recount(r *podRange) error {
	pods, err := p.list()
	if err != nil {
		return fmt.Errorf("list the addresses of pods: %w", err)
	}
	before := r.addr
	r.owner, r.addr = map[netip.Addr]types.UID{}, map[types.UID]netip.Addr{}
	for _, pod := range pods {
		if pod.Spec.HostNetwork {
			continue
		}
		if a, ok := before[pod.UID]; ok {
			r.take(a, pod.UID)
		}
		for _, ip := range pod.Status.PodIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil && r.prefix.Contains(a) {
				r.take(a, pod.UID)
			}
		}
	}
	return nil
}

func (r *podRange) take(a netip.Addr, uid types.UID) {
	r.owner[a] = uid
	r.addr[uid] = a
	if r.last.Less(a) {
		r.last = a
	}
}

// next finds a free address after the last one, false at the range's end. The
// first address (the network) and the last (IPv4's broadcast) stay unused.
func (r *podRange) next() (netip.Addr, bool) {
	for a := r.last.Next(); r.prefix.Contains(a) && r.prefix.Contains(a.Next()); a = a.Next() {
		if _, used := r.owner[a]; !used {
			return a, true
		}
	}
	return netip.Addr{}, false
}
