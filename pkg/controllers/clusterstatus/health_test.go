package clusterstatus

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

var errBoom = errors.New("boom")

// epoch is when tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestJudge(t *testing.T) {
	up, down, away := clusterReady(), clusterNotReady(), clusterNotReachable()
	unknown := condition(metav1.ConditionUnknown, clusterv1alpha1.ReasonClusterStatusUnknown, "")
	// A sight is what is seen at a second, and what is to become of it. The
	// condition that the cluster has is what became of the sight before, unless
	// somebody else has changed it.
	type sight struct {
		at      int
		seen    metav1.Condition
		other   *metav1.Condition
		want    metav1.Condition
		settled time.Duration
	}
	s := time.Second
	cases := map[string]struct {
		reason string
		has    *metav1.Condition
		sights []sight
	}{
		"FirstUp":          {"The first sight counts at once: who joins a cluster waits for it.", nil, []sight{{0, up, nil, up, 0}}},
		"FirstDown":        {"A bad one, too.", nil, []sight{{0, down, nil, down, 0}}},
		"FirstAfterReset":  {"And after a restart, whatever the cluster had.", &up, []sight{{0, away, nil, away, 0}}},
		"Blink":            {"A fault that is over within the threshold changes nothing.", nil, []sight{{0, up, nil, up, 0}, {10, away, nil, up, 30 * s}, {20, away, nil, up, 20 * s}, {39, up, nil, up, 0}, {45, away, nil, up, 30 * s}}},
		"Down":             {"One that lasts does, exactly at the threshold.", nil, []sight{{0, up, nil, up, 0}, {10, away, nil, up, 30 * s}, {39, away, nil, up, s}, {40, away, nil, away, 0}}},
		"BackUp":           {"The way back has a threshold of its own.", nil, []sight{{0, down, nil, down, 0}, {10, up, nil, down, 20 * s}, {29, up, nil, down, s}, {30, up, nil, up, 0}}},
		"OtherFault":       {"From one fault to another is no change of heart.", nil, []sight{{0, down, nil, down, 0}, {1, away, nil, away, 0}, {2, down, nil, down, 0}}},
		"FaultsAddUp":      {"Two faults in a row are one time of faults.", nil, []sight{{0, up, nil, up, 0}, {10, away, nil, up, 30 * s}, {25, down, nil, up, 15 * s}, {40, down, nil, down, 0}}},
		"MonitorWasWrong":  {"An agent that was ready all the time says so at once when the monitor has given it up.", nil, []sight{{0, up, nil, up, 0}, {60, up, &unknown, up, 0}}},
		"MonitorWasSooner": {"From unknown to not ready is no flip either.", nil, []sight{{0, up, nil, up, 0}, {60, down, &unknown, down, 0}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h health
			has := tc.has
			for _, sight := range tc.sights {
				if sight.other != nil {
					has = sight.other
				}
				got, settled := h.judge(sight.seen, has, epoch.Add(time.Duration(sight.at)*time.Second), thresholds{success: 20 * s, failure: 30 * s})
				if diff := cmp.Diff(sight.want, got); diff != "" {
					t.Fatalf("at %d s: %s\n(-want +got):\n%s", sight.at, tc.reason, diff)
				}
				if settled != sight.settled {
					t.Errorf("at %d s: settled in %s, want %s\n%s", sight.at, settled, sight.settled, tc.reason)
				}
				has = &got
			}
		})
	}
}

// TestConditions holds still what scripts match.
func TestConditions(t *testing.T) {
	for want, c := range map[string]metav1.Condition{
		"Ready True ClusterReady: cluster is healthy and ready to accept workloads":                      clusterReady(),
		"Ready False ClusterNotReady: cluster is reachable but health endpoint responded without ok":     clusterNotReady(),
		"Ready False ClusterNotReachable: cluster is not reachable":                                      clusterNotReachable(),
		"Ready False StatusCollectionFailed: failed to create a ClusterClient: boom":                     clusterWithoutClient(errBoom),
		"CompleteAPIEnablements False Empty: collected empty APIEnablements from the cluster":            completeness(served{}, 3),
		"CompleteAPIEnablements False Partial: might collect partial APIEnablements(3) from the cluster": completeness(partly(), 3),
		"CompleteAPIEnablements True Complete: collected complete APIEnablements from the cluster":       completeness(wholly(), 3),
	} {
		if got := c.Type + " " + string(c.Status) + " " + c.Reason + ": " + c.Message; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
