package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	// CAValidity is how long a generated authority is valid (spec: cli/init.md 5).
	CAValidity = 10 * 365 * 24 * time.Hour
	// DefaultValidity is how long a leaf is valid when its Spec does not say:
	// the default of --cert-validity-period (spec: cli/init.md 1).
	DefaultValidity = 8760 * time.Hour
	// backdate makes a new certificate good on hosts whose clock is a little behind.
	backdate = 5 * time.Minute
)

// Usage is what a leaf may be used for.
type Usage uint

// A leaf that does both, such as an etcd peer's, has ServerAuth|ClientAuth.
const (
	ServerAuth Usage = 1 << iota
	ClientAuth
)

// Spec describes one certificate of a tree.
type Spec struct {
	// Name is the base name of its files below the directory, and may contain
	// folders: "etcd/peer" stands for etcd/peer.crt and etcd/peer.key.
	Name string
	// CA is the Name of the Spec that signs this one. Empty: this is an authority.
	CA string
	// CommonName and Organization are the user and the groups that a client
	// certificate stands for.
	CommonName   string
	Organization []string
	// DNSNames and IPs are what a server certificate answers for.
	DNSNames []string
	IPs      []net.IP
	// Usages of a leaf; an authority has none.
	Usages Usage
	// Validity of a newly made certificate. Zero means DefaultValidity, or
	// CAValidity for an authority. A leaf never outlives its authority.
	Validity time.Duration
}

// IsCA reports whether the Spec describes an authority.
func (s Spec) IsCA() bool { return s.CA == "" }

func (s Spec) validity() time.Duration {
	switch {
	case s.Validity > 0:
		return s.Validity
	case s.IsCA():
		return CAValidity
	default:
		return DefaultValidity
	}
}

// extKeyUsages are the usages of s as a certificate holds them.
func (s Spec) extKeyUsages() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if s.Usages&ServerAuth != 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	if s.Usages&ClientAuth != 0 {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	return usages
}

// validate returns every mistake in a tree at once: they are the program's or
// come from flags, and are reported before anything is looked at.
func validate(specs []Spec, o Options) error {
	var errs []error
	files := map[string]bool{}
	cas := map[string]bool{}
	claim := func(kind, name string) {
		if err := validName(name); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", kind, name, err))
		}
		if files[name] {
			errs = append(errs, fmt.Errorf("%s %q: the name is taken", kind, name))
		}
		files[name] = true
	}
	for _, s := range specs {
		claim("certificate", s.Name)
		cas[s.Name] = s.IsCA()
	}
	for _, name := range o.KeyPairs {
		claim("key pair", name)
	}
	for _, s := range specs {
		if err := s.validate(cas); err != nil {
			errs = append(errs, fmt.Errorf("certificate %q: %w", s.Name, err))
		}
	}
	for name := range o.Supplied {
		if !cas[name] {
			errs = append(errs, fmt.Errorf("an authority is supplied for %q, which is none of the authorities", name))
		}
	}
	return errors.Join(errs...)
}

func (s Spec) validate(cas map[string]bool) error {
	var errs []error
	if s.CommonName == "" {
		errs = append(errs, errors.New("common name is missing"))
	}
	if s.Validity < 0 {
		errs = append(errs, fmt.Errorf("validity %s is negative", s.Validity))
	}
	for _, name := range s.DNSNames {
		if name == "" {
			errs = append(errs, errors.New("a DNS name is empty"))
		}
	}
	for _, ip := range s.IPs {
		if ip.To16() == nil {
			errs = append(errs, fmt.Errorf("IP address %v is not valid", []byte(ip)))
		}
	}
	if s.IsCA() {
		return errors.Join(errs...)
	}
	if !cas[s.CA] {
		errs = append(errs, fmt.Errorf("its authority %q is not among the authorities", s.CA))
	}
	if len(s.extKeyUsages()) == 0 {
		errs = append(errs, errors.New("it is neither for servers nor for clients"))
	}
	if s.Usages&ServerAuth != 0 && len(s.DNSNames)+len(s.IPs) == 0 {
		errs = append(errs, errors.New("it is for a server, but has no DNS name and no IP address"))
	}
	return errors.Join(errs...)
}

// validName keeps files inside the directory.
func validName(name string) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || name == "." || strings.ContainsAny(name, "\\\x00") {
		return errors.New("not a relative path without detours")
	}
	return nil
}
