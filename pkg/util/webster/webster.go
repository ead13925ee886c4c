// Package webster divides a number of things among parties by the method of
// Webster and Sainte-Laguë: replicas among clusters, completions of a Job among
// its targets.
package webster

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Divide gives out seats one by one, each to the party with the most votes for
// each seat it would have, votes/(2·seats+1). Of parties that are equal the one
// with fewer seats comes first, then the one first by name, or last by name if
// the hash of uid is odd: so that what several objects have left over does not
// all end in the same place.
//
// The result has every party, those without a seat too. When there are no votes
// nobody gets a seat. Votes and seats below zero count as zero
// (spec: behaviour/04 4.10 "Divider").
func Divide(seats int64, votes map[string]int64, uid types.UID) map[string]int64 {
	result := make(map[string]int64, len(votes))
	total := 0.0
	for name, v := range votes {
		result[name] = 0
		total += float64(max(v, 0))
	}
	if total == 0 || seats <= 0 {
		return result
	}

	q := &queue{descending: isOdd(uid)}
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] <= 0 {
			continue
		}
		q.parties = append(q.parties, party{name: name, votes: float64(votes[name])})
	}
	left := seats
	for i := range q.parties {
		p := &q.parties[i]
		p.give(safe(p.votes, float64(seats), total, float64(len(q.parties))))
		left -= p.seats
	}
	heap.Init(q)
	for ; left > 0; left-- {
		q.parties[0].give(1)
		heap.Fix(q, 0)
	}
	for _, p := range q.parties {
		result[p.name] = p.seats
	}
	return result
}

// safe returns a number of seats that a party gets in any case, so that they
// need not be given out one by one. By this method a party has
// round(votes/divisor) seats, and rounding adds or takes at most half a seat for
// each of n parties: the divisor is at most total/(seats-n/2). Two seats and a
// millionth of a millionth are left for the inexactness of numbers.
func safe(votes, seats, total, n float64) int64 {
	least := votes*(seats-n/2)/total - 0.5
	return int64(max(0, math.Floor(least*(1-1e-12))-2))
}

// isOdd tells the direction of names for a uid.
func isOdd(uid types.UID) bool {
	if uid == "" {
		return false
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return h.Sum32()%2 == 1
}

type party struct {
	name     string
	votes    float64
	seats    int64
	quotient float64
}

func (p *party) give(n int64) {
	p.seats += n
	p.quotient = p.votes / float64(2*p.seats+1)
}

// A queue is a heap with the party that gets the next seat first.
type queue struct {
	parties    []party
	descending bool
}

func (q *queue) Len() int      { return len(q.parties) }
func (q *queue) Swap(i, j int) { q.parties[i], q.parties[j] = q.parties[j], q.parties[i] }
func (q *queue) Push(any)      {} // nobody joins
func (q *queue) Pop() any      { return nil }

func (q *queue) Less(i, j int) bool {
	a, b := &q.parties[i], &q.parties[j]
	if c := cmp.Compare(b.quotient, a.quotient); c != 0 {
		return c < 0
	}
	if a.seats != b.seats {
		return a.seats < b.seats
	}
	if q.descending {
		a, b = b, a
	}
	return strings.Compare(a.name, b.name) < 0
}
