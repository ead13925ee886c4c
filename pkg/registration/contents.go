package registration

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A Contents lists what is in a namespace, each as Kind/name, leaving out what every namespace has and what is about to
// go. That it cannot tell is an error.
type Contents func(ctx context.Context, namespace string) ([]string, error)

// NewContents returns the Contents of the cluster that cfg leads to.
func NewContents(cfg *rest.Config) (Contents, error) {
	cfg = bounded(cfg)
	cfg.WarningHandler, cfg.WarningHandlerWithContext = nil, rest.NoWarnings{} // every kind is asked for, deprecated ones too
	hc, err := httpClient(cfg)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client of %s: %w", cfg.Host, err)
	}
	m, err := metadata.NewForConfigAndClient(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client of %s: %w", cfg.Host, err)
	}
	return contentsOf(d, m), nil
}

// most is how much of each kind is looked at: the answer is for people.
const most = 20

func contentsOf(d discovery.DiscoveryInterface, m metadata.Interface) Contents {
	return func(ctx context.Context, namespace string) ([]string, error) {
		lists, err := discovery.ServerPreferredNamespacedResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(d))
		if err != nil {
			return nil, fmt.Errorf("find out what kinds of objects there are: %w", err)
		}
		var found []string
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				return nil, fmt.Errorf("find out what kinds of objects there are: %w", err)
			}
			for _, r := range list.APIResources {
				// What cannot be deleted is no object of anybody's, but a view of some.
				if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || r.Kind == "Event" {
					continue
				}
				objects, err := m.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: most})
				switch {
				case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
					continue
				case err != nil:
					return nil, fmt.Errorf("list %s in namespace %s: %w", gv.WithResource(r.Name).GroupResource(), namespace, err)
				}
				for i := range objects.Items {
					if o := &objects.Items[i]; o.DeletionTimestamp.IsZero() && !IsInEveryNamespace(r.Kind, o) {
						found = append(found, r.Kind+"/"+o.Name)
					}
				}
			}
		}
		slices.Sort(found)
		return found, nil
	}
}

// IsInEveryNamespace reports whether Kubernetes itself puts this object of a kind into every namespace: it is nobody's.
func IsInEveryNamespace(kind string, o metav1.Object) bool {
	const account = "default"
	switch kind {
	case "ServiceAccount":
		return o.GetName() == account
	case "Secret": // that of the account, as earlier versions of Kubernetes made it
		return o.GetAnnotations()[corev1.ServiceAccountNameKey] == account
	case "ConfigMap":
		return o.GetName() == "kube-root-ca.crt"
	}
	return false
}
