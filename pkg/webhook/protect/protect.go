package protect

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/webhook"
)

// Names of the webhooks and the paths they are served at. The first is the
// contract's; the others belong to this control plane alone.
const (
	ObjectHook     = "resourcedeletionprotection.karmada.io"
	NamespaceHook  = "namespacedeletionprotection.karmadactl.io"
	DefinitionHook = "definitiondeletionprotection.karmadactl.io"

	ObjectPath     = "/validate-resourcedeletionprotection"
	NamespacePath  = "/validate-namespacedeletionprotection"
	DefinitionPath = "/validate-definitiondeletionprotection"
)

// Options are how protected objects are found. Without them only the request
// itself is looked at, and namespaces and definitions are not protected by what
// they hold.
type Options struct {
	// Namespaced returns every kind of which a namespace can hold objects.
	Namespaced func(context.Context) ([]schema.GroupVersionResource, error)
	// Metadata reads objects of the control plane, without a cache: a deletion that
	// is allowed by mistake cannot be undone.
	Metadata metadata.Interface
}

// Hooks returns the webhooks. How they are to be asked:
//
//	ObjectHook      DELETE */* of every scope, with the objectSelector that the label
//	                exists: nobody else waits for it. failurePolicy Fail.
//	NamespaceHook   DELETE namespaces. failurePolicy Ignore: while nobody answers, the
//	                first hook still protects the objects, and namespaces can go.
//	DefinitionHook  DELETE customresourcedefinitions. failurePolicy Fail: nothing else
//	                protects the objects of the kind.
//
// The last two ask the API server, for up to Patience.
func Hooks(o Options) []webhook.Hook {
	hooks := []webhook.Hook{{Name: ObjectHook, Path: ObjectPath, Handler: deletion(object)}}
	if o.Namespaced != nil && o.Metadata != nil {
		hooks = append(hooks,
			webhook.Hook{Name: NamespaceHook, Path: NamespacePath, Handler: deletion(o.namespace)},
			webhook.Hook{Name: DefinitionHook, Path: DefinitionPath, Handler: deletion(o.definition)})
	}
	return hooks
}

// deletion makes a handler of what decides about the deletion of an object, which
// it gets as JSON. Other requests are nobody's business here.
func deletion(decide func(context.Context, *metav1.PartialObjectMetadata, []byte) admission.Response) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		if req.Operation != admissionv1.Delete {
			return admission.Allowed("")
		}
		if len(req.OldObject.Raw) == 0 {
			return unreadable(errors.New("the request does not have it"))
		}
		o := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(req.OldObject.Raw, o); err != nil {
			return unreadable(err)
		}
		return decide(ctx, o, req.OldObject.Raw)
	})
}

func unreadable(err error) admission.Response {
	return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the object to delete: %w", err))
}

// object refuses to delete an object that is protected.
func object(_ context.Context, o *metav1.PartialObjectMetadata, _ []byte) admission.Response {
	if names.IsDeletionProtected(o.Labels) {
		return admission.Denied(names.DeletionProtectedRefusal)
	}
	return admission.Allowed("")
}
