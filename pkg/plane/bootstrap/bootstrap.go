// Package bootstrap holds the objects that every control plane has from its first minute (namespaces, API types,
// access rules, and the cluster-info that registering clusters read) and brings an API server to have them. Applying
// them again changes nothing that is right.
package bootstrap

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/karmadactl/karmadactl/pkg/apis/crds"
)

//go:embed manifests/namespaces.yaml
var namespaces []byte

//go:embed manifests/rbac.yaml
var rbac []byte

//go:embed manifests/admission.yaml
var admission []byte

const (
	// fieldManager owns what is applied here.
	fieldManager = "karmadactl-init"

	// parallel requests are few: the API server that they reach has only just started, on perhaps two cores.
	parallel = 8

	retryInterval = 100 * time.Millisecond
	retryFor      = 20 * time.Second
)

// installedGroups are the API groups whose controllers exist. The others come with theirs.
var installedGroups = [...]string{"policy.karmada.io", "work.karmada.io", "config.karmada.io", "apps.karmada.io"}

// Namespaces returns the namespaces of the control plane.
func Namespaces() ([]*unstructured.Unstructured, error) { return decode(namespaces) }

// RBAC returns the access rules of the control plane (spec: behaviour/11 11.6, behaviour/15 15.4), and the admission
// policies that say of agents and of bootstrap tokens what roles cannot. The role system:karmada:agent-rbac-generator is
// not among them: with it the holder of a bootstrap token could become admin.
func RBAC() ([]*unstructured.Unstructured, error) {
	roles, err := decode(rbac)
	if err != nil {
		return nil, err
	}
	policies, err := decode(admission)
	return append(roles, policies...), err
}

// CRDs returns the definitions of the API types that this version installs. server converts what has several versions.
func CRDs(server WebhookServer) ([]*unstructured.Unstructured, error) {
	all, err := crds.Groups(installedGroups[:]...)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, crd := range all {
		convertBy(crd, server)
		u, err := toUnstructured(crd, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err != nil {
			return nil, fmt.Errorf("read the definition of %s: %w", crd.Name, err)
		}
		objects = append(objects, u)
	}
	return objects, nil
}

// Conversions returns those of the definitions whose objects server converts.
func Conversions(server WebhookServer) ([]*unstructured.Unstructured, error) {
	all, err := CRDs(server)
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool {
		_, found, err := unstructured.NestedMap(u.Object, "spec", "conversion")
		return err == nil && !found
	}), err
}

// ClusterInfo returns the ConfigMap that tells whoever registers a cluster where the control plane is (spec:
// cli/init.md 8). kubeconfig holds no credentials.
func ClusterInfo(kubeconfig []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": metav1.NamespacePublic, "name": bootstrapapi.ConfigMapClusterInfo},
		"data":       map[string]any{bootstrapapi.KubeConfigKey: string(kubeconfig)},
	}}
}

