package registration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// An Enrolment is how the agent of a cluster that knows nothing yet gets its certificate: it finds the control plane with a
// bootstrap token, and asks it (spec: cli/commands.md 3.4). It makes no access rules: the control plane does, when it
// approves the request.
type Enrolment struct {
	Bootstrap
	// Cluster is the name that the member is registered under.
	Cluster string
	// Validity is how long the certificate shall live.
	Validity time.Duration
	// Timeout bounds discovery, and then the wait for the certificate (--discovery-timeout).
	Timeout time.Duration
	// Notice is told what is being waited for; nil tells nobody.
	Notice func(string)
}

// A KeyStore keeps the key of a certificate that has been asked for, so that a try which was interrupted can be taken up.
type KeyStore interface {
	// Load returns the key, nil if there is none.
	Load() ([]byte, error)
	Save(key []byte) error
	Discard() error
}

// Server returns the URL of the control plane, "" if the endpoint is not valid.
func (e Enrolment) Server() string {
	server, err := e.server()
	if err != nil {
		return ""
	}
	return server
}

// Validate reports everything that is wrong with what was given.
func (e Enrolment) Validate() error {
	errs := []error{e.Bootstrap.Validate()}
	if e.Validity < MinCertificateValidity {
		errs = append(errs, fmt.Errorf("--cert-expiration-seconds %d: a certificate lives for at least %d seconds", int64(e.Validity/time.Second), int64(MinCertificateValidity/time.Second)))
	}
	if e.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("--discovery-timeout %s: must be longer than zero", e.Timeout))
	}
	return JoinOnLine(errs...)
}

// Discover finds the control plane.
func (e Enrolment) Discover(ctx context.Context) (FoundControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	return e.Bootstrap.Discover(ctx, func(err error) { e.notice("%v; trying again until %s have passed", err, e.Timeout) })
}

func (e Enrolment) notice(format string, args ...any) {
	if e.Notice != nil {
		e.Notice(fmt.Sprintf(format, args...))
	}
}

// enrolmentRequestTimeout bounds one request to the control plane.
const enrolmentRequestTimeout = 10 * time.Second

// Accepts reports whether the control plane takes a certificate for the agent's, and gives it the agent's rights: those go
// with its Cluster, and a certificate without them is of no use. A control plane that does not answer is an error.
func (e Enrolment) Accepts(ctx context.Context, found FoundControlPlane, p Pair) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	cfg := &rest.Config{Host: found.Server, Timeout: enrolmentRequestTimeout, TLSClientConfig: rest.TLSClientConfig{CAData: found.CA, CertData: p.PEM, KeyData: p.PEM}}
	accepted := false
	err := retry(ctx, func(err error) { e.notice("%v; trying again until %s have passed", err, e.Timeout) }, func(ctx context.Context) (bool, error) {
		err := e.servesClusters(ctx, cfg)
		if err == nil {
			accepted, err = e.mayReadItself(ctx, cfg)
		}
		var problem *PullError
		switch {
		case err == nil, apierrors.IsUnauthorized(err):
			return false, nil
		case errors.As(err, &problem) && problem.Reason == CAMismatch:
			return false, nil // discovery tells more
		}
		return mayPass(err) || errors.As(err, &problem) && problem.Reason == Unreachable, err
	})
	return accepted, err
}

// servesClusters asks for the API that makes a control plane one. What it needs is open to everybody who is somebody.
func (b Bootstrap) servesClusters(ctx context.Context, cfg *rest.Config) error {
	c, err := certificatesclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	err = c.RESTClient().Get().AbsPath("/apis", clusterv1alpha1.GroupName, clusterv1alpha1.GroupVersion.Version).Do(ctx).Error()
	var status apierrors.APIStatus
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return nil
	case apierrors.IsNotFound(err):
		return &PullError{Reason: NotControlPlane, cause: err, text: fmt.Sprintf("%s is a Kubernetes API server, but not a Karmada control plane: it does not serve %s; check the address", cfg.Host, clusterv1alpha1.GroupName)}
	case errors.As(err, &status):
		return err
	}
	return b.explain(cfg.Host, err)
}

