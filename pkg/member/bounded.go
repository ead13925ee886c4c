package member

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// bounded ends requests that take too long: it is a limit for the whole answer,
// but for watches and upgrades only until it begins.
type bounded struct {
	next  http.RoundTripper
	limit time.Duration
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	late := time.AfterFunc(b.limit, func() { cancel(timeoutError{b.limit}) })
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		late.Stop()
		if cause, ok := context.Cause(ctx).(timeoutError); ok {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	if isLong(r) {
		late.Stop()
	}
	done := func() {
		late.Stop()
		cancel(nil)
	}
	body := &releasingBody{ReadCloser: response.Body, ctx: ctx, done: done}
	if w, ok := response.Body.(io.Writer); ok { // an upgraded connection
		response.Body = &releasingConn{releasingBody: body, Writer: w}
	} else {
		response.Body = body
	}
	return response, nil
}

// WrappedRoundTripper lets others see the transport below.
func (b *bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

// isLong reports whether a request is meant to last.
func isLong(r *http.Request) bool {
	return r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1" || r.Header.Get("Upgrade") != ""
}

// A timeoutError says that a member did not answer in time.
type timeoutError struct{ limit time.Duration }

func (e timeoutError) Error() string {
	return fmt.Sprintf("the cluster did not answer within %s", e.limit)
}

// Timeout and Temporary make it a net.Error.
func (e timeoutError) Timeout() bool   { return true }
func (e timeoutError) Temporary() bool { return true }

// releasingBody frees what bounds its request once it is read or closed.
type releasingBody struct {
	io.ReadCloser
	ctx  context.Context
	done func()
}

func (b *releasingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if cause, ok := context.Cause(b.ctx).(timeoutError); ok && err != nil && err != io.EOF {
		err = cause
	}
	return n, err
}

func (b *releasingBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

type releasingConn struct {
	*releasingBody
	io.Writer
}
