package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/karmadactl/karmadactl/pkg/util/atomicfile"
)

const (
	loopback      = "127.0.0.1"
	clusterDomain = "cluster.local"
	etcdMember    = "etcd-0"

	// serviceAccountKey is the key pair that signs and verifies service account tokens; no certificate shares it.
	serviceAccountKey = "sa"

	// apiVersion changes when an older program could misread the file or the directory.
	apiVersion = "plane.karmadactl.io/v1"

	// KubernetesVersion is the version of the upstream components built in, as major.minor.
	KubernetesVersion = "1.37"

	// DefaultPort is the port of the API server (spec: cli/init.md 1).
	DefaultPort = 32443
	// DefaultCertValidity is the life of a leaf certificate (spec: cli/init.md 1).
	DefaultCertValidity = 8760 * time.Hour
)

// The kinds of plane that a data directory can hold.
const (
	KindControlPlane = "ControlPlane"
	KindMember       = "Member"
)

// Keys of Config.Ports: the loopback ports of a plane.
const (
	PortEtcdClient                      = "etcdClient"
	PortEtcdPeer                        = "etcdPeer"
	PortKubeControllerManager           = "kubeControllerManager"
	PortKubeScheduler                   = "kubeScheduler"
	PortKarmadaControllerManagerHealth  = "karmadaControllerManagerHealth"
	PortKarmadaControllerManagerMetrics = "karmadaControllerManagerMetrics"
	PortKarmadaAggregatedAPIServer      = "karmadaAggregatedAPIServer"
	PortKarmadaSchedulerHealth          = "karmadaSchedulerHealth"
	PortKarmadaWebhook                  = "karmadaWebhook"
	PortNodes                           = "nodes"
)

// Config is what cannot be derived about an installed plane. It is kept in its data directory.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// KubernetesVersion is the one that last ran on this directory, as major.minor. An older program refuses it.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Name tells planes of one host apart.
	Name             string `json:"name"`
	BindAddress      string `json:"bindAddress"`
	AdvertiseAddress string `json:"advertiseAddress"`
	Port             int    `json:"port"`
	// Ports are the loopback ports of the other components.
	Ports map[string]int `json:"ports"`
	// PKI is the certificate directory when it is not below the data directory.
	PKI          string          `json:"pki,omitempty"`
	CertValidity metav1.Duration `json:"certValidity"`
	ExternalIPs  []string        `json:"externalIPs,omitempty"`
	ExternalDNS  []string        `json:"externalDNS,omitempty"`
	ServiceCIDR  string          `json:"serviceCIDR"`
	// Provided names the certificates that were in the PKI directory before the first installation: they are the
	// user's, and no command removes them.
	Provided []string `json:"provided,omitempty"`
	// ID tells this installation from all others; a PKI directory outside the data directory is marked with it.
	ID string `json:"id,omitempty"`
	// Given names the directories (dataDir, pki) that were there before the first installation: they stay when what is in
	// them goes.
	Given []string `json:"given,omitempty"`
	// Withdrawn says that deinit has removed all but the data; init takes it up again.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// PodCIDR and Nodes are for members only.
	PodCIDR string `json:"podCIDR,omitempty"`
	Nodes   int    `json:"nodes,omitempty"`
}

// NewConfig returns the defaults of a plane of that kind. Addresses and ports are for the caller to set.
func NewConfig(kind, name string) Config {
	c := Config{
		APIVersion:        apiVersion,
		Kind:              kind,
		KubernetesVersion: KubernetesVersion,
		Name:              name,
		BindAddress:       "0.0.0.0",
		Port:              DefaultPort,
		Ports:             map[string]int{},
		CertValidity:      metav1.Duration{Duration: DefaultCertValidity},
		ServiceCIDR:       "10.96.0.0/12",
	}
	return c
}

// Names of directories in Config.Given.
const (
	GivenDataDir = "dataDir"
	GivenPKI     = "pki"
)

// PortNames lists the keys that Ports must have for this kind of plane, in a fixed order.
func (c Config) PortNames() []string {
	common := []string{PortEtcdClient, PortEtcdPeer, PortKubeControllerManager}
	if c.Kind == KindMember {
		return append(common, PortKubeScheduler, PortNodes)
	}
	return append(common, PortKarmadaAggregatedAPIServer, PortKarmadaControllerManagerHealth, PortKarmadaControllerManagerMetrics, PortKarmadaWebhook,
		PortKarmadaSchedulerHealth)
}

// Validate reports everything that is wrong with c at once.
func (c Config) Validate() error {
	var errs []error
	for _, name := range c.PortNames() {
		if c.Ports[name] == 0 {
			errs = append(errs, fmt.Errorf("ports.%s is missing: choose ports first", name))
		}
	}
	return errors.Join(append(errs, c.validateGiven())...)
}

