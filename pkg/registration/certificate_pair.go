package registration

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// A Pair is a client certificate with its key. The two are kept in one piece, so that nothing can come between them.
type Pair struct {
	// PEM has the certificate, and those that it was signed with, then the key.
	PEM []byte
	// Leaf is the certificate.
	Leaf *x509.Certificate
	// NotBefore and NotAfter bound the time in which all the certificates are valid (spec: behaviour/11 11.8).
	NotBefore, NotAfter time.Time
}

// NewPair puts a certificate and its key, both in PEM form, together.
func NewPair(certPEM, keyPEM []byte) (Pair, error) {
	p, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return Pair{}, err
	}
	p.PEM = append(append([]byte{}, certPEM...), keyPEM...)
	return p, nil
}

// ParsePair reads what NewPair put together, or the same in two pieces one after the other, the other way round too.
func ParsePair(data []byte) (Pair, error) {
	p, err := parsePair(data, data)
	if err != nil {
		return Pair{}, err
	}
	p.PEM = data
	return p, nil
}

func parsePair(certPEM, keyPEM []byte) (Pair, error) {
	if _, err := tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return Pair{}, fmt.Errorf("read a certificate and its key: %w", err)
	}
	all, err := cert.ParseCertsPEM(certPEM)
	if err != nil {
		return Pair{}, fmt.Errorf("read a certificate: %w", err)
	}
	p := Pair{Leaf: all[0], NotBefore: all[0].NotBefore, NotAfter: all[0].NotAfter}
	for _, c := range all[1:] {
		if c.NotBefore.After(p.NotBefore) {
			p.NotBefore = c.NotBefore
		}
		if c.NotAfter.Before(p.NotAfter) {
			p.NotAfter = c.NotAfter
		}
	}
	return p, nil
}

// Validity is how long the certificate is valid in all.
func (p Pair) Validity() time.Duration { return p.NotAfter.Sub(p.NotBefore) }

// Remaining is which part of its life, from 1 to 0, a certificate still has.
func (p Pair) Remaining(now time.Time) float64 {
	if p.Validity() <= 0 || now.After(p.NotAfter) {
		return 0
	}
	return min(1, float64(p.NotAfter.Sub(now))/float64(p.Validity()))
}

// IsFor returns an error when the certificate is not that of the agent of a cluster, or not valid now.
func (p Pair) IsFor(cluster string, now time.Time) error {
	switch s := p.Leaf.Subject; {
	case s.CommonName != AgentUser(cluster):
		return fmt.Errorf("the certificate is for user %q, not for the agent of cluster %q", s.CommonName, cluster)
	case len(s.Organization) != 1 || s.Organization[0] != AgentGroup:
		return fmt.Errorf("the certificate is for groups %q, not for %q", s.Organization, AgentGroup)
	case now.Before(p.NotBefore) || now.After(p.NotAfter):
		return fmt.Errorf("the certificate is not valid now (valid from %s to %s)", p.NotBefore.UTC().Format(time.RFC3339), p.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Split returns the certificates and the key, each in PEM form.
func (p Pair) Split() (certs, key []byte) {
	for rest := p.PEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certs, key
		}
		if block.Type == cert.CertificateBlockType {
			certs = append(certs, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
}
