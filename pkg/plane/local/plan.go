package local

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/plane"
	"github.com/karmadactl/karmadactl/pkg/util/preflight"
)

const (
	// minFreeBytes is what etcd (two preallocated log segments, the database and its snapshot) and the log need to
	// begin with.
	minFreeBytes = 512 << 20
	// minOpenFiles covers a few hundred watches and etcd's own files.
	minOpenFiles = 4096
)

// Plan looks at the host and at what is installed, and returns the installation that r asks for. It changes nothing.
// Everything that is in the way is reported at once.
func Plan(r Request) (*Installation, error) {
	begin := time.Now()
	dir, err := realPath(r.DataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	r.DataDir = dir

	installed, err := plane.Load(dir)
	fresh := errors.Is(err, plane.ErrNotInstalled)
	if err != nil && !fresh {
		return nil, err
	}
	if !fresh && installed.Kind != plane.KindControlPlane {
		return nil, &plane.ForeignDirectoryError{Dir: dir, Reason: fmt.Sprintf("it holds the local member cluster %q: choose another directory", installed.Name)}
	}
	cfg := installed
	if fresh {
		cfg = plane.NewConfig(plane.KindControlPlane, "karmada")
		cfg.ID = string(uuid.NewUUID())
	}
	if err := r.apply(&cfg); err != nil {
		return nil, err
	}

	i := &Installation{request: r, installed: installed, fresh: fresh}
	if i.running, err = FindProcesses(plane.NewLayout(dir, cfg.PKI)); err != nil {
		return nil, err
	}
	if i.authority, err = loadAuthority(r); err != nil {
		return nil, err
	}
	if err := i.check(cfg); err != nil {
		return nil, err
	}
	i.preflight = Step{Name: "preflight", Detail: "nothing in the way", Took: time.Since(begin)}
	return i, nil
}

// apply puts what the user asked for into cfg, and finds the addresses that nobody named.
func (r Request) apply(cfg *plane.Config) error {
	set(&cfg.BindAddress, r.BindAddress)
	set(&cfg.AdvertiseAddress, r.AdvertiseAddress)
	set(&cfg.Port, r.Port)
	set(&cfg.ExternalIPs, r.ExternalIPs)
	set(&cfg.ExternalDNS, r.ExternalDNS)
	if r.CertValidity != nil {
		cfg.CertValidity = metav1.Duration{Duration: *r.CertValidity}
	}
	if r.PKI != nil {
		pki, err := realPath(*r.PKI)
		if err != nil {
			return fmt.Errorf("find the certificate directory: %w", err)
		}
		if pki == plane.NewLayout(r.DataDir, "").PKI {
			pki = ""
		}
		cfg.PKI = pki
	}
	if cfg.AdvertiseAddress == "" {
		cfg.AdvertiseAddress = defaultAdvertiseAddress(cfg.BindAddress)
	}
	cfg.KubernetesVersion, cfg.Withdrawn = plane.KubernetesVersion, false
	return nil
}

// realPath makes a path absolute, with the links in what exists of it resolved: a link of the user's is not ours to
// remove one day.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil // it is not there yet, or whoever uses it says what is wrong with it
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// defaultAdvertiseAddress is the bound address when there is one, else the one that the default route leaves by, else
// loopback: a host without a network still gets a control plane for itself.
func defaultAdvertiseAddress(bind string) string {
	if a, err := netip.ParseAddr(bind); err != nil || !a.IsUnspecified() {
		return bind
	}
	ip, err := utilnet.ChooseHostInterface()
	if err != nil {
		return "127.0.0.1"
	}
	return ip.String()
}

func loadAuthority(r Request) (*certs.Authority, error) {
	if r.CACert == "" && r.CAKey == "" {
		return nil, nil
	}
	return certs.LoadAuthority(r.CACert, r.CAKey, time.Now())
}

// check finds everything that would keep the installation from succeeding.
func (i *Installation) check(cfg plane.Config) error {
	installed := i.installed
	l := plane.NewLayout(i.request.DataDir, cfg.PKI)
	errs := []error{
		preflight.WritableDir(l.Dir),
		preflight.OpenFiles(minOpenFiles),
		checkOwner(l, cfg.ID),
	}
	if cfg.PKI != "" {
		errs = append(errs, preflight.WritableDir(l.PKI))
	}
	taken, err := i.checkPorts(&cfg)
	errs = append(errs, taken)
	if err != nil {
		errs = append(errs, err)
	} else if err := cfg.Validate(); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, preflight.HostAddress(cfg.BindAddress))
	}
	if !i.running.Running() {
		errs = append(errs, preflight.FreeSpace(l.Dir, minFreeBytes))
	}
	if !i.fresh && cfg.PKI != installed.PKI {
		errs = append(errs, fmt.Errorf("the certificates of this installation are in %s: init cannot move them to %s; leave that flag out", plane.NewLayout(i.request.DataDir, installed.PKI).PKI, l.PKI))
	}
	if err := preflight.All(errs...); err != nil {
		return err
	}

	i.Plane = plane.ControlPlane(cfg, l)
	changes, err := planCertificates(i.Plane, i.authority)
	if err != nil {
		return err
	}
	i.Certificates = changes
	if i.fresh {
		return i.noteWhatIsTheirs()
	}
	i.restart = i.running.Running() && !sameComponents(i.Plane, plane.ControlPlane(installed, l))
	return nil
}

// checkPorts finds out whether the API server's port is free, and gives the others free ones. What runs now holds its
// own ports, which are given up when it is started anew. taken says who has the API server's port, none that no others
// are free.
func (i *Installation) checkPorts(cfg *plane.Config) (taken, none error) {
	own := map[int]bool{}
	if i.running.Running() {
		own[i.installed.Port] = true
		for _, port := range i.installed.Ports {
			own[port] = true
		}
	}
	inUse := func(host string, port int) bool { return !own[port] && preflight.PortInUse(host, port) }
	if !own[cfg.Port] || cfg.BindAddress != i.installed.BindAddress && cfg.Port != i.installed.Port {
		taken = checkPort(*cfg)
	}
	return taken, cfg.ChoosePorts(inUse)
}

// noteWhatIsTheirs keeps in the configuration what was there before the first installation. A certificate of the user
// that would have to be replaced is refused.
func (i *Installation) noteWhatIsTheirs() error {
	cfg, l := &i.Plane.Config, i.Plane.Layout
	var errs []error
	for _, c := range i.Certificates {
		switch c.Action {
		case certs.Kept, certs.Completed, certs.Tightened:
			cfg.Provided = append(cfg.Provided, c.Name)
		case certs.Renewed:
			errs = append(errs, fmt.Errorf("%s holds %q, which cannot be used (%s): move it away, or choose another directory for certificates", l.PKI, c.Name, c.Reason))
		}
	}
	for name, dir := range map[string]string{plane.GivenDataDir: l.Dir, plane.GivenPKI: l.PKI} {
		if _, err := os.Lstat(dir); err == nil {
			cfg.Given = append(cfg.Given, name)
		}
	}
	slices.Sort(cfg.Given)
	return errors.Join(errs...)
}

func checkPort(cfg plane.Config) error {
	if net.ParseIP(cfg.BindAddress) == nil || cfg.Port < 1 || cfg.Port > 65535 {
		return nil // reported by Validate
	}
	return preflight.PortFree(cfg.BindAddress, cfg.Port)
}
