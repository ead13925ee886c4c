package member_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
)

// A journal notes the events of a pool.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) note(e member.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.Old == nil:
		j.entries = append(j.entries, fmt.Sprintf("%s: added %s", e.Cluster, e.New.GetName()))
	case e.New == nil:
		j.entries = append(j.entries, fmt.Sprintf("%s: deleted %s", e.Cluster, e.Old.GetName()))
	default:
		j.entries = append(j.entries, fmt.Sprintf("%s: changed %s", e.Cluster, e.New.GetName()))
	}
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	taken := j.entries
	j.entries = nil
	return taken
}

func (j *journal) has(entry string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if e == entry {
			return true
		}
	}
	return false
}

func mustGet(t *testing.T, p *member.Pool, c *clusterv1alpha1.Cluster) *member.Member {
	t.Helper()
	m, err := p.Get(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustWatch(t *testing.T, m *member.Member) {
	t.Helper()
	if err := m.Watch("w", configMaps); err != nil {
		t.Fatal(err)
	}
}

func synced(m *member.Member) func() bool {
	return func() bool {
		_, known := m.Cached(configMaps, "default", "x")
		return known
	}
}

func isDone(m *member.Member) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

func TestPoolRemakes(t *testing.T) {
	a, other := newAPI(t), newAPI(t)
	cases := map[string]struct {
		reason string
		change func(*clusterv1alpha1.Cluster, *vault)
		remade bool
	}{
		"Nothing": {
			reason: "Everybody shares one connection.",
			change: func(*clusterv1alpha1.Cluster, *vault) {},
		},
		"Token": {
			reason: "The transport reads it again by itself; nothing is interrupted.",
			change: func(_ *clusterv1alpha1.Cluster, v *vault) { v.set("token", "new") },
		},
		"LabelsAndStatus": {
			reason: "They do not say how the member is reached.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) {
				c.Labels = map[string]string{"a": "b"}
				c.Status.KubernetesVersion = "v1"
			},
		},
		"Address": {
			reason: "The member has moved.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.Spec.APIEndpoint = other.URL },
			remade: true,
		},
		"Insecure": {
			reason: "The user has changed what is verified.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.Spec.InsecureSkipTLSVerification = true },
			remade: true,
		},
		"Proxy": {
			reason: "The way there is another one.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.Spec.ProxyURL = "http://127.0.0.1:1" },
			remade: true,
		},
		"ProxyHeader": {
			reason: "The proxy may let in by it.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.Spec.ProxyHeader = map[string]string{"a": "b"} },
			remade: true,
		},
		"SecretRef": {
			reason: "The credentials are others.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.Spec.SecretRef.Name = "other" },
			remade: true,
		},
		"UID": {
			reason: "It is another cluster of that name.",
			change: func(c *clusterv1alpha1.Cluster, _ *vault) { c.UID = "another" },
			remade: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, c := vaultOf(a, "x"), clusterAt("m1", a.URL)
			p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
			m := mustGet(t, p, c)
			changed := c.DeepCopy()
			tc.change(changed, v)
			got := mustGet(t, p, changed)
			if remade := got != m; remade != tc.remade || isDone(m) != tc.remade {
				t.Errorf("%s\nremade %t, old one done %t", tc.reason, remade, isDone(m))
			}
			if again := mustGet(t, p, changed); again != got || isDone(got) {
				t.Errorf("%s\nand what was made is kept", tc.reason)
			}
			p.Forget("m1")
			if !isDone(got) {
				t.Errorf("a cluster that is forgotten is not connected to")
			}
		})
	}
}

func TestPoolReadsSecretsSparingly(t *testing.T) {
	a := newAPI(t)
	v := vaultOf(a, "x")
	p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
	for range 100 {
		mustGet(t, p, clusterAt("m1", a.URL))
	}
	if got := v.count(); got > 2 { // 10 s may pass once on a slow machine
		t.Errorf("a Secret need not be read for each Work, but was read %d times", got)
	}
}

func TestPoolErrors(t *testing.T) {
	a := newAPI(t)
	v := vaultOf(a, "x")
	v.err = errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	p := member.NewPool(ctx, member.Push(v.read, member.Limits{}))
	if _, err := p.Get(t.Context(), clusterAt("m1", a.URL)); !errors.Is(err, v.err) {
		t.Errorf("the cause is passed on, got %v", err)
	}
	v.mu.Lock()
	v.err = nil
	v.mu.Unlock()
	m := mustGet(t, p, clusterAt("m1", a.URL))
	cancel()
	if _, err := p.Get(t.Context(), clusterAt("m1", a.URL)); !errors.Is(err, member.ErrStopped) {
		t.Errorf("who stops makes no connections, got %v", err)
	}
	if err := m.Watch("w", configMaps); !errors.Is(err, member.ErrStopped) || !isDone(m) {
		t.Errorf("and ends those that are there, got %v", err)
	}
}

