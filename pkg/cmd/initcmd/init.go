// Package initcmd implements karmadactl init: a control plane on this host.
package initcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmadactl/karmadactl/pkg/cmd/host"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/plane/local"
)

const long = `
	Install the control plane.

	By default it is installed on this host, without a Kubernetes cluster, a container runtime or a network: one
	process holds etcd, kube-apiserver, kube-controller-manager and the components of Karmada, and is kept running
	in the background.

	Running init again changes nothing that is right: it keeps the data, the certificate authorities and all settings
	that are not named, repairs what is missing, and completes an installation that was interrupted.`

const example = `
	# Install the control plane on this host
	%[1]s init

	# Keep everything in one directory, and listen on another port
	%[1]s init --data-dir=/srv/karmada --port=5443

	# See what would be done
	%[1]s init --dry-run

	# Let clients use a load balancer's address and name
	%[1]s init --cert-external-ip=203.0.113.7 --cert-external-dns=karmada.example.com`

// NewCmd returns the init command. program is how the user calls this program.
func NewCmd(s genericiooptions.IOStreams, program string) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:                   "init",
		Short:                 "Install the Karmada control plane on this host",
		Long:                  templates.LongDesc(long),
		Example:               templates.Examples(fmt.Sprintf(example, program)),
		Args:                  cobra.NoArgs,
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.ToOptions(s, program)
			if err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f.AddFlags(cmd.Flags())
	return cmd
}

// Flags hold what the user typed, and nothing else.
type Flags struct {
	Target           string
	DataDir          string
	PKIDir           string
	BindAddress      string
	AdvertiseAddress string
	Port             int32
	CACertFile       string
	CAKeyFile        string
	ExternalIP       string
	ExternalDNS      string
	CertValidity     time.Duration
	Timeout          time.Duration
	Namespace        string
	DryRun           bool
	Output           host.Output

	set *pflag.FlagSet
}

// AddFlags adds every flag of the contract (spec: cli/init.md 1). Those that only make sense for an installation
// onto a host cluster are there to be refused: nobody who meant one may get a host installation.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	host.AddDataDir(fs, &f.DataDir)
	fs.StringVarP(&f.DataDir, "karmada-data", "d", f.DataDir, "Alias of --data-dir.")
	fs.StringVar(&f.PKIDir, "pki-dir", "", "Directory of keys and certificates. Default is pki in the data directory.")
	fs.StringVar(&f.PKIDir, "karmada-pki", "", "Alias of --pki-dir.")
	fs.StringVar(&f.BindAddress, "bind-address", "0.0.0.0", "IP address that the API server listens on.")
	fs.StringVar(&f.AdvertiseAddress, "advertise-address", "", "IP address by which clients reach the API server. Default is the bound one, or that of the default route.")
	fs.StringVar(&f.AdvertiseAddress, "karmada-apiserver-advertise-address", "", "Alias of --advertise-address.")
	fs.Int32VarP(&f.Port, "port", "p", plane.DefaultPort, "Port of the API server. Free ports above it are used on loopback.")
	fs.StringVar(&f.CACertFile, "ca-cert-file", "", "Certificate of an authority of your own that signs the control plane's certificates.")
	fs.StringVar(&f.CAKeyFile, "ca-key-file", "", "Private key of the authority of --ca-cert-file.")
	fs.StringVar(&f.ExternalIP, "cert-external-ip", "", "More IP addresses that the API server's certificate is valid for, separated by commas.")
	fs.StringVar(&f.ExternalDNS, "cert-external-dns", "", "More DNS names that the API server's certificate is valid for, separated by commas.")
	fs.DurationVar(&f.CertValidity, "cert-validity-period", plane.DefaultCertValidity, "How long new certificates are valid.")
	f.Timeout = 120 * time.Second
	fs.Var(host.Seconds{D: &f.Timeout}, "wait-component-ready-timeout", "Seconds (or a duration) to wait until the components are ready. 0 waits for ever.")
	fs.StringVarP(&f.Namespace, "namespace", "n", "karmada-system", "Namespace of the control plane's own objects. On a host it is always karmada-system.")
	fs.BoolVar(&f.DryRun, "dry-run", false, "Print everything that would be done, and do nothing.")
	fs.StringVar(&f.Target, "target", "host", "Where to install: host, or cluster (a host Kubernetes cluster; not available in this version).")
	host.AddOutput(fs, &f.Output)
	addHostClusterFlags(fs)
}

// Options are a complete and valid request to install; only ToOptions makes them.
type Options struct {
	Installation *local.Installation
	DryRun       bool
	Output       host.Output
	Program      string
	Progress     local.Reporter
	genericiooptions.IOStreams
}

// ToOptions completes and validates: it looks at the host, and changes nothing.
func (f *Flags) ToOptions(s genericiooptions.IOStreams, program string) (*Options, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	r, err := f.request()
	if err != nil {
		return nil, err
	}
	installation, err := local.Plan(r)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return &Options{
		Installation: installation,
		DryRun:       f.DryRun,
		Output:       f.Output,
		Program:      program,
		Progress:     host.NewProgress(s.ErrOut, host.IsTerminal(s.ErrOut)),
		IOStreams:    s,
	}, nil
}

