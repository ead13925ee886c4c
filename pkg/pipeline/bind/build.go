package bind

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/features"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// wanted is what a binding is to say, of its template and of its policy
// (spec: behaviour/03 3.7).
type wanted struct {
	ref         workv1alpha2.ObjectReference
	owner       metav1.OwnerReference
	fingerprint fingerprint
	pods        pods

	claim    policy.Claim
	spec     *policyv1alpha1.PropagationSpec
	priority *workv1alpha2.SchedulePriority
	affinity *workv1alpha2.WorkloadAffinityGroups
}

// pods are what a template asks of clusters. All is empty for a template that has
// no pods.
type pods struct {
	replicas     int32
	requirements *workv1alpha2.ReplicaRequirements
	components   []workv1alpha2.Component
	// reason, action and note are for the event that tells how they were found.
	reason, action, note string
}

// describe finds out what the binding of a template is to say.
func (r *reconciler) describe(ctx context.Context, t *unstructured.Unstructured, p policy.Object, f fingerprint) (wanted, error) {
	w := wanted{
		ref: workv1alpha2.ObjectReference{
			APIVersion: t.GetAPIVersion(), Kind: t.GetKind(), Namespace: t.GetNamespace(), Name: t.GetName(),
			UID: t.GetUID(), ResourceVersion: t.GetResourceVersion(),
		},
		owner:       *metav1.NewControllerRef(t, t.GroupVersionKind()),
		fingerprint: f,
		claim:       policy.By(p),
		spec:        p.PropagationSpec(),
	}
	var err error
	if w.pods, err = r.interpret(ctx, t); err != nil {
		return wanted{}, err
	}
	if t.GetNamespace() == "" {
		return w, nil
	}
	if r.gate.Enabled(features.PriorityBasedScheduling) && w.spec.SchedulePriority != nil {
		if w.priority, err = r.priorityOf(ctx, w.spec.SchedulePriority); err != nil {
			return wanted{}, err
		}
	}
	if r.gate.Enabled(features.WorkloadAffinity) {
		w.affinity = groupsOf(w.spec.Placement.WorkloadAffinity, t.GetLabels())
	}
	return w, nil
}

// interpret finds out what a template asks of clusters.
func (r *reconciler) interpret(ctx context.Context, t *unstructured.Unstructured) (pods, error) {
	gvk := t.GroupVersionKind()
	if r.gate.Enabled(features.MultiplePodTemplatesScheduling) && r.interpreter.Supports(gvk, configv1alpha1.InterpreterOperationInterpretComponent) {
		components, err := r.interpreter.Components(ctx, t)
		if err != nil {
			r.event(t, corev1.EventTypeWarning, names.EventGetComponentsFailed, "GetComponents", err.Error())
			return pods{}, fmt.Errorf("get components: %w", err)
		}
		return pods{components: components, reason: names.EventGetComponentsSucceed, action: "GetComponents", note: "Get components succeed."}, nil
	}
	if !r.interpreter.Supports(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		return pods{}, nil
	}
	replicas, requirements, err := r.interpreter.Replicas(ctx, t)
	if err != nil {
		r.event(t, corev1.EventTypeWarning, names.EventGetReplicasFailed, "GetReplicas", err.Error())
		return pods{}, fmt.Errorf("get replicas: %w", err)
	}
	if requirements != nil && requirements.Namespace == "" && r.gate.Enabled(features.ResourceQuotaEstimate) {
		requirements.Namespace = t.GetNamespace()
	}
	return pods{
		replicas: replicas, requirements: requirements,
		reason: names.EventGetReplicasSucceed, action: "GetReplicas", note: "Get replicas succeed.",
	}, nil
}

// priorityOf looks the value of a priority class up.
func (r *reconciler) priorityOf(ctx context.Context, s *policyv1alpha1.SchedulePriority) (*workv1alpha2.SchedulePriority, error) {
	if s.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("unsupported source %q of a priority class: only %s is known", s.PriorityClassSource, policyv1alpha1.KubePriorityClass)
	}
	class := &schedulingv1.PriorityClass{}
	err := r.client.Get(ctx, client.ObjectKey{Name: s.PriorityClassName}, class)
	if apierrors.IsNotFound(err) {
		return nil, &missingPriorityError{name: s.PriorityClassName}
	}
	if err != nil {
		return nil, fmt.Errorf("look up the scheduling priority: %w", err)
	}
	return &workv1alpha2.SchedulePriority{Priority: class.Value}, nil
}

