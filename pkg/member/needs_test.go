package member_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/member"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func TestKindsStopWhenNobodyNeedsThem(t *testing.T) {
	a := newAPI(t)
	a.put("one")
	p := member.NewPool(t.Context(), member.Push(vaultOf(a, "x").read, member.Limits{}))
	events := &journal{}
	p.Subscribe(events.note)
	m := mustGet(t, p, clusterAt("m1", a.URL))
	watch := func(work string, kinds ...schema.GroupVersionResource) {
		t.Helper()
		if err := m.Watch(work, kinds...); err != nil {
			t.Fatal(err)
		}
	}
	watch("a", configMaps)
	watch("b", configMaps)
	watch("a", configMaps)
	eventually(t, "the kind is followed", func() bool { return synced(m)() && a.isWatched() })
	p.Release("m1", "a")
	p.Release("m1", "a")
	p.Release("m1", "unknown")
	p.Release("unknown", "a")
	if !synced(m)() {
		t.Error("what one Work still needs is followed, whoever else leaves")
	}
	watch("b", secrets)
	if synced(m)() {
		t.Error("a Work may need another kind")
	}
	eventually(t, "nobody watches what nobody needs", func() bool { return !a.isWatched() })
	if events.has("m1: deleted one") {
		t.Error("what is not followed any more is not told to be gone")
	}
	watch("a", configMaps)
	eventually(t, "what is needed again is followed again", synced(m))
	p.Release("m1", "a")
	p.Release("m1", "b")
	if synced(m)() {
		t.Error("the last one to leave stops it")
	}
}

func TestNeedsOutliveConnections(t *testing.T) {
	before, after := newAPI(t), newAPI(t)
	v := vaultOf(before, "x")
	p := member.NewPool(t.Context(), member.Push(v.read, member.Limits{}))
	m := mustGet(t, p, clusterAt("m1", before.URL))
	mustWatch(t, m)
	v.set("caBundle", string(after.ca()))
	moved := mustGet(t, p, clusterAt("m1", after.URL))
	eventually(t, "the new connection follows what the old one did", synced(moved))
	if err := m.Watch("other", configMaps); !errors.Is(err, member.ErrStopped) {
		t.Errorf("who still has the old connection must get the new one, got %v", err)
	}
	p.Release("m1", "w")
	if synced(moved)() {
		t.Error("and the new one stops when nobody needs it any more")
	}
	p.Forget("m1")
	p.Release("m1", "w")
	again := mustGet(t, p, clusterAt("m1", after.URL))
	mustWatch(t, again)
	eventually(t, "a cluster that was forgotten begins anew", synced(again))
}

func TestOneKindStopsNoOther(t *testing.T) {
	a := newAPI(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	a.answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/secrets"):
			status(w, http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, "/hangs"):
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		default:
			return false
		}
		return true
	})
	p := member.NewPool(t.Context(), member.Push(vaultOf(a, "x").read, member.Limits{}))
	m := mustGet(t, p, clusterAt("m1", a.URL))
	hangs := schema.GroupVersionResource{Version: "v1", Resource: "hangs"}
	if err := m.Watch("w", secrets, hangs, configMaps); err != nil {
		t.Fatal(err)
	}
	if !m.Starting(hangs) {
		t.Error("what has just begun may be known soon")
	}
	if m.Starting(schema.GroupVersionResource{Version: "v1", Resource: "others"}) {
		t.Error("what is not followed never is")
	}
	eventually(t, "others are followed", synced(m))
	eventually(t, "nobody waits for what goes wrong", func() bool { return !m.Starting(secrets) })
	if _, known := m.Cached(secrets, "default", "a"); known || m.Starting(configMaps) {
		t.Error("what could not be listed is not known to be gone")
	}
}
