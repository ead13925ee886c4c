package metrics

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources count what is done to resources on member clusters. Series of a
// cluster last until Forget.
type Resources struct {
	created, updated, deleted *prometheus.CounterVec
}

// NewResources registers the metrics with a registry.
func NewResources(r prometheus.Registerer) (*Resources, error) {
	var errs []error
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		labels := append([]string{resultLabel, "apiversion", "kind", clusterLabel}, more...)
		c, err := register(r, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
		errs = append(errs, err)
		return c
	}
	m := &Resources{
		created: counter("create_resource_to_cluster", "Number of creations of a resource on a member cluster.", "recreate"),
		updated: counter("update_resource_to_cluster", "Number of updates of a resource on a member cluster.", "operationResult"),
		deleted: counter("delete_resource_from_cluster", "Number of deletions of a resource from a member cluster."),
	}
	return m, errors.Join(errs...)
}

// Created counts a creation and its outcome; recreated says that the resource
// had been there and was gone.
func (m *Resources) Created(cluster string, gvk schema.GroupVersionKind, recreated bool, err error) {
	m.created.WithLabelValues(result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, strconv.FormatBool(recreated)).Inc()
}

// Updated counts an update and its outcome; operation says what it came to,
// such as updated or unchanged.
func (m *Resources) Updated(cluster string, gvk schema.GroupVersionKind, operation string, err error) {
	m.updated.WithLabelValues(result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, operation).Inc()
}

// Deleted counts a deletion and its outcome.
func (m *Resources) Deleted(cluster string, gvk schema.GroupVersionKind, err error) {
	m.deleted.WithLabelValues(result(err), gvk.GroupVersion().String(), gvk.Kind, cluster).Inc()
}

// Forget removes the series of a cluster that was deleted.
func (m *Resources) Forget(cluster string) {
	match := prometheus.Labels{clusterLabel: cluster}
	for _, c := range []*prometheus.CounterVec{m.created, m.updated, m.deleted} {
		c.DeletePartialMatch(match)
	}
}
