package certs

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// serialBits is the size of the random serial numbers.
const serialBits = 128

// selfSign makes the certificate of an authority for a key.
func selfSign(s Spec, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: s.CommonName, Organization: s.Organization},
		DNSNames:              s.DNSNames,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(s.validity()),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key.Public(), key)
}

// issue makes a leaf for a key. The result is checked: an authority that the
// user brought may be limited to names or usages that leave this one out.
func (a *Authority) issue(s Spec, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: s.CommonName, Organization: s.Organization},
		DNSNames:              s.DNSNames,
		IPAddresses:           s.IPs,
		NotBefore:             later(now.Add(-backdate), a.cert.NotBefore),
		NotAfter:              a.notAfter(s, now),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           s.extKeyUsages(),
		BasicConstraintsValid: true,
	}
	c, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if err := a.verify(c, s, now); err != nil {
		return nil, fmt.Errorf("the authority %q may not sign it: %w", a.cert.Subject, err)
	}
	return c, nil
}

// notAfter is the end of a leaf made now.
func (a *Authority) notAfter(s Spec, now time.Time) time.Time {
	end := now.Add(s.validity())
	if a.cert.NotAfter.Before(end) {
		end = a.cert.NotAfter
	}
	return end.UTC().Truncate(time.Second)
}

// verify checks c as its peers will, for each of its usages.
func (a *Authority) verify(c *x509.Certificate, s Spec, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, usage := range s.extKeyUsages() {
		_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return err
		}
	}
	return nil
}

func sign(template, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %q: %w", template.Subject.CommonName, err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back certificate %q: %w", template.Subject.CommonName, err)
	}
	return c, nil
}

// newSerial is random and positive: zero is not a valid serial number.
func newSerial() (*big.Int, error) {
	limit := new(big.Int).Lsh(big.NewInt(1), serialBits)
	n, err := rand.Int(rand.Reader, limit.Sub(limit, big.NewInt(1)))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	return n.Add(n, big.NewInt(1)), nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
