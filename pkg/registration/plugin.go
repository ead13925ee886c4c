package registration

import (
	"fmt"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// pluginTimeout bounds a request with the credentials of a program that the kubeconfig names, which may ask somebody first.
const pluginTimeout = 30 * time.Second

// pluginGrace is what a transport needs to end by itself after its time.
const pluginGrace = time.Second

// httpClient returns the client of HTTP for cfg. client-go waits for a credential plugin however long it takes; here a
// request ends in time whatever that program does.
func httpClient(cfg *rest.Config) (*http.Client, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	if cfg.ExecProvider == nil {
		return c, nil
	}
	own := *c // the original may be http.DefaultClient
	own.Transport = impatient{next: c.Transport, plugin: cfg.ExecProvider.Command, patience: cfg.Timeout}
	return &own, nil
}

// impatient ends requests that the transport below does not end in time.
type impatient struct {
	next     http.RoundTripper
	plugin   string
	patience time.Duration
}

var _ utilnet.RoundTripperWrapper = impatient{}

func (i impatient) WrappedRoundTripper() http.RoundTripper { return i.next }

func (i impatient) RoundTrip(req *http.Request) (*http.Response, error) {
	type result struct {
		resp *http.Response
		err  error
	}
	answered := make(chan result, 1)
	go func() {
		resp, err := i.next.RoundTrip(req)
		answered <- result{resp, err}
	}()
	select {
	case r := <-answered:
		return r.resp, r.err
	case <-req.Context().Done():
	}
	grace := time.NewTimer(pluginGrace)
	defer grace.Stop()
	select {
	case r := <-answered:
		return r.resp, r.err
	case <-grace.C:
		go func() { // nobody will read a late answer
			if r := <-answered; r.resp != nil {
				_ = r.resp.Body.Close()
			}
		}()
		// The words are those of client-go for a plugin that fails.
		return nil, fmt.Errorf("getting credentials: exec: %s has not answered in time (it has %s)", i.plugin, i.patience)
	}
}
