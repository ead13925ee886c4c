package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdd(t *testing.T) {
	e := &Env{}
	for _, v := range []float64{7, 3, 5} {
		e.Add(coldInit, Seconds, v)
	}
	e.Add("without a target", MiB, 1)
	met := true
	want := []Figure{
		{Name: coldInit, Unit: Seconds, Values: []float64{7, 3, 5}, Min: 3, Median: 5, Max: 7, Target: targets()[coldInit], Met: &met},
		{Name: "without a target", Unit: MiB, Values: []float64{1}, Min: 1, Median: 1, Max: 1},
	}
	if diff := cmp.Diff(want, e.figures); diff != "" {
		t.Errorf("Values of one name are one figure, judged by its median (-want +got):\n%s", diff)
	}
}

func TestMedian(t *testing.T) {
	cases := map[string]struct {
		reason string
		values []float64
		want   float64
	}{
		"Odd":  {reason: "The one in the middle.", values: []float64{9, 1, 4}, want: 4},
		"Even": {reason: "Between the two in the middle.", values: []float64{9, 1, 4, 2}, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := median(tc.values); got != tc.want {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	report := func(figures ...Figure) Report {
		return Report{Results: []Result{{Scenario: "boot", Figures: figures}}}
	}
	before := report(Figure{Name: "slower", Median: 2}, Figure{Name: "gone", Median: 1}, Figure{Name: "zero"})
	now := report(Figure{Name: "slower", Median: 3}, Figure{Name: "new", Median: 1}, Figure{Name: "zero", Median: 1})
	var got []string
	for _, d := range differences(before, now) {
		got = append(got, d.name+" "+d.percent())
	}
	want := []string{"slower +50.0 %", "new new", "zero -", "gone gone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Every figure of either report is told of once (-want +got):\n%s", diff)
	}
}
