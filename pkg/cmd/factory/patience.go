package factory

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
)

// patience is a transport that gives up: when the command is over, and when the
// other end takes too long. kubectl's packages make requests that know neither.
type patience struct {
	ctx     context.Context
	cluster string
	limit   time.Duration
	next    http.RoundTripper
}

func (p *patience) RoundTrip(req *http.Request) (*http.Response, error) {
	// The connection of an upgraded request outlives it, and has its own end.
	if httpstream.IsUpgradeRequest(req) {
		return p.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &wait{cancel: cancel, ctx: ctx}
	w.unfollow = context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	if p.limit > 0 {
		w.timer = time.AfterFunc(p.limit, func() { cancel(&Silence{Cluster: p.cluster, After: p.limit}) })
	}
	resp, err := p.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = w.reason(err)
		w.end()
		return nil, err
	}
	if p.limit > 0 {
		limitRetry(resp)
	}
	if isStream(req) && w.timer != nil {
		w.timer.Stop()
	}
	resp.Body = &awaited{ReadCloser: resp.Body, wait: w}
	return resp, nil
}

// limitRetry has client-go return an answer that asks for more than a short
// while: it would come back ten times, however long that takes.
func limitRetry(resp *http.Response) {
	if after := resp.Header.Get("Retry-After"); after != "" && after != "1" && after != "0" {
		resp.Header.Del("Retry-After")
	}
}

// isStream tells the requests whose answers go on: watches and logs.
func isStream(req *http.Request) bool {
	query := req.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1" || strings.HasSuffix(req.URL.Path, "/log")
}

// A wait is what has to be undone when a request is over.
type wait struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	unfollow func() bool
	timer    *time.Timer
}

// reason returns why the wait ended, if it was us who ended it.
func (w *wait) reason(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}

func (w *wait) end() {
	w.unfollow()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(nil)
}

// awaited is the body of an answer that is waited for.
type awaited struct {
	io.ReadCloser
	wait *wait
}

func (a *awaited) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = a.wait.reason(err)
	}
	return n, err
}

func (a *awaited) Close() error {
	defer a.wait.end()
	return a.ReadCloser.Close()
}

// within ends requests after limit, as the timeout of a rest.Config would: when that is over, client-go complains on
// stderr.
func within(limit time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return wrapped{next: next, roundTripper: func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(req.Context(), limit)
			resp, err := next.RoundTrip(req.WithContext(ctx))
			if err != nil {
				cancel()
				return nil, err
			}
			resp.Body = &limited{ReadCloser: resp.Body, cancel: cancel}
			return resp, nil
		}}
	}
}

// limited is the body of an answer that has to come in time.
type limited struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l *limited) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}
