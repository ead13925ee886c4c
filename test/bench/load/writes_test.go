package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metrics = `# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="",verb="POST",version="v1alpha1"} 7
apiserver_request_total{code="200",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 4
apiserver_request_total{code="409",component="apiserver",dry_run="",group="work.karmada.io",resource="works",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="cluster",subresource="",verb="LIST",version="v1"} 9
apiserver_request_total{code="201",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 50
apiserver_request_total{code="200",component="apiserver",dry_run="",group="cluster.karmada.io",resource="clusters",scope="resource",subresource="status",verb="PUT",version="v1alpha1"} 2
`

func TestWrites(t *testing.T) {
	works := Write{Group: "work.karmada.io", Resource: "works", Verb: "POST"}
	status := Write{Group: "work.karmada.io", Resource: "works", Subresource: "status", Verb: "PATCH"}
	now, err := parseWrites([]byte(metrics))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		before Writes
		want   Writes
	}{
		"FromNothing": {
			"What was refused, only tried, or read is no write; events and the status of clusters go on all the time.",
			nil, Writes{works: 7, status: 4},
		},
		"SinceThen": {"Counters only grow: what counts is how far.", Writes{works: 5}, Writes{works: 2, status: 4}},
		"Nothing":   {"What did not grow is left out.", Writes{works: 7, status: 4}, Writes{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, now.Since(tc.before)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if got := now.Since(nil).Kinds(); len(got) != 2 || got[0] != works {
		t.Errorf("got %v, want the most frequent first", got)
	}
}

func TestWritesOfNoMetrics(t *testing.T) {
	if _, err := parseWrites([]byte("<html>")); err == nil {
		t.Error("a page that is no metrics must be an error, not zero writes")
	}
}
