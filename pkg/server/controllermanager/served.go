package controllermanager

import (
	"context"
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

// waitServed returns when all groups are served, or the error of ctx.
func waitServed(ctx context.Context, s server, groups []schema.GroupVersion, log klog.Logger) error {
	for _, gv := range groups {
		looks := 0
		err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
			_, err := s.ServerResourcesForGroupVersion(gv.String())
			if looks++; err != nil && looks%servedNotice == 0 {
				log.Info("Waiting for the API server to serve what the controllers watch", "groupVersion", gv, "reason", err.Error())
			}
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