// validate reports every mistake in the flags at once.
func (f *Flags) validate() error {
	errs := []error{host.RefuseHostCluster(f.set, "init installs on this host"), f.Output.Validate()}
	switch f.Target {
	case "host":
	case "cluster":
		errs = append(errs, errors.New("--target=cluster: the installation onto a host Kubernetes cluster is not available in this version; leave the flag out to install on this host"))
	default:
		errs = append(errs, fmt.Errorf("--target=%s: want host", f.Target))
	}
	if f.Namespace != "karmada-system" {
		errs = append(errs, fmt.Errorf("--namespace=%s: on a host the namespace is always karmada-system; leave the flag out", f.Namespace))
	}
	for _, pair := range [][2]string{{"data-dir", "karmada-data"}, {"pki-dir", "karmada-pki"}, {"advertise-address", "karmada-apiserver-advertise-address"}} {
		if f.set.Changed(pair[0]) && f.set.Changed(pair[1]) {
			errs = append(errs, fmt.Errorf("--%s and --%s mean the same: give one of them", pair[0], pair[1]))
		}
	}
	if f.DataDir == "" {
		errs = append(errs, errors.New("--data-dir is empty: name a directory, or leave the flag out"))
	}
	if (f.CACertFile == "") != (f.CAKeyFile == "") {
		errs = append(errs, errors.New("--ca-cert-file and --ca-key-file go together: give both or none"))
	}
	if f.Port < 1 || f.Port > 65535 {
		errs = append(errs, fmt.Errorf("--port=%d: want 1 to 65535", f.Port))
	}
	errs = append(errs, checkIP("bind-address", f.BindAddress))
	if f.AdvertiseAddress != "" {
		errs = append(errs, checkIP("advertise-address", f.AdvertiseAddress))
	}
	for _, ip := range list(f.ExternalIP) {
		errs = append(errs, checkIP("cert-external-ip", ip))
	}
	return errors.Join(errs...)
}

func checkIP(flag, text string) error {
	if a, err := netip.ParseAddr(text); err != nil || a.Zone() != "" {
		return fmt.Errorf("--%s: %q is not an IP address", flag, text)
	}
	return nil
}

// list splits a flag of the contract that takes several values in one string.
func list(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// request turns the flags into what is asked for: only a flag that was given changes what is installed.
func (f *Flags) request() (local.Request, error) {
	supervisor, err := host.Supervisor(f.DataDir)
	if err != nil {
		return local.Request{}, err
	}
	port := int(f.Port)
	ips, dns := list(f.ExternalIP), list(f.ExternalDNS)
	return local.Request{
		DataDir:          f.DataDir,
		PKI:              given(f.set, &f.PKIDir, "pki-dir", "karmada-pki"),
		BindAddress:      given(f.set, &f.BindAddress, "bind-address"),
		AdvertiseAddress: given(f.set, &f.AdvertiseAddress, "advertise-address", "karmada-apiserver-advertise-address"),
		Port:             given(f.set, &port, "port"),
		CertValidity:     given(f.set, &f.CertValidity, "cert-validity-period"),
		ExternalIPs:      given(f.set, &ips, "cert-external-ip"),
		ExternalDNS:      given(f.set, &dns, "cert-external-dns"),
		CACert:           f.CACertFile,
		CAKey:            f.CAKeyFile,
		Timeout:          f.Timeout,
		Supervisor:       supervisor,
	}, nil
}

func given[T any](fs *pflag.FlagSet, value *T, flags ...string) *T {
	for _, name := range flags {
		if fs.Changed(name) {
			return value
		}
	}
	return nil
}

// Run installs, or shows what that would do.
func (o *Options) Run(ctx context.Context) error {
	if o.DryRun {
		preview, err := o.Installation.Preview()
		if err != nil {
			return err
		}
		return o.Output.Print(o.Out, preview, func(w io.Writer) error { return printPreview(w, preview) })
	}
	result, err := o.Installation.Apply(ctx, o.Progress)
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted before the control plane in %[1]s was complete: run `%[2]s init --data-dir=%[1]s` again to complete it, or `%[2]s deinit --purge --data-dir=%[1]s` to take it back", o.Installation.Plane.Layout.Dir, o.Program)
	}
	if err != nil {
		return fmt.Errorf("install the control plane in %s: %w", o.Installation.Plane.Layout.Dir, err)
	}
	return o.Output.Print(o.Out, result, func(w io.Writer) error { return o.printResult(w, result) })
}

func (o *Options) printResult(w io.Writer, r local.Result) error {
	head := "Karmada is installed successfully."
	if !r.Changed {
		head = "Karmada is installed and running; nothing had to be changed."
	}
	_, err := fmt.Fprintf(w, `
%[1]s

API server   %[3]s
valid for    %[4]s
kubeconfig   %[5]s (context %[6]s)
log          %[7]s

Use it:
  export KUBECONFIG=%[5]s
  %[2]s get namespaces
  %[2]s status --data-dir=%[8]s

Stop and start it:
  %[2]s stop --data-dir=%[8]s
  %[2]s start --data-dir=%[8]s
`, head, o.Program, r.Server, strings.Join(r.ValidFor, ", "), r.Kubeconfig, r.Context, r.Log, r.DataDir)
	return err
}

func printPreview(w io.Writer, p local.Preview) error {
	var b strings.Builder
	verb := "check and mend"
	if p.Fresh {
		verb = "install"
	}
	fmt.Fprintf(&b, "Would %s the control plane in %s, API server at %s.\n", verb, p.DataDir, p.Server)
	section := func(title string, lines []string) {
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	section("Process", []string{p.Process})
	section("Certificates", p.Certificates)
	section("Files", p.Files)
	for _, c := range p.Components {
		section("Component "+c.Name, c.Args)
	}
	section("Objects", p.Objects)
	_, err := io.WriteString(w, b.String())
	return err
}
