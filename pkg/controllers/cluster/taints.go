package cluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// taintByReadiness makes the taints of a cluster follow its condition Ready, and
// says whether that changed anything. Taints with another key or effect are
// somebody else's and stay, in their order (spec: behaviour/02 2.1).
func taintByReadiness(c *clusterv1alpha1.Cluster, now metav1.Time) bool {
	want := readinessTaint(c)
	changed := false
	for _, key := range []string{clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable} {
		has := slices.IndexFunc(c.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == key && t.Effect == corev1.TaintEffectNoSchedule
		})
		switch {
		case key == want && has < 0:
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now})
			changed = true
		case key != want && has >= 0:
			c.Spec.Taints = slices.Delete(slices.Clone(c.Spec.Taints), has, has+1)
			changed = true
		}
	}
	return changed
}

// readinessTaint returns the key of the taint that a cluster should have, "" for
// none. A cluster that has never said whether it is ready counts as not ready.
func readinessTaint(c *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Status == metav1.ConditionFalse:
		return clusterv1alpha1.TaintNotReady
	case ready.Status == metav1.ConditionUnknown:
		return clusterv1alpha1.TaintUnreachable
	default:
		return ""
	}
}

// describeTaints says in an event which taints a cluster has.
func describeTaints(taints []corev1.Taint) string {
	if len(taints) == 0 {
		return "cluster now does not have taints"
	}
	texts := make([]string, len(taints))
	for i, t := range taints {
		texts[i] = fmt.Sprintf("{Key:%s,Effect:%s}", t.Key, t.Effect)
	}
	return fmt.Sprintf("cluster now has taints([%s])", strings.Join(texts, ","))
}
