// Package plane describes a control plane as data: which components it has, with which flags, ports, files and
// certificates, in which order they start and how their health is asked. It runs nothing. Package local runs a Plane
// on this host in one process; a later renderer turns the same values into Kubernetes objects.
//
// Two planes are described here: the Karmada control plane (ControlPlane) and a complete local member cluster
// (Member), which playgrounds, tests and benchmarks use.
package plane

import (
	"net"
	"slices"
	"strconv"

	"github.com/karmadactl/karmadactl/pkg/certs"
)

// A Plane is everything needed to run a set of components that belong together.
type Plane struct {
	Config     Config
	Layout     Layout
	Components []Component // in start order; they stop in reverse
	// Certificates lists what has to exist below Layout.PKI before the first component starts.
	Certificates []certs.Spec
	// KeyPairs are bare key pairs below Layout.PKI: the one that signs service account tokens.
	KeyPairs []string
	// Kubeconfigs are the ones of components: they name files, so that a renewed certificate needs no restart.
	Kubeconfigs []Kubeconfig
	// Files are configuration files that components read.
	Files []File
}

// A Component is one server of a plane.
type Component struct {
	Name string // unique within the plane; errors, logs and status call it so
	Role string // the role of the karmada binary that runs it
	Args []string
	// Listen are the addresses it serves on; all of them loopback, except the API server's own.
	Listen []Endpoint
	// After names the components that must be ready before this one starts.
	After []string
	// Health says how to find out whether it is ready.
	Health HealthCheck
}

// An Endpoint is one TCP address that a component listens on.
type Endpoint struct {
	Name string // what it is for: "client", "peer", "secure", "health", "metrics"
	Host string
	Port int
}

// Address returns host:port.
func (e Endpoint) Address() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// A HealthCheck is one HTTP GET that answers 200 when the component is ready. Plain HTTP is used where CAFile is
// empty; a client certificate is shown where CertFile and KeyFile are set.
type HealthCheck struct {
	URL                       string
	CAFile, CertFile, KeyFile string
}

// A Kubeconfig is one component's way to the API server.
type Kubeconfig struct {
	Path              string
	Server            string
	Cluster           string // cluster and context name
	User              string
	CAFile            string
	CertFile, KeyFile string
}

// A File is a configuration file with its content.
type File struct {
	Path    string
	Content []byte
}

// Endpoints lists every address of the plane in component order.
func (p Plane) Endpoints() []Endpoint {
	var all []Endpoint
	for _, c := range p.Components {
		all = append(all, c.Listen...)
	}
	return all
}

// Component returns the component of that name.
func (p Plane) Component(name string) (Component, bool) {
	i := slices.IndexFunc(p.Components, func(c Component) bool { return c.Name == name })
	if i < 0 {
		return Component{}, false
	}
	return p.Components[i], true
}
