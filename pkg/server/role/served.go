package role

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"
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

// SetUpWhenServed has a manager call setUp as soon as the API server serves some
// kinds, and adds the readiness check that it has been called. A new control
// plane has its API types a moment after its components have started; a
// controller that is set up before looks for them again only seconds later. The
// channel is closed when setUp has returned.
func SetUpWhenServed(mgr manager.Manager, kinds []schema.GroupVersionKind, setUp func() error) (<-chan struct{}, error) {
	done := make(chan struct{})
	// A process that stands by fills its caches, too.
	err := mgr.Add(always(func(ctx context.Context) error {
		client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("make a discovery client: %w", err)
		}
		if err := waitServed(ctx, client, kinds, mgr.GetLogger()); err != nil {
			return nil // the process ends
		}
		if err := setUp(); err != nil {
			return err
		}
		close(done)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("set up the controllers: %w", err)
	}
	err = mgr.AddReadyzCheck("controllers", func(*http.Request) error {
		select {
		case <-done:
			return nil
		default:
			return errors.New("the controllers have not been set up yet")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("add readiness check: %w", err)
	}
	return done, nil
}
