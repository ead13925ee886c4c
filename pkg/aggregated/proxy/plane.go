package proxy

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/authentication/user"
	restclient "k8s.io/client-go/rest"
)

// A plane is the API server of the control plane itself.
type plane struct {
	root      *url.URL
	transport http.RoundTripper
}

func newPlane(config *restclient.Config) (*plane, error) {
	root, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the control plane: %w", err)
	}
	transport, err := restclient.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return &plane{root: root, transport: transport}, nil
}

// hop passes a request on to the control plane with the rights of a user: this
// server's own credentials only serve to say who it is.
func (p *plane) hop(u user.Info, t *target) *hop {
	return &hop{target: t, root: p.root, transport: impersonating(u, p.transport), identify: func(http.Header) {}}
}
