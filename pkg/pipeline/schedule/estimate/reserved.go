package estimate

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mostReserved bounds what one entry counts for, so that sums of many stay within
// their type: 2^52 bytes are more than any cluster has.
const mostReserved = 1 << 52

// Reserved is what was placed in a cluster and does not show in its numbers yet
// (spec: behaviour/04 4.16). Its zero value, and nil, are nothing. What is added
// and taken away again costs the same however much there is. It must not be
// changed while somebody reads it.
type Reserved struct {
	sums map[corev1.ResourceName]int64
	// alike has what asks for the same as one entry; resource models place it
	// node by node.
	alike map[string]*reservation
}

type reservation struct {
	each     amounts
	replicas int64
}

// amounts are resources in the units that they are compared in.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	a := make(amounts, len(list))
	for name, q := range list {
		if n := amountOf(name, q); n > 0 && name != podsName {
			a[name] = n
		}
	}
	return a
}

func (a amounts) key() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a)) {
		b.WriteString(string(name))
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(a[name], 36))
		b.WriteByte(' ')
	}
	return b.String()
}

// Add reserves room for replicas that each ask for request, and for a pod.
func (r *Reserved) Add(request corev1.ResourceList, replicas int64) {
	if replicas > 0 {
		r.change(request, replicas, 1)
	}
}

// Remove takes back what Add was told with the same arguments.
func (r *Reserved) Remove(request corev1.ResourceList, replicas int64) {
	if replicas > 0 {
		r.change(request, replicas, -1)
	}
}

// IsEmpty reports whether nothing is reserved.
func (r *Reserved) IsEmpty() bool { return r == nil || len(r.alike) == 0 }

func (r *Reserved) change(request corev1.ResourceList, replicas, sign int64) {
	if r.alike == nil {
		r.alike, r.sums = map[string]*reservation{}, map[corev1.ResourceName]int64{}
	}
	each := amountsOf(request)
	key := each.key()
	one := r.alike[key]
	if one == nil {
		one = &reservation{each: each}
		r.alike[key] = one
	}
	one.replicas += sign * replicas
	if one.replicas == 0 {
		delete(r.alike, key)
	}
	r.sums[podsName] += sign * replicas
	for name, amount := range each {
		r.sums[name] += sign * times(amount, replicas)
		if r.sums[name] == 0 {
			delete(r.sums, name)
		}
	}
}

// times multiplies numbers that are not negative.
func times(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > mostReserved {
		return mostReserved
	}
	return int64(low)
}

// leaves returns how much of what is free is not reserved.
func (r *Reserved) leaves(free int64, name corev1.ResourceName) int64 {
	if r == nil {
		return max(0, free)
	}
	return max(0, free-r.sums[name])
}
