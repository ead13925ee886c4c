package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// attachAll attaches the objects that a reference means, as far as they exist.
// When others appear, their events say so.
func (r *Reconciler) attachAll(ctx context.Context, rb *workv1alpha2.ResourceBinding, ref reference) (wrote bool, err error) {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	r.templates.Follow(gvk)
	var objects []*unstructured.Unstructured
	if ref.Name != "" {
		object, err := r.templates.Get(ctx, workv1alpha2.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		objects = append(objects, object)
	} else {
		selector, err := metav1.LabelSelectorAsSelector(ref.LabelSelector)
		if err != nil {
			return false, err
		}
		objects, err = r.templates.List(ctx, gvk, ref.Namespace, selector)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	var errs []error
	for _, object := range objects {
		if object.GetDeletionTimestamp() != nil || registration.IsInEveryNamespace(object.GetKind(), object) {
			continue // what goes need not come, and what every cluster makes itself is not ours to replace
		}
		if object.GetLabels()[names.ClaimedByLabel] != "" {
			continue // whoever claims it takes it where it goes, or nowhere
		}
		did, err := r.attach(ctx, rb, object)
		wrote = wrote || did
		if err != nil {
			errs = append(errs, err)
		}
	}
	return wrote, errors.Join(errs...)
}

// attach makes the binding of an object go where rb goes.
func (r *Reconciler) attach(ctx context.Context, rb *workv1alpha2.ResourceBinding, object *unstructured.Unstructured) (wrote bool, err error) {
	name, err := binding.NameFor(ctx, r.client, referenceTo(object))
	if err != nil {
		return false, err
	}
	a := &workv1alpha2.ResourceBinding{}
	key := client.ObjectKey{Namespace: rb.Namespace, Name: name}
	err = r.client.Get(ctx, key, a)
	if apierrors.IsNotFound(err) && r.ledger.has(key) {
		err = r.live.Get(ctx, key, a) // we have made it, and the cache is behind
	}
	if apierrors.IsNotFound(err) {
		wrote, err = r.create(ctx, key, rb, object)
		if !apierrors.IsAlreadyExists(err) {
			return wrote, err
		}
		err = r.live.Get(ctx, key, a) // somebody else has, a moment ago
	}
	if err != nil {
		return false, fmt.Errorf("read binding %s: %w", key, err)
	}
	if indexOf(a, rb) < 0 && len(clustersOf(&rb.Spec)) == 0 {
		return false, nil
	}
	before, conflict := a.Spec.Resource, ""
	wrote, err = r.change(ctx, a, func(a *workv1alpha2.ResourceBinding) (err error) {
		switch {
		case !a.DeletionTimestamp.IsZero():
			return fmt.Errorf("binding %s is being deleted", key)
		case binding.TemplateKey(a.Spec.Resource) != binding.TemplateKey(referenceTo(object)):
			return fmt.Errorf("binding %s has become that of %s %s", key, a.Spec.Resource.Kind, a.Spec.Resource.Name)
		}
		if err := r.join(a, rb, object); err != nil {
			return err
		}
		conflict, err = r.settle(ctx, a, rb)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("attach binding %s: %w", key, err)
	}
	if before != a.Spec.Resource {
		r.ledger.note(a)
	}
	if wrote {
		r.recordConflict(a, conflict)
	}
	return wrote, nil
}

// create makes the binding of an object, attached to rb.
func (r *Reconciler) create(ctx context.Context, key client.ObjectKey, rb *workv1alpha2.ResourceBinding, object *unstructured.Unstructured) (bool, error) {
	if len(clustersOf(&rb.Spec)) == 0 {
		return false, nil
	}
	a := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := r.join(a, rb, object); err != nil {
		return false, err
	}
	if _, err := r.settle(ctx, a, rb); err != nil {
		return false, err
	}
	if err := r.client.Create(ctx, a); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return false, err
		}
		return false, fmt.Errorf("create binding %s: %w", key, err)
	}
	r.ledger.note(a)
	return true, nil
}

// detachOthers detaches what is attached to rb, and is not referred to.
func (r *Reconciler) detachOthers(ctx context.Context, rb *workv1alpha2.ResourceBinding, refs []reference) (wrote bool, err error) {
	attached, err := r.attachedTo(ctx, rb)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, a := range attached {
		meant, err := r.isMeant(ctx, a, refs)
		if err == nil && !meant {
			var did bool
			did, err = r.detach(ctx, a, rb)
			wrote = wrote || did
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return wrote, errors.Join(errs...)
}

// isMeant reports whether a reference means what a binds. What labels an object
// has that is not there any more nobody knows: it is meant as long as its binding
// is there.
func (r *Reconciler) isMeant(ctx context.Context, a *workv1alpha2.ResourceBinding, refs []reference) (bool, error) {
	var byLabels []reference
	for _, ref := range refs {
		may, byName := means(ref, a.Spec.Resource)
		if byName && may {
			return true, nil
		}
		if may {
			byLabels = append(byLabels, ref)
		}
	}
	if len(byLabels) == 0 {
		return false, nil
	}
	object, err := r.templates.Get(ctx, a.Spec.Resource)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the labels of %s %s: %w", a.Spec.Resource.Kind, a.Spec.Resource.Name, err)
	}
	return slices.ContainsFunc(byLabels, func(ref reference) bool { return selects(ref, object.GetLabels()) }), nil
}

// attachedTo lists the bindings that are attached to rb, as far as the cache knows.
// They are shared: they must not be changed.
func (r *Reconciler) attachedTo(ctx context.Context, rb *workv1alpha2.ResourceBinding) ([]*workv1alpha2.ResourceBinding, error) {
	list := &workv1alpha2.ResourceBindingList{}
	err := r.client.List(ctx, list, client.InNamespace(rb.Namespace), client.MatchingFields{byReferrer: rb.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list what is attached: %w", err)
	}
	var all []*workv1alpha2.ResourceBinding
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// detach makes what a binds no longer go where rb goes. What nothing else requires
// keeps its binding, which goes nowhere, and is deleted with its object
// (spec: behaviour/03 3.10).
func (r *Reconciler) detach(ctx context.Context, a, rb *workv1alpha2.ResourceBinding) (wrote bool, err error) {
	conflict := ""
	a = a.DeepCopy()
	wrote, err = r.change(ctx, a, func(a *workv1alpha2.ResourceBinding) (err error) {
		if !a.DeletionTimestamp.IsZero() {
			return nil
		}
		part(a, rb)
		conflict, err = r.settle(ctx, a, rb)
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("detach binding %s: %w", client.ObjectKeyFromObject(a), err)
	}
	if wrote {
		r.recordConflict(a, conflict)
	}
	return wrote, nil
}

// recordConflict tells that those that require a binding do not agree about it.
func (r *Reconciler) recordConflict(a *workv1alpha2.ResourceBinding, conflict string) {
	if conflict != "" {
		r.record.Eventf(a, nil, corev1.EventTypeWarning, names.EventDependencyPolicyConflict, "SettlePolicy", "Dependency policy conflict detected: %s.", conflict)
	}
}
