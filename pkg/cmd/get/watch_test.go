package get

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
	"github.com/karmadactl/karmadactl/pkg/cmd/kubectl"
)

func toYAML(o any) (string, error) {
	text, err := yaml.Marshal(o)
	return string(text), err
}

func TestWatch(t *testing.T) {
	p := fleettest.New(t)
	m1 := p.Join("member1", fleettest.Pod("default", "a"))
	m2 := p.Join("member2", fleettest.Pod("default", "b"))
	cases := map[string]struct {
		reason string
		args   []string
		first  string
		then   string
	}{
		"Watch": {
			reason: "What there is comes first, with one header for all clusters.", args: []string{"po", "-s", "members", "-w"},
			first: "NAME   CLUSTER   READY\na      member1   1/1\nb      member2   1/1\n",
			then:  "b      member2   0/1\na      member1   0/1\n",
		},
		"WatchOnly": {
			reason: "Only changes, with a header.", args: []string{"po", "-s", "members", "--watch-only"},
			then: "NAME   CLUSTER   READY\nb      member2   0/1\na      member1   0/1\n",
		},
		"Events": {
			reason: "EVENT comes first.", args: []string{"po", "-s", "members", "-w", "--output-watch-events"},
			first: "EVENT      NAME   CLUSTER   READY\nADDED      a      member1   1/1\nADDED      b      member2   1/1\n",
			then:  "MODIFIED   b      member2   0/1\nMODIFIED   a      member1   0/1\n",
		},
		"One": {
			reason: "One object is watched alone.", args: []string{"po", "b", "-C", "member2", "-w"},
			first: "NAME   CLUSTER   READY\nb      member2   1/1\n",
			then:  "b      member2   0/1\n",
		},
		"Name": {
			reason: "Any format does.", args: []string{"po", "-s", "members", "-w", "-o", "name"},
			then: "pod/b\npod/a\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m1.Add(fleettest.Pod("default", "a"))
			m2.Add(fleettest.Pod("default", "b"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd, out, errOut := newGet(t, p, tc.args...)
			done := make(chan error, 1)
			go func() { done <- cmd.ExecuteContext(ctx) }()
			eventually(t, "members are watched", func() bool {
				return m2.Watches() > 0 && (m1.Watches() > 0 || name == "One")
			})
			if tc.first != "" {
				eventually(t, "what there is is shown", func() bool { return len(out.String()) >= len(tc.first) })
			}
			if name == "Name" {
				eventually(t, "what there is is shown", func() bool { return strings.Count(out.String(), "\n") == 2 })
				tc.first = out.String() // nothing is said of its order
			}
			if diff := cmp.Diff(tc.first, out.String()); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", tc.reason, diff)
			}
			seen := len(out.String())
			m2.Add(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"b"},"status":{"ready":"0/1"}}`)
			eventually(t, "the change in member2 is shown", func() bool { return len(out.String()) > seen })
			if name != "One" {
				seen = len(out.String())
				m1.Add(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"a"},"status":{"ready":"0/1"}}`)
				eventually(t, "the change in member1 is shown", func() bool { return len(out.String()) > seen })
			}
			cancel()
			var exit *kubectl.Exit
			if err := <-done; !errors.As(err, &exit) || exit.Code != 130 {
				t.Errorf("ended with %v, want exit code 130", err)
			}
			if diff := cmp.Diff(tc.first+tc.then, out.String()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if errOut.String() != "" {
				t.Errorf("standard error: %s", errOut)
			}
			eventually(t, "the watches have ended", func() bool { return m1.Watches()+m2.Watches() == 0 })
		})
	}
}

// A member that is not there costs its own rows; a watch that is cut goes on.
func TestWatchGoesOn(t *testing.T) {
	p := fleettest.New(t)
	m1 := p.Join("member1", fleettest.Pod("default", "a"))
	p.JoinAs("broken", fleettest.Broken())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, out, errOut := newGet(t, p, "po", "-s", "members", "-w")
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	eventually(t, "the member that is not there is named", func() bool { return strings.Contains(errOut.String(), "cluster(broken)") })
	eventually(t, "the other is shown and watched", func() bool { return m1.Watches() == 1 && strings.Contains(out.String(), "a ") })

	m1.Cut()
	eventually(t, "it is watched again", func() bool { return m1.Watches() == 1 })
	m1.Add(fleettest.Pod("default", "later"))
	eventually(t, "a change after the cut is shown", func() bool { return strings.Contains(out.String(), "later") })

	down := make(chan struct{})
	m1.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		select {
		case <-down:
			return false
		default:
			fleettest.Status(w, http.StatusServiceUnavailable, "ServiceUnavailable", "cluster member1 cannot be reached")
			return true
		}
	})
	m1.Cut()
	eventually(t, "its loss is said", func() bool {
		return strings.Contains(errOut.String(), "cluster(member1) failed, please check authorization or network: cluster member1 cannot be reached; trying again")
	})
	close(down)
	eventually(t, "so is its return", func() bool { return strings.Contains(errOut.String(), "note: cluster(member1) is back") })
	cancel()
	var exit *kubectl.Exit
	if err := <-done; !errors.As(err, &exit) || exit.Code != 1 {
		t.Errorf("ended with %v, want exit code 1: one member was never shown", err)
	}
}

func TestWatchOfManyTypes(t *testing.T) {
	cmd, _, _ := newGet(t, aFleet(t), "po,deploy", "-w")
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "you may only specify a single resource type") {
		t.Errorf("got %v: only one type can be watched", err)
	}
}