// A missingPriorityError says that there is no such priority class.
type missingPriorityError struct{ name string }

func (e *missingPriorityError) Error() string {
	return fmt.Sprintf("look up the scheduling priority: there is no PriorityClass %s in the control plane: create it, or name another in the policy", e.name)
}

// groupsOf returns the groups that labels put a template in.
func groupsOf(a *policyv1alpha1.WorkloadAffinity, labels map[string]string) *workv1alpha2.WorkloadAffinityGroups {
	if a == nil {
		return nil
	}
	group := func(key string) string {
		if v, ok := labels[key]; ok {
			return key + "=" + v
		}
		return ""
	}
	var g workv1alpha2.WorkloadAffinityGroups
	if a.Affinity != nil {
		g.AffinityGroup = group(a.Affinity.GroupByLabelKey)
	}
	if a.AntiAffinity != nil {
		g.AntiAffinityGroup = group(a.AntiAffinity.GroupByLabelKey)
	}
	if g == (workv1alpha2.WorkloadAffinityGroups{}) {
		return nil
	}
	return &g
}

// put makes a binding, which may be new, say all that is wanted. What others put
// there stays.
func (w wanted) put(b binding.Object) {
	w.putTemplate(b)
	w.putPolicy(b)
}

// putTemplate makes a binding say what is wanted of its template.
func (w wanted) putTemplate(b binding.Object) {
	spec := b.BindingSpec()
	controllerutil.AddFinalizer(b, binding.ScopeOf(b).Finalizer)
	b.SetOwnerReferences([]metav1.OwnerReference{w.owner})
	if binding.ID(b) == "" {
		b.SetLabels(with(b.GetLabels(), binding.ScopeOf(b).IDLabel, string(uuid.NewUUID())))
	}

	ref := w.ref
	if f, ok := readFingerprint(b.GetAnnotations()); ok && f == w.fingerprint && sameButVersion(spec.Resource, ref) {
		ref.ResourceVersion = spec.Resource.ResourceVersion // only its status has changed
	}
	spec.Resource = ref
	b.SetAnnotations(with(b.GetAnnotations(), names.TemplateFingerprintAnnotation, w.fingerprint.String()))
	spec.Replicas, spec.ReplicaRequirements, spec.Components = w.pods.replicas, w.pods.requirements, w.pods.components
}

// putPolicy makes a binding say what is wanted of its policy.
func (w wanted) putPolicy(b binding.Object) {
	spec, from := b.BindingSpec(), w.spec.DeepCopy()
	w.claim.Put(b)
	_, namespaced := b.(*workv1alpha2.ResourceBinding)
	if namespaced || b.GetResourceVersion() == "" {
		spec.PropagateDeps = from.PropagateDeps
	}
	spec.SchedulerName = from.SchedulerName
	spec.Placement = &from.Placement
	spec.Failover = from.Failover
	spec.ConflictResolution = from.ConflictResolution
	if spec.ConflictResolution == "" {
		spec.ConflictResolution = policyv1alpha1.ConflictAbort // as the API server would fill in
	}
	spec.PreserveResourcesOnDeletion = from.PreserveResourcesOnDeletion
	suspend(spec, from.Suspension)
	if namespaced {
		spec.SchedulePriority = w.priority
		spec.WorkloadAffinityGroups = w.affinity
	}
}

// suspend makes a binding suspended as a policy says. Whether it is scheduled is
// for others to say.
func suspend(spec *workv1alpha2.ResourceBindingSpec, s *policyv1alpha1.Suspension) {
	var scheduling *bool
	if spec.Suspension != nil {
		scheduling = spec.Suspension.Scheduling
	}
	if s == nil && scheduling == nil {
		spec.Suspension = nil
		return
	}
	spec.Suspension = &workv1alpha2.Suspension{Scheduling: scheduling}
	if s != nil {
		spec.Suspension.Suspension = *s
	}
}

func sameButVersion(a, b workv1alpha2.ObjectReference) bool {
	a.ResourceVersion = b.ResourceVersion
	return a == b
}

func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
