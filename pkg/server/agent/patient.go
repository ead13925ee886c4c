package agent

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// patience is for how long a read waits for a control plane that is starting.
	patience = 30 * time.Second
	// patientPause is how long it waits before it tries again.
	patientPause = 500 * time.Millisecond
	// startingUp is for how long after it could not be reached an API server may not
	// know yet who may do what: it refuses what it will allow in a moment.
	startingUp = 10 * time.Second
)

// patiently returns a configuration whose reads outlast a restart of the control
// plane. What watches would otherwise try again with pauses that grow up to half a
// minute, and the cluster hear that much later of what is new.
func patiently(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &patient{next: next, now: time.Now, wait: pause}
	})
	return c
}

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// A patient reader tries again what a control plane that is away does not answer.
type patient struct {
	next http.RoundTripper
	now  func() time.Time
	wait func(context.Context, time.Duration)
	away atomic.Int64 // when it was last, in nanoseconds since 1970
}

// RoundTrip sends a request, reads several times if need be.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Body != nil && r.Body != http.NoBody {
		return p.next.RoundTrip(r)
	}
	for began := p.now(); ; p.wait(r.Context(), patientPause) {
		response, err := p.next.RoundTrip(r)
		if !p.isAway(response, err) || p.now().Sub(began) > patience || r.Context().Err() != nil {
			return response, err
		}
		if response != nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
}

// isAway reports whether an outcome says that the control plane is not there, or
// has not quite come back.
func (p *patient) isAway(response *http.Response, err error) bool {
	switch {
	case err != nil:
		if !utilnet.IsConnectionRefused(err) && !utilnet.IsConnectionReset(err) {
			return false
		}
		p.away.Store(p.now().UnixNano())
		return true
	case response.StatusCode == http.StatusServiceUnavailable:
		return true
	case response.StatusCode == http.StatusForbidden, response.StatusCode == http.StatusUnauthorized:
		return p.now().Sub(time.Unix(0, p.away.Load())) < startingUp
	default:
		return false
	}
}

// WrappedRoundTripper lets others see the transport below.
func (p *patient) WrappedRoundTripper() http.RoundTripper { return p.next }
