package bind

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// find returns the binding of a template, nil when there is none, and the name it
// has or is to have.
func (r *reconciler) find(ctx context.Context, ref workv1alpha2.ObjectReference) (now binding.Object, name string, err error) {
	name, err = binding.NameFor(ctx, r.client, ref)
	if err != nil {
		return nil, "", err
	}
	b := binding.New(ref.Namespace)
	err = r.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil, name, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("get binding %s: %w", name, err)
	}
	return b, name, nil
}

// write makes the binding of a template say what put puts there, with one request
// at most, and reports whether there was one. now is what is known of it, nil for
// nothing; the cache may not have heard of it yet.
func (r *reconciler) write(ctx context.Context, now binding.Object, name string, ref workv1alpha2.ObjectReference, put func(binding.Object)) (written bool, err error) {
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err = retry.OnError(retry.DefaultRetry, raced, func() error {
		if now == nil {
			b := binding.New(ref.Namespace)
			b.SetNamespace(ref.Namespace)
			b.SetName(name)
			put(b)
			err := r.client.Create(ctx, b)
			written = err == nil
			if !apierrors.IsAlreadyExists(err) {
				return err
			}
			return r.reread(ctx, &now, &name, ref, err)
		}
		if err := ours(now, ref); err != nil {
			return err
		}
		next, ok := now.DeepCopyObject().(binding.Object)
		if !ok {
			return fmt.Errorf("copy of %T is no binding", now)
		}
		put(next)
		if equality.Semantic.DeepEqual(now, next) {
			return nil
		}
		err := r.client.Update(ctx, next)
		written = err == nil
		if !apierrors.IsConflict(err) {
			return err
		}
		return r.reread(ctx, &now, &name, ref, err)
	})
	if err != nil {
		return false, fmt.Errorf("write binding %s: %w", name, err)
	}
	return written, nil
}

// reread reads a binding live, after a write has failed with err because it is not
// what it was, and returns that error. When another template has the name, it
// gives another.
func (r *reconciler) reread(ctx context.Context, now *binding.Object, name *string, ref workv1alpha2.ObjectReference, err error) error {
	b := binding.New(ref.Namespace)
	errGet := r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: *name}, b)
	switch {
	case apierrors.IsNotFound(errGet):
		*now = nil
	case errGet != nil:
		return fmt.Errorf("read it live: %w", errGet)
	case binding.TemplateKey(b.BindingSpec().Resource) != binding.TemplateKey(ref):
		*now, *name = nil, names.BindingBeside(binding.GVK(ref).GroupKind(), ref.Name, ref.Namespace)
	default:
		*now = b
	}
	return err
}

// ours makes sure that a binding is one of the template as it is: one of a
// template that was deleted must be gone before its successor gets one
// (spec: behaviour/01 1.10).
func ours(b binding.Object, ref workv1alpha2.ObjectReference) error {
	owner := metav1.GetControllerOf(b)
	if owner != nil && owner.UID != ref.UID {
		return fmt.Errorf("it belongs to an earlier %s %s, and waits for the garbage collector", ref.Kind, ref.Name)
	}
	if !b.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("it is being deleted, and is made anew when it is gone")
	}
	return nil
}
