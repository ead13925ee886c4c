package interpreter

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func pod() kind {
	return kind{
		replicas:     func(map[string]any) (int32, error) { return 1, nil },
		pod:          []string{"spec"},
		retain:       retainPod,
		healthy:      isPodHealthy,
		dependencies: podDependencies("spec"),
		aggregate:    aggregatePod,
	}
}

// retainPod keeps where a pod runs, and what admission of the cluster put into
// it: nobody can change it afterwards.
func retainPod(desired, observed map[string]any) error {
	return errors.Join(
		keep(desired, observed, "spec", "nodeName"),
		keep(desired, observed, "spec", "serviceAccountName"),
		keep(desired, observed, "spec", "volumes"),
		retainMounts(desired, observed, "containers"),
		retainMounts(desired, observed, "initContainers"),
	)
}

// retainMounts keeps the volumeMounts of containers, by their names.
func retainMounts(desired, observed map[string]any, list string) error {
	have, err := objects(observed, "spec", list)
	if err != nil {
		return err
	}
	mounts := map[string]any{}
	for _, c := range have {
		if c["volumeMounts"] != nil {
			mounts[entryName(c)] = c["volumeMounts"]
		}
	}
	want, err := objects(desired, "spec", list)
	if err != nil {
		return err
	}
	for _, c := range want {
		if m := mounts[entryName(c)]; m != nil {
			c["volumeMounts"] = runtime.DeepCopyJSONValue(m)
		}
	}
	return nil
}

func isPodHealthy(o map[string]any) (bool, error) {
	phase, err := orZero[string](o, "status", "phase")
	if err != nil {
		return false, err
	}
	conditions, err := objects(o, "status", "conditions")
	if err != nil {
		return false, err
	}
	return phase == string(corev1.PodSucceeded) ||
		phase == string(corev1.PodRunning) && isTrue(conditions, string(corev1.PodReady)), nil
}

func aggregatePod(_, status map[string]any, reports []report) error {
	phase, err := worstPhase(reports, string(corev1.PodPending),
		string(corev1.PodFailed), string(corev1.PodPending), string(corev1.PodRunning), string(corev1.PodSucceeded))
	if err != nil {
		return err
	}
	status["phase"] = phase
	for _, field := range []string{"containerStatuses", "initContainerStatuses"} {
		all, err := containerStatuses(reports, field)
		if err != nil {
			return err
		}
		setList(status, field, all)
	}
	return nil
}

// worstPhase returns the first of some phases, in order, that a cluster reports.
// What is not reported, or is another one, counts as unknown.
func worstPhase(reports []report, unknown string, order ...string) (string, error) {
	seen := map[string]bool{}
	for _, r := range reports {
		phase, err := orZero[string](r.status, "phase")
		if err != nil {
			return "", fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		if !slices.Contains(order, phase) {
			phase = unknown
		}
		seen[phase] = true
	}
	for _, phase := range order {
		if seen[phase] {
			return phase, nil
		}
	}
	return unknown, nil
}

// containerStatuses lists the containers of all clusters. An API server refuses
// that a container that ended is followed by one of its name that has not, unless
// it may be started again; what ended in one cluster is therefore called by the
// cluster as well.
func containerStatuses(reports []report, field string) ([]any, error) {
	var all []any
	for _, r := range reports {
		list, err := objects(r.status, field)
		if err != nil {
			return nil, fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		for _, c := range list {
			state, err := orZero[map[string]any](c, "state")
			if err != nil {
				return nil, fmt.Errorf("status of cluster %s: %s: %w", r.cluster, field, err)
			}
			name := entryName(c)
			if state["terminated"] != nil {
				name = r.cluster + "/" + name
			}
			one := map[string]any{"name": name}
			for _, kept := range []string{"ready", "state"} {
				if value, ok := c[kept]; ok {
					one[kept] = value
				}
			}
			all = append(all, one)
		}
	}
	return all, nil
}