func TestPull(t *testing.T) {
	a := newAPI(t)
	config := &rest.Config{Host: a.URL, BearerToken: "own", TLSClientConfig: rest.TLSClientConfig{CAData: a.ca()}}
	p := member.NewPool(t.Context(), member.Pull("m1", config, member.Limits{QPS: 100, Burst: 200}))
	a.accept("own")
	m := mustGet(t, p, &clusterv1alpha1.Cluster{ObjectMeta: clusterAt("m1", "").ObjectMeta})
	if code, _ := send(t, m.HTTP(), http.MethodGet, a.URL+"/echo", ""); code != http.StatusOK {
		t.Errorf("an agent reaches its cluster by its own configuration, got %d", code)
	}
	if _, err := p.Get(t.Context(), clusterAt("m2", a.URL)); err == nil {
		t.Error("an agent reaches no other cluster")
	}
}

func TestCached(t *testing.T) {
	a := newAPI(t)
	a.put("one")
	p := member.NewPool(t.Context(), member.Push(vaultOf(a, "x").read, member.Limits{}))
	events := &journal{}
	unsubscribe := p.Subscribe(events.note)
	m := mustGet(t, p, clusterAt("m1", a.URL))
	if _, known := m.Cached(configMaps, "default", "one"); known {
		t.Error("what is not watched is not known")
	}
	mustWatch(t, m)
	mustWatch(t, m)
	eventually(t, "the first list is known", synced(m))
	obj, _ := m.Cached(configMaps, "default", "one")
	if obj == nil || len(obj.GetManagedFields()) > 0 {
		t.Errorf("the object is kept without managed fields, got %v", obj)
	}
	eventually(t, "the watch begins", a.isWatched)
	a.put("two")
	a.put("two")
	a.remove("one")
	eventually(t, "changes are followed", func() bool { return events.has("m1: deleted one") })
	want := []string{"m1: added one", "m1: added two", "m1: changed two", "m1: deleted one"}
	if diff := cmp.Diff(want, events.take()); diff != "" {
		t.Errorf("each change is told once (-want +got):\n%s", diff)
	}
	if obj, known := m.Cached(configMaps, "default", "one"); obj != nil || !known {
		t.Errorf("what is gone is known to be, got %v, %t", obj, known)
	}

	unsubscribe()
	a.put("three")
	eventually(t, "the object is seen", func() bool {
		obj, _ := m.Cached(configMaps, "default", "three")
		return obj != nil
	})
	if got := events.take(); got != nil {
		t.Errorf("who unsubscribed is told nothing, but got %v", got)
	}
}

func TestWatchSurvives(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer func(w http.ResponseWriter)
	}{
		"Unavailable": {
			reason: "A list that fails is no empty list.",
			answer: func(w http.ResponseWriter) { status(w, http.StatusServiceUnavailable) },
		},
		"AnotherKind": {
			reason: "Any JSON of an object would pass for an empty list.",
			answer: func(w http.ResponseWriter) { reply(w, map[string]any{"apiVersion": "v1", "kind": "Pod"}) },
		},
		"ListOfNoVersion": {
			reason: "No API server sends one.",
			answer: func(w http.ResponseWriter) { reply(w, map[string]any{"apiVersion": "v1", "kind": "List"}) },
		},
		"Garbage": {
			reason: "A proxy's login page is no list.",
			answer: func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, "<html>") },
		},
		"Unauthorized": {
			reason: "Credentials can be replaced, and are read again.",
			answer: func(w http.ResponseWriter) { status(w, http.StatusUnauthorized) },
		},
		"NotServed": {
			reason: "The kind may come back: nothing was deleted for what we know.",
			answer: func(w http.ResponseWriter) { status(w, http.StatusNotFound) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			a.put("one")
			a.put("two")
			p := member.NewPool(t.Context(), member.Push(vaultOf(a, "x").read, member.Limits{}))
			m := mustGet(t, p, clusterAt("m1", a.URL))
			mustWatch(t, m)
			eventually(t, "the first list is known", synced(m))

			events := &journal{}
			p.Subscribe(events.note)
			lies := make(chan bool, 100)
			a.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/api/v1/configmaps" {
					return false
				}
				lies <- true
				tc.answer(w)
				return true
			})
			a.set(func() { a.version++ }) // the watch cannot simply go on
			a.cutWatches()
			for range 2 {
				<-lies
			}
			if obj, known := m.Cached(configMaps, "default", "one"); known && obj == nil {
				t.Errorf("%s\nbut the object counts as gone", tc.reason)
			}
			if got := events.take(); got != nil {
				t.Errorf("%s\nbut events were told: %v", tc.reason, got)
			}

			a.remove("two")
			a.answer(nil)
			eventually(t, "the watch resumes when the member is itself again", func() bool { return events.has("m1: deleted two") })
			if got := events.take(); len(got) != 1 {
				t.Errorf("what really went is all that is told, got %v", got)
			}
			if obj, known := m.Cached(configMaps, "default", "one"); obj == nil || !known {
				t.Errorf("what stayed is known, got %v, %t", obj, known)
			}
		})
	}
}

