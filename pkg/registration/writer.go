package registration

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// An Action is what a Writer did to an object, or would do.
type Action string

const (
	// Create makes an object that was not there.
	Create Action = "create"
	// Update changes one that was.
	Update Action = "update"
	// Keep leaves one as it is.
	Keep Action = "keep"
	// Delete removes one.
	Delete Action = "delete"
)

// A Change is one object and what was done about it.
type Change struct {
	Action Action
	Object client.Object
}

// A Writer makes the objects of one cluster what they should be and keeps book of it. It is for one request, and not safe
// for concurrent use.
type Writer struct {
	client  client.Client
	dryRun  bool
	changes []Change
}

// NewWriter returns a Writer to the cluster that c is a client of.
func NewWriter(c client.Client) *Writer { return &Writer{client: c} }

// NewDryWriter returns a Writer that reads, notes what it would do, and does nothing.
func NewDryWriter(c client.Client) *Writer { return &Writer{client: c, dryRun: true} }

// Changes returns what was done about each object, in that order.
func (w *Writer) Changes() []Change { return w.changes }

// tries is how often an object is read anew because somebody else changed it in between.
const tries = 10

// ensure makes obj, which says its name and namespace, what mutate makes of it: of what is there, or of nothing. mutate
// must not depend on having been called before.
func ensure[T client.Object](ctx context.Context, w *Writer, obj T, mutate func(found T) error) (T, error) {
	key := client.ObjectKeyFromObject(obj)
	fresh := func() T {
		o, _ := obj.DeepCopyObject().(T) // a copy has the type of the original
		return o
	}
	var err error
	for range tries {
		found := fresh()
		err = w.client.Get(ctx, key, found)
		switch {
		case isAbsent(err):
			found = fresh()
			if err := mutate(found); err != nil {
				return found, err
			}
			err = w.create(ctx, found)
		case err != nil:
			return found, fmt.Errorf("read %s: %w", w.Describe(obj), err)
		default:
			before := found.DeepCopyObject()
			if err := mutate(found); err != nil {
				return found, err
			}
			if apiequality.Semantic.DeepEqual(before, found) {
				w.note(Keep, found)
				return found, nil
			}
			err = w.update(ctx, found)
		}
		if err == nil {
			return found, nil
		}
		// Somebody was faster; what they made is looked at.
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return found, err
		}
	}
	return obj, err
}

func (w *Writer) create(ctx context.Context, obj client.Object) error {
	if !w.dryRun {
		if err := w.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %s: %w", w.Describe(obj), err)
		}
	}
	w.note(Create, obj)
	return nil
}

func (w *Writer) update(ctx context.Context, obj client.Object) error {
	if !w.dryRun {
		if err := w.client.Update(ctx, obj); err != nil {
			return fmt.Errorf("update %s: %w", w.Describe(obj), err)
		}
	}
	w.note(Update, obj)
	return nil
}

// remove deletes exactly this object, not one that has taken its name since. One that is gone is fine.
func (w *Writer) remove(ctx context.Context, obj client.Object) error {
	if !w.dryRun {
		var opts []client.DeleteOption
		if uid := obj.GetUID(); uid != "" {
			opts = append(opts, client.Preconditions(metav1.Preconditions{UID: &uid}))
		}
		err := w.client.Delete(ctx, obj, opts...)
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s: %w", w.Describe(obj), err)
		}
	}
	w.note(Delete, obj)
	return nil
}

// note keeps the last word about an object.
func (w *Writer) note(a Action, obj client.Object) {
	for i, c := range w.changes {
		if sameObject(c.Object, obj) {
			if c.Action == Create && a != Delete {
				a = Create // it was not there before
			}
			w.changes[i] = Change{a, obj}
			return
		}
	}
	w.changes = append(w.changes, Change{a, obj})
}

func sameObject(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && client.ObjectKeyFromObject(a) == client.ObjectKeyFromObject(b)
}

// Undo deletes, last first, what this Writer created, but no namespaces: somebody may have put something into one.
func (w *Writer) Undo(ctx context.Context) error {
	var errs []error
	changes := w.changes
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if c.Action != Create || kindOf(w, c.Object) == "Namespace" {
			continue
		}
		errs = append(errs, w.remove(ctx, c.Object))
	}
	return errors.Join(errs...)
}

// Describe names an object for people.
func (w *Writer) Describe(obj client.Object) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return kindOf(w, obj) + " " + name
}

func kindOf(w *Writer, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, w.client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", obj) // a type that is not registered cannot be written either
	}
	return gvk.Kind
}

// isSystem reports whether an object has the mark of what the system made.
func isSystem(obj metav1.Object) bool { return obj.GetLabels()[names.SystemLabel] == names.True }

// markSystem puts it on.
func markSystem(obj metav1.Object) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.SystemLabel] = names.True
	obj.SetLabels(labels)
}

// isNew reports whether an object, as ensure hands it to mutate, is not on the server yet.
func isNew(obj metav1.Object) bool { return obj.GetResourceVersion() == "" }

// sameUID reports whether uid, if it is known, is want.
func sameUID(uid, want types.UID) bool { return uid == "" || want == "" || uid == want }
