package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// referenceTo returns how a binding refers to an object.
func referenceTo(u *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}
}

// label returns the label by which an attached binding tells that an independent
// one requires it.
func label(rb *workv1alpha2.ResourceBinding) string {
	return names.DependedByLabel(names.BindingReferenceKey(rb.Namespace, rb.Name))
}

// clustersOf returns the clusters to which what a template depends on goes along:
// those it is scheduled to, and those where it stays until its replacement is
// healthy, as it cannot do without there either.
func clustersOf(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	clusters := slices.Clone(spec.Clusters)
	for _, task := range spec.GracefulEvictionTasks {
		there := slices.ContainsFunc(clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == task.FromCluster })
		if task.PurgeMode != policyv1alpha1.PurgeModeDirectly && !there {
			clusters = append(clusters, workv1alpha2.TargetCluster{Name: task.FromCluster, Replicas: ptr.Deref(task.Replicas, 0)})
		}
	}
	return clusters
}

// indexOf returns where in an attached binding an independent one is named, -1
// when it is not.
func indexOf(a, rb *workv1alpha2.ResourceBinding) int {
	return slices.IndexFunc(a.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
		return s.Namespace == rb.Namespace && s.Name == rb.Name
	})
}

// isClaimed reports whether a policy has claimed what is bound, so that stage bind
// keeps the binding up to date.
func isClaimed(a *workv1alpha2.ResourceBinding) bool {
	return a.Labels[names.PropagationPolicyIDLabel] != "" || a.Labels[names.ClusterPropagationPolicyIDLabel] != ""
}

// join makes a the binding of an object on which the template of rb depends.
func (r *Reconciler) join(a, rb *workv1alpha2.ResourceBinding, object *unstructured.Unstructured) error {
	ref := referenceTo(object)
	if owner := metav1.GetControllerOf(a); owner != nil && owner.UID != ref.UID {
		return fmt.Errorf("binding %s belongs to an earlier %s %s, and waits for the garbage collector", client.ObjectKeyFromObject(a), ref.Kind, ref.Name)
	} else if owner == nil {
		a.OwnerReferences = append(a.OwnerReferences, *metav1.NewControllerRef(object, object.GroupVersionKind()))
	}
	controllerutil.AddFinalizer(a, names.ResourceBindingFinalizer)
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	if binding.ID(a) == "" {
		a.Labels[names.ResourceBindingIDLabel] = string(uuid.NewUUID())
	}
	a.Labels[label(rb)] = binding.ID(rb)

	switch {
	case a.Spec.Resource.UID != ref.UID:
		a.Spec.Resource = ref
	case r.ledger.isOurs(a) && isNewer(ref.ResourceVersion, a.Spec.Resource.ResourceVersion):
		a.Spec.Resource.ResourceVersion = ref.ResourceVersion
	}

	snapshot := workv1alpha2.BindingSnapshot{Namespace: rb.Namespace, Name: rb.Name, Clusters: clustersOf(&rb.Spec)}
	if i := indexOf(a, rb); i >= 0 {
		a.Spec.RequiredBy[i] = snapshot
	} else {
		a.Spec.RequiredBy = append(a.Spec.RequiredBy, snapshot)
	}
	return nil
}

// part makes a no longer required by rb.
func part(a, rb *workv1alpha2.ResourceBinding) {
	if a.Labels[label(rb)] == binding.ID(rb) {
		delete(a.Labels, label(rb))
	}
	if i := indexOf(a, rb); i >= 0 {
		a.Spec.RequiredBy = slices.Delete(a.Spec.RequiredBy, i, i+1)
	}
}

// isNewer reports whether one resourceVersion comes after another.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

// A policy is what the bindings that require an attached one say about it.
type policy struct {
	overwrite, abort bool
	preserve, leave  bool
}

func (p *policy) add(spec *workv1alpha2.ResourceBindingSpec) {
	overwrite, preserve := spec.ConflictResolution == policyv1alpha1.ConflictOverwrite, ptr.Deref(spec.PreserveResourcesOnDeletion, false)
	p.overwrite, p.abort = p.overwrite || overwrite, p.abort || !overwrite
	p.preserve, p.leave = p.preserve || preserve, p.leave || !preserve
}

// conflict says what they do not agree about, "" when they do (the words are
// contract).
func (p *policy) conflict() string {
	var reasons []string
	if p.overwrite && p.abort {
		reasons = append(reasons, "ConflictResolution conflicted (Overwrite vs Abort)")
	}
	if p.preserve && p.leave {
		reasons = append(reasons, "PreserveResourcesOnDeletion conflicted (true vs false)")
	}
	return strings.Join(reasons, "; ")
}

// put makes the policy that of a binding, unless it says the same in other words.
func (p *policy) put(spec *workv1alpha2.ResourceBindingSpec) {
	if p.overwrite != (spec.ConflictResolution == policyv1alpha1.ConflictOverwrite) {
		spec.ConflictResolution = policyv1alpha1.ConflictAbort
		if p.overwrite {
			spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
		}
	}
	if p.preserve != ptr.Deref(spec.PreserveResourcesOnDeletion, false) {
		spec.PreserveResourcesOnDeletion = nil
		if p.preserve {
			spec.PreserveResourcesOnDeletion = ptr.To(true)
		}
	}
}

// settle gives a binding that no policy claims what those say that require it: to
// overwrite, or to preserve, if one does. It returns what they do not agree about.
// rb is the one that is at hand.
func (r *Reconciler) settle(ctx context.Context, a, rb *workv1alpha2.ResourceBinding) (conflict string, err error) {
	if a.Spec.Placement != nil {
		return "", nil
	}
	var p policy
	for _, s := range a.Spec.RequiredBy {
		by := rb
		if s.Namespace != rb.Namespace || s.Name != rb.Name {
			by = &workv1alpha2.ResourceBinding{}
			key := client.ObjectKey{Namespace: s.Namespace, Name: s.Name}
			err := r.client.Get(ctx, key, by, client.UnsafeDisableDeepCopy)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return "", fmt.Errorf("read binding %s, which requires %s: %w", key, a.Name, err)
			}
		}
		p.add(&by.Spec)
	}
	p.put(&a.Spec)
	return p.conflict(), nil
}
