package kinds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/exempt"
)

// mostWarnings is how many selectors are warned about: an API server passes on
// 4 KiB in all.
const mostWarnings = 10

// Warn returns a handler that answers as h does. When h allows a policy to be
// created or changed, propagation or override policy of any scope, the answer also
// has the Warnings about it.
func (k *Kinds) Warn(h admission.Handler) admission.Handler {
	if k == nil {
		return h
	}
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		response := h.Handle(ctx, req)
		if !response.Allowed || req.SubResource != "" {
			return response
		}
		return response.WithWarnings(k.warnings(ctx, req)...)
	})
}

// A policy is what all policies have in common.
type policy struct {
	Metadata struct {
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// warnings returns those about a request. What goes, or stays as it is, is nothing
// to warn about.
func (k *Kinds) warnings(ctx context.Context, req admission.Request) []string {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return nil
	}
	var now, was policy
	if json.Unmarshal(req.Object.Raw, &now) != nil || now.Metadata.DeletionTimestamp != nil {
		return nil
	}
	if req.Operation == admissionv1.Update && json.Unmarshal(req.OldObject.Raw, &was) == nil && bytes.Equal(was.Spec, now.Spec) {
		return nil
	}
	var spec struct {
		ResourceSelectors []policyv1alpha1.ResourceSelector `json:"resourceSelectors"`
	}
	if json.Unmarshal(now.Spec, &spec) != nil {
		return nil
	}
	return k.Warnings(ctx, req.Namespace, spec.ResourceSelectors)
}

// Warnings tell which selectors of a policy select nothing, and why. namespace is
// the policy's, empty for one of cluster scope. When it cannot be found out within
// a second what is served, there are none.
func (k *Kinds) Warnings(ctx context.Context, namespace string, selectors []policyv1alpha1.ResourceSelector) []string {
	if k == nil || len(selectors) == 0 {
		return nil
	}
	s, err := k.served(ctx, func(s *served, age time.Duration) bool { return age < recent || age < lifetime && s.has(selectors) })
	if err != nil {
		return nil
	}
	var all []string
	for i := range selectors {
		if problem := s.problem(namespace, &selectors[i]); problem != "" {
			all = append(all, fmt.Sprintf("spec.resourceSelectors[%d]: %s", i, problem))
		}
	}
	if more := len(all) - mostWarnings; more > 0 {
		all = append(all[:mostWarnings], fmt.Sprintf("spec.resourceSelectors: %d more of them select nothing", more))
	}
	return all
}

// has says whether every kind that is selected is served.
func (s *served) has(selectors []policyv1alpha1.ResourceSelector) bool {
	for i := range selectors {
		if _, ok := s.kinds[kindOf(&selectors[i])]; !ok {
			return false
		}
	}
	return true
}

func kindOf(r *policyv1alpha1.ResourceSelector) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// problem says why a selector selects nothing, "" when that is not known.
func (s *served) problem(namespace string, r *policyv1alpha1.ResourceSelector) string {
	gvk := kindOf(r)
	k, ok := s.kinds[gvk]
	said := r.APIVersion + " " + r.Kind
	switch {
	case (exempt.APIs{}).Has(gvk):
		return fmt.Sprintf("%s is never propagated: this selects nothing", said)
	case !ok && s.failed[gvk.GroupVersion()] != nil:
		return ""
	case !ok:
		return fmt.Sprintf("%s is not installed in the control plane: this selects nothing until it is%s", said, s.hint(gvk))
	case !k.propagatable():
		return fmt.Sprintf("%s cannot be listed, watched and deleted, and so not be propagated: this selects nothing", said)
	case !k.namespaced && namespace != "":
		return fmt.Sprintf("%s is cluster-scoped, and a policy in a namespace selects in its namespace alone: use a policy of cluster scope", said)
	case !k.namespaced && r.Namespace != "":
		return fmt.Sprintf("%s is cluster-scoped and in no namespace: this selects nothing while it says namespace %q", said, r.Namespace)
	}
	return ""
}

// hint says what may be meant instead of a kind that is not served.
func (s *served) hint(gvk schema.GroupVersionKind) string {
	var meant schema.GroupVersionKind
	for _, other := range s.named[strings.ToLower(gvk.Kind)] {
		if !s.kinds[other].propagatable() || (exempt.APIs{}).Has(other) {
			continue
		}
		if meant.Empty() || meant.Group != gvk.Group && other.Group == gvk.Group {
			meant = other
		}
	}
	if meant.Empty() {
		return ""
	}
	apiVersion, kind := meant.ToAPIVersionAndKind()
	return fmt.Sprintf("; did you mean %s %s?", apiVersion, kind)
}
