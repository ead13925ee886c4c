package agent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// enter enters the cluster at the control plane. While either side cannot be
// reached, or the agent's rights are on their way, it goes on trying: an agent that
// ends is only started again to find the same. That the name or the ID is another
// cluster's does not pass, and is an error.
func (p parts) enter(ctx context.Context, log klog.Logger) (*clusterv1alpha1.Cluster, error) {
	member, err := registration.NewMember(p.memberConfig)
	if err != nil {
		return nil, fmt.Errorf("reach the agent's own cluster: %w", err)
	}
	controlPlane, err := registration.NewClient(p.controlPlane)
	if err != nil {
		return nil, fmt.Errorf("reach the control plane: %w", err)
	}
	pause := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.1, Steps: 20, Cap: 30 * time.Second}
	for said := ""; ; {
		cluster, err := p.enterOnce(ctx, member, controlPlane)
		if err == nil || permanent(err) || ctx.Err() != nil {
			return cluster, err
		}
		if text := err.Error(); text != said {
			said = text
			log.Error(err, hint(err))
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// permanent reports that the same request will not succeed later.
func permanent(err error) bool {
	return registration.IsTaken(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// hint says what an error means that is waited out.
func hint(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "The control plane gives this agent no rights, trying again: they are on their way, or went with a Cluster that was deleted; then the cluster has to be registered anew"
	case apierrors.IsUnauthorized(err):
		return "The control plane or the cluster does not accept the agent's credentials, trying again: if they have expired, the cluster has to be registered anew"
	}
	return "Cannot register the cluster yet, trying again"
}

// reportDeletion logs that the Cluster was deleted: nothing is carried to the
// cluster any more, and this process does not enter it again (spec: behaviour/11
// 11.1). The agent's rights go with the Cluster.
func reportDeletion(mgr manager.Manager, cluster string) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		log := klog.FromContext(ctx)
		informer, err := mgr.GetCache().GetInformer(ctx, &clusterv1alpha1.Cluster{})
		if err != nil {
			return fmt.Errorf("watch cluster %s: %w", cluster, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
			log.Info("The Cluster was deleted at the control plane: this agent has nothing to do any more, and loses its rights. Register the cluster anew to go on", "cluster", cluster)
		}})
		if err != nil {
			return fmt.Errorf("watch cluster %s: %w", cluster, err)
		}
		<-ctx.Done()
		return nil
	}))
	if err != nil {
		return fmt.Errorf("watch cluster %s: %w", cluster, err)
	}
	return nil
}
