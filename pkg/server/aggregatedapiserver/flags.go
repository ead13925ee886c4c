package aggregatedapiserver

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	"github.com/karmadactl/karmadactl/pkg/aggregated"
	"github.com/karmadactl/karmadactl/pkg/server/flags"
	"github.com/karmadactl/karmadactl/pkg/server/role"
)

// Flags hold what was typed (spec: cli/components.md 4).
type Flags struct {
	Etcd           *options.EtcdOptions
	SecureServing  *options.SecureServingOptionsWithLoopback
	Authentication *options.DelegatingAuthenticationOptions
	Authorization  *options.DelegatingAuthorizationOptions
	Audit          *options.AuditOptions
	Features       *options.FeatureOptions

	Kubeconfig   flags.Kubeconfig
	API          flags.Limits
	FeatureGates flags.FeatureGates
	Logs         *flags.Logs

	// EnablePprof serves profiles at ProfilingBindAddress.
	EnablePprof          bool
	ProfilingBindAddress string
}

// NewFlags returns the defaults.
func NewFlags() (*Flags, error) {
	backend, err := aggregated.NewStorageBackend()
	if err != nil {
		return nil, err
	}
	return &Flags{
		Etcd:                 options.NewEtcdOptions(backend),
		SecureServing:        options.NewSecureServingOptions().WithLoopback(),
		Authentication:       options.NewDelegatingAuthenticationOptions(),
		Authorization:        options.NewDelegatingAuthorizationOptions(),
		Audit:                options.NewAuditOptions(),
		Features:             options.NewFeatureOptions(),
		API:                  flags.KubeAPILimits(),
		Logs:                 flags.NewLogs(),
		ProfilingBindAddress: ":6060",
	}, nil
}

// AddFlags registers all flags, in their sets. The usage of --feature-gates
// lists what the gate knows.
func (f *Flags) AddFlags(sets *cliflag.NamedFlagSets, gate featuregate.MutableFeatureGate) {
	fs := sets.FlagSet(flags.GenericSet)
	f.Etcd.AddFlags(fs)
	f.SecureServing.AddFlags(fs)
	f.Authentication.AddFlags(fs)
	f.Authorization.AddFlags(fs)
	f.Audit.AddFlags(fs)
	f.Features.AddFlags(fs)
	f.Kubeconfig.AddFlags(fs)
	f.API.AddFlags(fs)
	f.FeatureGates.AddFlags(fs, gate)
	fs.BoolVar(&f.EnablePprof, "enable-pprof", f.EnablePprof, "Serve profiles of the running process, /debug/pprof, without authentication at --profiling-bind-address. They show memory and command lines: do not offer them to the public.")
	fs.StringVar(&f.ProfilingBindAddress, "profiling-bind-address", f.ProfilingBindAddress, "The TCP address for profiles (e.g. 127.0.0.1:6060, :6060). Only with --enable-pprof.")
	f.Logs.AddFlags(sets.FlagSet(flags.LogsSet))
}

// Validate reports every value that is wrong, each on a line of its own.
func (f *Flags) Validate(gate featuregate.MutableFeatureGate) error {
	errs := f.FeatureGates.Validate(gate)
	errs = append(errs, f.API.Validate()...)
	errs = append(errs, f.Logs.Validate(gate)...)
	if f.EnablePprof {
		if _, _, err := net.SplitHostPort(f.ProfilingBindAddress); err != nil {
			errs = append(errs, field.Invalid(flags.Path("profiling-bind-address"), f.ProfilingBindAddress, "must have the form HOST:PORT or :PORT"))
		}
	}
	if f.Features.EnableContentionProfiling && !f.Features.EnableProfiling {
		errs = append(errs, field.Invalid(flags.Path("contention-profiling"), true, "needs --profiling"))
	}
	var all []error
	if err := flags.Error(errs); err != nil {
		all = append(all, err)
	}
	for _, part := range [][]error{
		f.Etcd.Validate(), f.SecureServing.Validate(), f.Authentication.Validate(),
		f.Authorization.Validate(), f.Audit.Validate(), f.Features.Validate(),
	} {
		all = append(all, part...)
	}
	return errors.Join(all...)
}

// parse gives args to the flags of the role.
func parse(name string, sets *cliflag.NamedFlagSets, args []string) error {
	fs := role.FlagSet(name, sets)
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	if rest := fs.Args(); len(rest) > 0 {
		return fmt.Errorf("unexpected arguments: %s", strings.Join(rest, " "))
	}
	return nil
}
