package spread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func text(groups []group) string {
	var b strings.Builder
	for _, g := range groups {
		b.WriteString(g.name)
	}
	return b.String()
}

func byWeight(groups []group) []group {
	sorted := slices.Clone(groups)
	slices.SortStableFunc(sorted, func(a, b group) int { return int(b.weight - a.weight) })
	return sorted
}

// combinations returns all combinations, as they are found by adding group after
// group and stopping where they are enough: the rule as it is written.
func combinations(groups []group, limits bounds, least int64) [][]group {
	s := search{sorted: slices.Clone(groups), limits: limits, leastClusters: least}
	slices.SortFunc(s.sorted, compareGroups)
	if s.takesAll() {
		if !s.enough(len(s.sorted), s.total()) {
			return nil
		}
		return [][]group{s.sorted}
	}
	var all [][]group
	var walk func(taken []group, from int, value int64)
	walk = func(taken []group, from int, value int64) {
		if s.enough(len(taken), value) {
			all = append(all, slices.Clone(taken))
			return
		}
		if len(taken) >= limits.limit(len(s.sorted)) {
			return
		}
		for i := from; i < len(s.sorted); i++ {
			walk(append(taken, s.sorted[i]), i+1, value+s.sorted[i].value)
		}
	}
	walk(nil, 0, 0)
	return all
}

// chosenOf follows the rule for which of the combinations is used.
func chosenOf(all [][]group) []group {
	sum := func(groups []group, of func(group) int64) (total int64) {
		for _, g := range groups {
			total += of(g)
		}
		return total
	}
	weight := func(groups []group) int64 { return sum(groups, func(g group) int64 { return g.weight }) }
	value := func(groups []group) int64 { return sum(groups, func(g group) int64 { return g.value }) }
	var best []group
	for _, one := range all {
		if best == nil || weight(one) > weight(best) || weight(one) == weight(best) && value(one) > value(best) {
			best = one
		}
	}
	best = byWeight(best)
	for n := 1; n < len(best); n++ {
		if slices.ContainsFunc(best[n:], func(g group) bool { return g.held }) {
			continue
		}
		if slices.ContainsFunc(all, func(one []group) bool { return text(byWeight(one)) == text(best[:n]) }) {
			return best[:n]
		}
	}
	return best
}

// The combination is found without going through all of them; it is the same.
func TestChooseIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups []group
		for i := range rapid.IntRange(0, 9).Draw(t, "groups") {
			groups = append(groups, group{
				name: string(rune('A' + i)), value: rapid.Int64Range(1, 5).Draw(t, "value"), weight: rapid.Int64Range(0, 4).Draw(t, "weight"),
				held: rapid.Bool().Draw(t, "held"),
			})
		}
		limits := bounds{rapid.IntRange(0, max(len(groups), 1)).Draw(t, "least"), rapid.IntRange(0, 6).Draw(t, "most")}
		least := rapid.Int64Range(0, 12).Draw(t, "clusters")
		got, want := choose(groups, limits, least), chosenOf(combinations(groups, limits, least))
		if text(got) != text(want) {
			t.Fatalf("chose %q, want %q", text(got), text(want))
		}
		s := search{sorted: groups, limits: limits, leastClusters: least}
		if (len(s.largest()) > 0) != (len(want) > 0) && len(groups) != limits.least {
			t.Fatalf("the largest groups are %q, but %q would do", text(s.largest()), text(want))
		}
	})
}

// Hundreds of regions, and numbers nobody means, must not stop the scheduler.
func TestChooseEnds(t *testing.T) {
	cases := map[string]struct {
		groups, value int64
		limits        bounds
		least         int64
		want          int
	}{
		"TwentyOf200":   {200, 1, bounds{20, 20}, 20, 20},
		"LargeOnes":     {300, 30, bounds{10, 20}, 400, 14},
		"BeyondReason":  {1000, 1000, bounds{900, 950}, 940_000, 940},
		"NotThatMany":   {1000, 1000, bounds{1, 0}, 2_000_000, 0},
		"NotInSoFew":    {1000, 1000, bounds{1, 5}, 6000, 0},
		"WithoutLimits": {1000, 1000, bounds{1, 0}, 6000, 6},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var groups []group
			for i := range tc.groups {
				groups = append(groups, group{name: fmt.Sprint(i), value: tc.value, weight: 1})
			}
			if got := choose(groups, tc.limits, tc.least); len(got) != tc.want {
				t.Errorf("got %d groups, want %d", len(got), tc.want)
			}
		})
	}
}

// spec: behaviour/14 14.7
func TestChoose(t *testing.T) {
	g := func(name string, value, weight int64) group { return group{name: name, value: value, weight: weight} }
	cases := map[string]struct {
		groups   []group
		regions  bounds
		least    int64
		feasible string
		want     string
	}{
		"14.7 A2 B3 C6 D7, 1..3, 7 clusters": {
			groups: []group{g("A", 2, 2000), g("B", 3, 3000), g("C", 6, 1000), g("D", 7, 500)}, regions: bounds{1, 3}, least: 7,
			feasible: "BAC BAD AC AD BC BD CD D", want: "BAC",
		},
		"14.7 A1 B1 C1, 2..2":             {groups: []group{g("A", 1, 1100), g("B", 1, 1000), g("C", 1, 1000)}, regions: bounds{2, 2}, least: 1, feasible: "AB AC BC", want: "AB"},
		"14.7 A1 B1, 1..2":                {groups: []group{g("A", 1, 1100), g("B", 1, 1000)}, regions: bounds{1, 2}, least: 1, feasible: "A B", want: "A"},
		"14.7 A2 B2 C1, 2..3, 3 clusters": {groups: []group{g("A", 2, 2010), g("B", 2, 2050), g("C", 1, 1100)}, regions: bounds{2, 3}, least: 3, feasible: "BC AC BA", want: "BA"},
		"Prefix": {
			// Of BAC the part B is enough by itself.
			groups: []group{g("A", 1, 10), g("B", 2, 20), g("C", 1, 5)}, regions: bounds{1, 3}, least: 2, feasible: "AC BA BC B", want: "B",
		},
		"PrefixWithoutOneHeld": {
			// The binding is in A, and would have to leave it for no reason.
			groups: []group{{name: "A", value: 1, weight: 10, held: true}, g("B", 2, 20), g("C", 1, 5)}, regions: bounds{1, 3}, least: 2,
			feasible: "AC BA BC B", want: "BA",
		},
		"All": {groups: []group{g("A", 1, 1), g("B", 1, 2)}, regions: bounds{2, 2}, least: 1, feasible: "BA", want: "BA"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := text(choose(tc.groups, tc.regions, tc.least)); got != tc.want {
				t.Errorf("chose %s, want %s", got, tc.want)
			}
			var found []string
			for _, path := range combinations(tc.groups, tc.regions, tc.least) {
				found = append(found, text(byWeight(path)))
			}
			if diff := cmp.Diff(strings.Fields(tc.feasible), found); diff != "" {
				t.Errorf("feasible (-want +got):\n%s", diff)
			}
		})
	}
}
