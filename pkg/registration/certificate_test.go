package registration

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// A signer decides about requests as soon as they are made.
type signer struct {
	authority
	t *testing.T
	// decide changes the status of a request; nil signs it.
	decide func(csr *certificatesv1.CertificateSigningRequest)
}

// client returns a clientset whose requests are decided about.
func (s signer) client(existing ...runtime.Object) *fake.Clientset {
	c := fake.NewClientset(existing...)
	c.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		csr, ok := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		if !ok {
			s.t.Fatalf("created %T", action)
		}
		if s.decide != nil {
			s.decide(csr)
			return false, nil, nil
		}
		csr.Status.Certificate = s.issue(csr)
		return false, nil, nil
	})
	return c
}

// issue signs what is asked for.
func (s signer) issue(csr *certificatesv1.CertificateSigningRequest) []byte {
	s.t.Helper()
	block, _ := pem.Decode(csr.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: asked.Subject, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Duration(*csr.Spec.ExpirationSeconds) * time.Second), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(nil, template, s.cert, asked.PublicKey, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func condition(kind certificatesv1.RequestConditionType, message string) func(*certificatesv1.CertificateSigningRequest) {
	return func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Because", Message: message})
	}
}

// A memory is a KeyStore.
type memory struct {
	key              []byte
	saved, discarded int
}

func (m *memory) Load() ([]byte, error) { return m.key, nil }

func (m *memory) Save(key []byte) error {
	m.key = key
	m.saved++
	return nil
}

func (m *memory) Discard() error {
	m.key = nil
	m.discarded++
	return nil
}

func TestAgentCertificateRequest(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	r, err := AgentCertificateRequest("member3", key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := AgentCertificateRequest("member3", key, time.Hour)
	if err != nil || again.Name != r.Name || !strings.HasPrefix(r.Name, "member3-") {
		t.Errorf("the same key makes the same request, got %q and %q, %v", r.Name, again.Name, err)
	}
	csr, err := r.Object()
	if err != nil {
		t.Fatal(err)
	}
	// A transcription of spec: behaviour/11 11.4.
	seconds := int32(3600)
	want := certificatesv1.CertificateSigningRequestSpec{
		SignerName: "kubernetes.io/kube-apiserver-client", ExpirationSeconds: &seconds,
		Usages: []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
	}
	got := csr.Spec
	got.Request = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"karmada.io/system": "true"}, csr.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	asked, ok := ParseAgentRequest(csr)
	if !ok || asked.User != "system:karmada:agent:member3" || asked.Problem != nil {
		t.Errorf("the approver recognises the request, got %+v, %v", asked, ok)
	}
}

func TestEnrolmentRequest(t *testing.T) {
	s := signer{authority: newAuthority(t), t: t}
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	// earlier is a request that an earlier try made with key.
	earlier := func(change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		r, err := AgentCertificateRequest("m", key, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		csr, err := r.Object()
		if err != nil {
			t.Fatal(err)
		}
		change(csr)
		return csr
	}
	cases := map[string]struct {
		reason   string
		kept     []byte // the key of an earlier try
		existing *certificatesv1.CertificateSigningRequest
		decide   func(*certificatesv1.CertificateSigningRequest)
		refuse   error // of the API server, to create
		want     PullReason
		says     string
		created  int
		kept2    bool // a key is kept afterwards
	}{
		"New":     {reason: "A first try.", created: 1, kept2: true},
		"TakenUp": {reason: "An earlier try was killed after it had asked; what it asked for is taken.", kept: key, existing: earlier(func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = s.issue(csr) }), created: 1, kept2: true},
		"KeyOnly": {reason: "It was killed before it asked.", kept: key, created: 1, kept2: true},
		"DeniedBefore": {
			reason: "That an earlier try was denied says nothing about this one.", kept: key,
			existing: earlier(condition(certificatesv1.CertificateDenied, "token is for another cluster")), created: 2, kept2: true,
		},
		"OtherKey": {
			reason: "A request by that name for another key is not ours.", kept: key, created: 2, kept2: true,
			existing: func() *certificatesv1.CertificateSigningRequest {
				r, err := AgentCertificateRequest("m", otherKey, time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				csr, err := r.Object()
				if err != nil {
					t.Fatal(err)
				}
				csr.Name = earlier(func(*certificatesv1.CertificateSigningRequest) {}).Name
				return csr
			}(),
		},
		"Damaged": {reason: "A key that was cut short is replaced.", kept: key[:20], created: 1, kept2: true},
		"Denied":  {reason: "The approver's words are shown.", decide: condition(certificatesv1.CertificateDenied, "token abcdef is for cluster x:\nmake one for m"), want: RequestDenied, says: "token abcdef is for cluster x: make one for m", created: 1},
		"Failed":  {reason: "It was approved, and could not be signed.", decide: condition(certificatesv1.CertificateFailed, "no"), want: RequestFailed, says: "cannot sign", created: 1},
		"Rubbish": {reason: "What was issued is no certificate.", decide: func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = []byte("x") }, want: RequestFailed, says: "cannot be used", created: 1},
		"Pending": {reason: "Nobody approves.", decide: func(*certificatesv1.CertificateSigningRequest) {}, want: RequestPending, says: "the controller agentcsrapproving", created: 1, kept2: true},
		"Expired": {reason: "The token ended between discovery and this.", refuse: apierrors.NewUnauthorized("no"), want: TokenUnknown, says: "token create --cluster=m", created: 1, kept2: true},
		"Forbidden": {
			reason: "The token has no right to ask.", want: RequestDenied, says: "register cluster m", created: 1, kept2: true,
			refuse: apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "", errors.New("no")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var existing []runtime.Object
			if tc.existing != nil {
				existing = append(existing, tc.existing)
			}
			c := signer{authority: s.authority, t: t, decide: tc.decide}.client(existing...)
			created := 0
			c.PrependReactor("create", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				created++
				return tc.refuse != nil, nil, tc.refuse
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if tc.want == RequestPending {
				cancel() // nobody need wait for nobody
			}
			e := Enrolment{Bootstrap: Bootstrap{Token: someToken, Program: "karmadactl"}, Cluster: "m", Validity: time.Hour, Timeout: time.Minute}
			keys := &memory{key: tc.kept}
			requests := c.CertificatesV1().CertificateSigningRequests()
			pair, err := e.request(ctx, requests, keys)
			if errors.Is(err, errStaleRequest) {
				pair, err = e.request(ctx, requests, keys)
			}
			err = e.refused(FoundControlPlane{Server: "https://c"}, err)
			if created != tc.created || (keys.key != nil) != tc.kept2 {
				t.Errorf("%s\ncreated %d, key kept %v", tc.reason, created, keys.key != nil)
			}
			if tc.want == "" {
				if err != nil {
					t.Fatalf("%s\ngot %v", tc.reason, err)
				}
				if err := pair.IsFor("m", time.Now()); err != nil {
					t.Errorf("%s\n%v", tc.reason, err)
				}
				return
			}
			var problem *PullError
			if !errors.As(err, &problem) || problem.Reason != tc.want || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s\ngot %v, want %s: %s", tc.reason, err, tc.want, tc.says)
			}
		})
	}
}