// validateGiven is Validate without a look at what is not there: an installation of an earlier version has no port for
// components that have been added since, and gets one when a command next starts it.
func (c Config) validateGiven() error {
	var errs []error
	if c.Kind != KindControlPlane && c.Kind != KindMember {
		errs = append(errs, fmt.Errorf("kind %q: want %s or %s", c.Kind, KindControlPlane, KindMember))
	}
	if c.Port < 1 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("port %d: want 1 to 65535", c.Port))
	}
	taken := map[int]string{c.Port: "the API server"}
	for _, name := range c.PortNames() {
		p := c.Ports[name]
		if p == 0 {
			continue
		}
		if p < 1 || p > 65535 {
			errs = append(errs, fmt.Errorf("ports.%s %d: want 1 to 65535", name, p))
		} else if other, ok := taken[p]; ok {
			errs = append(errs, fmt.Errorf("ports.%s %d: %s has that one", name, p, other))
		} else {
			taken[p] = name
		}
	}
	if _, ok := parseIP(c.BindAddress); !ok {
		errs = append(errs, fmt.Errorf("bind address %q is not an IP address", c.BindAddress))
	}
	if a, ok := parseIP(c.AdvertiseAddress); !ok {
		errs = append(errs, fmt.Errorf("advertise address %q is not an IP address", c.AdvertiseAddress))
	} else if a.IsUnspecified() {
		errs = append(errs, fmt.Errorf("advertise address %s stands for every address: name the one that clients use", a))
	}
	for _, ip := range c.ExternalIPs {
		if _, ok := parseIP(ip); !ok {
			errs = append(errs, fmt.Errorf("external IP %q is not an IP address", ip))
		}
	}
	for _, name := range c.ExternalDNS {
		if !isDNSName(name) {
			errs = append(errs, fmt.Errorf("external DNS name %q is not a host name", name))
		}
	}
	if c.CertValidity.Duration < time.Minute {
		errs = append(errs, fmt.Errorf("certificate validity %s: want at least 1m", c.CertValidity.Duration))
	}
	if _, _, err := net.ParseCIDR(c.ServiceCIDR); err != nil {
		errs = append(errs, fmt.Errorf("service range %q is not a CIDR", c.ServiceCIDR))
	}
	return errors.Join(errs...)
}

// parseIP is netip.ParseAddr without zones, which neither a certificate nor another host could make sense of.
func parseIP(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == ""
}

func isDNSName(s string) bool {
	if rest, ok := strings.CutPrefix(s, "*."); ok {
		s = rest
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(s))) == 0
}

// LocalServer is the URL by which components of this host reach the API server.
func (c Config) LocalServer() string {
	host := c.BindAddress
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		host = loopback
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(c.Port))
}

// Server is the URL by which everybody else reaches the API server.
func (c Config) Server() string {
	return "https://" + net.JoinHostPort(c.AdvertiseAddress, strconv.Itoa(c.Port))
}

// serverNames are the DNS names in the API server's certificate (spec: cli/init.md 5).
func (c Config) serverNames() []string {
	dns := []string{
		"localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
	}
	if c.Kind == KindControlPlane {
		dns = append(dns, "karmada-apiserver", "karmada-apiserver.karmada-system.svc", "karmada-apiserver.karmada-system.svc."+clusterDomain)
	}
	return appendNew(dns, c.ExternalDNS...)
}

// serverIPs are the addresses in the API server's certificate: loopback, the bound and the advertised address, the
// address of the kubernetes Service, and the user's.
func (c Config) serverIPs() []net.IP {
	addresses := []string{loopback, "::1", c.AdvertiseAddress}
	if a, err := netip.ParseAddr(c.BindAddress); err == nil && !a.IsUnspecified() {
		addresses = append(addresses, c.BindAddress)
	}
	if p, err := netip.ParsePrefix(c.ServiceCIDR); err == nil {
		addresses = append(addresses, p.Masked().Addr().Next().String())
	}
	unique := map[string]net.IP{}
	for _, a := range append(addresses, c.ExternalIPs...) {
		ip := net.ParseIP(a)
		unique[ip.String()] = ip // one address can be written in several ways
	}
	var ips []net.IP
	for _, a := range slices.Sorted(maps.Keys(unique)) {
		ips = append(ips, unique[a])
	}
	return ips
}

// ServerNames lists every name and address that the API server's certificate is valid for.
func (c Config) ServerNames() []string {
	all := c.serverNames()
	for _, ip := range c.serverIPs() {
		all = append(all, ip.String())
	}
	return all
}

