package factory

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// ThroughOptions say how a member is reached through the control plane.
type ThroughOptions struct {
	// Cluster is the name of a Cluster that exists: a path is made of it.
	Cluster string
	// Patience is how long the member may take to answer one request; 0 is for
	// ever. Of what is streamed (watches, logs) only the beginning counts.
	Patience time.Duration
	// PlaneTypes has the control plane say what "deploy" is, and asks the member
	// only about what that does not know: the control plane's list of types is
	// in the cache, and the lists of fifty members are a lot to read. What comes
	// of it must be ready for a member that does not serve the type.
	PlaneTypes bool
}

// Through returns a factory for a member, whose requests go through the control
// plane with the credentials for that (spec: cli/commands.md 2.3). They end when
// ctx does.
func (f *Factory) Through(ctx context.Context, o ThroughOptions) cmdutil.Factory {
	g := &through{ctx: ctx, plane: f.conn, opts: o}
	if o.PlaneTypes {
		g.types = f
	}
	return cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(g))
}

// through is the RESTClientGetter of one member.
type through struct {
	ctx   context.Context
	plane *connection
	opts  ThroughOptions
	// types is the control plane if it is asked about types first.
	types *Factory

	discoveryOnce sync.Once
	discovery     discovery.CachedDiscoveryInterface
	discoveryErr  error
}

// ToRawKubeConfigLoader returns the control plane's: namespaces are chosen there.
func (t *through) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return t.plane.ToRawKubeConfigLoader()
}

func (t *through) ToRESTConfig() (*rest.Config, error) {
	cfg, err := t.plane.restConfig((*connection).watchLosses)
	if err != nil {
		return nil, err
	}
	cfg.Host = strings.TrimSuffix(cfg.Host, "/") + "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + t.opts.Cluster + "/proxy"
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wrapped{next: next, roundTripper: (&patience{ctx: t.ctx, cluster: t.opts.Cluster, limit: t.opts.Patience, next: next}).RoundTrip}
	})
	return cfg, nil
}

func (t *through) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	if t.types != nil {
		return t.types.ToDiscoveryClient()
	}
	return t.own()
}

// own returns the member's own discovery client.
func (t *through) own() (discovery.CachedDiscoveryInterface, error) {
	t.discoveryOnce.Do(func() {
		cfg, err := t.ToRESTConfig()
		if err != nil {
			t.discoveryErr = err
			return
		}
		t.discovery, t.discoveryErr = newDiscoveryClient(cfg)
	})
	return t.discovery, t.discoveryErr
}

func (t *through) ToRESTMapper() (meta.RESTMapper, error) {
	own := func() (meta.RESTMapper, error) {
		client, err := t.own()
		if err != nil {
			return nil, err
		}
		return newMapper(client, t.plane.warnings), nil
	}
	if t.types == nil {
		return own()
	}
	first, err := t.types.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return orElse{first: first, second: sync.OnceValues(own)}, nil
}

// newDiscoveryClient returns one that remembers, on disk if there is a place.
func newDiscoveryClient(cfg *rest.Config) (discovery.CachedDiscoveryInterface, error) {
	cfg.Wrap(failFast)
	dir := cacheDir()
	if dir == "" {
		client, err := discovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			return nil, fmt.Errorf("make discovery client: %w", err)
		}
		return &types{CachedDiscoveryInterface: memory.NewMemCacheClient(client)}, nil
	}
	client, err := disk.NewCachedDiscoveryClientForConfig(cfg, filepath.Join(dir, "discovery", cacheName(cfg.Host)), filepath.Join(dir, "http"), discoveryTTL)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	return &types{CachedDiscoveryInterface: client}, nil
}

func newMapper(client discovery.CachedDiscoveryInterface, warnings rest.WarningHandler) meta.RESTMapper {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(client)
	return restmapper.NewShortcutExpander(mapper, client, func(warning string) {
		warnings.HandleWarningHeader(299, "-", warning)
	})
}

// A Silence says that a member took a request and did not answer it in time.
type Silence struct {
	Cluster string
	After   time.Duration
}

func (s *Silence) Error() string {
	return fmt.Sprintf("cluster %s did not answer within %s", s.Cluster, s.After)
}

// A Choice is a factory that is chosen when the command line has been read:
// kubectl's commands are given theirs before that.
type Choice struct{ cmdutil.Factory }
