// Package agentcsrapproving answers the requests of agents for certificates: it approves those whose author may have the
// identity, after making the rights that go with it, and denies the others with a reason that says what to do (spec:
// behaviour/11 11.6).
package agentcsrapproving

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

const (
	// ReasonAutoApproved is that of every Approved condition made here (spec: behaviour/11 11.6).
	ReasonAutoApproved = "AutoApproved"

	approvalSubresource = "approval"
	// waitPeriod is how soon a request is looked at again that has to wait for a Cluster to be gone.
	waitPeriod = 2 * time.Second
)

// A Reviewer says whether somebody may do something.
type Reviewer func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (allowed bool, err error)

// A Reconciler answers CertificateSigningRequests, one at a time.
type Reconciler struct {
	live           client.Client // not a cache: a decision on old facts cannot be taken back
	review         Reviewer
	allowGenerator bool
	now            func() time.Time
}

var _ reconcile.ObjectReconciler[*certificatesv1.CertificateSigningRequest] = (*Reconciler)(nil)

// NewReconciler returns a Reconciler. live must read from the API server.
func NewReconciler(live client.Client, review Reviewer, o Options) *Reconciler {
	return &Reconciler{live: live, review: review, allowGenerator: o.AllowRBACGenerator, now: time.Now}
}

// Reconcile answers a request of an agent that nobody has answered yet.
func (r *Reconciler) Reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (reconcile.Result, error) {
	if !isPending(csr) {
		return reconcile.Result{}, nil
	}
	request, ok := registration.ParseAgentRequest(csr)
	if !ok {
		return reconcile.Result{}, nil
	}
	f, err := r.facts(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(request, f, r.allowGenerator)
	switch v.action {
	case wait:
		return reconcile.Result{RequeueAfter: waitPeriod}, nil
	case deny:
		return reconcile.Result{}, r.answer(ctx, csr, certificatesv1.CertificateDenied, v.reason, v.message)
	}
	allowed, err := r.review(ctx, reviewOf(csr, v.subresource))
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("review whether %s may have the certificate of %s: %w", request.Requester, request.User, err)
	}
	if !allowed {
		return reconcile.Result{}, nil // an administrator may still approve it
	}
	if err := r.give(ctx, request, f, v); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.answer(ctx, csr, certificatesv1.CertificateApproved, ReasonAutoApproved, v.message)
}

// isPending reports whether nobody has answered a request.
func isPending(csr *certificatesv1.CertificateSigningRequest) bool {
	if len(csr.Status.Certificate) > 0 {
		return false
	}
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return false
		}
	}
	return true
}

func (r *Reconciler) facts(ctx context.Context, request registration.AgentRequest) (facts, error) {
	cluster, err := registration.ClusterOfAgent(request.User)
	if err != nil {
		return facts{}, nil // decide says what that means
	}
	f := facts{cluster: &clusterv1alpha1.Cluster{}, rights: &rbacv1.ClusterRole{}}
	err = r.live.Get(ctx, client.ObjectKey{Name: cluster}, f.cluster)
	switch {
	case apierrors.IsNotFound(err):
		f.cluster = nil
	case err != nil:
		return facts{}, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	name := registration.AgentRightsName(cluster)
	err = r.live.Get(ctx, client.ObjectKey{Name: name}, f.rights)
	switch {
	case apierrors.IsNotFound(err):
		f.rights = nil
	case err != nil:
		return facts{}, fmt.Errorf("read ClusterRole %s: %w", name, err)
	}
	return f, nil
}

// reviewOf asks whether the author of a request may create a sub-resource of such requests.
func reviewOf(csr *certificatesv1.CertificateSigningRequest, subresource string) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(csr.Spec.Extra))
	for key, values := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Version: "*", Resource: "certificatesigningrequests", Subresource: subresource, Verb: "create",
		},
	}
}

// give makes what goes with the certificate. It comes before the approval: an agent with a certificate and without
// rights would fail, and nobody would look again.
func (r *Reconciler) give(ctx context.Context, request registration.AgentRequest, f facts, v verdict) error {
	w := registration.NewWriter(r.live)
	if v.give == generator {
		return registration.EnsureRBACGeneratorRights(ctx, w)
	}
	cluster, err := registration.ClusterOfAgent(request.User)
	if err != nil {
		return err
	}
	switch v.give {
	case rights:
		return registration.GrantAgentRights(ctx, w, cluster, f.cluster, registration.Grant{At: r.now(), TokenID: v.token, Named: v.named})
	case mending:
		return registration.MendAgentRights(ctx, w, cluster, f.cluster)
	}
	return nil
}

func (r *Reconciler) answer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType, reason, message string) error {
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.NewTime(r.now()),
	})
	err := r.live.SubResource(approvalSubresource).Update(ctx, csr)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // it is gone, or somebody has changed it, which brings it here again
	case err != nil:
		return fmt.Errorf("answer the request with %s: %w", t, err)
	}
	return nil
}