func TestWatchResumesWithNewToken(t *testing.T) {
	a := newAPI(t)
	a.accept("old")
	a.put("one")
	v := vaultOf(a, "old")
	p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
	m := mustGet(t, p, clusterAt("m1", a.URL))
	mustWatch(t, m)
	eventually(t, "the first list is known", synced(m))

	v.set("token", "new")
	a.accept("new")
	a.put("two") // while nobody watches
	a.cutWatches()
	a.put("three")
	eventually(t, "the same connection watches on with the new token", func() bool {
		obj, _ := m.Cached(configMaps, "default", "three")
		return obj != nil
	})
	if got := mustGet(t, p, clusterAt("m1", a.URL)); got != m {
		t.Error("a new token is no reason for another connection")
	}
}

func TestRemadeConnectionWatchesOn(t *testing.T) {
	before, after := newAPI(t), newAPI(t)
	before.put("stays")
	before.put("goes")
	after.put("stays")
	after.put("comes")
	v := vaultOf(before, "x")
	p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
	m := mustGet(t, p, clusterAt("m1", before.URL))
	mustWatch(t, m)
	eventually(t, "the first list is known", synced(m))

	events := &journal{}
	p.Subscribe(events.note)
	v.set("caBundle", string(after.ca()))
	moved := mustGet(t, p, clusterAt("m1", after.URL))
	eventually(t, "what vanished in between is told", func() bool { return events.has("m1: deleted goes") })
	eventually(t, "what is new is told", func() bool { return events.has("m1: added comes") && events.has("m1: added stays") })
	before.put("too late")
	after.put("last")
	eventually(t, "subscribers are told what happens next", func() bool { return events.has("m1: added last") })
	if events.has("m1: added too late") || events.has("m1: deleted stays") {
		t.Errorf("an abandoned connection tells nothing: %v", events.take())
	}
	if obj, known := moved.Cached(configMaps, "default", "comes"); obj == nil || !known {
		t.Errorf("nobody has to ask for the watch again, got %v, %t", obj, known)
	}
}

func TestAuthorityChanges(t *testing.T) {
	a := newAPI(t)
	v := vaultOf(a, "x")
	v.set("caBundle", string(a.ca())+string(a.ca()))
	p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
	m := mustGet(t, p, clusterAt("m1", a.URL))

	v.set("caBundle", string(a.ca()))
	a.CloseClientConnections()
	a.answer(func(w http.ResponseWriter, _ *http.Request) bool {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return true
	})
	if _, err := try(m.HTTP(), a.URL+"/echo"); err == nil {
		t.Fatal("the member hangs up")
	}
	a.answer(nil)
	if got := mustGet(t, p, clusterAt("m1", a.URL)); got == m {
		t.Error("after a request that failed the Secret is looked at again, at once")
	}
}

func TestDeadMemberDelaysNobody(t *testing.T) {
	dead, alive := newAPI(t), newAPI(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hung := make(chan bool, 100)
	dead.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		hung <- true
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	alive.put("one")
	p := member.NewPool(t.Context(), member.Push(vaultOf(alive, "x").read, member.Limits{QPS: 1, Burst: 2}))
	m := mustGet(t, p, clusterAt("dead", dead.URL))
	mustWatch(t, m)
	go func() { _, _ = m.Mapper().ResourceFor(configMaps) }()
	<-hung

	other := mustGet(t, p, clusterAt("alive", alive.URL))
	mustWatch(t, other)
	eventually(t, "the other member is followed", synced(other))
	if _, known := m.Cached(configMaps, "default", "one"); known {
		t.Error("nobody knows what is on the dead one")
	}
	if again := mustGet(t, p, clusterAt("dead", dead.URL)); again != m {
		t.Error("to ask for the dead one does not wait either")
	}
	p.Forget("dead")
	if !isDone(m) {
		t.Error("and it can be given up")
	}
}

func TestLimits(t *testing.T) {
	a := newAPI(t)
	for name, tc := range map[string]struct {
		reason  string
		limits  member.Limits
		limited bool
	}{
		"Set":    {"All clients of a member share one limiter.", member.Limits{QPS: 40, Burst: 60}, true},
		"Zero":   {"None was asked for, not client-go's.", member.Limits{}, false},
		"Less":   {"As in client-go.", member.Limits{QPS: -1, Burst: 10}, false},
		"Burst0": {"A bucket that holds nothing would never let anything through.", member.Limits{QPS: 5}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := member.NewPool(t.Context(), member.Push(vaultOf(a, "x").read, tc.limits))
			config := mustGet(t, p, clusterAt("m1", a.URL)).Config()
			if got := config.RateLimiter != nil; got != tc.limited {
				t.Fatalf("%s\nlimited: %t", tc.reason, got)
			}
			if tc.limited {
				if got := config.RateLimiter.QPS(); got != tc.limits.QPS || !config.RateLimiter.TryAccept() {
					t.Errorf("%s\nQPS %v", tc.reason, got)
				}
			} else if config.QPS >= 0 {
				t.Errorf("%s\nQPS %v", tc.reason, config.QPS)
			}
		})
	}
}
