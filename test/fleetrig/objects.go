package fleetrig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// Object reads a manifest.
func Object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("read manifest: %v\n%s", err, manifest)
	}
	return u
}

// MakeNamespace creates a namespace of its own for a test, and waits until it is everywhere.
func (f *Fleet) MakeNamespace(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	u := Object(t, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
	f.Control.Create(t, u)
	for _, m := range f.Members {
		m.Await(t, u, "namespaces are propagated by themselves", IsThere)
	}
	return u
}

// ConfigMap is one with a value.
func ConfigMap(t *testing.T, namespace, name, value string) *unstructured.Unstructured {
	t.Helper()
	return Object(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: {value: %q}}`, namespace, name, value))
}

// HasEvent waits for an event on an object whose note has all the texts.
func (f *Fleet) HasEvent(t *testing.T, u *unstructured.Unstructured, reason string, texts ...string) {
	t.Helper()
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	Eventually(t, fmt.Sprintf("%s %s has an event %s that says %q", u.GetKind(), u.GetName(), reason, texts), func() error {
		r, err := f.Control.Resource(Object(t, `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {namespace: `+namespace+`}}`))
		if err != nil {
			return err
		}
		list, err := r.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			kind, _, _ := unstructured.NestedString(e.Object, "regarding", "kind")
			got, _, _ := unstructured.NestedString(e.Object, "reason")
			note, _, _ := unstructured.NestedString(e.Object, "note")
			if name != u.GetName() || kind != u.GetKind() {
				continue
			}
			notes = append(notes, got+": "+note)
			if got == reason && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(note, text) }) {
				return nil
			}
		}
		return fmt.Errorf("its events are %q", notes)
	})
}

// A Check says what is wrong with an object, which is nil when there is none.
type Check = func(*unstructured.Unstructured) error

// All is content when all checks are.
func All(checks ...Check) Check {
	return func(u *unstructured.Unstructured) error {
		for _, check := range checks {
			if err := check(u); err != nil {
				return err
			}
		}
		return nil
	}
}

// IsThere is content with any object.
func IsThere(u *unstructured.Unstructured) error {
	if u == nil {
		return errors.New("it is not there")
	}
	return nil
}

// IsGone is content when there is none.
func IsGone(u *unstructured.Unstructured) error {
	if u != nil {
		return fmt.Errorf("it is still there, with labels %v", u.GetLabels())
	}
	return nil
}

// IsOurs is content with an object of a member that the control plane has put there.
func IsOurs(u *unstructured.Unstructured) error {
	if u == nil {
		return errors.New("it is not there")
	}
	if u.GetLabels()[names.ManagedLabel] != names.True {
		return fmt.Errorf("it is not marked as ours: its labels are %v", u.GetLabels())
	}
	return nil
}

// HoldsValue checks the value of a ConfigMap.
func HoldsValue(want string) Check {
	return func(u *unstructured.Unstructured) error {
		if u == nil {
			return errors.New("it is not there")
		}
		if got, _, _ := unstructured.NestedString(u.Object, "data", "value"); got != want {
			return fmt.Errorf("its value is %q, want %q", got, want)
		}
		return nil
	}
}
