package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// Clusters are the metrics of member clusters. Series of a cluster last until
// Forget.
type Clusters struct {
	ready                          *prometheus.GaugeVec
	nodes, readyNodes              *prometheus.GaugeVec
	memoryAllocatable, memoryInUse *prometheus.GaugeVec
	cpuAllocatable, cpuInUse       *prometheus.GaugeVec
	podsAllocatable, podsInUse     *prometheus.GaugeVec
	syncDuration                   *prometheus.HistogramVec
}

// NewClusters registers the metrics with a registry.
func NewClusters(r prometheus.Registerer) (*Clusters, error) {
	var errs []error
	gauge := func(name, help string) *prometheus.GaugeVec {
		g, err := register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{clusterLabel}))
		errs = append(errs, err)
		return g
	}
	c := &Clusters{
		ready:             gauge("cluster_ready_state", "State of the cluster (1 if ready, 0 otherwise)."),
		nodes:             gauge("cluster_node_number", "Number of nodes in the cluster."),
		readyNodes:        gauge("cluster_ready_node_number", "Number of ready nodes in the cluster."),
		memoryAllocatable: gauge("cluster_memory_allocatable_bytes", "Allocatable memory of the cluster in bytes."),
		memoryInUse:       gauge("cluster_memory_allocated_bytes", "Allocated memory of the cluster in bytes."),
		cpuAllocatable:    gauge("cluster_cpu_allocatable_number", "Allocatable CPU of the cluster in cores."),
		cpuInUse:          gauge("cluster_cpu_allocated_number", "Allocated CPU of the cluster in cores."),
		podsAllocatable:   gauge("cluster_pod_allocatable_number", "Pods the cluster has room for."),
		podsInUse:         gauge("cluster_pod_allocated_number", "Pods in the cluster."),
	}
	var err error
	c.syncDuration, err = register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "cluster_sync_status_duration_seconds",
		Help:    "How long it takes to collect the status of the cluster.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{clusterLabel}))
	return c, errors.Join(append(errs, err)...)
}

// Ready records whether a cluster is ready.
func (c *Clusters) Ready(cluster string, ready bool) {
	state := 0.0
	if ready {
		state = 1
	}
	c.ready.WithLabelValues(cluster).Set(state)
}

// Nodes records how many nodes a cluster has, and how many of them are ready.
func (c *Clusters) Nodes(cluster string, total, ready int) {
	c.nodes.WithLabelValues(cluster).Set(float64(total))
	c.readyNodes.WithLabelValues(cluster).Set(float64(ready))
}

// Resources records what a cluster has, and how much of it is in use.
func (c *Clusters) Resources(cluster string, allocatable, allocated corev1.ResourceList) {
	for _, m := range []struct {
		gauge *prometheus.GaugeVec
		list  corev1.ResourceList
		name  corev1.ResourceName
	}{
		{c.memoryAllocatable, allocatable, corev1.ResourceMemory},
		{c.memoryInUse, allocated, corev1.ResourceMemory},
		{c.cpuAllocatable, allocatable, corev1.ResourceCPU},
		{c.cpuInUse, allocated, corev1.ResourceCPU},
		{c.podsAllocatable, allocatable, corev1.ResourcePods},
		{c.podsInUse, allocated, corev1.ResourcePods},
	} {
		quantity := m.list[m.name]
		m.gauge.WithLabelValues(cluster).Set(quantity.AsApproximateFloat64())
	}
}

// Synced records how long it took to collect a cluster's status.
func (c *Clusters) Synced(cluster string, took time.Duration) {
	c.syncDuration.WithLabelValues(cluster).Observe(took.Seconds())
}

// Forget removes the series of a cluster that was deleted.
func (c *Clusters) Forget(cluster string) {
	for _, g := range []*prometheus.GaugeVec{
		c.ready, c.nodes, c.readyNodes,
		c.memoryAllocatable, c.memoryInUse, c.cpuAllocatable, c.cpuInUse, c.podsAllocatable, c.podsInUse,
	} {
		g.DeleteLabelValues(cluster)
	}
	c.syncDuration.DeleteLabelValues(cluster)
}
