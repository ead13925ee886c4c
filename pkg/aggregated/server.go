// Package aggregated is the API server of the group cluster.karmada.io: member
// clusters, their status, and the way to their API servers. It is registered with
// the control plane's own API server, which sends it the requests for that group
// (spec: behaviour/09 9.1, 9.2).
//
// cluster has what a Cluster is, proxy passes requests on to members; this
// package makes a server of them. NewConfig gives the configuration that is the
// same for everybody, the role karmada-aggregated-apiserver adds what flags say,
// and New makes the server.
package aggregated

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/karmadactl/karmadactl/pkg/aggregated/cluster"
	"github.com/karmadactl/karmadactl/pkg/aggregated/proxy"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// StoragePrefix is where in etcd the server keeps objects, unless flags say
// otherwise (spec: behaviour/09 9.1).
const StoragePrefix = "/registry"

const (
	// shutdownTimeout is how long requests that are being answered may still take
	// when the server stops. Connections that never end are cut then.
	shutdownTimeout = 10 * time.Second
	// watchGracePeriod is how long watches may take to end by themselves. Without
	// it nobody tells them to, and every stop takes the whole shutdownTimeout.
	watchGracePeriod = 5 * time.Second
)

// A Config describes a server.
type Config struct {
	// Generic has where to listen, whom to trust and where to store.
	Generic *genericapiserver.Config
	// Cluster has the choices about Clusters.
	Cluster cluster.Options
	// Proxy says how the way to members is found. Clusters are those of the server
	// itself.
	Proxy proxy.Options

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// NewConfig returns what is the same for every server. Serving, authentication,
// authorization and storage are for the caller to add.
func NewConfig() (*Config, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	generic := genericapiserver.NewConfig(codecs)
	generic.Serializer = textSerializer{codecs}
	// Not the process's: that one belongs to kube-apiserver, if there is one.
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ShutdownWatchTerminationGracePeriod = watchGracePeriod
	generic.LongRunningFunc = proxy.LongRunning()
	generic.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(proxy.WithQuery(handler), c)
	}
	if err := addOpenAPI(generic); err != nil {
		return nil, err
	}
	if err := checkDefinitions(definitions(func(string) spec.Ref { return spec.Ref{} })); err != nil {
		return nil, err
	}
	return &Config{Generic: generic, scheme: scheme, codecs: codecs}, nil
}

// NewStorageBackend returns how Clusters are written to etcd: as JSON of their
// one version.
func NewStorageBackend() (*storagebackend.Config, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(clusterv1alpha1.GroupVersion)
	return storagebackend.NewDefaultConfig(StoragePrefix, codec), nil
}

// New returns the server. It listens when it is prepared and run.
func (c *Config) New() (*genericapiserver.GenericAPIServer, error) {
	server, err := c.Generic.Complete(nil).New(names.AggregatedAPIServer, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("create the API server: %w", err)
	}
	server.ShutdownTimeout = shutdownTimeout

	storage, err := cluster.NewStorage(c.scheme, c.Generic.RESTOptionsGetter, c.Cluster)
	if err != nil {
		return nil, err
	}
	toMembers, err := c.proxy(storage)
	if err != nil {
		return nil, err
	}
	err = server.AddPreShutdownHook("end-requests-to-members", func() error {
		toMembers.Stop()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("see to the end of requests to members: %w", err)
	}
	group := c.group(storage, toMembers)
	if err := server.InstallAPIGroup(group); err != nil {
		return nil, fmt.Errorf("install the API group %s: %w", clusterv1alpha1.GroupName, err)
	}
	return server, nil
}

func (c *Config) proxy(storage cluster.Storage) (*proxy.REST, error) {
	o := c.Proxy
	o.Clusters = storage.Clusters
	return proxy.NewREST(o)
}

func (c *Config) group(storage cluster.Storage, toMembers *proxy.REST) *genericapiserver.APIGroupInfo {
	group := genericapiserver.NewDefaultAPIGroupInfo(clusterv1alpha1.GroupName, c.scheme, runtime.NewParameterCodec(c.scheme), c.codecs)
	group.NegotiatedSerializer = textSerializer{c.codecs}
	group.VersionedResourcesStorageMap[clusterv1alpha1.GroupVersion.Version] = map[string]rest.Storage{
		clusterv1alpha1.ResourceClusters:                           storage.Clusters,
		clusterv1alpha1.ResourceClusters + "/status":               storage.Status,
		clusterv1alpha1.ResourceClusters + "/" + proxy.Subresource: toMembers,
	}
	return &group
}
