package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

var (
	errStopping = errors.New("this server is stopping: try again")
	errRedirect = errors.New("it redirects the request, which is not followed")
)

// A dialError says that no connection came about.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// unreachable says whether an error means that there is no connection.
func unreachable(err error) bool {
	var dial *dialError
	return errors.As(err, &dial) || err != nil && strings.Contains(err.Error(), "TLS handshake timeout")
}

// A silence says that a member took a request and did not answer.
type silence struct{ after time.Duration }

func (e *silence) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// A refusal says that a member does not take the token that we have for it.
type refusal struct{ namespace, name string }

func (e *refusal) Error() string {
	return fmt.Sprintf("it refuses the token of secret %s/%s", e.namespace, e.name)
}

// failure returns what to tell somebody whose request to a cluster failed: what,
// why, and what to do next.
func failure(c *clusterv1alpha1.Cluster, err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	var (
		silent  *silence
		refused *refusal
		verify  *tls.CertificateVerificationError
	)
	name, at := c.Name, redact(c.Spec.APIEndpoint)
	switch {
	case errors.Is(err, errStopping):
		return apierrors.NewServiceUnavailable(errStopping.Error())
	case errors.Is(err, errRedirect):
		return badGateway("cluster %s, %s, redirects the request, which is not followed: ask for the path that is meant, or correct spec.apiEndpoint of the cluster", name, at)
	case errors.As(err, &silent):
		return newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %s, %s, did not answer within %s: see whether its API server is well, and try again", name, at, silent.after)
	case errors.As(err, &refused):
		return badGateway("cluster %s refuses the token of its impersonator secret %s/%s: join or register the cluster again to renew it", name, refused.namespace, refused.name)
	case errors.As(err, &verify):
		return badGateway("the certificate of cluster %s, %s, is not trusted: %s: join or register the cluster again to renew its authority, or correct spec.apiEndpoint", name, at, certificateProblem(verify))
	case strings.Contains(err.Error(), "protocol version"):
		return badGateway("cluster %s, %s, does not speak TLS 1.3, which requests to members need: upgrade what serves its API", name, at)
	case notTLS(err):
		return badGateway("cluster %s, %s, does not speak TLS: correct spec.apiEndpoint of the cluster", name, at)
	case unreachable(err):
		return newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"cluster %s, %s, cannot be reached: %s: see whether it runs, and whether spec.apiEndpoint and spec.proxyURL of the cluster are right", name, at, oneLine(err))
	default:
		return badGateway("the request to cluster %s, %s, failed: %s: see whether an API server answers there", name, at, oneLine(err))
	}
}

// misconfigured says that what this control plane knows of a cluster is not
// enough to reach it.
func misconfigured(format string, a ...any) *apierrors.StatusError {
	return newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, a...)
}

// badGateway has no name in the API; clients show whatever reason there is.
func badGateway(format string, a ...any) *apierrors.StatusError {
	return newStatus(http.StatusBadGateway, "BadGateway", format, a...)
}

func newStatus(code int32, reason metav1.StatusReason, format string, a ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, a...),
	}}
}

// notTLS says whether something answered that does not speak TLS.
func notTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// certificateProblem says in one line what is wrong with a certificate.
func certificateProblem(err *tls.CertificateVerificationError) string {
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		return "it is signed by an unknown authority"
	}
	return oneLine(err.Err)
}

// oneLine says the cause of an error in one line.
func oneLine(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return "it took too long"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// redact returns a URL that can be shown.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "whose endpoint is no URL"
	}
	return u.Redacted()
}
