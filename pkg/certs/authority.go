package certs

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// minRSABits is the shortest RSA key accepted from the user; clients refuse
// shorter ones.
const minRSABits = 2048

// Authority is a certificate with its key, ready to sign.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	// parents lead from the certificate's issuer to the root, when it is not
	// itself the root. They go along with every leaf, so that a peer that
	// trusts the root alone accepts it. They are not trusted here: what else
	// the root has signed is no client of this control plane.
	parents []*x509.Certificate
}

// Certificate is the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// LoadAuthority reads and checks the authority that a user supplies with
// --ca-cert-file and --ca-key-file. The certificate file may go on with the
// parents, each having signed the one before it. Both names empty: nil, nil. Every error
// names the flag's file, the reason and the way out; now decides what is expired.
func LoadAuthority(certFile, keyFile string, now time.Time) (*Authority, error) {
	switch {
	case certFile == "" && keyFile == "":
		return nil, nil
	case keyFile == "":
		return nil, &UnusableError{
			What: "the supplied certificate authority", Files: []string{certFile},
			Reason: "its key is missing", WayOut: "give --ca-key-file together with --ca-cert-file",
		}
	case certFile == "":
		return nil, &UnusableError{
			What: "the supplied certificate authority", Files: []string{keyFile},
			Reason: "its certificate is missing", WayOut: "give --ca-cert-file together with --ca-key-file",
		}
	}
	unusable := func(file string, err error, wayOut string) error {
		return &UnusableError{
			What: "the supplied certificate authority", Files: []string{file},
			Reason: err.Error(), WayOut: wayOut, Err: err,
		}
	}

	certData, err := os.ReadFile(certFile)
	if err != nil {
		return nil, unusable(certFile, err, "check the path given to --ca-cert-file")
	}
	keyData, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, unusable(keyFile, err, "check the path given to --ca-key-file")
	}
	chain, err := ParseCertificates(certData)
	if err != nil {
		return nil, unusable(certFile, err, "give --ca-cert-file a PEM file whose first certificate is the authority's")
	}
	key, err := ParseKey(keyData)
	if err != nil {
		return nil, unusable(keyFile, err, "give --ca-key-file an unencrypted PEM file with the authority's RSA or ECDSA key")
	}
	if !sameKey(chain[0].PublicKey, key.Public()) {
		return nil, unusable(keyFile, fmt.Errorf("it is not the key of the first certificate in %s", certFile),
			"give the key that belongs to the certificate; a file with several certificates starts with the one that signs")
	}
	if k, ok := key.(*rsa.PrivateKey); ok && k.N.BitLen() < minRSABits {
		return nil, unusable(keyFile, fmt.Errorf("an RSA key of %d bits is too weak", k.N.BitLen()),
			fmt.Sprintf("use an authority with at least %d bits, or with an ECDSA key", minRSABits))
	}
	a := &Authority{cert: chain[0], key: key, parents: chain[1:]}
	if err := a.check(now); err != nil {
		return nil, unusable(certFile, err, "use the certificate of an authority that may sign certificates and is valid now")
	}
	return a, nil
}

// check says why a cannot sign, or nil.
func (a *Authority) check(now time.Time) error {
	if err := checkCA(a.cert, now); err != nil {
		return err
	}
	child := a.cert
	for i, parent := range a.parents {
		if err := checkCA(parent, now); err != nil {
			return fmt.Errorf("certificate %d (%s): %w", i+2, parent.Subject, err)
		}
		if err := child.CheckSignatureFrom(parent); err != nil {
			return fmt.Errorf("certificate %d (%s) did not sign the one before it: %w", i+2, parent.Subject, err)
		}
		child = parent
	}
	return nil
}

func checkCA(c *x509.Certificate, now time.Time) error {
	switch {
	case !c.BasicConstraintsValid || !c.IsCA:
		return errors.New("it is not the certificate of an authority (basic constraint CA:TRUE is missing)")
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("it may not sign certificates (key usage keyCertSign is missing)")
	case now.After(c.NotAfter):
		return fmt.Errorf("it expired at %s", stamp(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Errorf("it is not valid before %s, and it is %s here (is the clock right?)", stamp(c.NotBefore), stamp(now))
	}
	return nil
}

// An UnusableError is about files that only the user can put right: an
// authority or a key that everything else depends on.
type UnusableError struct {
	What   string   // the thing, such as `certificate authority "ca"`
	Files  []string // where it is
	Reason string   // why it cannot be used
	WayOut string   // what to do
	Err    error    // the cause, if there is one
}

// Error names the thing, the files, the reason and the way out.
func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s (%s) cannot be used: %s; %s", e.What, strings.Join(e.Files, ", "), e.Reason, e.WayOut)
}

// Unwrap is the cause.
func (e *UnusableError) Unwrap() error { return e.Err }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
