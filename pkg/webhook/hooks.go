package webhook

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	autoscalingv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/webhook/validate"
)

// A Hook is one admission webhook.
type Hook struct {
	// Name is how the API server's configuration, and its refusals, call it.
	Name string
	// Path is where it is served.
	Path    string
	Handler admission.Handler
}

// Hooks returns the webhooks that there are (spec: behaviour/08 8.2). Names and
// paths are the contract's. They keep no state, and read nothing but what they
// are asked about.
func Hooks(d Defaults) []Hook {
	return []Hook{
		{"propagationpolicy.karmada.io", "/mutate-propagationpolicy", mutating[policyv1alpha1.PropagationPolicy](d.PropagationPolicy)},
		{"clusterpropagationpolicy.karmada.io", "/mutate-clusterpropagationpolicy", mutating[policyv1alpha1.ClusterPropagationPolicy](d.ClusterPropagationPolicy)},
		{"overridepolicy.karmada.io", "/mutate-overridepolicy", mutating[policyv1alpha1.OverridePolicy](d.OverridePolicy)},
		{"resourcebinding.karmada.io", "/mutate-resourcebinding", mutating[metav1.PartialObjectMetadata](d.ResourceBinding)},
		{"clusterresourcebinding.karmada.io", "/mutate-clusterresourcebinding", mutating[metav1.PartialObjectMetadata](d.ClusterResourceBinding)},
		{"work.karmada.io", "/mutate-work", mutating[workv1alpha1.Work](d.Work)},
		{"autoscaling.karmada.io", "/mutate-federatedhpa", legible(mutating[autoscalingv1alpha1.FederatedHPA](d.FederatedHPA), "value", "averageValue", "tolerance")},
		{"multiclusterservice.karmada.io", "/mutate-multiclusterservice", mutating[metav1.PartialObjectMetadata](d.MultiClusterService)},
	}
}

// mutating makes a handler of a default. Its answer changes what the default
// changes, and leaves everything else of the object as the user wrote it.
func mutating[T any, P interface {
	*T
	client.Object
}](apply func(was, now P) error) admission.Handler {
	return admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		now := P(new(T))
		if err := json.Unmarshal(req.Object.Raw, now); err != nil {
			return unreadable(err)
		}
		var was P
		if len(req.OldObject.Raw) > 0 {
			was = P(new(T))
			if json.Unmarshal(req.OldObject.Raw, was) != nil {
				was = P(new(T)) // it must be possible to mend it
				if err := json.Unmarshal(onlyMetadata(req.OldObject.Raw), was); err != nil {
					return unreadable(err)
				}
			}
		}
		before, err := content(now)
		if err != nil {
			return failed(err)
		}
		if err := apply(was, now); err != nil {
			return admission.Denied(err.Error())
		}
		after, err := content(now)
		if err != nil {
			return failed(err)
		}
		var raw map[string]any
		if err := json.Unmarshal(req.Object.Raw, &raw); err != nil {
			return unreadable(err)
		}
		data, err := json.Marshal(overlaid(raw, before, after))
		if err != nil {
			return failed(fmt.Errorf("write the object: %w", err))
		}
		return admission.PatchResponseFromRaw(req.Object.Raw, data)
	})
}

// onlyMetadata is what says which object it is, of an object the rest of which
// nobody can read.
func onlyMetadata(raw []byte) []byte {
	var o struct {
		Metadata map[string]any `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return raw
	}
	data, err := json.Marshal(o)
	if err != nil {
		return raw
	}
	return data
}

// legible leaves objects alone of which quantities, in the fields of these names,
// take for ever to read. Validation refuses them.
func legible(next admission.Handler, quantities ...string) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		for _, raw := range [][]byte{req.Object.Raw, req.OldObject.Raw} {
			if len(validate.OutOfRange(raw, quantities...)) > 0 {
				return admission.Allowed("")
			}
		}
		return next.Handle(ctx, req)
	})
}

func unreadable(err error) admission.Response {
	return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the object: %w", err))
}

func failed(err error) admission.Response {
	return admission.Errored(http.StatusInternalServerError, err)
}

// content is an object as JSON has it.
func content(o any) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	return m, nil
}