// All returns every object above in the order in which they are applied. server is that of CRDs, kubeconfig that of
// ClusterInfo.
func All(server WebhookServer, kubeconfig []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	definitions := func() ([]*unstructured.Unstructured, error) { return CRDs(server) }
	for _, set := range []func() ([]*unstructured.Unstructured, error){Namespaces, definitions, RBAC} {
		objects, err := set()
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return append(all, ClusterInfo(kubeconfig)), nil
}

// resourceOf maps the kinds above to their resources: no discovery is needed for a handful of fixed ones.
func resourceOf(u *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	gvk := u.GroupVersionKind()
	plural, ok := map[string]string{
		"Namespace": "namespaces", "ConfigMap": "configmaps",
		"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
		"Role": "roles", "RoleBinding": "rolebindings",
		"CustomResourceDefinition":  "customresourcedefinitions",
		"ValidatingAdmissionPolicy": "validatingadmissionpolicies", "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
		"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
		"Service": "services", "APIService": "apiservices",
	}[gvk.Kind]
	if !ok {
		return schema.GroupVersionResource{}, fmt.Errorf("kind %s is not one of the bootstrap objects", gvk.Kind)
	}
	return gvk.GroupVersion().WithResource(plural), nil
}

// A Summary counts what Apply did.
type Summary struct {
	Created, Updated, Unchanged int
}

// String says it for people.
func (s Summary) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{{s.Created, "created"}, {s.Updated, "updated"}, {s.Unchanged, "unchanged"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

type outcome int

const (
	unchanged outcome = iota
	created
	updated
)

// Apply brings the objects to be as given, several at a time: what others added to them stays, what is right is not
// written. An API server that is only just there may refuse for a moment; that is waited for.
func Apply(ctx context.Context, c dynamic.Interface, objects []*unstructured.Unstructured) (Summary, error) {
	outcomes := make([]outcome, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, object := range objects {
		group.Go(func() (err error) {
			outcomes[i], err = applyWithRetry(ctx, c, object)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Summary{}, err
	}
	var s Summary
	for _, o := range outcomes {
		switch o {
		case created:
			s.Created++
		case updated:
			s.Updated++
		default:
			s.Unchanged++
		}
	}
	return s, nil
}

func applyWithRetry(ctx context.Context, c dynamic.Interface, object *unstructured.Unstructured) (outcome, error) {
	var did outcome
	var last error
	err := wait.PollUntilContextTimeout(ctx, retryInterval, retryFor, true, func(ctx context.Context) (bool, error) {
		did, last = apply(ctx, c, object)
		if last != nil && isTransient(last) {
			return false, nil
		}
		return true, last
	})
	if err == nil {
		return did, nil
	}
	if last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return did, fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
}

// apply makes or mends one object. Server-side apply would do as well, but takes the API server a tenth of a second for
// each large definition, also when nothing changes.
func apply(ctx context.Context, c dynamic.Interface, object *unstructured.Unstructured) (outcome, error) {
	gvr, err := resourceOf(object)
	if err != nil {
		return unchanged, err
	}
	var resource dynamic.ResourceInterface = c.Resource(gvr)
	if ns := object.GetNamespace(); ns != "" {
		resource = c.Resource(gvr).Namespace(ns)
	}
	existing, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		return created, err
	}
	if err != nil {
		return unchanged, err
	}
	if holds(existing.Object, object.Object) {
		return unchanged, nil
	}
	if role, bound := object.Object["roleRef"]; bound && !holds(existing.Object["roleRef"], role) {
		return replace(ctx, resource, existing, object)
	}
	if _, err := resource.Update(ctx, mended(existing, object), metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return unchanged, err
	}
	return updated, nil
}

// replace makes an object anew: which role a binding is for cannot be changed. The old one only goes if it still is what
// was read.
func replace(ctx context.Context, resource dynamic.ResourceInterface, existing, object *unstructured.Unstructured) (outcome, error) {
	uid, version := existing.GetUID(), existing.GetResourceVersion()
	err := resource.Delete(ctx, existing.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) {
		return unchanged, err
	}
	if _, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return unchanged, err
	}
	return updated, nil
}

// holds reports whether existing says everything that wanted says. What it says beyond that is defaults of the API
// server, status, and what others added.
func holds(existing, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		e, ok := existing.(map[string]any)
		if !ok {
			return len(w) == 0 && existing == nil
		}
		for key, value := range w {
			if !holds(e[key], value) {
				return false
			}
		}
		return true
	case []any:
		e, ok := existing.([]any)
		if !ok || len(e) != len(w) {
			return len(w) == 0 && existing == nil
		}
		for i := range w {
			if !holds(e[i], w[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(existing, wanted)
}

// mended is existing with what wanted says: labels, annotations and data beside ours stay, as does the conversion
// webhook of a definition, which is not ours to set here; everything else that wanted names is as it says.
func mended(existing, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	m := existing.DeepCopy()
	labels, annotations := m.GetLabels(), m.GetAnnotations()
	m.SetLabels(merge(labels, wanted.GetLabels()))
	m.SetAnnotations(merge(annotations, wanted.GetAnnotations()))
	for key, value := range wanted.DeepCopy().Object {
		switch key {
		case "apiVersion", "kind", "metadata":
			continue
		case "data":
			data, _, _ := unstructured.NestedMap(m.Object, key)
			m.Object[key] = merge(data, value.(map[string]any))
			continue
		}
		conversion, found, _ := unstructured.NestedFieldNoCopy(m.Object, key, "conversion")
		m.Object[key] = value
		if spec, ok := value.(map[string]any); ok && found && spec["conversion"] == nil {
			spec["conversion"] = conversion
		}
	}
	return m
}

func merge[V any](into, from map[string]V) map[string]V {
	if len(from) == 0 {
		return into
	}
	merged := map[string]V{}
	maps.Copy(merged, into)
	maps.Copy(merged, from)
	return merged
}

// isTransient tells answers of an API server that is still settling from final ones. A namespace that has only just
// been made may not be visible to every part of it yet.
func isTransient(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsConflict(err) ||
		apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// WaitEstablished returns when the API server serves every one of the given CustomResourceDefinitions.
func WaitEstablished(ctx context.Context, c dynamic.Interface, definitions []*unstructured.Unstructured) error {
	resource := c.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	for _, d := range definitions {
		var why error
		err := wait.PollUntilContextTimeout(ctx, retryInterval/4, retryFor, true, func(ctx context.Context) (bool, error) {
			u, err := resource.Get(ctx, d.GetName(), metav1.GetOptions{})
			if err != nil {
				why = err
				return false, nil
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
				return false, err
			}
			why = notEstablished(crd)
			return why == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s is served: %w", d.GetName(), errors.Join(err, why))
		}
	}
	return nil
}

// notEstablished returns why a definition is not served yet, nil when it is.
func notEstablished(crd apiextensionsv1.CustomResourceDefinition) error {
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			return nil
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return fmt.Errorf("its names are not accepted: %s", c.Message)
		}
	}
	return errors.New("it is not established yet")
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		// By way of the raw form, so that whole numbers are such as the API server's, not floating-point ones.
		var raw runtime.RawExtension
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err == nil && len(raw.Raw) == 0 {
			continue // nothing but remarks
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = u.UnmarshalJSON(raw.Raw)
		}
		if err != nil {
			return nil, fmt.Errorf("decode the built-in objects: %w", err)
		}
		objects = append(objects, u)
	}
}
