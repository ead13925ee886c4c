package role_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

func TestManagerOptions(t *testing.T) {
	gate, err := features.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.SetFromMap(map[string]bool{"ControllerPriorityQueue": false}); err != nil {
		t.Fatal(err)
	}
	endpoints := flags.NewEndpoints(":10357")
	endpoints.Metrics = ""
	election := flags.NewLeaderElection("some-role")
	o := role.Manager{
		Scheme: runtime.NewScheme(), LeaderElection: election, Endpoints: endpoints, Gate: gate,
		ResyncPeriod: time.Hour, CacheSyncTimeout: time.Minute, Concurrency: map[string]int{"Namespace": 3},
	}.Options(klog.Background())

	want := map[string]any{
		"health": ":10357", "metrics": "0", "profiling": "0",
		"lease": "karmada-system/some-role", "duration": 15 * time.Second, "renew": 10 * time.Second, "retry": 2 * time.Second,
		"elects": true, "releases": true,
		"resync": time.Hour, "sync": time.Minute, "concurrency": map[string]int{"Namespace": 3}, "priority": false,
	}
	got := map[string]any{
		"health": o.HealthProbeBindAddress, "metrics": o.Metrics.BindAddress, "profiling": o.PprofBindAddress,
		"lease":    o.LeaderElectionNamespace + "/" + o.LeaderElectionID,
		"duration": *o.LeaseDuration, "renew": *o.RenewDeadline, "retry": *o.RetryPeriod,
		"elects": o.LeaderElection, "releases": o.LeaderElectionReleaseOnCancel,
		"resync": *o.Cache.SyncPeriod, "sync": o.Controller.CacheSyncTimeout,
		"concurrency": o.Controller.GroupKindConcurrency, "priority": *o.Controller.UsePriorityQueue,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}

	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	cached, err := o.Cache.DefaultTransform(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{lastApplied: "{}"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{lastApplied: "{}"}}}
	if diff := cmp.Diff(kept, cached); diff != "" {
		t.Errorf("caches drop managed fields and keep everything else (-want +got):\n%s", diff)
	}
}

func TestClientConfig(t *testing.T) {
	given := &rest.Config{Host: "https://127.0.0.1:1"}
	got := role.ClientConfig(given, "some-role", flags.KubeAPILimits())
	if got.QPS != flags.NoLimit || got.UserAgent == "" || got.Host != given.Host {
		t.Errorf("limits and user agent are set, the rest is kept; got %+v", got)
	}
	if given.QPS != 0 || given.UserAgent != "" {
		t.Error("the config that was given belongs to others: it must not change")
	}
}

func TestExplain(t *testing.T) {
	inUse := fmt.Errorf("listen: %w", &net.OpError{Op: "listen", Err: syscall.EADDRINUSE})
	if got := role.Explain(inUse).Error(); got == inUse.Error() {
		t.Error("an address in use is told with the flags that change it")
	}
	if got := role.Explain(errBoom); got != errBoom {
		t.Errorf("other errors stay as they are, got: %v", got)
	}
}
