package webster_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmadactl/karmadactl/pkg/util/webster"
)

const (
	even = types.UID("a")
	odd  = types.UID("b")
)

type votes = map[string]int64

// spec: behaviour/14 14.2, row by row, and beyond.
func TestDivide(t *testing.T) {
	all := []types.UID{"", even, odd}
	for name, tc := range map[string]struct {
		reason string
		seats  int64
		votes  votes
		uids   []types.UID
		want   votes
	}{
		"9 by 1:2":         {seats: 9, votes: votes{"m1": 1, "m2": 2}, uids: all, want: votes{"m1": 3, "m2": 6}},
		"9 by 1:3":         {seats: 9, votes: votes{"m1": 1, "m2": 3}, uids: all, want: votes{"m1": 2, "m2": 7}},
		"12 by 3:2:1":      {seats: 12, votes: votes{"m1": 3, "m2": 2, "m3": 1}, uids: all, want: votes{"m1": 6, "m2": 4, "m3": 2}},
		"13 by 3:2:1":      {seats: 13, votes: votes{"m1": 3, "m2": 2, "m3": 1}, uids: all, want: votes{"m1": 7, "m2": 4, "m3": 2}},
		"14 by 3:2:1":      {seats: 14, votes: votes{"m1": 3, "m2": 2, "m3": 1}, uids: all, want: votes{"m1": 7, "m2": 5, "m3": 2}},
		"5 by 1:1, even":   {seats: 5, votes: votes{"m1": 1, "m2": 1}, uids: []types.UID{"", even}, want: votes{"m1": 3, "m2": 2}},
		"5 by 1:1, odd":    {seats: 5, votes: votes{"m1": 1, "m2": 1}, uids: []types.UID{odd, "11111111-1111-1111-1111-111111111111"}, want: votes{"m1": 2, "m2": 3}},
		"7 by 1:1:1, even": {seats: 7, votes: votes{"m1": 1, "m2": 1, "m3": 1}, uids: []types.UID{"", even}, want: votes{"m1": 3, "m2": 2, "m3": 2}},
		"10 by 6:8:10":     {seats: 10, votes: votes{"m1": 6, "m2": 8, "m3": 10}, uids: all, want: votes{"m1": 3, "m2": 3, "m3": 4}},
		"3 by 5:1": {
			reason: "The quotients of the third seat are equal; m2 has fewer.",
			seats:  3, votes: votes{"m1": 5, "m2": 1}, uids: all, want: votes{"m1": 2, "m2": 1},
		},
		"2 by 1000:1": {
			reason: "Who gets nothing is told so.",
			seats:  2, votes: votes{"m1": 1000, "m2": 1}, uids: all, want: votes{"m1": 2, "m2": 0},
		},
		"no votes": {
			reason: "Nothing is assigned by a total weight of zero.",
			seats:  5, votes: votes{"m1": 0, "m2": 0}, uids: all, want: votes{"m1": 0, "m2": 0},
		},
		"some without votes": {seats: 5, votes: votes{"m1": 0, "m2": 2, "m3": -1}, uids: all, want: votes{"m1": 0, "m2": 5, "m3": 0}},
		"no seats":           {seats: 0, votes: votes{"m1": 1}, uids: all, want: votes{"m1": 0}},
		"fewer than none":    {seats: -3, votes: votes{"m1": 1}, uids: all, want: votes{"m1": 0}},
		"nobody":             {seats: 3, uids: all, want: votes{}},
		"more than can be counted one by one": {
			reason: "A typing error in replicas must not stop the scheduler for minutes.",
			seats:  math.MaxInt32, votes: votes{"m1": 1, "m2": 2}, uids: all, want: votes{"m1": 715827882, "m2": 1431655765},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, uid := range tc.uids {
				if diff := cmp.Diff(tc.want, webster.Divide(tc.seats, tc.votes, uid)); diff != "" {
					t.Errorf("%s\nuid %q: -want +got:\n%s", tc.reason, uid, diff)
				}
			}
		})
	}
}

// TestDivideIsOneByOne compares with the rule as it is written.
func TestDivideIsOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		parties := votes{}
		most := []int64{2, 10, 1000, 1 << 40}[r.IntN(4)]
		for i := range 1 + r.IntN(30) {
			parties[fmt.Sprintf("m%d", i)] = r.Int64N(most)
		}
		seats := r.Int64N(600)
		for uid, descending := range map[types.UID]bool{"": false, even: false, odd: true} {
			want := oneByOne(seats, parties, descending)
			if diff := cmp.Diff(want, webster.Divide(seats, parties, uid)); diff != "" {
				t.Fatalf("%d among %v, uid %q: -want +got:\n%s", seats, parties, uid, diff)
			}
		}
	}
}

func oneByOne(seats int64, parties votes, descending bool) votes {
	result, total := votes{}, int64(0)
	for name, v := range parties {
		result[name] = 0
		total += v
	}
	quotient := func(name string) float64 { return float64(parties[name]) / float64(2*result[name]+1) }
	for ; seats > 0 && total > 0; seats-- {
		best := ""
		for name := range parties {
			switch q := quotient(name); {
			case best == "" || q > quotient(best):
				best = name
			case q < quotient(best):
			case result[name] < result[best]:
				best = name
			case result[name] == result[best] && (name < best) != descending:
				best = name
			}
		}
		result[best]++
	}
	return result
}

func BenchmarkDivide(b *testing.B) {
	parties := votes{}
	for i := range 100 {
		parties[fmt.Sprintf("m%d", i)] = int64(1 + i*7919%100)
	}
	for b.Loop() {
		webster.Divide(100_000, parties, even)
	}
}
