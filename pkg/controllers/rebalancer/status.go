package rebalancer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/apps/v1alpha1"
)

// observe returns the workloads that a status is to tell of, in order: those of the
// spec, each once, with the results that they have already, and of those that have
// been taken out of the spec the ones that were rebalanced.
func observe(spec *appsv1alpha1.WorkloadRebalancerSpec, now []appsv1alpha1.ObservedWorkload) []appsv1alpha1.ObservedWorkload {
	wanted := make(map[appsv1alpha1.ObjectReference]bool, len(spec.Workloads))
	for _, w := range spec.Workloads {
		wanted[w] = true
	}
	var all []appsv1alpha1.ObservedWorkload
	for _, o := range now {
		if wanted[o.Workload] || o.Result == appsv1alpha1.RebalanceSuccessful {
			all = append(all, o)
		}
		delete(wanted, o.Workload)
	}
	for w := range wanted {
		all = append(all, appsv1alpha1.ObservedWorkload{Workload: w})
	}
	slices.SortFunc(all, func(a, b appsv1alpha1.ObservedWorkload) int {
		return cmp.Compare(orderOf(a.Workload), orderOf(b.Workload))
	})
	return all
}

// orderOf is what workloads are sorted by.
func orderOf(w appsv1alpha1.ObjectReference) string {
	return strings.Join([]string{w.APIVersion, w.Kind, w.Namespace, w.Name}, " ")
}

// conclude puts workloads, as they are now, into the status, and says in it whether
// everything is done. A status that is done stays so, with its time, until its
// workloads change.
func conclude(w *appsv1alpha1.WorkloadRebalancer, workloads []appsv1alpha1.ObservedWorkload, now time.Time) {
	s := &w.Status
	done := !slices.ContainsFunc(workloads, func(o appsv1alpha1.ObservedWorkload) bool { return o.Result == "" })
	switch {
	case !done:
		s.FinishTime = nil
	case s.FinishTime == nil || !equality.Semantic.DeepEqual(s.ObservedWorkloads, workloads):
		t := metav1.NewTime(now).Rfc3339Copy()
		s.FinishTime = &t
	}
	s.ObservedWorkloads, s.ObservedGeneration = workloads, w.Generation
}

// trigger returns the time that is written into a binding to have it scheduled
// anew: when the rebalancer was created. A binding that has been scheduled since,
// because its workload was added to the rebalancer later or just in between, would
// not notice that; it gets a later time.
func trigger(created metav1.Time, scheduled *metav1.Time, now time.Time) metav1.Time {
	if scheduled == nil || !scheduled.After(created.Time) {
		return created
	}
	t := metav1.NewTime(now).Rfc3339Copy()
	if !t.After(scheduled.Time) {
		t = metav1.NewTime(scheduled.Add(time.Second)) // whatever clock that was taken from
	}
	return t
}
