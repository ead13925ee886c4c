package member

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"

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
	publish   func(Event)

	ctx  context.Context
	stop context.CancelFunc

	mu        sync.Mutex
	informers map[schema.GroupVersionResource]*informer
}

// An origin is what a Member was made of.
type origin struct {
	uid                         types.UID
	secretNamespace, secretName string
	proxyURL                    string
	proxyHeader                 map[string]string
	host                        string
	tls                         rest.TLSClientConfig
}

func originOf(c *clusterv1alpha1.Cluster, config *rest.Config) origin {
	o := origin{
		uid:         c.UID,
		proxyURL:    c.Spec.ProxyURL,
		proxyHeader: c.Spec.ProxyHeader,
		host:        config.Host,
		tls:         config.TLSClientConfig,
	}
	if ref := c.Spec.SecretRef; ref != nil {
		o.secretNamespace, o.secretName = ref.Namespace, ref.Name
	}
	return o
}

func (o origin) equal(other origin) bool { return reflect.DeepEqual(o, other) }

func newMember(ctx context.Context, name string, config *rest.Config, from origin, publish func(Event)) (*Member, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &bounded{next: rt, limit: requestTimeout} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make transport: %w", err)
	}
	m := &Member{name: name, origin: from, config: config, http: client, publish: publish, informers: map[schema.GroupVersionResource]*informer{}}
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

// Done is closed when this connection is given up: the cluster is forgotten, or
// reached by another Member.
func (m *Member) Done() <-chan struct{} { return m.ctx.Done() }
