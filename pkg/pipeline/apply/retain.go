package apply

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Retain puts into desired, which it may change, what observed has from its
// member and must keep, and returns the result.
type Retain func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

// RetainAllocated keeps what API servers and controllers of a member put into
// objects of the well-known kinds (spec: behaviour/06 6.5).
func RetainAllocated(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var err error
	switch desired.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		err = retainReplicas(desired, observed)
	case schema.GroupKind{Kind: "Pod"}:
		err = retainPod(desired, observed)
	case schema.GroupKind{Kind: "Service"}:
		err = errors.Join(
			retain(desired, observed, func(port any) bool { p, ok := port.(int64); return ok && p > 0 }, "spec", "healthCheckNodePort"),
			retain(desired, observed, func(ip any) bool { return ip != "" }, "spec", "clusterIP"),
		)
	case schema.GroupKind{Kind: "ServiceAccount"}:
		mergeByName(desired, observed, "secrets")
		mergeByName(desired, observed, "imagePullSecrets")
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		err = retain(desired, observed, anything, "spec", "volumeName")
	case schema.GroupKind{Kind: "PersistentVolume"}:
		err = retain(desired, observed, anything, "spec", "claimRef")
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		err = errors.Join(
			retain(desired, observed, anything, "spec", "selector", "matchLabels"),
			retain(desired, observed, anything, "spec", "template", "metadata", "labels"),
		)
	case schema.GroupKind{Kind: "Secret"}:
		if desired.Object["type"] == "kubernetes.io/service-account-token" {
			err = retain(desired, observed, anything, "data")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("retain what the cluster allocated: %w", err)
	}
	return desired, nil
}

func anything(any) bool { return true }

// retain copies a field if it is there and good.
func retain(desired, observed *unstructured.Unstructured, good func(any) bool, path ...string) error {
	value, found, err := unstructured.NestedFieldCopy(observed.Object, path...)
	if err != nil || !found || value == nil || !good(value) {
		return err
	}
	return unstructured.SetNestedField(desired.Object, value, path...)
}

func retainReplicas(desired, observed *unstructured.Unstructured) error {
	if desired.GetLabels()[names.RetainReplicasLabel] != names.True {
		return nil
	}
	replicas, found, err := unstructured.NestedInt64(observed.Object, "spec", "replicas")
	if err != nil {
		return err
	}
	if !found {
		return errors.New("the cluster's Deployment has no spec.replicas to retain")
	}
	return unstructured.SetNestedField(desired.Object, replicas, "spec", "replicas")
}

func retainPod(desired, observed *unstructured.Unstructured) error {
	return errors.Join(
		retain(desired, observed, anything, "spec", "nodeName"),
		retain(desired, observed, anything, "spec", "serviceAccountName"),
		retain(desired, observed, anything, "spec", "volumes"),
		retainMounts(desired, observed, "containers"),
		retainMounts(desired, observed, "initContainers"),
	)
}

// retainMounts keeps the volumeMounts of containers, by their names.
func retainMounts(desired, observed *unstructured.Unstructured, list string) error {
	have, _, err := unstructured.NestedSlice(observed.Object, "spec", list)
	if err != nil {
		return err
	}
	mounts := map[string]any{}
	for _, c := range have {
		if m, ok := c.(map[string]any); ok && m["volumeMounts"] != nil {
			mounts[nameOf(c)] = m["volumeMounts"]
		}
	}
	want, found, err := unstructured.NestedSlice(desired.Object, "spec", list)
	if err != nil || !found {
		return err
	}
	for _, c := range want {
		if m, ok := c.(map[string]any); ok && mounts[nameOf(c)] != nil {
			m["volumeMounts"] = mounts[nameOf(c)]
		}
	}
	return unstructured.SetNestedSlice(desired.Object, want, "spec", list)
}

// mergeByName adds what is observed and not desired to a list of references.
func mergeByName(desired, observed *unstructured.Unstructured, field string) {
	have, _ := observed.DeepCopy().Object[field].([]any)
	want, _ := desired.Object[field].([]any)
	known := map[string]bool{}
	for _, entry := range want {
		known[nameOf(entry)] = true
	}
	for _, entry := range have {
		if !known[nameOf(entry)] {
			want = append(want, entry)
		}
	}
	if want != nil {
		desired.Object[field] = want
	}
}
