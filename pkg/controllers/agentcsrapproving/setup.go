package agentcsrapproving

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Name is the controller's (spec: behaviour/11 11.6).
const Name = "agent-csr-approving-controller"

// Options are the choices of whoever runs the controller.
type Options struct {
	// AllowRBACGenerator lets the holder of a classic token have the certificate of registration.RBACGeneratorUser, who
	// may do everything: clients of the classic flow make their agent's rights with it.
	AllowRBACGenerator bool
}

// Setup adds the controller to a manager.
func Setup(mgr manager.Manager, o Options) error {
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", Name, err)
	}
	pending := predicate.NewPredicateFuncs(func(o client.Object) bool {
		csr, ok := o.(*certificatesv1.CertificateSigningRequest)
		return ok && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && isPending(csr)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(pending)).
		// One at a time: two requests for one name must not both find it free.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), NewReconciler(live, reviewer(live), o)))
}

func reviewer(c client.Client) Reviewer {
	return func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := c.Create(ctx, review); err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	}
}