// mayReadItself reports whether whoever cfg is may read the Cluster, be it there or not.
func (e Enrolment) mayReadItself(ctx context.Context, cfg *rest.Config) (bool, error) {
	c, err := NewClient(cfg)
	if err != nil {
		return false, err
	}
	_, err = FindCluster(ctx, c, e.Cluster)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}

// Request gets a certificate for the agent. The key is kept before anything is asked for, and taken up by the next try when
// this one is killed. A *PullError says what is wrong.
func (e Enrolment) Request(ctx context.Context, found FoundControlPlane, keys KeyStore) (Pair, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	cfg := &rest.Config{Host: found.Server, Timeout: enrolmentRequestTimeout, BearerToken: e.Token, TLSClientConfig: rest.TLSClientConfig{CAData: found.CA}}
	// The API of Clusters comes a moment after the rest of a control plane.
	err := retry(ctx, func(err error) { e.notice("%v; trying again until %s have passed", err, e.Timeout) }, func(ctx context.Context) (bool, error) {
		err := e.servesClusters(ctx, cfg)
		var problem *PullError
		settling := errors.As(err, &problem) && problem.Reason == Unreachable
		return settling || mayPass(err), err
	})
	if err != nil {
		return Pair{}, e.refused(found, err)
	}
	c, err := certificatesclient.NewForConfig(cfg)
	if err != nil {
		return Pair{}, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	pair, err := e.request(ctx, c.CertificateSigningRequests(), keys)
	if errors.Is(err, errStaleRequest) {
		// What was decided about an earlier try says nothing about this one.
		pair, err = e.request(ctx, c.CertificateSigningRequests(), keys)
	}
	return pair, e.refused(found, err)
}

// request makes one try with the key that is kept, or with a new one. A key of no more use is forgotten.
func (e Enrolment) request(ctx context.Context, requests certificatesclient.CertificateSigningRequestInterface, keys KeyStore) (Pair, error) {
	key, err := keys.Load()
	if err != nil {
		return Pair{}, err
	}
	if _, bad := parseKey(key); bad != nil {
		if key, err = NewKey(); err != nil {
			return Pair{}, err
		}
		if err := keys.Save(key); err != nil {
			return Pair{}, err
		}
	}
	r, err := AgentCertificateRequest(e.Cluster, key, e.Validity)
	if err != nil {
		return Pair{}, err
	}
	cert, err := r.Issue(ctx, requests, func() {
		e.notice("waiting for karmada-controller-manager to approve certificate request %s", r.Name)
	})
	if err == nil {
		return NewPair(cert, key)
	}
	var problem *PullError
	if errors.Is(err, errStaleRequest) || errors.As(err, &problem) && problem.Reason != RequestPending {
		err = errors.Join(err, keys.Discard())
	}
	return Pair{}, err
}

// refused tells why the control plane does not take the token.
func (e Enrolment) refused(found FoundControlPlane, err error) error {
	var known *PullError
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case apierrors.IsUnauthorized(err):
		return &PullError{Reason: TokenUnknown, cause: err, text: fmt.Sprintf("the control plane at %s does not accept token %s: it has expired, was used up or was deleted, or is not for authentication; %s", found.Server, e.tokenID(), e.newToken(e.Cluster))}
	case apierrors.IsForbidden(err):
		return &PullError{Reason: RequestDenied, cause: err, text: fmt.Sprintf("the control plane at %s does not let token %s register cluster %s: %s; %s", found.Server, e.tokenID(), e.Cluster, oneLineOf(err), e.newToken(e.Cluster))}
	case errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError:
		return &PullError{Reason: Unreachable, cause: err, text: fmt.Sprintf("the control plane at %s is not ready: %s; run this again when it is", found.Server, oneLineOf(err))}
	}
	return err
}

func (e Enrolment) tokenID() string {
	id, _, err := ParseToken(e.Token)
	if err != nil {
		return "that was given"
	}
	return id
}

// SameAuthority reports whether two bundles of CAs, in PEM form, have one in common.
func SameAuthority(a, b []byte) bool {
	x, errX := CAHashes(a)
	y, errY := CAHashes(b)
	return errX == nil && errY == nil && slices.ContainsFunc(x, func(hash string) bool { return slices.Contains(y, hash) })
}