func appendNew(list []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// ErrNotInstalled says that a directory holds no plane, and nothing else either.
var ErrNotInstalled = errors.New("no control plane is installed there")

// A ForeignDirectoryError says that a data directory is not ours to use.
type ForeignDirectoryError struct {
	Dir    string
	Reason string
}

func (e *ForeignDirectoryError) Error() string {
	return fmt.Sprintf("data directory %s: %s", e.Dir, e.Reason)
}

// Load reads the configuration of the plane in dir. It returns ErrNotInstalled when dir is missing or empty, and a
// *ForeignDirectoryError when it holds something else, or a plane of a version that this program does not know.
func Load(dir string) (Config, error) {
	data, err := os.ReadFile(NewLayout(dir, "").ConfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, checkUnused(dir)
	}
	if err != nil {
		return Config{}, unreadable(dir, err)
	}
	var c Config
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return Config{}, versionOrSyntaxError(dir, data, err)
	}
	if c.APIVersion != apiVersion {
		return Config{}, &ForeignDirectoryError{dir, fmt.Sprintf("it was written by another version of karmadactl (format %q, this one knows %q): use that version, or choose another directory", c.APIVersion, apiVersion)}
	}
	if err := c.validateGiven(); err != nil {
		return Config{}, &ForeignDirectoryError{dir, fmt.Sprintf("its plane.yaml is damaged (%v): restore that file from a copy", err)}
	}
	return c, checkSkew(dir, c.KubernetesVersion)
}

// unreadable says why a directory cannot be looked into, and what to do.
func unreadable(dir string, err error) error {
	wayOut := "choose another directory"
	if errors.Is(err, fs.ErrPermission) {
		wayOut = "run this as its owner, or choose another directory"
	}
	return fmt.Errorf("data directory %s cannot be looked into: %w; %s", dir, err, wayOut)
}

// versionOrSyntaxError tells a file of a later format from a damaged one.
func versionOrSyntaxError(dir string, data []byte, cause error) error {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(data, &head); err == nil && head.APIVersion != "" && head.APIVersion != apiVersion {
		return &ForeignDirectoryError{dir, fmt.Sprintf("it was written by another version of karmadactl (format %q, this one knows %q): use that version, or choose another directory", head.APIVersion, apiVersion)}
	}
	return &ForeignDirectoryError{dir, fmt.Sprintf("its plane.yaml is damaged (%v): restore that file from a copy", cause)}
}

// checkSkew refuses data of a later Kubernetes minor version, whose objects this one may not understand, and data
// that is more than one minor version behind, which Kubernetes does not convert.
func checkSkew(dir, stored string) error {
	was, err := version.ParseGeneric(stored)
	if err != nil {
		return &ForeignDirectoryError{dir, fmt.Sprintf("its plane.yaml names the Kubernetes version %q, which is none: restore that file from a copy", stored)}
	}
	is, err := version.ParseGeneric(KubernetesVersion)
	if err != nil {
		return fmt.Errorf("read the version of this program: %w", err)
	}
	if was.Major() != is.Major() || was.Minor() > is.Minor() || was.Minor()+1 < is.Minor() {
		return &ForeignDirectoryError{dir, fmt.Sprintf("it holds data of Kubernetes %s, and this program runs %s, which takes over data of its own and the previous minor version only: use a program of a version between", stored, KubernetesVersion)}
	}
	return nil
}

// checkUnused returns ErrNotInstalled when dir has no entry that is not ours. An interrupted init leaves at most
// the run directory and temporary files before plane.yaml stands.
func checkUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotInstalled
	}
	if err != nil {
		return unreadable(dir, err)
	}
	run := filepath.Base(NewLayout(dir, "").RunDir())
	for _, e := range entries {
		if e.Name() == run || e.Name() == "lost+found" || atomicfile.IsTemp(e.Name()) {
			continue
		}
		return &ForeignDirectoryError{dir, fmt.Sprintf("it is not empty and holds no control plane of karmadactl (there is %q in it): choose another directory, or empty it", e.Name())}
	}
	return ErrNotInstalled
}

// Save writes c into dir, which must exist. It reports whether the file changed.
func (c Config) Save(dir string) (bool, error) {
	data, err := yaml.Marshal(c)
	if err != nil {
		return false, fmt.Errorf("encode the configuration of the installation: %w", err)
	}
	head := "# Written by karmadactl init, which also changes it. Not meant to be edited.\n"
	changed, err := atomicfile.WriteIfChanged(NewLayout(dir, "").ConfigFile(), append([]byte(head), data...), 0o600)
	if err != nil {
		return false, fmt.Errorf("write the configuration of the installation: %w", err)
	}
	return changed, nil
}

// ChoosePorts gives every loopback port of c that is unset, or that inUse reports as taken, a free one, going up
// from the API server's. It changes c.Ports only.
func (c *Config) ChoosePorts(inUse func(host string, port int) bool) error {
	ports := map[string]int{}
	used := map[int]bool{c.Port: true}
	next, last := c.Port+1, min(c.Port+1000, 65535)
	for _, name := range c.PortNames() {
		if p := c.Ports[name]; p != 0 && !used[p] && !inUse(loopback, p) {
			ports[name], used[p] = p, true
		}
	}
	for _, name := range c.PortNames() {
		if ports[name] != 0 {
			continue
		}
		for next <= last && (used[next] || inUse(loopback, next)) {
			next++
		}
		if next > last {
			return fmt.Errorf("no free port on %s above %d for %s: free some, or choose another port for the API server", loopback, c.Port, name)
		}
		ports[name], used[next] = next, true
	}
	c.Ports = ports
	return nil
}
