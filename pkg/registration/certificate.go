package registration

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/karmadactl/karmadactl/pkg/names"
)

const (
	// MinCertificateValidity is the shortest life that a certificate can be asked for; the API server refuses less.
	MinCertificateValidity = 10 * time.Minute
	// requestInterval is how often an issued certificate is looked for.
	requestInterval = 250 * time.Millisecond
	// noticeAfter is how long a request may be pending before somebody is told: an approver needs no more than a moment.
	noticeAfter = 3 * time.Second
)

// AgentSubject is who the agent of a cluster is to the control plane (spec: behaviour/11 11.4).
func AgentSubject(cluster string) pkix.Name {
	return pkix.Name{CommonName: AgentUser(cluster), Organization: []string{AgentGroup}}
}

// NewKey makes a private key for a client certificate, in PEM form.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a private key: %w", err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return data, nil
}

// A CertificateRequest asks for a client certificate.
type CertificateRequest struct {
	// Name is that of the CertificateSigningRequest.
	Name string
	// Key is the private key, in PEM form; it stays here.
	Key     []byte
	Subject pkix.Name
	// Validity is how long the certificate shall live; the control plane may make it less.
	Validity time.Duration
}

// AgentCertificateRequest returns the request for the first certificate of a cluster's agent. Its name is
// "<cluster>-<random>" (spec: behaviour/11 11.4), and random because the key is: whoever comes again with the same key
// takes up the same request.
func AgentCertificateRequest(cluster string, key []byte, validity time.Duration) (CertificateRequest, error) {
	signer, err := parseKey(key)
	if err != nil {
		return CertificateRequest{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return CertificateRequest{}, fmt.Errorf("encode the public key: %w", err)
	}
	sum := sha256.Sum256(public)
	suffix := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10]
	return CertificateRequest{Name: cluster + "-" + suffix, Key: key, Subject: AgentSubject(cluster), Validity: validity}, nil
}

func parseKey(data []byte) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return nil, fmt.Errorf("read the private key: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("read the private key: it cannot sign")
	}
	return signer, nil
}

// Object returns the CertificateSigningRequest (spec: behaviour/11 11.4).
func (r CertificateRequest) Object() (*certificatesv1.CertificateSigningRequest, error) {
	signer, err := parseKey(r.Key)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: r.Subject}, signer)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	seconds := int32(min(int64(r.Validity/time.Second), math.MaxInt32))
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: map[string]string{names.SystemLabel: names.True}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: &seconds,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, nil
}

// Issue makes the request, unless an earlier try with the same key did, and returns the certificate in PEM form once
// somebody has approved it and the control plane has signed it. pending, which may be nil, is called once when that takes
// longer than an approver that is a program needs. It waits until ctx is done.
//
// The error is a *PullError when the request was denied or failed, or is pending still. One that an earlier try left and
// that is not for this key, or was denied or failed, is errStaleRequest: the caller has to choose a new key.
func (r CertificateRequest) Issue(ctx context.Context, requests certificatesclient.CertificateSigningRequestInterface, pending func()) ([]byte, error) {
	mine, found, err := r.ensure(ctx, requests)
	if err != nil {
		return nil, err
	}
	started, told := time.Now(), false
	for {
		if done, cert, err := r.outcome(mine, found); done {
			return cert, err
		}
		if !told && pending != nil && time.Since(started) > noticeAfter {
			told = true
			pending()
		}
		timer := time.NewTimer(requestInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, &PullError{Reason: RequestPending, cause: context.Cause(ctx), text: fmt.Sprintf(
				"certificate request %s was not approved in time: see that karmada-controller-manager runs in the control plane with the controller agentcsrapproving, and that access rules let the token's groups have it (ClusterRoleBindings system:karmada:agent-autoapprove-*), then run this again", r.Name)}
		case <-timer.C:
		}
		switch got, err := requests.Get(ctx, r.Name, metav1.GetOptions{}); {
		case err == nil:
			mine = got
		case apierrors.IsNotFound(err):
			// It is cleaned up some time after it was decided; then it is made anew.
			if mine, found, err = r.ensure(ctx, requests); err != nil {
				return nil, err
			}
		case !mayPass(err) && ctx.Err() == nil:
			return nil, fmt.Errorf("look at certificate request %s: %w", r.Name, err)
		}
	}
}

// errStaleRequest says that a request of an earlier try is in the way.
var errStaleRequest = errors.New("a certificate request of an earlier try is in the way")

// ensure returns the request, made now or, then found is true, by an earlier try.
func (r CertificateRequest) ensure(ctx context.Context, requests certificatesclient.CertificateSigningRequestInterface) (got *certificatesv1.CertificateSigningRequest, found bool, err error) {
	wanted, err := r.Object()
	if err != nil {
		return nil, false, err
	}
	err = retry(ctx, nil, func(ctx context.Context) (bool, error) {
		got, err = requests.Create(ctx, wanted, metav1.CreateOptions{})
		return err != nil && mayPass(err), err
	})
	if err == nil {
		return got, false, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, fmt.Errorf("create certificate request %s: %w", r.Name, err)
	}
	if got, err = requests.Get(ctx, r.Name, metav1.GetOptions{}); err != nil {
		return nil, false, fmt.Errorf("look at certificate request %s: %w", r.Name, err)
	}
	if !sameKey(got.Spec.Request, wanted.Spec.Request) {
		return nil, false, fmt.Errorf("certificate request %s is not for this key: %w", r.Name, errStaleRequest)
	}
	return got, true, nil
}

// outcome reads the request's state.
func (r CertificateRequest) outcome(csr *certificatesv1.CertificateSigningRequest, found bool) (done bool, cert []byte, err error) {
	for _, c := range csr.Status.Conditions {
		if c.Status == corev1.ConditionFalse || (c.Type != certificatesv1.CertificateDenied && c.Type != certificatesv1.CertificateFailed) {
			continue
		}
		reason, verb := RequestDenied, "denies"
		if c.Type == certificatesv1.CertificateFailed {
			reason, verb = RequestFailed, "cannot sign"
		}
		text := oneLineOf(errors.New(c.Message))
		if text == "" {
			text = "no reason is given (" + c.Reason + ")"
		}
		err := error(&PullError{Reason: reason, text: fmt.Sprintf("the control plane %s certificate request %s: %s", verb, r.Name, text)})
		if found {
			err = fmt.Errorf("%w: %w", errStaleRequest, err)
		}
		return true, nil, err
	}
	if len(csr.Status.Certificate) == 0 {
		return false, nil, nil
	}
	pair := bytes.TrimSpace(csr.Status.Certificate)
	if _, err := parsePair(pair, r.Key); err != nil {
		return true, nil, &PullError{Reason: RequestFailed, cause: err, text: fmt.Sprintf("the certificate of request %s cannot be used: %v; delete that request in the control plane and run this again", r.Name, err)}
	}
	return true, append(pair, '\n'), nil
}

// sameKey reports whether two requests in PEM form are for one key.
func sameKey(a, b []byte) bool {
	keyOf := func(data []byte) []byte {
		block, _ := pem.Decode(data)
		if block == nil {
			return nil
		}
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil
		}
		return csr.RawSubjectPublicKeyInfo
	}
	x := keyOf(a)
	return x != nil && bytes.Equal(x, keyOf(b))
}
