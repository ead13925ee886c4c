package webhook

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/server/flags"
)

// Flags hold what was typed (spec: cli/components.md 3).
type Flags struct {
	Kubeconfig   flags.Kubeconfig
	API          flags.Limits
	Endpoints    flags.Endpoints
	FeatureGates flags.FeatureGates
	Logs         *flags.Logs

	BindAddress string
	SecurePort  int
	// CertDir has the two files of the serving certificate.
	CertDir, CertFile, KeyFile string
	// TLSMinVersion is one of tlsVersions.
	TLSMinVersion string

	// AllowNoExecuteTaintPolicy lets ClusterTaintPolicies evict workloads.
	AllowNoExecuteTaintPolicy bool
}

// NewFlags returns the defaults.
func NewFlags() *Flags {
	return &Flags{
		API:           flags.KubeAPILimits(),
		Endpoints:     flags.NewEndpoints(":8000"),
		Logs:          flags.NewLogs(),
		BindAddress:   "0.0.0.0",
		SecurePort:    8443,
		CertDir:       "/tmp/k8s-webhook-server/serving-certs",
		CertFile:      "tls.crt",
		KeyFile:       "tls.key",
		TLSMinVersion: "1.3",
	}
}

// AddFlags registers all flags, in their sets. The usage of --feature-gates
// lists what the gate knows.
func (f *Flags) AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate) {
	fs := sets.FlagSet(flags.GenericSet)
	f.Kubeconfig.AddFlags(fs)
	f.API.AddFlags(fs)
	f.Endpoints.AddFlags(fs)
	f.FeatureGates.AddFlags(fs, gate)
	fs.StringVar(&f.BindAddress, "bind-address", f.BindAddress, "The IP address on which webhooks are served.")
	fs.IntVar(&f.SecurePort, "secure-port", f.SecurePort, "The port on which webhooks are served, with TLS.")
	fs.StringVar(&f.CertDir, "cert-dir", f.CertDir, "The directory of the serving certificate and its key. They are read again when they change.")
	fs.StringVar(&f.CertFile, "tls-cert-file-name", f.CertFile, "The file of the serving certificate in --cert-dir.")
	fs.StringVar(&f.KeyFile, "tls-private-key-file-name", f.KeyFile, "The file of the key of the serving certificate in --cert-dir.")
	fs.StringVar(&f.TLSMinVersion, "tls-min-version", f.TLSMinVersion, "The lowest version of TLS that is served: 1.0, 1.1, 1.2 or 1.3.")
	fs.BoolVar(&f.AllowNoExecuteTaintPolicy, "allow-no-execute-taint-policy", f.AllowNoExecuteTaintPolicy, "Allow ClusterTaintPolicies with taints of effect NoExecute, which make workloads leave clusters.")
	f.Logs.AddFlags(sets.FlagSet(flags.LogsSet))
}

// tlsVersions are the values of --tls-min-version.
func tlsVersions() map[string]uint16 {
	return map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
}

// Validate reports everything that is wrong with the flags, but for those of
// logging.
func (f *Flags) Validate(gate featuregate.MutableFeatureGate) field.ErrorList {
	errs := slices.Concat(f.API.Validate(), f.Endpoints.Validate(), f.FeatureGates.Validate(gate))
	if net.ParseIP(f.BindAddress) == nil {
		errs = append(errs, field.Invalid(flags.Path("bind-address"), f.BindAddress, "must be an IP address"))
	}
	if f.SecurePort < 1 || f.SecurePort > 65535 {
		errs = append(errs, field.Invalid(flags.Path("secure-port"), f.SecurePort, "must be from 1 to 65535"))
	}
	for flag, name := range map[string]string{"tls-cert-file-name": f.CertFile, "tls-private-key-file-name": f.KeyFile} {
		if name == "" {
			errs = append(errs, field.Required(flags.Path(flag), "a file in --cert-dir"))
		}
	}
	if _, ok := tlsVersions()[f.TLSMinVersion]; !ok {
		errs = append(errs, field.NotSupported(flags.Path("tls-min-version"), f.TLSMinVersion, []string{"1.0", "1.1", "1.2", "1.3"}))
	}
	return errs
}

// certificate returns the paths of the serving certificate and its key.
func (f *Flags) certificate() (cert, key string) {
	return filepath.Join(f.CertDir, f.CertFile), filepath.Join(f.CertDir, f.KeyFile)
}
