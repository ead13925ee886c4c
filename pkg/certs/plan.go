package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// renewFraction bounds Options.RenewBefore: a leaf is not renewed for its age
// while more than 1/renewFraction of its life is left.
const renewFraction = 3

// plan decides about every entry. Everything that will be written is made here,
// so that what cannot be made is known before the first write.
func (d Dir) plan(specs []Spec, o Options) ([]step, error) {
	o.Supplied = withoutNil(o.Supplied)
	if err := validate(specs, o); err != nil {
		return nil, fmt.Errorf("certificate tree: %w", err)
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}

	var steps []step
	var errs []error
	note := func(s step, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		steps = append(steps, s)
	}
	cas := map[string]*Authority{}
	for _, s := range specs {
		if s.IsCA() {
			ca, st, err := d.planCA(s, o)
			cas[s.Name] = ca
			note(st, err)
		}
	}
	for _, s := range specs {
		if ca := cas[s.CA]; !s.IsCA() && ca != nil {
			note(d.planLeaf(s, ca, o))
		}
	}
	for _, name := range o.KeyPairs {
		note(d.planKeyPair(name))
	}
	return steps, errors.Join(errs...)
}

func withoutNil(all map[string]*Authority) map[string]*Authority {
	set := map[string]*Authority{}
	for name, a := range all {
		if a != nil {
			set[name] = a
		}
	}
	return set
}

// caFiles are an authority's files as found.
type caFiles struct {
	name             string
	cert, key, chain content
}

func (d Dir) readCA(name string) (caFiles, error) {
	cert, errCert := read(d.CertFile(name))
	key, errKey := read(d.KeyFile(name))
	chain, errChain := read(d.ChainFile(name))
	if err := errors.Join(errCert, errKey, errChain); err != nil {
		return caFiles{}, fmt.Errorf("read certificate authority %q: %w", name, err)
	}
	return caFiles{name: name, cert: cert, key: key, chain: chain}, nil
}

func (f caFiles) unusable(err error, wayOut string) error {
	return &UnusableError{
		What: fmt.Sprintf("the certificate authority %q", f.name), Files: []string{f.cert.path, f.key.path},
		Reason: err.Error(), WayOut: wayOut, Err: err,
	}
}

// The ways out of an unusable authority.
func (f caFiles) restoreCert() string {
	return fmt.Sprintf("restore %s from a backup, or remove that file alone: a certificate for the same key is then made", f.cert.path)
}

func (f caFiles) restorePair() string {
	return "restore both files from a backup, or remove both to start a new authority: everything that the old one signed, kubeconfigs too, is then worthless"
}

func (d Dir) planCA(s Spec, o Options) (*Authority, step, error) {
	f, err := d.readCA(s.Name)
	if err != nil {
		return nil, step{}, err
	}
	if a := o.Supplied[s.Name]; a != nil {
		return f.planSupplied(a)
	}
	switch {
	case f.cert.exists && f.key.exists:
		return f.planKept(o.Now)
	case f.cert.exists:
		return nil, step{}, f.unusable(fmt.Errorf("%s is missing", f.key.path),
			"restore the key from a backup, supply certificate and key again if you brought them, or remove "+
				f.cert.path+" to start a new authority: everything that the old one signed, kubeconfigs too, is then worthless")
	case f.key.exists:
		return f.planCompleted(s, o.Now)
	default:
		key, err := newKey()
		if err != nil {
			return nil, step{}, err
		}
		return f.planSelfSigned(s, key, o.Now, Created, "there was none")
	}
}

// planKept checks an authority that is all there.
func (f caFiles) planKept(now time.Time) (*Authority, step, error) {
	key, err := ParseKey(f.key.data)
	if err != nil {
		return nil, step{}, f.unusable(fmt.Errorf("%s is damaged: %w", f.key.path, err), f.restorePair())
	}
	certs, err := ParseCertificates(f.cert.data)
	if err != nil {
		return nil, step{}, f.unusable(fmt.Errorf("%s is damaged: %w", f.cert.path, err), f.restoreCert())
	}
	a := &Authority{cert: certs[0], key: key}
	if !sameKey(a.cert.PublicKey, key.Public()) {
		return nil, step{}, f.unusable(errors.New("the key does not belong to the certificate"), f.restorePair())
	}
	if f.chain.exists && !selfSigned(a.cert) {
		if a.parents, err = ParseCertificates(f.chain.data); err != nil {
			return nil, step{}, f.unusable(fmt.Errorf("%s is damaged: %w", f.chain.path, err),
				"supply the authority again, with the certificates of its parents")
		}
	}
	if err := a.check(now); err != nil {
		return nil, step{}, f.unusable(err, f.restorePair())
	}
	return a, kept(f.name, a.cert, f.key), nil
}

