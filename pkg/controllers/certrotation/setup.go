package certrotation

import (
	"fmt"
	"time"

	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// Name of the controller (spec: behaviour/11 11.8).
const Name = "cert-rotation-controller"

// Defaults of the flags (spec: cli/components.md 5).
const (
	DefaultInterval  = 5 * time.Minute
	DefaultThreshold = 0.2
)

// Options say whose certificate is renewed, and when.
type Options struct {
	// Cluster is the name of the agent's own.
	Cluster string
	// Store is where the certificate is.
	Store Store
	// Interval is how often it is looked at.
	Interval time.Duration
	// Threshold is the part of its life that it may have left before it is renewed.
	Threshold float64
	// RateLimiter slows down what is tried again; nil is the library's default.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
}

// Setup adds the controller to a manager whose client is the agent's at the
// control plane.
func Setup(mgr manager.Manager, o Options) error {
	c, err := certificatesclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("make a client for certificates: %w", err)
	}
	own := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == o.Cluster })
	r := NewReconciler(o, c.CertificateSigningRequests(), mgr.GetLogger().WithName(Name))
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(own, predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: o.RateLimiter}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}
