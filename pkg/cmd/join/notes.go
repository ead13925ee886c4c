package join

import (
	"fmt"
	"net"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// notes are what is no mistake, but may not be meant.
func (f *Flags) notes(plane, member *rest.Config, e registration.Endpoint) []string {
	var notes []string
	if f.Namespace == names.SystemNamespace {
		notes = append(notes, fmt.Sprintf("--cluster-namespace=%s is the namespace of the control plane's own components", f.Namespace))
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return notes // the address has been checked
	}
	if at, err := url.Parse(plane.Host); err == nil && isLoopback(u.Hostname()) && !isThisHost(at.Hostname()) {
		notes = append(notes, fmt.Sprintf("the control plane at %s is to reach the member at %s, which is an address of its own host there", at.Host, u.Host))
	}
	if u.Scheme == "http" {
		notes = append(notes, fmt.Sprintf("%s has no TLS: credentials of the member go over the network as they are", e.URL))
	}
	if member.Proxy == nil {
		if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
			notes = append(notes, fmt.Sprintf("this host reaches the member through the proxy %s of its environment, which the control plane is not told of: it is if the kubeconfig has it as proxy-url", proxy.Redacted()))
		}
	}
	return notes
}

// isLoopback reports whether an address leads to whoever uses it.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && (ip.IsLoopback() || ip.IsUnspecified()))
}

// isThisHost reports whether a server is on the host of this command: then both mean the same by a loopback address.
func isThisHost(host string) bool {
	if isLoopback(host) {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false // then a note too many is shown
	}
	ip := net.ParseIP(host)
	for _, a := range addresses {
		if own, ok := a.(*net.IPNet); ok && own.IP.Equal(ip) {
			return true
		}
	}
	return false
}
