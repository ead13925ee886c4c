package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/assign"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
)

const successMessage = "Binding has been scheduled successfully."

// reasonQuotaExceeded is the reason of the API error with which quotas refuse a
// result (spec: behaviour/04 4.4).
const reasonQuotaExceeded metav1.StatusReason = "QuotaExceeded"

// isNoFit reports whether an error says that no cluster fits.
func isNoFit(err error) bool {
	var e *filter.FitError
	return errors.As(err, &e)
}

func isUnschedulable(err error) bool {
	var e *assign.UnschedulableError
	return errors.As(err, &e)
}

func isQuotaExceeded(err error) bool { return apierrors.ReasonForError(err) == reasonQuotaExceeded }

// condition returns what the condition Scheduled says of an outcome
// (spec: behaviour/04 4.4).
func condition(err error) metav1.Condition {
	c := metav1.Condition{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse}
	switch {
	case err == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, workv1alpha2.ReasonScheduled, successMessage
		return c
	case isUnschedulable(err):
		c.Reason = workv1alpha2.ReasonUnschedulable
	case isNoFit(err):
		c.Reason = workv1alpha2.ReasonNoClusterFit
	case isQuotaExceeded(err):
		c.Reason = workv1alpha2.ReasonQuotaExceeded
	default:
		c.Reason = workv1alpha2.ReasonSchedulerError
	}
	c.Message = err.Error()
	return c
}

// An outcome is what there is to say in the status of a binding.
type outcome struct {
	err error
	// scheduled says that it was scheduled, rather than left as it is.
	scheduled bool
	// moved says that its clusters, or the placement they follow, have changed.
	moved bool
	// term is the affinity term in use; "" when there is none.
	term string
}

// note writes the outcome into the status of a binding, whose generation it is
// about, and reports whether the condition says something new. Times move only
// when something else does.
func (o outcome) note(b binding.Object, now time.Time) (news bool) {
	status, c := b.BindingStatus(), condition(o.err)
	c.LastTransitionTime = metav1.NewTime(now)
	news = meta.SetStatusCondition(&status.Conditions, c)
	if o.err != nil {
		return news
	}
	changed := news || !isObserved(b) || o.moved
	status.SchedulerObservedGeneration = b.GetGeneration()
	if !o.scheduled {
		if status.LastScheduledTime == nil {
			// The process ended before it said so; without a time nobody could ask
			// for a fresh start.
			status.LastScheduledTime = scheduledAt(b, now)
		}
		return news
	}
	changed = changed || status.SchedulerObservedAffinityName != o.term
	status.SchedulerObservedAffinityName = o.term
	if changed {
		status.LastScheduledTime = scheduledAt(b, now)
	}
	return news
}

// scheduledAt returns the time of a scheduling, which is later than the time at
// which it was asked for, whatever clock that was taken from.
func scheduledAt(b binding.Object, now time.Time) *metav1.Time {
	t := metav1.NewTime(now).Rfc3339Copy()
	if asked := b.BindingSpec().RescheduleTriggeredAt; asked != nil && !t.After(asked.Time) {
		t = metav1.NewTime(asked.Add(time.Second))
	}
	return &t
}

// scheduledNote is the text of the event of a success.
func scheduledNote(b binding.Object, targets []workv1alpha2.TargetCluster) string {
	parts := make([]string, 0, len(targets))
	for _, t := range targets {
		parts = append(parts, fmt.Sprintf("%s:%d", t.Name, t.Replicas))
	}
	colon := ":"
	if b.GetNamespace() == "" {
		colon = ""
	}
	return fmt.Sprintf("%s Result%s {%s}", successMessage, colon, strings.Join(parts, ", "))
}

// termNote is the text of the event of a term that could not be used.
func termNote(b binding.Object, failed termError) string {
	return fmt.Sprintf("failed to schedule %s(%s) with clusterAffiliates index(%d): %v", binding.ScopeOf(b).Kind, nameOf(b), failed.index, failed.err)
}

func nameOf(b binding.Object) string {
	if b.GetNamespace() == "" {
		return b.GetName()
	}
	return b.GetNamespace() + "/" + b.GetName()
}

// resourceOf is how messages call a binding's kind.
func resourceOf(b binding.Object) string {
	if b.GetNamespace() == "" {
		return "clusterResourceBinding"
	}
	return "resourceBinding"
}
