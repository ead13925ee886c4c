package kwok

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Options describe the simulated nodes of one member cluster.
type Options struct {
	// Config reaches the member's API server. Its user creates nodes, and
	// updates nodes, pods, their status, leases and events.
	Config *rest.Config

	// Nodes is how many nodes there shall be at least; none is ever deleted.
	Nodes int
	// NodeNamePrefix names them: <prefix>-node-1 and so on.
	NodeNamePrefix string
	// Capacity is what each node offers, and also what can be allocated on it.
	// By default 8 CPUs, 32Gi of memory and 110 pods.
	Capacity corev1.ResourceList
	// Labels are put on every node when it is created.
	Labels map[string]string
	// Region, when not empty, is every node's topology.kubernetes.io/region.
	Region string
	// Zones are dealt to the nodes in turn, as topology.kubernetes.io/zone.
	Zones []string
	// KubeletVersion is what the nodes report, e.g. v1.37.2. By default "kwok".
	KubeletVersion string

	// PodCIDR is where pods get their addresses from, on nodes that have no
	// range of their own.
	PodCIDR string

	// ListenAddress is the loopback host:port of the kubelet endpoint.
	ListenAddress string
	// NodeAddress is the InternalIP that nodes report, at which the API server
	// reaches the endpoint. By default the host of ListenAddress.
	NodeAddress string

	// CertFile and KeyFile hold the endpoint's serving certificate, which must
	// be valid for NodeAddress and for MetricsServerName. They are read anew
	// for each connection.
	CertFile, KeyFile string
	// ServingCAFile holds the authority of CertFile, published for the API
	// server to trust metrics.k8s.io.
	ServingCAFile string
	// ClientCAFile holds the authority of the API server's kubelet client
	// certificate, and ClientNames the common names accepted from it; none
	// means any. They guard logs, exec, attach, port-forward and /metrics.
	ClientCAFile string
	ClientNames  []string
	// RequestHeaderCAFile and RequestHeaderNames are the same for the API
	// server's front proxy client, and guard metrics.k8s.io, which is not
	// served when the file is not given.
	RequestHeaderCAFile string
	RequestHeaderNames  []string

	// Logger gets everything there is to say: warnings and errors as they are,
	// single changes of nodes and pods at verbosity 4. The zero value is silent.
	Logger logr.Logger
}

// complete returns the options with defaults, or everything that is wrong
// with them.
func (o Options) complete() (Options, error) {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}

	require(o.Config != nil, "no client configuration for the member's API server")
	require(o.Nodes >= 0, "number of nodes %d is negative", o.Nodes)
	longest := o.nodeName(max(o.Nodes, 1))
	require(len(validation.IsDNS1123Label(longest)) == 0, "node name prefix %q does not make a valid node name (%s)", o.NodeNamePrefix, longest)

	o.Capacity = o.Capacity.DeepCopy()
	if o.Capacity == nil {
		o.Capacity = corev1.ResourceList{}
	}
	for name, standard := range map[corev1.ResourceName]string{
		corev1.ResourceCPU: "8", corev1.ResourceMemory: "32Gi", corev1.ResourcePods: "110",
	} {
		if _, ok := o.Capacity[name]; !ok {
			o.Capacity[name] = resource.MustParse(standard)
		}
	}
	for name, q := range o.Capacity {
		require(q.Sign() >= 0, "node capacity of %s is negative (%s)", name, q.String())
	}

	_, err := netip.ParsePrefix(o.PodCIDR)
	require(err == nil, "pod range %q is not a CIDR such as 10.244.0.0/16", o.PodCIDR)

	host, _, err := splitListenAddress(o.ListenAddress)
	require(err == nil, "listen address %q: %w", o.ListenAddress, err)
	if o.NodeAddress == "" {
		o.NodeAddress = host
	}
	_, err = netip.ParseAddr(o.NodeAddress)
	require(err == nil, "node address %q is not an IP address", o.NodeAddress)

	require(o.CertFile != "" && o.KeyFile != "", "no serving certificate and key for the kubelet endpoint")
	require(o.ClientCAFile != "", "no certificate authority of the kubelet's clients")
	require(o.RequestHeaderCAFile == "" || o.ServingCAFile != "", "metrics.k8s.io needs the certificate authority of the serving certificate")

	if o.KubeletVersion == "" {
		o.KubeletVersion = "kwok"
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}

	if len(errs) > 0 {
		return Options{}, fmt.Errorf("simulated nodes: %w", errors.Join(errs...))
	}
	return o, nil
}

// splitListenAddress takes host:port apart and refuses what is not loopback:
// nobody but the API server beside it has business with this endpoint.
func splitListenAddress(address string) (host string, port int32, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "", 0, errors.New("the host is not an IP address")
	}
	if !ip.IsLoopback() {
		return "", 0, errors.New("the host is not a loopback address")
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || n == 0 {
		return "", 0, errors.New("the port is not between 1 and 65535")
	}
	return host, int32(n), nil
}

// nodeName is the name of the i-th node, counted from 1.
func (o Options) nodeName(i int) string {
	return strings.TrimPrefix(fmt.Sprintf("%s-node-%d", o.NodeNamePrefix, i), "-")
}

// port is the port of a complete Options' endpoint.
func (o Options) port() int32 {
	_, port, _ := splitListenAddress(o.ListenAddress)
	return port
}
