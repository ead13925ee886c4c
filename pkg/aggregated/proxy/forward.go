package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A hop passes one request on to another API server.
type hop struct {
	target *target
	// root is that of the other API.
	root *url.URL
	// identify says who the request is from, in a header that does not.
	identify func(http.Header)
	// transport carries it.
	transport http.RoundTripper
	// fail tells the requester what went wrong.
	fail func(error)
	// stop ends requests that would go on for ever, when the server stops.
	stop context.Context
}

// serve passes a request on. What comes back is passed on as it comes: watches
// and logs are flushed, upgrades become a connection.
func (h *hop) serve(w http.ResponseWriter, r *http.Request) {
	if h.target.lasting {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(h.stop, func() { cancel(errStopping) })()
		r = r.WithContext(ctx)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = h.target.under(h.root)
			p.Out.Host = ""
			forwardedFor(p)
			removeIdentity(p.Out.Header)
			h.identify(p.Out.Header)
		},
		Transport:      h.transport,
		FlushInterval:  -1,
		ModifyResponse: func(response *http.Response) error { return h.receive(w, response) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(context.Cause(r.Context()), errStopping) {
				err = errStopping
			}
			h.fail(err)
		},
		ErrorLog: log.New(&detail{klog.FromContext(r.Context())}, "", 0),
	}
	proxy.ServeHTTP(w, r)
}

// forwardedFor keeps the list of whom a request came through, for audits.
func forwardedFor(p *httputil.ProxyRequest) {
	const header = "X-Forwarded-For"
	through := p.In.Header.Values(header)
	if host, _, err := net.SplitHostPort(p.In.RemoteAddr); err == nil {
		through = append(through[:len(through):len(through)], host)
	}
	if len(through) > 0 {
		p.Out.Header.Set(header, strings.Join(through, ", "))
	}
}

// receive looks at an answer before it is passed on.
func (h *hop) receive(w http.ResponseWriter, response *http.Response) error {
	if code := response.StatusCode; code >= 300 && code < 400 && response.Header.Get("Location") != "" {
		// It leads past the requester's rights here, or to a place that should not
		// see the requester's token.
		return errRedirect
	}
	// Members must not speak for the origin that the control plane is to browsers.
	for key := range response.Header {
		if strings.HasPrefix(key, "Access-Control-") {
			response.Header.Del(key)
		}
	}
	response.Header.Del("Strict-Transport-Security")
	response.Header.Del("Alt-Svc")
	// One answer, one set of headers: what this server has set already would be
	// sent beside. Warnings add up.
	for key := range response.Header {
		if key != "Warning" {
			w.Header().Del(key)
		}
	}
	if h.target.lasting && response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &endingBody{response.Body, h.stop}
	}
	return nil
}

// An endingBody ends well when the server stops: watches begin again elsewhere
// without an error.
type endingBody struct {
	io.ReadCloser
	stop context.Context
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.stop.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// detail logs what happens after an answer has begun: the requester sees the
// connection end.
type detail struct{ logger klog.Logger }

func (d *detail) Write(p []byte) (int, error) {
	d.logger.V(4).Info("Passing on a request", "problem", strings.TrimSpace(string(p)))
	return len(p), nil
}

// toMember returns a hop to a cluster on behalf of a user.
func (r *REST) toMember(ctx context.Context, c *clusterv1alpha1.Cluster, u user.Info, t *target, responder rest.Responder) (*hop, error) {
	a, err := r.members.access(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	way := &trip{members: r.members, cluster: c, access: a, target: t}
	if !t.lasting {
		way.patience = r.patience.answer
	}
	return &hop{
		target: t, root: a.root, transport: way, stop: r.stop,
		identify: func(h http.Header) { impersonate(h, u) },
		fail:     func(err error) { responder.Error(failure(c, err)) },
	}, nil
}

// fetch gets a target from a cluster on behalf of a user, with all of its body.
func (r *REST) fetch(ctx context.Context, c *clusterv1alpha1.Cluster, u user.Info, t *target, accept string) (code int, body []byte, err error) {
	a, err := r.members.access(ctx, c, nil)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.under(a.root).String(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", accept)
	impersonate(req.Header, u)
	response, err := (&trip{members: r.members, cluster: c, access: a, target: t}).RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err = io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(body) > answerLimit {
		err = fmt.Errorf("the answer is longer than %d MiB", answerLimit>>20)
	}
	return response.StatusCode, body, err
}
