package interpreter

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
)

func persistentVolumeClaim() kind {
	return kind{
		retain: func(desired, observed map[string]any) error {
			return errors.Join(
				keep(desired, observed, "spec", "volumeName"),
				keepUnlessSet(desired, observed, "spec", "storageClassName"), // the cluster's default, for good
			)
		},
		healthy: func(o map[string]any) (bool, error) {
			phase, err := orZero[string](o, "status", "phase")
			return phase == string(corev1.ClaimBound), err
		},
		aggregate: aggregatePhase(string(corev1.ClaimPending),
			string(corev1.ClaimLost), string(corev1.ClaimPending), string(corev1.ClaimBound)),
	}
}

func persistentVolume() kind {
	return kind{
		retain: func(desired, observed map[string]any) error { return keep(desired, observed, "spec", "claimRef") },
		aggregate: aggregatePhase(string(corev1.VolumePending),
			string(corev1.VolumeFailed), string(corev1.VolumePending), string(corev1.VolumeAvailable),
			string(corev1.VolumeBound), string(corev1.VolumeReleased)),
	}
}

// aggregatePhase sets the worst of all phases.
func aggregatePhase(unknown string, order ...string) func(template, status map[string]any, reports []report) error {
	return func(_, status map[string]any, reports []report) error {
		phase, err := worstPhase(reports, unknown, order...)
		if err != nil {
			return err
		}
		status["phase"] = phase
		return nil
	}
}
