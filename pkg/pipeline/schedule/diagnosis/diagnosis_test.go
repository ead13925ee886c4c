package diagnosis

import (
	"testing"
	"time"

	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
)

func TestVerdict(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		reason  string
		cluster Cluster
		want    string
	}{
		"Leaving": {"Nothing else matters then.", Cluster{Stage: Leaving, Score: 100}, "is being deleted"},
		"Refused": {"Who refused, and why.", Cluster{Stage: Refused, Plugin: "P", Reason: "r"}, "refused by P: r"},
		"Unknown": {"There may be nothing to tell.", Cluster{Stage: Unknown}, "not looked at"},
		"Fitting": {"What is known is told.", Cluster{Stage: Fitting, Tier: 2}, "may be used; overflow 2"},
		"Old": {
			"An old estimate explains much.", Cluster{Stage: Selected, Estimates: []estimate.Answer{{Replicas: 1, By: "e", At: now.Add(-2 * time.Hour)}}},
			"selected, but without a replica; room for 1 more (e, 2h0m0s ago)",
		},
		"Silent":   {"So does one that is missing.", Cluster{Stage: NotSelected, Estimates: []estimate.Answer{{Replicas: estimate.Unknown, By: "e"}}}, "not selected by spread constraints; e cannot tell"},
		"Assigned": {"Before and after.", Cluster{Stage: Assigned, Current: 2, Replicas: 3, Score: 100}, "assigned 3, has 2; score 100"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.cluster.Verdict(now); got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestCluster(t *testing.T) {
	term := Term{Clusters: []Cluster{{Name: "m1"}, {Name: "m10"}, {Name: "m2"}}}
	for _, name := range []string{"m1", "m10", "m2"} {
		if c, ok := term.Cluster(name); !ok || c.Name != name {
			t.Errorf("got %q, %t for %s", c.Name, ok, name)
		}
	}
	if _, ok := term.Cluster("m3"); ok {
		t.Error("m3 is not there")
	}
}
