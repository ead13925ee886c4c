package member

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// A Member is one live connection to a cluster. Its clients share connections
// and rate limit.
type Member struct {
	name      string
	origin    origin
	config    *rest.Config
	http      *http.Client
	dynamic   *dynamic.DynamicClient
	discovery *discovery.DiscoveryClient
	mapper    *mapper
	needs     *needs
	publish   func(Event)
	// doubted says that a request failed in a way that other credentials or
	// another authority would explain.
	doubted atomic.Bool

	ctx  context.Context
	stop context.CancelFunc

	mu        sync.Mutex
	informers map[schema.GroupVersionResource]*informer
}

// An origin is what a Member was made of.
type origin struct {
	cluster
	host string
	tls  rest.TLSClientConfig
}

// A cluster is the part of an origin that the Cluster itself tells.
type cluster struct {
	uid         types.UID
	apiEndpoint string
	insecure    bool
	secret      clusterv1alpha1.LocalSecretReference
	proxyURL    string
	proxyHeader map[string]string
}

func clusterOf(c *clusterv1alpha1.Cluster) cluster {
	made := cluster{
		uid:         c.UID,
		apiEndpoint: c.Spec.APIEndpoint,
		insecure:    c.Spec.InsecureSkipTLSVerification,
		proxyURL:    c.Spec.ProxyURL,
		proxyHeader: c.Spec.ProxyHeader,
	}
	if ref := c.Spec.SecretRef; ref != nil {
		made.secret = *ref
	}
	return made
}

func originOf(c *clusterv1alpha1.Cluster, config *rest.Config) origin {
	return origin{cluster: clusterOf(c), host: config.Host, tls: config.TLSClientConfig}
}

// of reports whether a Cluster still says what this was made of.
func (o origin) of(c *clusterv1alpha1.Cluster) bool {
	return reflect.DeepEqual(o.cluster, clusterOf(c))
}

func (o origin) equal(other origin) bool { return reflect.DeepEqual(o, other) }

func newMember(ctx context.Context, name string, config *rest.Config, from origin, needs *needs, publish func(Event)) (*Member, error) {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // they are for whoever wrote the manifest, and would repeat with each write
	config.Timeout = 0                                   // it would end watches, too: bounded knows better
	m := &Member{name: name, origin: from, config: config, needs: needs, publish: publish, informers: map[schema.GroupVersionResource]*informer{}}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return &bounded{next: &doubting{next: rt, doubted: &m.doubted}, limit: requestTimeout}
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	m.http = client
	if m.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("make dynamic client: %w", err)
	}
	if m.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	m.mapper = newMapper(m.discovery)
	m.ctx, m.stop = context.WithCancel(ctx)
	context.AfterFunc(m.ctx, func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	return m, nil
}

// Name returns the name of the cluster.
func (m *Member) Name() string { return m.name }

// Config returns what the clients are made of, rate limiter included. It must
// not be changed; use it with HTTP to share connections.
func (m *Member) Config() *rest.Config { return m.config }

// HTTP returns the client that sends the requests. It authenticates them and
// ends each that has no answer within 32 s, a watch or upgrade that has begun
// excepted. It knows no rate limit.
func (m *Member) HTTP() *http.Client { return m.http }

// Dynamic returns a client for any kind.
func (m *Member) Dynamic() dynamic.Interface { return m.dynamic }

// Discovery returns a client that asks the member each time what it serves.
// That some groups could not be found out is an error with what could be:
// discovery.IsGroupDiscoveryFailedError.
func (m *Member) Discovery() discovery.DiscoveryInterface { return m.discovery }

// Mapper returns what knows the member's kinds. It asks the member when it does
// not know a kind, one request at a time, and remembers for some seconds that
// there is none. A kind that could not be found out, as its group does not
// answer, is an error other than meta.NoKindMatchError.
func (m *Member) Mapper() meta.RESTMapper { return m.mapper }

// Lookup is Mapper for who must not wait: it answers from what is known. When
// that does not suffice the member is asked, in the background: come again.
func (m *Member) Lookup(gvk schema.GroupVersionKind) (mapping *meta.RESTMapping, known bool) {
	return m.mapper.lookup(gvk)
}

// Done is closed when this connection is given up: the cluster is forgotten, or
// reached by another Member.
func (m *Member) Done() <-chan struct{} { return m.ctx.Done() }

// doubting notes that a member could not be reached, or refused us.
type doubting struct {
	next    http.RoundTripper
	doubted *atomic.Bool
}

func (d *doubting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(r)
	if err != nil && r.Context().Err() == nil || err == nil && response.StatusCode == http.StatusUnauthorized {
		d.doubted.Store(true)
	}
	return response, err
}

// WrappedRoundTripper lets others see the transport below.
func (d *doubting) WrappedRoundTripper() http.RoundTripper { return d.next }