// planCompleted makes the certificate for a key that was written just before an
// earlier run ended. A key that this package does not generate, or one with a
// chain beside it, was brought by the user: only they have its certificate.
func (f caFiles) planCompleted(s Spec, now time.Time) (*Authority, step, error) {
	key, err := ParseKey(f.key.data)
	if err != nil {
		return nil, step{}, f.unusable(fmt.Errorf("%s is damaged, and %s is missing: %w", f.key.path, f.cert.path, err), f.restorePair())
	}
	if k, ok := key.(*ecdsa.PrivateKey); !ok || k.Curve != elliptic.P256() || f.chain.exists {
		return nil, step{}, f.unusable(fmt.Errorf("%s is missing, and the key was not generated here", f.cert.path),
			"supply certificate and key again, or restore the certificate from a backup")
	}
	return f.planSelfSigned(s, key, now, Completed, "its key was there without a certificate")
}

func (f caFiles) planSelfSigned(s Spec, key crypto.Signer, now time.Time, action Action, reason string) (*Authority, step, error) {
	c, err := selfSign(s, key, now)
	if err != nil {
		return nil, step{}, err
	}
	st := step{change: Change{Name: s.Name, Action: action, Reason: reason, NotAfter: c.NotAfter}}
	if f.key.exists {
		st.add(tighten(f.key)...)
	} else {
		data, err := encodeKey(key)
		if err != nil {
			return nil, step{}, err
		}
		st.add(write{path: f.key.path, data: data, mode: keyMode})
	}
	st.add(write{path: f.cert.path, data: encodeCertificates(c), mode: certMode})
	return &Authority{cert: c, key: key}, st, nil
}

// planSupplied copies in what the user brought, unless there is another one.
// The certificate goes first, not the key: the leftover of an interrupted run
// must not look like a generated key that only lacks its certificate.
func (f caFiles) planSupplied(a *Authority) (*Authority, step, error) {
	certState, certErr := f.compareCert(a)
	keyState := f.compareKey(a)
	if certState == other || keyState == other ||
		certState == damaged && keyState != same || certState == missing && keyState == damaged {
		reason := errors.New("another authority than the supplied one is in place")
		if certErr != nil {
			reason = fmt.Errorf("%w (%w)", reason, certErr)
		}
		return nil, step{}, f.unusable(reason, "leave the supplied one out to keep the one in place, or start from an empty certificate directory: what the old one signed is then worthless")
	}

	st := kept(f.name, a.cert, f.key)
	var writes []write
	var reasons []string
	chain := encodeCertificates(a.parents...)
	if f.chain.exists != (len(chain) > 0) || !bytes.Equal(f.chain.data, chain) {
		writes = append(writes, write{path: f.chain.path, data: chain, mode: certMode})
		reasons = append(reasons, "its parents were others")
	}
	if certState != same {
		writes = append(writes, write{path: f.cert.path, data: encodeCertificates(a.cert), mode: certMode})
		reasons = append(reasons, "its certificate was "+string(certState))
	}
	if keyState != same {
		data, err := encodeKey(a.key)
		if err != nil {
			return nil, step{}, err
		}
		writes = append(writes, write{path: f.key.path, data: data, mode: keyMode})
		reasons = append(reasons, "its key was "+string(keyState))
	}
	if len(writes) == 0 {
		return a, st, nil
	}
	st.change.Action = Imported
	st.change.Reason = strings.Join(reasons, ", ")
	if certState == missing && keyState == missing {
		st.change.Reason = "it was supplied"
	}
	st.add(writes...)
	return a, st, nil
}

// state compares a file with what the user brought.
type state string

const (
	missing state = "missing"
	damaged state = "damaged"
	same    state = "the same"
	older   state = "another one for the same key"
	other   state = "another"
)

func (f caFiles) compareCert(a *Authority) (state, error) {
	if !f.cert.exists {
		return missing, nil
	}
	certs, err := ParseCertificates(f.cert.data)
	switch {
	case err != nil:
		return damaged, fmt.Errorf("%s is damaged: %w", f.cert.path, err)
	case certs[0].Equal(a.cert):
		return same, nil
	case sameKey(certs[0].PublicKey, a.cert.PublicKey) && bytes.Equal(certs[0].RawSubject, a.cert.RawSubject):
		return older, nil
	default:
		return other, fmt.Errorf("%s in place, %s supplied", Fingerprint(certs[0]), Fingerprint(a.cert))
	}
}

