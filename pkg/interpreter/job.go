package interpreter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

func job() kind {
	pod := []string{"spec", "template", "spec"}
	return kind{
		replicas: jobReplicas,
		pod:      pod,
		revise:   []string{"spec", "parallelism"},
		retain: func(desired, observed map[string]any) error {
			return errors.Join(
				keep(desired, observed, "spec", "selector", "matchLabels"),
				keep(desired, observed, "spec", "template", "metadata", "labels"),
			)
		},
		dependencies: podDependencies(pod...),
		status: func(o map[string]any) (map[string]any, error) {
			return picked(o, "active", "succeeded", "failed", "conditions", "startTime", "completionTime")
		},
		aggregate: aggregateJob,
	}
}

// jobReplicas returns how many pods of a Job run at once.
func jobReplicas(o map[string]any) (int32, error) {
	parallelism, err := orZero[int64](o, "spec", "parallelism")
	if err != nil {
		return 0, err
	}
	completions, limited, err := at[int64](o, "spec", "completions")
	if err != nil {
		return 0, err
	}
	if limited {
		parallelism = min(parallelism, completions)
	}
	return asInt32(parallelism)
}

// aggregateJob makes one Job's status of many. What API servers refuse of a Job's
// status is kept in mind: counts of finished pods never go down, times do not
// change once they are set, a Job that failed or is complete has no active pods,
// and is announced by FailureTarget or SuccessCriteriaMet.
func aggregateJob(_, status map[string]any, reports []report) error {
	conditions, err := objects(status, "conditions")
	if err != nil {
		return err
	}
	if isTrue(conditions, string(batchv1.JobComplete)) || isTrue(conditions, string(batchv1.JobFailed)) {
		return nil
	}
	before, err := integers(status, "succeeded", "failed")
	if err != nil {
		return err
	}
	if err := sum(status, reports, "active", "succeeded", "failed"); err != nil {
		return err
	}
	for field, value := range before {
		if now, _ := status[field].(int64); now < value {
			status[field] = value
		}
	}
	starts, err := times(reports, "startTime")
	if err != nil {
		return err
	}
	ends, err := times(reports, "completionTime")
	if err != nil {
		return err
	}
	o, err := outcomeOf(reports)
	if err != nil {
		return err
	}
	if len(reports) > 0 && len(starts) == len(reports) {
		start(status, starts)
	}

	target := trueCondition(conditions, string(batchv1.JobFailureTarget))
	running := status["active"] != int64(0)
	switch {
	case len(o.failed) > 0 || target != nil:
		message := fmt.Sprintf("Job executed failed in member clusters %s", strings.Join(o.failed, ","))
		if len(o.failed) == 0 { // it moved away from where it failed
			message, _ = target["message"].(string)
		}
		if target == nil {
			setTrue(status, batchv1.JobFailureTarget, "JobFailed", message, o.failedAt)
		}
		if !running {
			start(status, starts)
			setTrue(status, batchv1.JobFailed, "JobFailed", message, o.failedAt)
		}
	case len(reports) > 0 && o.complete == len(reports) && !running:
		start(status, starts)
		if len(ends) > 0 {
			begin, _ := status["startTime"].(string)
			status["completionTime"] = latest(append(ends, begin))
		}
		setTrue(status, batchv1.JobSuccessCriteriaMet, "CompletionsReached", "All member clusters have met success criteria", o.completeAt)
		setTrue(status, batchv1.JobComplete, "Completed", "Job completed", o.completeAt)
	}
	return nil
}

// An outcome is how a Job went in the clusters that report.
type outcome struct {
	failed               []string
	complete             int
	failedAt, completeAt string // the last time that one did, "" when it is not known
}

func outcomeOf(reports []report) (outcome, error) {
	var o outcome
	for _, r := range reports {
		conditions, err := objects(r.status, "conditions")
		if err != nil {
			return outcome{}, fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		if c := trueCondition(conditions, string(batchv1.JobFailed)); c != nil {
			o.failed = append(o.failed, r.cluster)
			at, _ := c["lastTransitionTime"].(string)
			o.failedAt = latest([]string{o.failedAt, at})
		}
		if c := trueCondition(conditions, string(batchv1.JobComplete)); c != nil {
			o.complete++
			at, _ := c["lastTransitionTime"].(string)
			o.completeAt = latest([]string{o.completeAt, at})
		}
	}
	return o, nil
}

// start says when a Job began, unless that is known.
func start(status map[string]any, starts []string) {
	if isZero(status["startTime"]) && len(starts) > 0 {
		status["startTime"] = earliest(starts)
	}
}

// setTrue sets a condition. Its time is that of the clusters, so that the same
// reports always make the same condition.
func setTrue(status map[string]any, conditionType batchv1.JobConditionType, reason, message, when string) {
	condition := map[string]any{"type": string(conditionType), "status": "True", "reason": reason, "message": message}
	if when != "" {
		condition["lastTransitionTime"] = when
	}
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == condition["type"]
	})
	status["conditions"] = append(conditions, condition)
}

// times returns a time from each report that has it.
func times(reports []report, field string) ([]string, error) {
	var all []string
	for _, r := range reports {
		text, err := orZero[string](r.status, field)
		if err != nil {
			return nil, fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		if text == "" {
			continue
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return nil, fmt.Errorf("status of cluster %s: %s: %w", r.cluster, field, err)
		}
		all = append(all, text)
	}
	return all, nil
}

// earliest and latest return one of some times; one that cannot be read is as
// good as none.
func earliest(all []string) string { return slices.MinFunc(all, compareTimes) }
func latest(all []string) string   { return slices.MaxFunc(all, compareTimes) }

func compareTimes(a, b string) int {
	read := func(text string) time.Time {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}
		}
		return t
	}
	return read(a).Compare(read(b))
}

func cronJob() kind {
	return kind{
		dependencies: podDependencies("spec", "jobTemplate", "spec", "template", "spec"),
		aggregate:    aggregateCronJob,
	}
}

// aggregateCronJob lists the Jobs of all clusters. When it last ran stays known
// after the cluster where it did has gone.
func aggregateCronJob(_, status map[string]any, reports []report) error {
	var active []any
	for _, r := range reports {
		list, err := objects(r.status, "active")
		if err != nil {
			return fmt.Errorf("status of cluster %s: %w", r.cluster, err)
		}
		for _, entry := range list {
			active = append(active, entry)
		}
	}
	setList(status, "active", active)
	for _, field := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
		all, err := times(reports, field)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			status[field] = latest(all)
		}
	}
	return nil
}

// setList sets a list, or removes one that is empty.
func setList(m map[string]any, field string, list []any) {
	if len(list) == 0 {
		delete(m, field)
		return
	}
	m[field] = list
}