func TestServesClusters(t *testing.T) {
	ca := newAuthority(t)
	cases := map[string]struct {
		reason string
		code   int
		want   string
	}{
		"Control plane": {"It serves Clusters.", http.StatusOK, ""},
		"Forbidden":     {"It does, and says so to others.", http.StatusForbidden, ""},
		"Other":         {"An API server that has bootstrap tokens, too.", http.StatusNotFound, "not a Karmada control plane"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			endpoint := ca.serveTLS(t, unchanged, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
			})
			e := Enrolment{Bootstrap: Bootstrap{Endpoint: endpoint, Program: "karmadactl"}}
			cfg := &rest.Config{Host: "https://" + endpoint}
			cfg.CAData = ca.pem
			check(t, tc.reason, e.servesClusters(t.Context(), cfg), tc.want)
		})
	}
}

func TestPair(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.sign(t, func(c *x509.Certificate) { c.Subject = AgentSubject("m") })
	otherCert, _ := ca.sign(t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "system:karmada:agent:m"}
		c.NotAfter = time.Now().Add(10 * time.Minute)
	})

	pair, err := NewPair(append(append([]byte{}, cert...), ca.pem...), key)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParsePair(pair.PEM)
	if err != nil || !back.Leaf.Equal(pair.Leaf) {
		t.Errorf("what was put together reads back: %v", err)
	}
	certs, onlyKey := pair.Split()
	if _, err := NewPair(certs, onlyKey); err != nil || strings.Contains(string(certs), "PRIVATE") || strings.Contains(string(onlyKey), "CERTIFICATE") {
		t.Errorf("the two can be told apart again: %v\n%s%s", err, certs, onlyKey)
	}
	if _, err := NewPair(otherCert, key); err == nil {
		t.Error("a certificate and the key of another are no pair")
	}
	for remaining, at := range map[float64]time.Time{1: pair.NotBefore, 0: pair.NotAfter.Add(time.Second), 0.5: pair.NotBefore.Add(pair.Validity() / 2)} {
		if got := pair.Remaining(at); got != remaining {
			t.Errorf("at %s %v of its life is left, want %v", at, got, remaining)
		}
	}
	check(t, "It is the agent's.", pair.IsFor("m", time.Now()), "")
	check(t, "It is another's.", pair.IsFor("n", time.Now()), `not for the agent of cluster "n"`)
	check(t, "It is over.", pair.IsFor("m", time.Now().Add(48*time.Hour)), "not valid now")
	pair.Leaf.Subject.Organization = nil
	check(t, "It has other groups.", pair.IsFor("m", time.Now()), "groups")

	if SameAuthority(ca.pem, newAuthority(t).pem) || !SameAuthority(append(newAuthority(t).pem, ca.pem...), ca.pem) || SameAuthority([]byte("x"), []byte("x")) {
		t.Error("bundles are the same authority when they have a CA in common")
	}
}

// Whoever signs may clean up what it has decided about: then it is asked anew.
func TestIssueAsksAnew(t *testing.T) {
	s := signer{authority: newAuthority(t), t: t}
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	created := 0
	s.decide = func(csr *certificatesv1.CertificateSigningRequest) {
		if created++; created > 1 {
			csr.Status.Certificate = s.issue(csr)
		}
	}
	c := s.client()
	gone := false
	c.PrependReactor("get", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if gone {
			return false, nil, nil
		}
		gone = true
		name := action.(clienttesting.GetAction).GetName()
		if err := c.Tracker().Delete(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", name); err != nil {
			t.Error(err)
		}
		return false, nil, nil
	})
	r, err := AgentCertificateRequest("m", key, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Issue(t.Context(), c.CertificatesV1().CertificateSigningRequests(), nil); err != nil || created != 2 {
		t.Errorf("created %d times, %v", created, err)
	}
	if _, err := c.CertificatesV1().CertificateSigningRequests().Get(t.Context(), r.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("the request stays (spec: cli/commands.md 3.4): %v", err)
	}
}
