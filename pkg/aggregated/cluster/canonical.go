package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// canonicalize brings a spec into the one form that is stored. old is what is
// stored now, nil for a new Cluster: what a user leaves out of a manifest that
// is applied again stays as it is (spec: behaviour/09 9.1).
func canonicalize(spec, old *clusterv1alpha1.ClusterSpec, now time.Time) {
	if old == nil {
		old = &clusterv1alpha1.ClusterSpec{}
	}
	canonicalizeZones(spec, old)
	canonicalizeTaints(spec.Taints, old.Taints, now)
}

// canonicalizeZones moves the deprecated zone. Who applies a manifest that has
// it again sends it beside the zones that it became; that is no contradiction.
func canonicalizeZones(spec, old *clusterv1alpha1.ClusterSpec) {
	if spec.Zone == "" {
		return
	}
	moved := []string{spec.Zone}
	again := slices.Equal(spec.Zones, moved) && slices.Equal(old.Zones, moved)
	if len(spec.Zones) == 0 || again {
		spec.Zone, spec.Zones = "", moved
	}
}

// canonicalizeTaints gives every NoExecute taint the time since when it holds.
func canonicalizeTaints(taints, old []corev1.Taint, now time.Time) {
	for i := range taints {
		t := &taints[i]
		if t.Effect != corev1.TaintEffectNoExecute || t.TimeAdded != nil {
			continue
		}
		t.TimeAdded = &metav1.Time{Time: now}
		before := slices.IndexFunc(old, func(o corev1.Taint) bool {
			return o.Key == t.Key && o.Value == t.Value && o.Effect == t.Effect
		})
		if before >= 0 && old[before].TimeAdded != nil {
			t.TimeAdded = old[before].TimeAdded.DeepCopy()
		}
	}
}

// standardizeModels sorts models by grade, and opens the first at the bottom and
// the last at the top.
func standardizeModels(models []clusterv1alpha1.ResourceModel) {
	if len(models) == 0 {
		return
	}
	slices.SortStableFunc(models, func(a, b clusterv1alpha1.ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })
	for i, first := 0, models[0].Ranges; i < len(first); i++ {
		if !first[i].Min.IsZero() {
			first[i].Min = *resource.NewQuantity(0, first[i].Min.Format)
		}
	}
	for i, last := 0, models[len(models)-1].Ranges; i < len(last); i++ {
		if !isTop(last[i].Max) {
			last[i].Max = top()
		}
	}
}

func top() resource.Quantity { return *resource.NewQuantity(math.MaxInt64, resource.DecimalSI) }

func isTop(q resource.Quantity) bool { return q.CmpInt64(math.MaxInt64) == 0 }

// defaultModels are those of a Cluster that is created without any
// (spec: behaviour/09 9.1).
func defaultModels() []clusterv1alpha1.ResourceModel {
	const gi = 1 << 30
	// Where each grade begins; the last has no end.
	cpu := []int64{0, 1, 2, 4, 8, 16, 32, 64, 128}
	memory := []int64{0, 4 * gi, 16 * gi, 32 * gi, 64 * gi, 128 * gi, 256 * gi, 512 * gi, 1024 * gi}

	models := make([]clusterv1alpha1.ResourceModel, 0, len(cpu))
	for i := range cpu {
		models = append(models, clusterv1alpha1.ResourceModel{
			Grade: int32(i),
			Ranges: []clusterv1alpha1.ResourceModelRange{
				modelRange(corev1.ResourceCPU, cpu, i, resource.DecimalSI),
				modelRange(corev1.ResourceMemory, memory, i, resource.BinarySI),
			},
		})
	}
	return models
}

func modelRange(name corev1.ResourceName, begins []int64, i int, format resource.Format) clusterv1alpha1.ResourceModelRange {
	r := clusterv1alpha1.ResourceModelRange{Name: name, Min: *resource.NewQuantity(begins[i], format), Max: top()}
	if i+1 < len(begins) {
		r.Max = *resource.NewQuantity(begins[i+1], format)
	}
	return r
}
