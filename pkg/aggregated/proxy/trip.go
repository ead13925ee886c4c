package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A trip sends requests to a member. When the member does not take what we know
// of it, that is read again, and the request is sent once more if there is news.
type trip struct {
	members *members
	cluster *clusterv1alpha1.Cluster
	access  *access
	target  *target
	// patience is how long to wait for an answer to begin; 0 is for ever.
	patience time.Duration
}

var _ http.RoundTripper = &trip{}

// RoundTrip sends a request. That a member keeps refusing our token is an error:
// its 401 would tell the requester to log in again.
func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	bodies := replayOf(r)
	body, _ := bodies.body() // the first is always there
	response, err := t.send(r, body, t.access)
	if unauthorized(response) || untrusted(err) {
		response, err = t.again(r, bodies, response, err)
	}
	// An application that the member's API server passes requests on to has users
	// of its own.
	if unauthorized(response) && t.target.info.Subresource != Subresource {
		_ = response.Body.Close() // what it says is not for the requester
		return nil, &refusal{t.access.from.Namespace, t.access.from.Name}
	}
	return response, err
}

// again sends a request a second time, if what we know of the member has changed
// and the body can be read again; otherwise the first answer is the answer.
func (t *trip) again(r *http.Request, bodies *replay, response *http.Response, err error) (*http.Response, error) {
	news, problem := t.members.access(r.Context(), t.cluster, t.access)
	if problem != nil || news.same(t.access) {
		return response, err
	}
	body, ok := bodies.body()
	if !ok {
		return response, err
	}
	if response != nil {
		_ = response.Body.Close() // there is a better one to come
	}
	return t.send(r, body, news)
}

func (t *trip) send(r *http.Request, body io.ReadCloser, a *access) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Body, r.GetBody = body, nil
	r.Header.Set("Authorization", "Bearer "+a.token)
	if t.target.upgrade {
		// The answer's body becomes the connection, and must not be wrapped.
		response, err := a.conn.upgrade.RoundTrip(r)
		return response, lateAnswer(err, t.members.patience)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	if t.patience > 0 {
		timer := time.AfterFunc(t.patience, func() { cancel(&silence{t.patience}) })
		defer timer.Stop()
	}
	response, err := a.conn.plain.RoundTrip(r.WithContext(ctx))
	if err != nil {
		var silent *silence
		if errors.As(context.Cause(ctx), &silent) {
			err = silent
		}
		cancel(nil)
		return nil, err
	}
	response.Body = &cancelBody{response.Body, cancel}
	return response, nil
}

// lateAnswer tells a member that does not answer from one that is not there.
func lateAnswer(err error, after time.Duration) error {
	var late net.Error
	if !unreachable(err) && errors.As(err, &late) && late.Timeout() {
		return &silence{after}
	}
	return err
}

// A cancelBody ends its request when it is closed.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

func unauthorized(r *http.Response) bool { return r != nil && r.StatusCode == http.StatusUnauthorized }

func untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	return errors.As(err, &verify)
}
