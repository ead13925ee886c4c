package binding

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prune takes out of an object what Relevant leaves out. Nothing that the object
// shares with another is changed.
func Prune(u *unstructured.Unstructured) { u.Object = Relevant(u) }

// Relevant returns an object without what servers and controllers fill in, what
// differs between the control plane and its members, and what must not travel
// (spec: behaviour/02 2.9). It is what a Work carries, and by it two states of an
// object are compared. The result shares what it can with the object, so do not
// change it.
//
// The annotation by which kubectl remembers what was applied is among what is
// left out: it speaks of whoever applies on the very cluster, and a member may
// have one of its own.
func Relevant(u *unstructured.Unstructured) map[string]any {
	object := maps.Clone(u.Object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{
			"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
			"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
		} {
			delete(metadata, field)
		}
		object["metadata"] = metadata
	}
	object = without(object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)

	switch u.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return pruneDeployment(object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return pruneJob(object)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return prunePersistentVolumeClaim(object)
	case schema.GroupKind{Kind: "Secret"}:
		return pruneSecret(object)
	case schema.GroupKind{Kind: "Service"}:
		return pruneService(object)
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return pruneServiceAccount(object)
	}
	return object
}

func pruneDeployment(o map[string]any) map[string]any {
	o = without(o, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return without(o, "metadata", "annotations", "deployment.kubernetes.io/revision-history")
}

// pruneJob leaves out by what the server tells the Job's pods, and the time to
// live: a member that removed a finished Job would get it again, and run it
// again. The Job in the control plane goes in time, and its copies with it.
func pruneJob(o map[string]any) map[string]any {
	o = without(o, "spec", "ttlSecondsAfterFinished")
	if manual, _, err := unstructured.NestedBool(o, "spec", "manualSelector"); err == nil && manual {
		return o
	}
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		o = without(o, "spec", "selector", "matchLabels", key)
	}
	for _, key := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		o = without(o, "spec", "template", "metadata", "labels", key)
		o = without(o, "metadata", "labels", key) // which are those of its pods, if it had none
	}
	return o
}

func prunePersistentVolumeClaim(o map[string]any) map[string]any {
	return without(o, "metadata", "annotations", "volume.kubernetes.io/selected-node")
}

// pruneSecret leaves out a token: each cluster issues its own.
func pruneSecret(o map[string]any) map[string]any {
	if o["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return o
	}
	o = without(o, "metadata", "annotations", corev1.ServiceAccountUIDKey)
	return without(o, "data")
}

// pruneService leaves out addresses, which each cluster allocates.
func pruneService(o map[string]any) map[string]any {
	if ip, _, err := unstructured.NestedString(o, "spec", "clusterIP"); err == nil && ip == corev1.ClusterIPNone {
		return o
	}
	o = without(o, "spec", "clusterIP")
	return without(o, "spec", "clusterIPs")
}

// pruneServiceAccount leaves out the tokens that a cluster made for it.
func pruneServiceAccount(o map[string]any) map[string]any {
	name, _, err := unstructured.NestedString(o, "metadata", "name")
	secrets, ok := o["secrets"].([]any)
	if err != nil || !ok {
		return o
	}
	isToken := func(entry any) bool {
		reference, _ := entry.(map[string]any)
		secret, _ := reference["name"].(string)
		return strings.HasPrefix(secret, name+"-token-")
	}
	if !slices.ContainsFunc(secrets, isToken) {
		return o
	}
	o = without(o, "secrets")
	if rest := slices.DeleteFunc(slices.Clone(secrets), isToken); len(rest) > 0 {
		o = maps.Clone(o)
		o["secrets"] = rest
	}
	return o
}

// without returns an object without a field, which need not be there, and without
// what is empty then. The object is not changed.
func without(object map[string]any, path ...string) map[string]any {
	if _, found, err := unstructured.NestedFieldNoCopy(object, path...); err != nil || !found {
		return object
	}
	object = maps.Clone(object)
	inner, ok := object[path[0]].(map[string]any)
	if len(path) > 1 && ok {
		if inner = without(inner, path[1:]...); len(inner) > 0 {
			object[path[0]] = inner
			return object
		}
	}
	delete(object, path[0])
	return object
}
