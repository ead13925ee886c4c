package fleet_test

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

func aFleet(t *testing.T, members ...string) *fleet.Fleet {
	t.Helper()
	p := fleettest.New(t)
	for _, name := range members {
		p.Join(name)
	}
	return &fleet.Fleet{Factory: p.Factory(t, genericiooptions.NewTestIOStreamsDiscard())}
}

func TestNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		named  []string
		want   []string
		err    string
	}{
		"All":     {reason: "No name is all of them, in order.", want: []string{"a", "b", "c"}},
		"Named":   {reason: "The order is the user's.", named: []string{"c", "a"}, want: []string{"c", "a"}},
		"Twice":   {reason: "Nobody is asked twice.", named: []string{"c", "a", "c"}, want: []string{"c", "a"}},
		"Missing": {reason: "All that are missing are named, once.", named: []string{"x", "a", "y", "x"}, err: "clusters don't exist: x,y"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			got, err := aFleet(t, "b", "a", "c").Names(t.Context(), tc.named)
			if (tc.err == "") != (err == nil) || err != nil && err.Error() != tc.err {
				t.Fatalf("got error %v, want %q: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMember(t *testing.T) {
	f := aFleet(t, "a")
	if _, err := f.Member(t.Context(), "a"); err != nil {
		t.Errorf("a exists, but: %v", err)
	}
	_, err := f.Member(t.Context(), "b")
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `clusters.cluster.karmada.io "b" not found`) {
		t.Errorf("got %v: scripts match the server's words", err)
	}
}

// All are asked at once, and the errors are in the members' order.
func TestEach(t *testing.T) {
	members := []string{"a", "b", "c"}
	var asked atomic.Int32
	all := make(chan struct{})
	errs := fleet.Each(t.Context(), members, func(_ context.Context, name string) error {
		if asked.Add(1) == int32(len(members)) {
			close(all)
		}
		<-all // which never comes if one is asked after the other
		if name == "b" {
			return nil
		}
		return errors.New("broken " + name)
	})
	if want := "cluster(a): broken a\nerror: cluster(c): broken c"; errs.Err() == nil || errs.Error() != want {
		t.Errorf("got %v, want %q: a line for each, as the command line shows it", errs.Err(), want)
	}
	if none := fleet.Each(t.Context(), members, func(context.Context, string) error { return nil }); none.Err() != nil {
		t.Errorf("got %v, want nil", none.Err())
	}
}

func TestError(t *testing.T) {
	clusters := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	pods := schema.GroupResource{Resource: "pods"}
	lost := "basic connection test to cluster(m) failed, please check authorization or network: "
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Silence":         {reason: "It did not answer.", err: &url.Error{Op: "Get", URL: "https://x", Err: &factory.Silence{Cluster: "m", After: time.Second}}, want: lost + "no answer within 1s"},
		"Transport":       {reason: "The address of the proxy helps nobody.", err: &url.Error{Op: "Get", URL: "https://x", Err: errors.New("EOF")}, want: lost + "EOF"},
		"Unavailable":     {reason: "The proxy says why.", err: apierrors.NewServiceUnavailable("cluster m cannot be reached"), want: lost + "cluster m cannot be reached"},
		"NoRightToProxy":  {reason: "The control plane does not let it through.", err: apierrors.NewForbidden(clusters, "m", errors.New("no")), want: lost + `clusters.cluster.karmada.io "m" is forbidden: no`},
		"NoRightInMember": {reason: "The member does not allow it.", err: apierrors.NewForbidden(pods, "p", errors.New("no")), want: `cluster(m): pods "p" is forbidden: no`},
		"NotFound":        {reason: "Tests match this.", err: apierrors.NewNotFound(pods, "p"), want: `cluster(m): pods "p" not found`},
		"ManyLines":       {reason: "One line for each cluster.", err: errors.New("a\n  b"), want: "cluster(m): a b"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		if got := (&fleet.Error{Cluster: "m", Err: tc.err}).Error(); got != tc.want {
			t.Errorf("%s: got %q, want %q: %s", name, got, tc.want, tc.reason)
		}
	}
}
