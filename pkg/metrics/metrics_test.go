package metrics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/metrics"
	"github.com/karmadactl/karmadactl/pkg/util/version"
)

func TestClusters(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewClusters(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m1", "gone"} {
		m.Ready(name, true)
		m.Nodes(name, 3, 2)
		m.Resources(name,
			corev1.ResourceList{"cpu": resource.MustParse("12"), "memory": resource.MustParse("4Ki"), "pods": resource.MustParse("330")},
			corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Ki")})
		m.Synced(name, 3*time.Second)
	}
	m.Ready("m2", true)
	m.Ready("m2", false)
	m.Forget("gone")

	want := []string{
		`cluster_cpu_allocatable_number{member_cluster="m1"} 12`,
		`cluster_cpu_allocated_number{member_cluster="m1"} 1.5`,
		`cluster_memory_allocatable_bytes{member_cluster="m1"} 4096`,
		`cluster_memory_allocated_bytes{member_cluster="m1"} 1024`,
		`cluster_node_number{member_cluster="m1"} 3`,
		`cluster_pod_allocatable_number{member_cluster="m1"} 330`,
		`cluster_pod_allocated_number{member_cluster="m1"} 0`,
		`cluster_ready_node_number{member_cluster="m1"} 2`,
		`cluster_ready_state{member_cluster="m1"} 1`,
		`cluster_ready_state{member_cluster="m2"} 0`,
		`cluster_sync_status_duration_seconds{member_cluster="m1"} count 1 sum 3`,
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("a deleted cluster has no series, a removed resource counts as none (-want +got):\n%s", diff)
	}
}

func TestResources(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewResources(reg)
	if err != nil {
		t.Fatal(err)
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	for _, name := range []string{"m1", "gone"} {
		m.Created(name, deployment, false, nil)
		m.Created(name, deployment, true, nil)
		m.Updated(name, deployment, "updated", nil)
		m.Updated(name, secret, "none", errors.New("boom"))
		m.Deleted(name, secret, nil)
		m.Deleted(name, secret, nil)
	}
	m.Forget("gone")

	want := []string{
		`create_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",recreate="false",result="success"} 1`,
		`create_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",recreate="true",result="success"} 1`,
		`delete_resource_from_cluster{apiversion="v1",kind="Secret",member_cluster="m1",result="success"} 2`,
		`update_resource_to_cluster{apiversion="apps/v1",kind="Deployment",member_cluster="m1",operationResult="updated",result="success"} 1`,
		`update_resource_to_cluster{apiversion="v1",kind="Secret",member_cluster="m1",operationResult="none",result="error"} 1`,
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPools(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewPools(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.Got("luavm", "new")
	m.Got("luavm", "pool")
	m.Put("luavm", "pool")

	want := []string{
		`pool_get_operation_total{from="new",name="luavm"} 1`,
		`pool_get_operation_total{from="pool",name="luavm"} 1`,
		`pool_put_operation_total{name="luavm",to="pool"} 1`,
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuild(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	info := version.Info{
		GitVersion: "v1.2.3", GitCommit: "abcdef012345", GitShortCommit: "abcdef0", GitTreeState: "clean",
		BuildDate: "2026-01-01T00:00:00Z", GoVersion: "go1.26.0", Compiler: "gc", Platform: "linux/amd64",
	}
	for range 2 { // each role of a process registers it
		if err := metrics.RegisterBuild(reg, info); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`karmada_build_info{build_date="2026-01-01T00:00:00Z",compiler="gc",git_commit="abcdef012345",git_short_commit="abcdef0",git_tree_state="clean",git_version="v1.2.3",go_version="go1.26.0",platform="linux/amd64"} 1`}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSharedByRoles(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for _, cluster := range []string{"m1", "m2"} {
		m, err := metrics.NewClusters(reg)
		if err != nil {
			t.Fatalf("two roles of a process share the metrics: %v", err)
		}
		m.Ready(cluster, true)
	}
	want := []string{
		`cluster_ready_state{member_cluster="m1"} 1`,
		`cluster_ready_state{member_cluster="m2"} 1`,
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNameTaken(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	other := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pool_get_operation_total", Help: "something else"}, []string{"x"})
	if err := reg.Register(other); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.NewPools(reg); err == nil {
		t.Error("a name that means something else already is an error")
	}
}

// gather prints the series of a registry, one a line, sorted.
func gather(t *testing.T, g prometheus.Gatherer) []string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			if h := m.GetHistogram(); h != nil {
				value = fmt.Sprintf("count %d sum %g", h.GetSampleCount(), h.GetSampleSum())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %s", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	return lines
}
