package interpreter

import "fmt"

func podDisruptionBudget() kind {
	counts := []string{"disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy"}
	return kind{
		healthy: func(o map[string]any) (bool, error) {
			status, err := orZero[map[string]any](o, "status")
			if err != nil {
				return false, err
			}
			pods, err := integers(status, "currentHealthy", "desiredHealthy")
			return err == nil && pods["currentHealthy"] >= pods["desiredHealthy"], err
		},
		status: func(o map[string]any) (map[string]any, error) {
			return picked(o, "disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy", "disruptedPods")
		},
		aggregate: func(_, status map[string]any, reports []report) error {
			if err := sum(status, reports, counts...); err != nil {
				return err
			}
			disrupted := map[string]any{}
			for _, r := range reports {
				pods, err := orZero[map[string]any](r.status, "disruptedPods")
				if err != nil {
					return fmt.Errorf("status of cluster %s: %w", r.cluster, err)
				}
				for pod, when := range pods {
					disrupted[r.cluster+"/"+pod] = when
				}
			}
			if len(disrupted) == 0 {
				delete(status, "disruptedPods")
				return nil
			}
			status["disruptedPods"] = disrupted
			return nil
		},
	}
}

func horizontalPodAutoscaler() kind {
	return kind{
		status: func(o map[string]any) (map[string]any, error) { return picked(o, "currentReplicas", "desiredReplicas") },
		aggregate: func(_, status map[string]any, reports []report) error {
			return sum(status, reports, "currentReplicas", "desiredReplicas")
		},
	}
}
