package certrotation

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// issueTimeout is how long the control plane may take to approve and sign
// (spec: behaviour/11 11.8).
const issueTimeout = 5 * time.Minute

// A Store is where the certificate of an agent is, with its key.
type Store interface {
	Load(ctx context.Context) (registration.Pair, error)
	// Save replaces the certificate that was loaded. Both, or nothing.
	Save(ctx context.Context, p registration.Pair) error
}

// A Reconciler renews one certificate.
type Reconciler struct {
	options  Options
	requests certificatesclient.CertificateSigningRequestInterface
	log      logr.Logger
	now      func() time.Time
}

var _ reconcile.ObjectReconciler[*clusterv1alpha1.Cluster] = (*Reconciler)(nil)

// NewReconciler returns a Reconciler that makes its requests at the control plane.
func NewReconciler(o Options, requests certificatesclient.CertificateSigningRequestInterface, log logr.Logger) *Reconciler {
	return &Reconciler{options: o, requests: requests, log: log, now: time.Now}
}

// Reconcile renews the certificate when little of its life is left. It looks
// again after the interval.
func (r *Reconciler) Reconcile(ctx context.Context, cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if cluster.Name != r.options.Cluster || !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	if err := r.renew(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.options.Interval}, nil
}

func (r *Reconciler) renew(ctx context.Context) error {
	old, err := r.options.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("load the agent's certificate: %w", err)
	}
	if old.Remaining(r.now()) > r.options.Threshold {
		return nil
	}
	request, err := r.request(old)
	if err != nil {
		return err
	}
	// There is one request by that name; one that is there is for a key that was
	// lost with its process.
	if err := r.forget(ctx, request.Name); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, issueTimeout)
	defer cancel()
	cert, err := request.Issue(limited, r.requests, nil)
	if err != nil {
		return fmt.Errorf("renew the agent's certificate, which is valid until %s: %w", old.NotAfter.UTC().Format(time.RFC3339), err)
	}
	renewed, err := registration.NewPair(cert, request.Key)
	if err != nil {
		return fmt.Errorf("renew the agent's certificate: %w", err)
	}
	if err := renewed.IsFor(r.options.Cluster, r.now()); err != nil {
		return fmt.Errorf("renew the agent's certificate: the control plane issued another one: %w", err)
	}
	if err := r.options.Store.Save(ctx, renewed); err != nil {
		return fmt.Errorf("keep the agent's renewed certificate: %w", err)
	}
	r.log.Info("Renewed the agent's certificate", "validUntil", renewed.NotAfter)
	return r.forget(ctx, request.Name)
}

// request asks for a certificate like the old one, with a new key.
func (r *Reconciler) request(old registration.Pair) (registration.CertificateRequest, error) {
	key, err := registration.NewKey()
	if err != nil {
		return registration.CertificateRequest{}, err
	}
	validity := old.Leaf.NotAfter.Sub(old.Leaf.NotBefore)
	return registration.CertificateRequest{
		Name: registration.RenewalCSRName(r.options.Cluster), Key: key, Subject: old.Leaf.Subject,
		Validity: max(validity, registration.MinCertificateValidity),
	}, nil
}

// forget removes a request of that name.
func (r *Reconciler) forget(ctx context.Context, name string) error {
	if err := r.requests.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove certificate request %s: %w", name, err)
	}
	return nil
}
