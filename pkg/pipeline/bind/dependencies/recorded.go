package dependencies

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A reference says what a template depends on: one object, or those that a
// selector matches.
type reference = configv1alpha1.DependentObjectReference

// ordered returns references in order, each once, so that the same ones are always
// recorded the same way.
func ordered(refs []reference) []reference {
	refs = slices.Clone(refs)
	slices.SortFunc(refs, func(a, b reference) int {
		return cmp.Or(
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(metav1.FormatLabelSelector(a.LabelSelector), metav1.FormatLabelSelector(b.LabelSelector)),
		)
	})
	return slices.CompactFunc(refs, func(a, b reference) bool { return reflect.DeepEqual(a, b) })
}

// recorded returns what the template of a binding is known to depend on. What
// somebody else has written there, and is no list of references, counts as none.
func recorded(b client.Object) []reference {
	var refs []reference
	if json.Unmarshal([]byte(b.GetAnnotations()[names.DependenciesAnnotation]), &refs) != nil {
		return nil
	}
	return refs
}

// record writes down what the template of a binding depends on, and reports
// whether that is news. That it depends on nothing need not be written down.
func record(b client.Object, refs []reference) (changed bool, err error) {
	if equality.Semantic.DeepEqual(ordered(recorded(b)), refs) || len(refs) == 0 && len(recorded(b)) == 0 {
		return false, nil
	}
	if refs == nil {
		refs = []reference{}
	}
	raw, err := json.Marshal(refs)
	if err != nil {
		return false, fmt.Errorf("write down dependencies: %w", err)
	}
	annotations := b.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[names.DependenciesAnnotation] = string(raw)
	b.SetAnnotations(annotations)
	return true, nil
}

// check says what is wrong with a reference (spec: behaviour/06 6.7).
func check(ref reference) error {
	problem := func(what any) error {
		return fmt.Errorf("dependency on %s %s %s: %v", ref.APIVersion, ref.Kind, ref.Name, what)
	}
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil {
		return problem(err)
	}
	if ref.APIVersion == "" || ref.Kind == "" {
		return problem("it has no apiVersion or no kind")
	}
	if ref.Name != "" {
		return nil
	}
	if ref.LabelSelector == nil {
		return problem("it has neither a name nor a label selector")
	}
	if _, err := metav1.LabelSelectorAsSelector(ref.LabelSelector); err != nil {
		return problem(err)
	}
	return nil
}

// checkAll says what is wrong with references.
func checkAll(refs []reference) error {
	var errs []error
	for _, ref := range refs {
		errs = append(errs, check(ref))
	}
	return errors.Join(errs...)
}

// groupKind returns the kind of what is referred to, in any version.
func groupKind(ref reference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// selects reports whether a reference by labels means an object with these.
func selects(ref reference, set map[string]string) bool {
	if ref.Name != "" || ref.LabelSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.LabelSelector)
	return err == nil && selector.Matches(labels.Set(set))
}

// means reports whether a reference may mean an object, as far as kind and name
// tell; it does for sure when byName is true.
func means(ref reference, object workv1alpha2.ObjectReference) (may, byName bool) {
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind()
	if groupKind(ref) != kind || ref.Namespace != object.Namespace {
		return false, false
	}
	return ref.Name == "" || ref.Name == object.Name, ref.Name != ""
}

// describe names what a reference means, for a message.
func describe(ref reference) string {
	if ref.Name != "" {
		return fmt.Sprintf("%s %s", ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	}
	return fmt.Sprintf("%s %s with labels %s", ref.Kind, ref.Namespace, metav1.FormatLabelSelector(ref.LabelSelector))
}
