package registration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cluster-bootstrap/token/jws"
)

// An authority signs the certificates of servers of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign returns a certificate for a subject and a key that it makes.
func (a authority) sign(t *testing.T, change func(*x509.Certificate)) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := parseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, signer.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// serveTLS starts a server with a certificate of a, and returns its endpoint.
func (a authority) serveTLS(t *testing.T, change func(*x509.Certificate), handler http.HandlerFunc) string {
	t.Helper()
	pair, err := tls.X509KeyPair(a.sign(t, change))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that refuse the certificate are the point
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "https://")
}

func unchanged(*x509.Certificate) {}

// clusterInfo is what a control plane with that CA says, signed with the tokens.
func clusterInfo(t *testing.T, ca []byte, tokens ...string) *corev1.ConfigMap {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: "https://elsewhere.example:5443", CertificateAuthorityData: ca}
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	info := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"},
		Data: map[string]string{"kubeconfig": string(text)},
	}
	for _, token := range tokens {
		id, secret, err := ParseToken(token)
		if err != nil {
			t.Fatal(err)
		}
		if info.Data["jws-kubeconfig-"+id], err = jws.ComputeDetachedSignature(string(text), id, secret); err != nil {
			t.Fatal(err)
		}
	}
	return info
}

func answer(t *testing.T, info *corev1.ConfigMap) http.HandlerFunc {
	t.Helper()
	data, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func TestDiscover(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good := answer(t, clusterInfo(t, ca.pem, someToken))
	pinOf := func(a authority) []string { return []string{CAHash(a.cert)} }
	cases := map[string]struct {
		reason  string
		serve   http.HandlerFunc
		by      authority // whose certificate the server has; ca's if zero
		cert    func(*x509.Certificate)
		pins    []string
		skip    bool
		token   string
		want    PullReason // "" finds it
		says    []string
		settled bool // what is missing is waited for no longer
	}{
		"Good":        {reason: "The usual one.", serve: good, pins: pinOf(ca)},
		"UpperCase":   {reason: "A pin is a number.", serve: good, pins: []string{"sha256:" + strings.ToUpper(strings.TrimPrefix(CAHash(ca.cert), "sha256:"))}},
		"OneOfPins":   {reason: "One pin has to be right.", serve: good, pins: append(pinOf(other), CAHash(ca.cert))},
		"Skip":        {reason: "The signature alone counts then.", serve: good, skip: true},
		"SkipOtherCA": {reason: "The signature alone counts then, whatever the server's certificate.", serve: good, by: other, skip: true},
		"SkipAndPin":  {reason: "A pin that is given is looked at.", serve: good, pins: pinOf(other), skip: true, want: CAHashMismatch},
		"WrongPin":    {reason: "It is another control plane.", serve: good, pins: pinOf(other), want: CAHashMismatch, says: []string{CAHash(ca.cert), "token create"}},
		"Unsigned": {
			reason: "The control plane does not have the token: expired, used up, deleted.", serve: answer(t, clusterInfo(t, ca.pem)), pins: pinOf(ca), settled: true,
			want: TokenUnknown, says: []string{"token " + someID, "expired, was used up or was deleted", "token create --print-register-command"},
		},
		"OtherToken":  {reason: "The signature is another token's.", serve: answer(t, clusterInfo(t, ca.pem, "ghijkl.0123456789abcdef")), pins: pinOf(ca), settled: true, want: TokenUnknown},
		"WrongSecret": {reason: "The half that was copied wrong.", serve: good, pins: pinOf(ca), token: someID + ".fedcba9876543210", want: TokenMismatch, says: []string{"copied whole"}},
		"Tampered": {
			reason: "Somebody in between has put in another CA.", pins: pinOf(other), want: TokenMismatch,
			serve: func() http.HandlerFunc {
				info := clusterInfo(t, ca.pem, someToken)
				info.Data["kubeconfig"] = clusterInfo(t, other.pem).Data["kubeconfig"]
				return answer(t, info)
			}(),
		},
		"Impostor":  {reason: "It repeats what the control plane says, and cannot have its certificate.", serve: good, by: other, pins: pinOf(ca), want: CAMismatch, says: []string{"somebody is in between"}},
		"OtherHost": {reason: "The certificate is for another address.", serve: good, pins: pinOf(ca), cert: func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"a.example"} }, want: HostMismatch, says: []string{"--cert-external-ip"}},
		"Expired":   {reason: "Its time is over.", serve: good, pins: pinOf(ca), cert: func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, want: ServerExpired, says: []string{"clock"}},
		"NoKubeconfig": {
			reason: "A ConfigMap of that name, and nothing in it.", pins: pinOf(ca), want: NotControlPlane,
			serve: answer(t, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}}),
		},
		"Broken":    {reason: "What was signed cannot be used.", pins: pinOf(ca), want: NotControlPlane, serve: answer(t, clusterInfo(t, []byte("x"), someToken)), says: []string{"its administrator has to mend it"}},
		"NoInfo":    {reason: "An API server, and no control plane.", serve: status(http.StatusNotFound), pins: pinOf(ca), settled: true, want: NotControlPlane, says: []string{"no cluster-info"}},
		"Forbidden": {reason: "It cannot be read by anybody.", serve: status(http.StatusForbidden), pins: pinOf(ca), want: NotControlPlane, says: []string{"403"}},
		"Redirect":  {reason: "A login page is no control plane.", serve: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, pins: pinOf(ca), want: NotControlPlane},
		"HTML":      {reason: "A web server answers.", serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, pins: pinOf(ca), want: NotControlPlane, says: []string{"not a Kubernetes API server"}},
		"OtherKind": {reason: "Some other API.", serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"kind":"Pod"}`) }, pins: pinOf(ca), want: NotControlPlane},
		"Endless": {reason: "No more is read than makes sense.", serve: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 2*maxClusterInfo))
		}, pins: pinOf(ca), want: NotControlPlane},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by, change, token := tc.by, tc.cert, tc.token
			if by.cert == nil {
				by = ca
			}
			if change == nil {
				change = unchanged
			}
			if token == "" {
				token = someToken
			}
			b := Bootstrap{Endpoint: by.serveTLS(t, change, tc.serve), Token: token, CAHashes: tc.pins, SkipCAVerification: tc.skip, Program: "karmadactl"}
			if err := b.Validate(); err != nil {
				t.Fatal(err)
			}
			found, _, err := discover(t, b, tc.settled)
			if tc.want == "" {
				if err != nil {
					t.Fatalf("%s\ngot %v", tc.reason, err)
				}
				if found.Server != "https://"+b.Endpoint || !SameAuthority(found.CA, ca.pem) {
					t.Errorf("the endpoint that was given wins, and the CA is what was signed: got %s\n%s", found.Server, found.CA)
				}
				return
			}
			var problem *PullError
			if !errors.As(err, &problem) || problem.Reason != tc.want {
				t.Fatalf("%s\ngot %v, want %s", tc.reason, err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), someSecret) {
				t.Errorf("the error is one line without secrets, got %q", err)
			}
			for _, want := range append(tc.says, b.Endpoint) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s\n%q does not say %q", tc.reason, err, want)
				}
			}
		})
	}
}

// discover makes one try.
func discover(t *testing.T, b Bootstrap, settled bool) (FoundControlPlane, bool, error) {
	t.Helper()
	server, err := b.server()
	if err != nil {
		t.Fatal(err)
	}
	id, secret, err := ParseToken(b.Token)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	if settled {
		until = time.Now()
	}
	return (&discoverer{Bootstrap: b, server: server, id: id, secret: secret, settled: until}).once(t.Context())
}

func TestDiscoverTriesAgain(t *testing.T) {
	ca := newAuthority(t)
	good := answer(t, clusterInfo(t, ca.pem, someToken))
	cases := map[string]struct {
		reason string
		first  http.HandlerFunc
	}{
		"Starting": {"A control plane that starts.", status(http.StatusServiceUnavailable)},
		"NoInfo":   {"Init has not got that far.", status(http.StatusNotFound)},
		"Unsigned": {"The token is so new that nobody has signed with it.", answer(t, clusterInfo(t, ca.pem))},
		"Cut":      {"A connection that breaks.", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			b := Bootstrap{Token: someToken, CAHashes: []string{CAHash(ca.cert)}, Program: "karmadactl"}
			b.Endpoint = ca.serveTLS(t, unchanged, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					tc.first(w, r)
					return
				}
				good(w, r)
			})
			var noticed []string
			if _, err := b.Discover(t.Context(), func(err error) { noticed = append(noticed, err.Error()) }); err != nil {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if len(noticed) != 1 {
				t.Errorf("%s: it is told why that is waited for, got %q", tc.reason, noticed)
			}
		})
	}
}

func TestDiscoverNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := listener.Addr().String() // accepts, and never answers
	t.Cleanup(func() { _ = listener.Close() })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(status(http.StatusOK))
	t.Cleanup(plain.Close)

	cases := map[string]struct {
		reason, endpoint string
		want             PullReason
		says             string
	}{
		"Refused":  {"Nothing listens there.", refused, Unreachable, "connection refused"},
		"Silent":   {"It never answers.", silent, Unreachable, "no answer in time"},
		"PlainTCP": {"No TLS, no control plane.", strings.TrimPrefix(plain.URL, "http://"), NotControlPlane, "does not speak TLS"},
		"NoName":   {"A name that cannot be resolved.", "no-such-host.invalid:5443", Unreachable, "cannot be resolved"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.endpoint == silent { // only time tells that nobody answers
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			b := Bootstrap{Endpoint: tc.endpoint, Token: someToken, SkipCAVerification: true, Program: "karmadactl"}
			_, err := b.Discover(ctx, func(error) { cancel() }) // once is enough
			var problem *PullError
			if !errors.As(err, &problem) || problem.Reason != tc.want || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s\ngot %v, want %s: %s", tc.reason, err, tc.want, tc.says)
			}
		})
	}
}

func TestBootstrapValidate(t *testing.T) {
	const pin = "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	cases := map[string]struct {
		reason string
		change func(*Bootstrap)
		err    string
	}{
		"Good":        {"The usual one.", func(*Bootstrap) {}, ""},
		"Path":        {"A server behind a proxy is below a path.", func(b *Bootstrap) { b.Endpoint = "proxy.example:443/k8s/one" }, ""},
		"IPv6":        {"Brackets are right.", func(b *Bootstrap) { b.Endpoint = "[::1]:5443" }, ""},
		"NoEndpoint":  {"Nothing to ask.", func(b *Bootstrap) { b.Endpoint = "" }, "is missing"},
		"Scheme":      {"The contract has none.", func(b *Bootstrap) { b.Endpoint = "https://a:5443" }, "has a scheme"},
		"NoPort":      {"It would be guessed.", func(b *Bootstrap) { b.Endpoint = "a.example" }, "has no port"},
		"User":        {"A password is not for this.", func(b *Bootstrap) { b.Endpoint = "admin:s3cret@a:5443" }, "credentials in it"},
		"SchemeUser":  {"Nor repeated.", func(b *Bootstrap) { b.Endpoint = "https://admin:s3cret@a:5443" }, "has a scheme"},
		"Broken":      {"It is no address.", func(b *Bootstrap) { b.Endpoint = "a b:5443" }, "not an address"},
		"Query":       {"It is no address.", func(b *Bootstrap) { b.Endpoint = "a:5443?x" }, "not an address"},
		"NoToken":     {"The contract's words.", func(b *Bootstrap) { b.Token = "" }, "token is required"},
		"Malformed":   {"It is no token, and what to do is said.", func(b *Bootstrap) { b.Token = "abcdef.s3cret" }, "malformed token: want six characters, a point and sixteen characters, all of a-z and 0-9; make a new one"},
		"NoHash":      {"Nobody would be recognised.", func(b *Bootstrap) { b.CAHashes = nil }, "--discovery-token-unsafe-skip-ca-verification=true"},
		"SkipNoHash":  {"That is said to be wanted.", func(b *Bootstrap) { b.CAHashes, b.SkipCAVerification = nil, true }, ""},
		"ShortHash":   {"It was cut.", func(b *Bootstrap) { b.CAHashes = []string{pin[:20]} }, "64 hexadecimal digits"},
		"OtherHash":   {"Only this form is known.", func(b *Bootstrap) { b.CAHashes = []string{"sha1:" + pin[7:]} }, "sha256:"},
		"HashNewline": {"The pattern is for the whole.", func(b *Bootstrap) { b.CAHashes = []string{pin + "\n"} }, "64 hexadecimal digits"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := Bootstrap{Endpoint: "10.0.0.1:5443", Token: someToken, CAHashes: []string{pin}, Program: "karmadactl"}
			tc.change(&b)
			err := b.Validate()
			check(t, tc.reason, err, tc.err)
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}
