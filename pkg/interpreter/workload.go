package interpreter

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// Fields that are reflected along with the status of a workload, so that the
// control plane can tell which version of the template it is about.
const (
	observedGeneration         = "observedGeneration"
	generation                 = "generation"
	resourceTemplateGeneration = "resourceTemplateGeneration"
)

func deployment() kind {
	counts := []string{"replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"}
	pod := []string{"spec", "template", "spec"}
	return kind{
		replicas:     int32At("spec", "replicas"),
		pod:          pod,
		revise:       []string{"spec", "replicas"},
		retain:       retainReplicas,
		healthy:      isRolledOut,
		dependencies: podDependencies(pod...),
		status:       reflectWorkload(counts...),
		aggregate:    aggregateWorkload(counts...),
	}
}

func replicaSet() kind {
	counts := []string{"replicas", "readyReplicas", "availableReplicas"}
	pod := []string{"spec", "template", "spec"}
	return kind{
		replicas:     int32At("spec", "replicas"),
		pod:          pod,
		revise:       []string{"spec", "replicas"},
		healthy:      isReplicaSetHealthy,
		dependencies: podDependencies(pod...),
		status:       reflectWorkload(counts...),
		aggregate:    aggregateWorkload(counts...),
	}
}

func statefulSet() kind {
	counts := []string{"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}
	return kind{
		replicas:     int32At("spec", "replicas"),
		pod:          []string{"spec", "template", "spec"},
		revise:       []string{"spec", "replicas"},
		healthy:      isRolledOut,
		dependencies: statefulSetDependencies,
		status:       reflectWorkload(counts...),
		aggregate:    aggregateWorkload(counts...),
	}
}

func daemonSet() kind {
	counts := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady",
		"updatedNumberScheduled", "numberUnavailable",
	}
	return kind{
		healthy:      isDaemonSetHealthy,
		dependencies: podDependencies("spec", "template", "spec"),
		status:       reflectWorkload(counts...),
		aggregate:    aggregateWorkload(counts...),
	}
}

// int32At reads a number of replicas, 0 where there is none.
func int32At(path ...string) func(map[string]any) (int32, error) {
	return func(o map[string]any) (int32, error) {
		n, err := orZero[int64](o, path...)
		if err != nil {
			return 0, err
		}
		return asInt32(n)
	}
}

func asInt32(n int64) (int32, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%d is no number of replicas", n)
	}
	return int32(n), nil
}

// progress is what a controller has come to with a workload.
type progress struct {
	current bool // whether it has seen the workload as it is
	wanted  int64
	counts  map[string]int64
}

func progressOf(o map[string]any, counts ...string) (progress, error) {
	status, err := orZero[map[string]any](o, "status")
	if err != nil {
		return progress{}, err
	}
	values, err := integers(status, append(slices.Clone(counts), observedGeneration)...)
	if err != nil {
		return progress{}, fmt.Errorf("status: %w", err)
	}
	is, err := orZero[int64](o, "metadata", generation)
	if err != nil {
		return progress{}, err
	}
	wanted, err := orZero[int64](o, "spec", "replicas")
	if err != nil {
		return progress{}, err
	}
	return progress{current: values[observedGeneration] == is, wanted: wanted, counts: values}, nil
}

// isRolledOut says whether all replicas are of the current version and available.
func isRolledOut(o map[string]any) (bool, error) {
	p, err := progressOf(o, "updatedReplicas", "availableReplicas")
	if err != nil {
		return false, err
	}
	updated := p.counts["updatedReplicas"]
	return p.current && updated >= p.wanted && p.counts["availableReplicas"] >= updated, nil
}

func isReplicaSetHealthy(o map[string]any) (bool, error) {
	p, err := progressOf(o, "availableReplicas")
	return err == nil && p.current && p.counts["availableReplicas"] >= p.wanted, err
}

func isDaemonSetHealthy(o map[string]any) (bool, error) {
	p, err := progressOf(o, "desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
	if err != nil {
		return false, err
	}
	updated := p.counts["updatedNumberScheduled"]
	return p.current && updated >= p.counts["desiredNumberScheduled"] && p.counts["numberAvailable"] >= updated, nil
}

// reflectWorkload reflects counts, and the versions that they are about. A
// workload that its controller has not looked at has nothing to tell.
func reflectWorkload(counts ...string) func(map[string]any) (map[string]any, error) {
	return func(o map[string]any) (map[string]any, error) {
		status, err := picked(o, append(slices.Clone(counts), observedGeneration)...)
		if err != nil || len(status) == 0 {
			return nil, err
		}
		is, err := orZero[int64](o, "metadata", generation)
		if err != nil {
			return nil, err
		}
		if is != 0 {
			status[generation] = is
		}
		of, err := templateGeneration(o)
		if err != nil {
			return nil, err
		}
		if of != 0 {
			status[resourceTemplateGeneration] = of
		}
		return status, nil
	}
}

// templateGeneration returns the generation of the template that an object of a
// member was made of, 0 when it does not say.
func templateGeneration(o map[string]any) (int64, error) {
	text, found, err := at[string](o, "metadata", "annotations", names.TemplateGenerationAnnotation)
	if err != nil || !found {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %q is no generation", names.TemplateGenerationAnnotation, text)
	}
	return n, nil
}

// picked returns some fields of a status, those that are there.
func picked(o map[string]any, fields ...string) (map[string]any, error) {
	status, err := orZero[map[string]any](o, "status")
	if err != nil {
		return nil, err
	}
	some := map[string]any{}
	for _, field := range fields {
		if value, ok := status[field]; ok {
			some[field] = value
		}
	}
	return some, nil
}

// aggregateWorkload sums counts. The template counts as observed when every
// cluster has been given its current generation and has looked at that.
func aggregateWorkload(counts ...string) func(template, status map[string]any, reports []report) error {
	return func(template, status map[string]any, reports []report) error {
		if err := sum(status, reports, counts...); err != nil {
			return err
		}
		is, err := orZero[int64](template, "metadata", generation)
		if err != nil {
			return err
		}
		for _, r := range reports {
			if current, err := isCurrent(r, is); err != nil || !current {
				return err
			}
		}
		status[observedGeneration] = is
		return nil
	}
}

func isCurrent(r report, templateGeneration int64) (bool, error) {
	if r.status == nil {
		return false, nil
	}
	of, err := integers(r.status, observedGeneration, generation, resourceTemplateGeneration)
	if err != nil {
		return false, fmt.Errorf("status of cluster %s: %w", r.cluster, err)
	}
	return of[observedGeneration] >= of[generation] && of[resourceTemplateGeneration] >= templateGeneration, nil
}

// sum sets fields to what all reports have in them together.
func sum(status map[string]any, reports []report, fields ...string) error {
	total := map[string]int64{}
	for _, r := range reports {
		values, err := integers(r.status, fields...)
		if err != nil {
			return fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		for field, value := range values {
			total[field] += value
		}
	}
	for _, field := range fields {
		status[field] = total[field]
	}
	return nil
}

// retainReplicas leaves the number of replicas to an autoscaler of the member,
// where the template asks for that.
func retainReplicas(desired, observed map[string]any) error {
	wish, err := orZero[string](desired, "metadata", "labels", names.RetainReplicasLabel)
	if err != nil || wish != names.True {
		return err
	}
	_, found, err := at[int64](observed, "spec", "replicas")
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("label %s asks to keep the spec.replicas of the cluster's object, and it has none", names.RetainReplicasLabel)
	}
	return keep(desired, observed, "spec", "replicas")
}
