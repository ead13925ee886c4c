package controllermanager

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	servedInterval = 100 * time.Millisecond
	// servedNotice is after how many fruitless looks what is missing is logged.
	servedNotice = 50
)

// A server tells which resources it serves.
type server interface {
	ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error)
}

// waitServed returns when all kinds are served, or the error of ctx.
func waitServed(ctx context.Context, s server, kinds []schema.GroupVersionKind, log klog.Logger) error {
	for _, kind := range kinds {
		looks := 0
		err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
			served, err := isServed(s, kind)
			if looks++; !served && looks%servedNotice == 0 {
				log.Info("Waiting for the API server to serve what the controllers watch", "kind", kind.String(), "err", err)
			}
			return served, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isServed asks for one kind: those of a group come one after the other.
func isServed(s server, kind schema.GroupVersionKind) (bool, error) {
	list, err := s.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
}
