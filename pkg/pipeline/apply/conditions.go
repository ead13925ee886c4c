package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// maxMessage is how long the message of a condition may be.
const maxMessage = 32768

// Messages of the conditions (spec: behaviour/02 2.5).
const (
	suspendedMessage   = "Work dispatching is in a suspended state."
	dispatchingMessage = "Work is being dispatched to member clusters."
	appliedMessage     = "Manifest has been successfully applied"
)

// markDispatching notes whether the Work is sent to its cluster, and reports
// whether that is new.
func markDispatching(w *workv1alpha1.Work) bool {
	c := metav1.Condition{
		Type: workv1alpha1.ConditionDispatching, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonDispatching, Message: dispatchingMessage,
	}
	if isSuspended(w) {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha1.ReasonSuspendDispatching, suspendedMessage
	}
	before := meta.FindStatusCondition(w.Status.Conditions, c.Type)
	if before != nil && before.Status == c.Status {
		return false
	}
	return meta.SetStatusCondition(&w.Status.Conditions, c)
}

// markApplied notes how many of a Work's manifests were applied, and why others
// were not; it reports whether that is new. The condition's observedGeneration
// says which state of the Work it is about, so that after a restart what was
// applied last is still known.
func markApplied(w *workv1alpha1.Work, applied, total int, err error) bool {
	c := metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha1.ReasonAppliedSuccessful, Message: appliedMessage, ObservedGeneration: w.Generation,
	}
	if err != nil {
		c.Status, c.Reason = metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed
		c.Message = brief.Text(fmt.Sprintf("Failed to apply all manifests (%d/%d): %v", applied, total, err), maxMessage)
	}
	return meta.SetStatusCondition(&w.Status.Conditions, c)
}

// isApplied reports whether the Work, as it is now, was applied before.
func isApplied(w *workv1alpha1.Work) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == w.Generation
}

// isFailed reports whether the Work says that it could not be applied.
func isFailed(w *workv1alpha1.Work) bool {
	return meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.ConditionApplied)
}

func isSuspended(w *workv1alpha1.Work) bool {
	return w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
}

func preserves(w *workv1alpha1.Work) bool {
	return w.Spec.PreserveResourcesOnDeletion != nil && *w.Spec.PreserveResourcesOnDeletion
}

// keepsObjects reports whether c is leaving and what was propagated to it is to
// stay. Its Works say so, too, but one may have been deleted, or made, before
// they were told. Works of the system itself always go; a value that nobody
// knows keeps what is there.
func keepsObjects(c *clusterv1alpha1.Cluster, w *workv1alpha1.Work) bool {
	cascade := c.Annotations[names.ClusterCascadeAnnotation]
	return isLeaving(c) && cascade != "" && cascade != names.CascadeDelete && w.Labels[names.SystemLabel] != names.True
}
