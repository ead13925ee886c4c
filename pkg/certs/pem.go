package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"

	"k8s.io/client-go/util/keyutil"
)

const (
	certificateBlock = "CERTIFICATE"
	publicKeyBlock   = "PUBLIC KEY"
	// encryptedKeyBlock is PKCS #8's own form; the older one is a header.
	encryptedKeyBlock = "ENCRYPTED PRIVATE KEY"
)

// Fingerprint is the public key pin of a certificate, as in
// --discovery-token-ca-cert-hash: "sha256:" and the hex SHA-256 of its
// SubjectPublicKeyInfo (spec: cli/commands.md 3.3).
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ParseCertificates returns the certificates in PEM data, in their order. Other
// blocks are passed over; no certificate at all, or one that does not parse, is
// an error. So is text after the last block that starts another one: the file
// was cut short.
func ParseCertificates(data []byte) ([]*x509.Certificate, error) {
	var found []*x509.Certificate
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		if block.Type != certificateBlock {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate %d: %w", len(found)+1, err)
		}
		found = append(found, c)
	}
	if beginsBlock(data) {
		return nil, errIncomplete()
	}
	if len(found) == 0 {
		return nil, errors.New("no certificate in PEM form found")
	}
	return found, nil
}

// ParseKey returns the private key in PEM data: RSA or ECDSA, as PKCS #1,
// PKCS #8 or SEC 1.
func ParseKey(data []byte) (crypto.Signer, error) {
	if isEncrypted(data) {
		return nil, errors.New("the private key is encrypted; decrypt it first")
	}
	key, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, errors.New("no RSA or ECDSA private key in PEM form found")
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	default:
		return nil, fmt.Errorf("private keys of type %T are not supported, only RSA and ECDSA", key)
	}
}

// errIncomplete is what a file that was cut short has wrong.
func errIncomplete() error { return errors.New("the last PEM block is incomplete") }

// afterBlocks is what follows the last complete PEM block.
func afterBlocks(data []byte) []byte {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return data
		}
		data = rest
	}
}

// beginsBlock finds the start of a PEM block at the beginning of a line.
func beginsBlock(data []byte) bool {
	marker := []byte("-----BEGIN ")
	for i := 0; i+len(marker) <= len(data); i++ {
		if (i == 0 || data[i-1] == '\n') && string(data[i:i+len(marker)]) == string(marker) {
			return true
		}
	}
	return false
}

func isEncrypted(data []byte) bool {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return false
		}
		data = rest
		if block.Type == encryptedKeyBlock || block.Headers["DEK-Info"] != "" {
			return true
		}
	}
}

// parsePublicKeys returns the public keys in PEM data. A key may be followed by
// those that were in use before it.
func parsePublicKeys(data []byte) ([]crypto.PublicKey, error) {
	if beginsBlock(afterBlocks(data)) {
		return nil, errIncomplete()
	}
	keys, err := keyutil.ParsePublicKeysPEM(data)
	if err != nil {
		return nil, errors.New("no public key in PEM form found")
	}
	found := make([]crypto.PublicKey, len(keys))
	for i, k := range keys {
		found[i] = k
	}
	return found, nil
}

func newKey() (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: der}), nil
}

func encodePublicKey(key crypto.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: der}), nil
}

func encodeCertificates(certs ...*x509.Certificate) []byte {
	var data []byte
	for _, c := range certs {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
	}
	return data
}

// sameKey compares public keys; both kinds that are supported have Equal.
func sameKey(a, b crypto.PublicKey) bool {
	e, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && e.Equal(b)
}
