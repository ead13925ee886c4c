package bind

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// matters reports whether a change of a template is any but one of its status
// (spec: behaviour/03 3.1).
func matters(old, current *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(body(old), body(current)) ||
		!reflect.DeepEqual(metaBut(old, "resourceVersion", "managedFields"), metaBut(current, "resourceVersion", "managedFields"))
}

// userChanged reports whether a change of a template is one of its user, rather
// than of controllers that mark it (spec: behaviour/03 3.1).
func userChanged(old, current *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(body(old), body(current)) ||
		!reflect.DeepEqual(users(old.GetLabels(), true), users(current.GetLabels(), true)) ||
		!reflect.DeepEqual(users(old.GetAnnotations(), false), users(current.GetAnnotations(), false))
}

// body returns what a template says, without metadata and status. Its values are
// the template's own: do not change them.
func body(u *unstructured.Unstructured) map[string]any {
	return but(u.Object, "metadata", "status")
}

func metaBut(u *unstructured.Unstructured, keys ...string) map[string]any {
	m, _ := u.Object["metadata"].(map[string]any)
	return but(m, keys...)
}

func but(m map[string]any, keys ...string) map[string]any {
	rest := make(map[string]any, len(m))
	for k, v := range m {
		rest[k] = v
	}
	for _, k := range keys {
		delete(rest, k)
	}
	return rest
}

// users returns the labels or annotations that users have set.
func users(all map[string]string, labels bool) map[string]string {
	theirs := map[string]string{}
	for k, v := range all {
		if !strings.Contains(k, ".karmada.io") || labels && k == names.SkipAutoPropagationLabel {
			theirs[k] = v
		}
	}
	return theirs
}

// A fingerprint is the value of names.TemplateFingerprintAnnotation, in two parts.
type fingerprint struct{ user, all string }

// fingerprintOf returns the fingerprint of a template.
func fingerprintOf(u *unstructured.Unstructured) (fingerprint, error) {
	said, err := json.Marshal(body(u))
	if err != nil {
		return fingerprint{}, fmt.Errorf("take the fingerprint of %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	sum := func(labels, annotations map[string]string) (string, error) {
		marks, err := json.Marshal([]map[string]string{labels, annotations})
		if err != nil {
			return "", fmt.Errorf("take the fingerprint of %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		h := fnv.New64a()
		_, _ = h.Write(said) // a hash never fails to write
		_, _ = h.Write(marks)
		return fmt.Sprintf("%016x", h.Sum64()), nil
	}
	user, errUser := sum(users(u.GetLabels(), true), users(u.GetAnnotations(), false))
	all, errAll := sum(notNil(u.GetLabels()), notNil(u.GetAnnotations()))
	return fingerprint{user: user, all: all}, errors.Join(errUser, errAll)
}

// notNil makes no labels, or annotations, the same as none.
func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (f fingerprint) String() string { return f.user + "-" + f.all }

// readFingerprint reads the annotation, ok false when there is none.
func readFingerprint(annotations map[string]string) (f fingerprint, ok bool) {
	f.user, f.all, ok = strings.Cut(annotations[names.TemplateFingerprintAnnotation], "-")
	return f, ok
}
