package registration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestParseAgentRequest(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const user = AgentUserPrefix + "m"
	signature, client, encipher := certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageKeyEncipherment
	type usages = []certificatesv1.KeyUsage
	cases := map[string]struct {
		reason  string
		key     crypto.Signer
		change  func(*x509.CertificateRequest)
		signer  string
		usages  usages
		garble  func([]byte) []byte // of the DER form
		not     bool                // an agent's
		problem string
	}{
		"RSA":        {reason: "As in the classic flow.", key: long, usages: usages{signature, encipher, client}},
		"EC":         {reason: "A smaller key is as good.", key: ec, usages: usages{signature, client}},
		"Ed25519":    {reason: "So is this one.", key: ed, usages: usages{signature, client}},
		"Short":      {reason: "It could be broken.", key: short, problem: "1024 bits"},
		"Forged":     {reason: "Whoever asks has to have the key.", garble: func(der []byte) []byte { der[len(der)-1] ^= 1; return der }, problem: "not signed with the key"},
		"Signer":     {reason: "Another signer's certificate is nobody here.", signer: certificatesv1.KubeletServingSignerName, not: true},
		"Server":     {reason: "A client needs no more.", usages: usages{signature, client, certificatesv1.UsageServerAuth}, not: true},
		"NoClient":   {reason: "A client needs that much.", usages: usages{signature, encipher}, not: true},
		"TwoGroups":  {reason: "A second group would be one too many.", change: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{AgentGroup, "system:masters"} }, not: true},
		"OtherGroup": {reason: "It is not an agent's.", change: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }, not: true},
		"NoGroup":    {reason: "It is not an agent's.", change: func(r *x509.CertificateRequest) { r.Subject.Organization = nil }, not: true},
		"OtherName":  {reason: "It is not an agent's.", change: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:admin" }, not: true},
		"DNS":        {reason: "A client has no addresses.", change: func(r *x509.CertificateRequest) { r.DNSNames = []string{"x.example"} }, not: true},
		"Mail":       {reason: "A client has no addresses.", change: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"x@x.example"} }, not: true},
		"IP":         {reason: "A client has no addresses.", change: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, not: true},
		"URI":        {reason: "A client has no addresses.", change: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, not: true},
		"Garbage":    {reason: "It is no request at all.", garble: func([]byte) []byte { return []byte("x") }, not: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{AgentGroup}}}
			if c.change != nil {
				c.change(template)
			}
			if c.key == nil {
				c.key = ec
			}
			if c.usages == nil {
				c.usages = usages{signature, client}
			}
			if c.signer == "" {
				c.signer = certificatesv1.KubeAPIServerClientSignerName
			}
			der, err := x509.CreateCertificateRequest(rand.Reader, template, c.key)
			if err != nil {
				t.Fatal(err)
			}
			if c.garble != nil {
				der = c.garble(der)
			}
			r, ok := ParseAgentRequest(&certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: c.signer, Usages: c.usages,
				Username: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers"},
			}})
			if ok == c.not {
				t.Fatalf("got %t: %s", ok, c.reason)
			}
			if !ok {
				return
			}
			check(t, c.reason, r.Problem, c.problem)
			if r.User != user || r.Requester != "system:bootstrap:abcdef" || len(r.RequesterGroups) != 1 || r.IsRenewal() {
				t.Errorf("got %+v: %s", r, c.reason)
			}
		})
	}
}
