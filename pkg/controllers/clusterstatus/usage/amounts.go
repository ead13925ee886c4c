package usage

import (
	"cmp"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A resourceName costs a pointer, however many pods ask for it, and nothing any
// more when none does.
type resourceName = unique.Handle[corev1.ResourceName]

// most bounds what is believed of one pod or node, in units of the resource, or
// thousandths of a CPU: who asks for more than 2^50 of anything asks for
// nonsense, and sums of nonsense would overflow.
const most = 1 << 50

// An amount is how much of a resource other than CPU and memory.
type amount struct {
	name  resourceName
	value int64
}

// Amounts are what one pod asks for, or one node has: CPU in thousandths, all
// else in units.
type amounts struct {
	cpu, memory int64
	other       []amount // sorted by name; nil when there is nothing else
}

// amountsOf converts a list. Zeros of other resources are kept with zeros only.
func amountsOf(list corev1.ResourceList, zeros bool) amounts {
	var a amounts
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			a.cpu = milli(quantity)
		case corev1.ResourceMemory:
			a.memory = units(quantity)
		default:
			if value := units(quantity); value != 0 || zeros {
				a.other = append(a.other, amount{unique.Make(name), value})
			}
		}
	}
	slices.SortFunc(a.other, func(x, y amount) int { return cmp.Compare(x.name.Value(), y.name.Value()) })
	a.other = slices.Clip(a.other)
	return a
}

func units(q resource.Quantity) int64 { return min(max(q.Value(), 0), most) }

func milli(q resource.Quantity) int64 {
	if q.Value() > most/1000 {
		return most
	}
	return min(max(q.MilliValue(), 0), most)
}

func (a amounts) equal(b amounts) bool {
	return a.cpu == b.cpu && a.memory == b.memory && slices.Equal(a.other, b.other)
}

// of returns the amount of one resource.
func (a amounts) of(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return a.cpu
	case corev1.ResourceMemory:
		return a.memory
	}
	for _, o := range a.other {
		if o.name.Value() == name {
			return o.value
		}
	}
	return 0
}

// A sum adds up amounts, and can take them off again.
type sum struct {
	cpu, memory int64
	other       map[resourceName]held
}

// held is the sum of a resource, and how many have any of it.
type held struct{ value, holders int64 }

func (s *sum) add(a amounts)    { s.change(a, 1) }
func (s *sum) remove(a amounts) { s.change(a, -1) }

func (s *sum) change(a amounts, sign int64) {
	s.cpu += sign * a.cpu
	s.memory += sign * a.memory
	for _, o := range a.other {
		if s.other == nil {
			s.other = map[resourceName]held{}
		}
		h := s.other[o.name]
		h.value += sign * o.value
		h.holders += sign
		if h.holders == 0 {
			delete(s.other, o.name)
		} else {
			s.other[o.name] = h
		}
	}
}

// of returns the sum of one resource.
func (s *sum) of(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return s.cpu
	case corev1.ResourceMemory:
		return s.memory
	default:
		return s.other[unique.Make(name)].value
	}
}

// list converts the sum. CPU and memory that nobody has or asks for are left
// out unless zeros is set.
func (s *sum) list(zeros bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	if s.cpu != 0 || zeros {
		list[corev1.ResourceCPU] = quantity(corev1.ResourceCPU, s.cpu)
	}
	if s.memory != 0 || zeros {
		list[corev1.ResourceMemory] = quantity(corev1.ResourceMemory, s.memory)
	}
	for name, h := range s.other {
		list[name.Value()] = quantity(name.Value(), h.value)
	}
	return list
}

// quantity writes an amount as people write that resource.
func quantity(name corev1.ResourceName, value int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || isHugePages(name):
		return *resource.NewQuantity(value, resource.BinarySI)
	default:
		return *resource.NewQuantity(value, resource.DecimalSI)
	}
}

func isHugePages(name corev1.ResourceName) bool {
	return len(name) > len(corev1.ResourceHugePagesPrefix) && name[:len(corev1.ResourceHugePagesPrefix)] == corev1.ResourceHugePagesPrefix
}
