package registration

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestTimeout bounds each request of a registration, so that a server that never answers is found out.
const requestTimeout = 10 * time.Second

// An API is one end of a registration.
type API struct {
	Client client.Client
	// Groups lists the API groups that are served there.
	Groups func(ctx context.Context) ([]string, error)
}

// NewAPI returns the end that cfg leads to. Requests that cfg does not bound are bounded.
func NewAPI(cfg *rest.Config) (API, error) {
	cfg = bounded(cfg)
	c, err := NewClient(cfg)
	if err != nil {
		return API{}, err
	}
	hc, err := httpClient(cfg)
	if err != nil {
		return API{}, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, hc)
	if err != nil {
		return API{}, fmt.Errorf("make a discovery client of %s: %w", cfg.Host, err)
	}
	return API{Client: c, Groups: func(ctx context.Context) ([]string, error) { return groupsOf(ctx, d) }}, nil
}

func bounded(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
		if cfg.ExecProvider != nil {
			cfg.Timeout = pluginTimeout
		}
	}
	return cfg
}

func groupsOf(ctx context.Context, d discovery.DiscoveryInterface) ([]string, error) {
	list, err := discovery.ToDiscoveryInterfaceWithContext(d).ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("list API groups: %w", err)
	}
	var groups []string
	for _, g := range list.Groups {
		groups = append(groups, g.Name)
	}
	return groups, nil
}

// IsControlPlane reports whether an end that serves these API groups is a control plane: members have none of them.
func IsControlPlane(groups []string) bool {
	return slices.Contains(groups, "policy.karmada.io") || slices.Contains(groups, "work.karmada.io")
}

// A Member is the end that is to be, or was, a member.
type Member struct {
	API
	Endpoint Endpoint
	// Contents tells what is in one of its namespaces.
	Contents Contents
	// Probe asks the member's API server as the control plane will, with that token. ErrUnauthorized says that it knows no
	// such token.
	Probe func(ctx context.Context, e Endpoint, caBundle, token []byte) error
}

// NewMember returns the member that cfg leads to. An address that could not be a Cluster's is an error.
func NewMember(cfg *rest.Config) (Member, error) {
	e, err := NewEndpoint(cfg)
	if err != nil {
		return Member{}, err
	}
	api, err := NewAPI(cfg)
	if err != nil {
		return Member{}, err
	}
	contents, err := NewContents(cfg)
	if err != nil {
		return Member{}, err
	}
	return Member{API: api, Endpoint: e, Contents: contents, Probe: probe}, nil
}
