package aggregate

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// Messages of the condition FullyApplied (spec: behaviour/02 2.4).
const (
	fullyAppliedMessage    = "All works have been successfully applied"
	notFullyAppliedMessage = "Failed to apply all works, see status.aggregatedStatus for details"
)

// Of what clusters say about why something was not applied, as many bytes are
// kept: of each at least leastMessage, of all together about allMessages.
const (
	leastMessage = 256
	allMessages  = 128 << 10
)

// A report is what the Work of one cluster says.
type report struct {
	workv1alpha2.AggregatedStatusItem
	// open is set while it has not come to anything yet, but will.
	open bool
}

// reportsOf returns what some Works, one for each cluster, say about an object,
// sorted by cluster. Works that are being deleted say nothing
// (spec: behaviour/02 2.4).
func reportsOf(works []workv1alpha1.Work, ref workv1alpha2.ObjectReference) []report {
	reports := make([]report, 0, len(works))
	for i := range works {
		w := &works[i]
		cluster, err := names.ClusterOfExecutionNamespace(w.Namespace)
		if err != nil || !w.DeletionTimestamp.IsZero() {
			continue
		}
		reports = append(reports, reportOf(w, cluster, ref))
	}
	slices.SortStableFunc(reports, func(a, b report) int { return strings.Compare(a.ClusterName, b.ClusterName) })
	reports = slices.CompactFunc(reports, func(a, b report) bool { return a.ClusterName == b.ClusterName })
	limit := max(leastMessage, allMessages/max(len(reports), 1))
	for i := range reports {
		reports[i].AppliedMessage = brief.Text(reports[i].AppliedMessage, limit)
	}
	return reports
}

func reportOf(w *workv1alpha1.Work, cluster string, ref workv1alpha2.ObjectReference) report {
	r := report{AggregatedStatusItem: workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}}
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionApplied)
	switch {
	case applied == nil:
		r.open = w.Spec.SuspendDispatching == nil || !*w.Spec.SuspendDispatching
	case applied.Status != metav1.ConditionTrue:
		r.AppliedMessage = applied.Message
	default:
		r.Applied = true
		if s := statusOf(w, ref); s != nil {
			r.Status = s.Status
			if s.Health != "" {
				r.Health = workv1alpha2.ResourceHealth(s.Health)
			}
		}
	}
	return r
}

// statusOf returns what a Work says about an object, nil if it does not. The
// version of its kind may be another one in the cluster.
func statusOf(w *workv1alpha1.Work, ref workv1alpha2.ObjectReference) *workv1alpha1.ManifestStatus {
	gvk := binding.GVK(ref)
	for i := range w.Status.ManifestStatuses {
		id := w.Status.ManifestStatuses[i].Identifier
		if id.Ordinal == 0 && id.Group == gvk.Group && id.Kind == gvk.Kind && id.Namespace == ref.Namespace && id.Name == ref.Name {
			return &w.Status.ManifestStatuses[i]
		}
	}
	return nil
}

// itemsOf returns reports as a binding holds them.
func itemsOf(reports []report) []workv1alpha2.AggregatedStatusItem {
	items := make([]workv1alpha2.AggregatedStatusItem, 0, len(reports))
	for _, r := range reports {
		items = append(items, r.AggregatedStatusItem)
	}
	return items
}

// isComplete reports whether every cluster that is expected to say something has.
func isComplete(expected []string, reports []report) bool {
	have := map[string]bool{}
	for _, r := range reports {
		have[r.ClusterName] = !r.open
	}
	return !slices.ContainsFunc(expected, func(cluster string) bool { return !have[cluster] })
}

// fullyApplied says whether every cluster that may have a Work holds the object,
// and no other does (spec: behaviour/02 2.4).
func fullyApplied(expected []string, items []workv1alpha2.AggregatedStatusItem) metav1.Condition {
	all := len(expected) > 0 && len(expected) == len(items) && !slices.ContainsFunc(items, func(i workv1alpha2.AggregatedStatusItem) bool {
		return !i.Applied || !slices.Contains(expected, i.ClusterName)
	})
	if all {
		return metav1.Condition{
			Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha2.ReasonFullyAppliedSuccess, Message: fullyAppliedMessage,
		}
	}
	return metav1.Condition{
		Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionFalse,
		Reason: workv1alpha2.ReasonFullyAppliedFailed, Message: notFullyAppliedMessage,
	}
}

// sameItems reports whether two lists say the same, however statuses are written.
func sameItems(a, b []workv1alpha2.AggregatedStatusItem) bool {
	return slices.EqualFunc(a, b, func(a, b workv1alpha2.AggregatedStatusItem) bool {
		return a.ClusterName == b.ClusterName && a.Applied == b.Applied && a.AppliedMessage == b.AppliedMessage &&
			a.Health == b.Health && sameRaw(a.Status, b.Status)
	})
}

func sameRaw(a, b *runtime.RawExtension) bool {
	x, y := rawOf(a), rawOf(b)
	return bytes.Equal(x, y) || len(x) > 0 && len(y) > 0 && sameJSON(x, y)
}

func rawOf(r *runtime.RawExtension) []byte {
	if r == nil {
		return nil
	}
	return r.Raw
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// sameMeaning reports whether two statuses say the same: a server leaves out what
// is zero or empty.
func sameMeaning(a, b any) bool { return reflect.DeepEqual(meaning(a), meaning(b)) }

// meaning returns a value without what says nothing, nil if that is all of it.
// Numbers are the same however they are read.
func meaning(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			if value = meaning(value); value != nil {
				m[key] = value
			}
		}
		if len(m) > 0 {
			return m
		}
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = meaning(v[i])
		}
		if len(l) > 0 {
			return l
		}
	case int64:
		if v != 0 {
			return float64(v)
		}
	case float64:
		if v != 0 {
			return v
		}
	case string:
		if v != "" {
			return v
		}
	case bool:
		if v {
			return v
		}
	default:
		return v
	}
	return nil
}