func (f caFiles) compareKey(a *Authority) state {
	if !f.key.exists {
		return missing
	}
	key, err := ParseKey(f.key.data)
	switch {
	case err != nil:
		return damaged
	case sameKey(key.Public(), a.cert.PublicKey):
		return same
	default:
		return other
	}
}

// planLeaf keeps a leaf that is right and makes any other.
func (d Dir) planLeaf(s Spec, ca *Authority, o Options) (step, error) {
	cert, errCert := read(d.CertFile(s.Name))
	key, errKey := read(d.KeyFile(s.Name))
	if err := errors.Join(errCert, errKey); err != nil {
		return step{}, fmt.Errorf("read certificate %q: %w", s.Name, err)
	}
	current, reason := ca.judge(s, cert, key, o)
	if reason == "" {
		return kept(s.Name, current, key), nil
	}

	fresh, err := newKey()
	if err != nil {
		return step{}, err
	}
	c, err := ca.issue(s, fresh, o.Now)
	if err != nil {
		return step{}, fmt.Errorf("make certificate %q: %w", s.Name, err)
	}
	data, err := encodeKey(fresh)
	if err != nil {
		return step{}, err
	}
	st := step{change: Change{Name: s.Name, Action: Renewed, Reason: reason, NotAfter: c.NotAfter}}
	if !cert.exists {
		st.change.Action = Created
	}
	st.add(
		write{path: key.path, data: data, mode: keyMode},
		write{path: cert.path, data: encodeCertificates(append([]*x509.Certificate{c}, ca.intermediates()...)...), mode: certMode},
	)
	return st, nil
}

// judge returns the leaf found, or the reason why it must be made anew.
func (a *Authority) judge(s Spec, cert, key content, o Options) (*x509.Certificate, string) {
	switch {
	case !cert.exists && !key.exists:
		return nil, "there was none"
	case !cert.exists:
		return nil, "its certificate was missing"
	case !key.exists:
		return nil, "its key was missing"
	}
	certs, err := ParseCertificates(cert.data)
	if err != nil {
		return nil, "its certificate was damaged"
	}
	signer, err := ParseKey(key.data)
	if err != nil {
		return nil, "its key was damaged"
	}
	c := certs[0]
	for _, reason := range []string{
		keyMismatch(c, signer),
		a.signerMismatch(certs),
		subjectMismatch(s, c),
		sanMismatch(s, c),
		usageMismatch(s, c),
		a.timeMismatch(s, c, o),
	} {
		if reason != "" {
			return nil, reason
		}
	}
	if err := a.verify(c, s, o.Now); err != nil {
		return nil, fmt.Sprintf("it does not verify (%v)", err)
	}
	return c, ""
}

func keyMismatch(c *x509.Certificate, key crypto.Signer) string {
	if !sameKey(c.PublicKey, key.Public()) {
		return "its key did not belong to its certificate"
	}
	return ""
}

// signerMismatch also looks at the certificates that follow the leaf's.
func (a *Authority) signerMismatch(certs []*x509.Certificate) string {
	if !bytes.Equal(certs[0].RawIssuer, a.cert.RawSubject) || certs[0].CheckSignatureFrom(a.cert) != nil {
		return "it was signed by another authority"
	}
	if !slices.EqualFunc(certs[1:], a.intermediates(), (*x509.Certificate).Equal) {
		return "the certificates of the authority that follow it were others"
	}
	return ""
}

// subjectMismatch is exact: a group too many is a right too many.
func subjectMismatch(s Spec, c *x509.Certificate) string {
	if c.Subject.CommonName != s.CommonName {
		return fmt.Sprintf("its common name was %q, not %q", c.Subject.CommonName, s.CommonName)
	}
	got, want := sortedSet(c.Subject.Organization), sortedSet(s.Organization)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("its organization was %q, not %q", got, want)
	}
	return ""
}

// sanMismatch lets names that are no longer asked for stay until the leaf is
// renewed: they do no harm, and clients may still use them.
func sanMismatch(s Spec, c *x509.Certificate) string {
	for _, name := range s.DNSNames {
		if !slices.ContainsFunc(c.DNSNames, func(n string) bool { return strings.EqualFold(n, name) }) {
			return fmt.Sprintf("it did not cover %s", name)
		}
	}
	for _, ip := range s.IPs {
		if !slices.ContainsFunc(c.IPAddresses, func(i net.IP) bool { return i.Equal(ip) }) {
			return fmt.Sprintf("it did not cover %s", ip)
		}
	}
	return ""
}

