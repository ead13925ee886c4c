package registration

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// minRSABits is the shortest RSA key, in bits, that an agent may have.
const minRSABits = 2048

// An AgentRequest is a request for the certificate of an agent.
type AgentRequest struct {
	// User is whom the certificate would be for. It begins with AgentUserPrefix, and need not be an agent's beyond that.
	User string
	// Requester is who asks, and RequesterGroups what the API server knows of them.
	Requester       string
	RequesterGroups []string
	// Problem is what makes the request one that nobody may approve, nil if nothing does.
	Problem error
}

// IsRenewal reports whether somebody asks for a certificate of their own name.
func (r AgentRequest) IsRenewal() bool { return r.User == r.Requester }

// ParseAgentRequest returns what a CertificateSigningRequest asks for; false when it is not for an agent: it does not
// have the shape of spec behaviour/11 11.6, so that it is somebody else's business.
func ParseAgentRequest(csr *certificatesv1.CertificateSigningRequest) (AgentRequest, bool) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !agentUsages(csr.Spec.Usages) {
		return AgentRequest{}, false
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return AgentRequest{}, false
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || !slices.Equal(asked.Subject.Organization, []string{AgentGroup}) || !strings.HasPrefix(asked.Subject.CommonName, AgentUserPrefix) ||
		len(asked.DNSNames)+len(asked.EmailAddresses)+len(asked.IPAddresses)+len(asked.URIs) > 0 {
		return AgentRequest{}, false
	}
	r := AgentRequest{User: asked.Subject.CommonName, Requester: csr.Spec.Username, RequesterGroups: csr.Spec.Groups}
	if err := asked.CheckSignature(); err != nil {
		r.Problem = errors.New("the request is not signed with the key that it is for")
	}
	if key, ok := asked.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < minRSABits {
		r.Problem = fmt.Errorf("the RSA key has %d bits: at least %d are needed", key.N.BitLen(), minRSABits)
	}
	return r, true
}

// agentUsages says whether a request is for these usages: those of a client, with or without key encipherment, which
// only RSA keys have a use for.
func agentUsages(usages []certificatesv1.KeyUsage) bool {
	var client, signature bool
	for _, u := range usages {
		switch u {
		case certificatesv1.UsageClientAuth:
			client = true
		case certificatesv1.UsageDigitalSignature:
			signature = true
		case certificatesv1.UsageKeyEncipherment:
		default:
			return false
		}
	}
	return client && signature
}
