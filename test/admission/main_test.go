package admission

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmadactl/karmadactl/pkg/apis/crds"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

const member = "member1"

// shared is set once by TestMain, before any test runs.
var shared *fleetrig.Fleet

func TestMain(m *testing.M) {
	os.Exit(fleetrig.Main(m, fleetrig.Options{Name: "admission", Members: 1, Nodes: 1}, func(f *fleetrig.Fleet) { shared = f }))
}

// define makes the API server serve all kinds, also those that have no controllers yet: their webhooks are there.
func define(t *testing.T) {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion("apiextensions.k8s.io/v1")
		u.SetKind("CustomResourceDefinition")
		if got, err := shared.Control.Get(t.Context(), u); err != nil || got != nil {
			if err != nil {
				t.Fatal(err)
			}
			continue // as it was installed
		}
		unstructured.RemoveNestedField(u.Object, "status")
		shared.Control.Create(t, u)
		for _, v := range crd.Spec.Versions {
			kind := &unstructured.Unstructured{}
			kind.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
			kind.SetKind(crd.Spec.Names.Kind)
			kind.SetName("anything")
			kind.SetNamespace("default")
			fleetrig.Eventually(t, "the API server serves "+crd.Name, func() error {
				_, err := shared.Control.Get(t.Context(), kind)
				return err
			})
		}
	}
}

// create creates an object and returns what has become of it.
func create(t *testing.T, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	r, err := shared.Control.Resource(u)
	if err != nil {
		t.Fatal(err)
	}
	return r.Create(t.Context(), u, metav1.CreateOptions{})
}

// created is create for what must be accepted.
func created(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got, err := create(t, u)
	if err != nil {
		t.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return got
}

// remove deletes an object like u.
func remove(t *testing.T, u *unstructured.Unstructured) error {
	t.Helper()
	r, err := shared.Control.Resource(u)
	if err != nil {
		t.Fatal(err)
	}
	return r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{})
}

// makeNamespace creates a namespace.
func makeNamespace(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	u := fleetrig.Object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`)
	created(t, u)
	return u
}

// at returns a field; items of lists are numbers.
func at(o any, path ...string) (any, error) {
	for i, name := range path {
		switch v := o.(type) {
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return nil, fmt.Errorf("%v has no %q", path[:i], name)
			}
			o = next
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(v) {
				return nil, fmt.Errorf("%v has no item %q", path[:i], name)
			}
			o = v[n]
		default:
			return nil, fmt.Errorf("%v is %v, and has no %q", path[:i], v, name)
		}
	}
	return o, nil
}

// has checks a field.
func has(want any, path ...string) fleetrig.Check {
	return func(u *unstructured.Unstructured) error {
		got, err := at(u.Object, path...)
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%v is %v, want %v", path, got, want)
		}
		return nil
	}
}

// statusOf is what the API server answers when it refuses.
func statusOf(t *testing.T, err error) metav1.Status {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		t.Fatalf("want an answer of the API server, got %v", err)
	}
	return status.Status()
}