// usageMismatch is exact: a server's certificate must not log in as a client.
func usageMismatch(s Spec, c *x509.Certificate) string {
	got, want := slices.Clone(c.ExtKeyUsage), s.extKeyUsages()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(c.UnknownExtKeyUsage) > 0 {
		return "its usages were others"
	}
	return ""
}

func (a *Authority) timeMismatch(s Spec, c *x509.Certificate, o Options) string {
	if o.Now.After(c.NotAfter) {
		return fmt.Sprintf("it expired at %s", stamp(c.NotAfter))
	}
	if o.Now.Before(c.NotBefore) {
		return fmt.Sprintf("it was not valid before %s", stamp(c.NotBefore))
	}
	window := min(o.RenewBefore, c.NotAfter.Sub(c.NotBefore)/renewFraction)
	if c.NotAfter.Sub(o.Now) < window && a.notAfter(s, o.Now).After(c.NotAfter) {
		return fmt.Sprintf("it would expire at %s", stamp(c.NotAfter))
	}
	return ""
}

// intermediates are what a leaf's file must hold after the leaf, so that peers
// that trust only the root find their way.
func (a *Authority) intermediates() []*x509.Certificate {
	var found []*x509.Certificate
	for _, c := range append([]*x509.Certificate{a.cert}, a.parents...) {
		if !selfSigned(c) {
			found = append(found, c)
		}
	}
	return found
}

func selfSigned(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

// planKeyPair keeps a key for ever and writes its public half when that is
// missing or damaged; nothing is lost by that.
func (d Dir) planKeyPair(name string) (step, error) {
	key, errKey := read(d.KeyFile(name))
	pub, errPub := read(d.PublicKeyFile(name))
	if err := errors.Join(errKey, errPub); err != nil {
		return step{}, fmt.Errorf("read key pair %q: %w", name, err)
	}
	unusable := func(reason, wayOut string) error {
		return &UnusableError{
			What: fmt.Sprintf("the key pair %q", name), Files: []string{key.path, pub.path},
			Reason: reason, WayOut: wayOut,
		}
	}
	restore := "restore it from a backup, or remove both files to start a new pair: all tokens signed with the old one are then worthless"
	if !key.exists && pub.exists {
		return step{}, unusable(baseName(name, ".key")+" is missing", restore)
	}
	if !key.exists {
		return newKeyPair(name, key.path, pub.path)
	}

	signer, err := ParseKey(key.data)
	if err != nil {
		return step{}, unusable(baseName(name, ".key")+" is damaged: "+err.Error(), restore)
	}
	reason := "its public key was missing"
	if pub.exists {
		keys, err := parsePublicKeys(pub.data)
		switch {
		case err != nil:
			reason = "its public key was damaged"
		case slices.ContainsFunc(keys, func(k crypto.PublicKey) bool { return sameKey(k, signer.Public()) }):
			return kept(name, nil, key), nil
		default:
			return step{}, unusable(baseName(name, ".pub")+" does not hold the public half of the key",
				"restore both from a backup, or remove "+pub.path+" alone if the key is the right one")
		}
	}
	data, err := encodePublicKey(signer.Public())
	if err != nil {
		return step{}, err
	}
	st := step{change: Change{Name: name, Action: Completed, Reason: reason}}
	st.add(tighten(key)...)
	st.add(write{path: pub.path, data: data, mode: certMode})
	return st, nil
}

func newKeyPair(name, keyPath, pubPath string) (step, error) {
	fresh, err := newKey()
	if err != nil {
		return step{}, err
	}
	keyData, err := encodeKey(fresh)
	if err != nil {
		return step{}, err
	}
	pubData, err := encodePublicKey(fresh.Public())
	if err != nil {
		return step{}, err
	}
	st := step{change: Change{Name: name, Action: Created, Reason: "there was none"}}
	st.add(write{path: keyPath, data: keyData, mode: keyMode}, write{path: pubPath, data: pubData, mode: certMode})
	return st, nil
}

// kept is the step for what is right, save perhaps the mode of its key.
func kept(name string, c *x509.Certificate, key content) step {
	st := step{change: Change{Name: name, Action: Kept}}
	if c != nil {
		st.change.NotAfter = c.NotAfter
	}
	if writes := tighten(key); len(writes) > 0 {
		st.change.Action = Tightened
		st.change.Reason = fmt.Sprintf("others could read its key (mode %04o)", key.mode)
		st.add(writes...)
	}
	return st
}

// sortedSet makes two lists of names comparable.
func sortedSet(names []string) []string {
	s := slices.Clone(names)
	slices.Sort(s)
	return slices.Compact(s)
}
