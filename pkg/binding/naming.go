package binding

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// NameFor returns the name that the binding of a template has, or is to have.
//
// One that there is keeps its name. A new one gets the classic name, by which
// existing tools find it (spec: behaviour/01 1.3); when another template has that
// one, or it is no valid name, it gets one beside it, so that no two templates
// ever share a binding.
//
// The reader must have the index ByTemplate. It may be a cache that lags: then to
// create the binding says that it already exists, and the name must be asked for
// again.
func NameFor(ctx context.Context, reader client.Reader, ref workv1alpha2.ObjectReference) (string, error) {
	there, err := of(ctx, reader, ref)
	if err != nil {
		return "", err
	}
	classic := names.Binding(ref.Kind, ref.Name)
	if len(there) > 0 {
		return preferred(there, ref, classic).GetName(), nil
	}
	beside := names.BindingBeside(GVK(ref).GroupKind(), ref.Name, ref.Namespace)
	if len(validation.IsDNS1123Subdomain(classic)) > 0 {
		return beside, nil
	}
	other := New(ref.Namespace)
	err = reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: classic}, other)
	switch {
	case apierrors.IsNotFound(err):
		return classic, nil
	case err != nil:
		return "", fmt.Errorf("find out whether the name %s of a binding is free: %w", classic, err)
	case TemplateKey(other.BindingSpec().Resource) == TemplateKey(ref):
		return classic, nil
	default:
		return beside, nil
	}
}

// of lists the bindings of a template. There should be one at most.
func of(ctx context.Context, reader client.Reader, ref workv1alpha2.ObjectReference) ([]Object, error) {
	var (
		all   []Object
		err   error
		match = []client.ListOption{client.InNamespace(ref.Namespace), client.MatchingFields{ByTemplate: TemplateKey(ref)}, client.UnsafeDisableDeepCopy}
	)
	if ref.Namespace == "" {
		list := &workv1alpha2.ClusterResourceBindingList{}
		err = reader.List(ctx, list, match...)
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	} else {
		list := &workv1alpha2.ResourceBindingList{}
		err = reader.List(ctx, list, match...)
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find the binding of %s %s: %w", ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, err)
	}
	return all, nil
}

// preferred returns which of the bindings of a template counts: rather one of
// the template as it is than of one that was deleted, rather one that stays, and
// rather the classic one.
func preferred(all []Object, ref workv1alpha2.ObjectReference, classic string) Object {
	rank := func(b Object) int {
		r := 0
		if b.BindingSpec().Resource.UID != ref.UID {
			r += 4
		}
		if !b.GetDeletionTimestamp().IsZero() {
			r += 2
		}
		if b.GetName() != classic {
			r++
		}
		return r
	}
	return slices.MinFunc(all, func(a, b Object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetName(), b.GetName()))
	})
}
