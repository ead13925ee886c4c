package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseCPUTime(t *testing.T) {
	cases := map[string]struct {
		reason string
		stat   string
		want   time.Duration
		fails  bool
	}{
		"Plain": {
			reason: "User and kernel time count.",
			stat:   "7 (karmada) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 100",
			want:   3 * time.Second,
		},
		"NameWithBrackets": {
			reason: "A process may call itself anything.",
			stat:   "7 (a) S 1 (b) R 1 7 7 0 -1 4194560 9 0 0 0 100 0 0 0 20 0 12 0 100",
			want:   time.Second,
		},
		"Short": {
			reason: "What cannot be read is no zero.",
			stat:   "7 (karmada) S 1",
			fails:  true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseCPUTime(tc.stat)
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("%s\ngot %v, %v, want %v", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestParseSizes(t *testing.T) {
	got := parseSizes("Name:\tkarmada\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t12\n")
	want := map[string]float64{"VmHWM": 2 << 20, "VmRSS": 1 << 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Only sizes count, in bytes (-want +got):\n%s", diff)
	}
}
