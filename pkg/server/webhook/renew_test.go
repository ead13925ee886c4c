package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/karmadactl/karmadactl/pkg/certs"
	"github.com/karmadactl/karmadactl/pkg/webhook/convert"
)

// renewals are how often the certificate is renewed under load.
const renewals = 12

// A tree is a directory of certificates such as a control plane has, whose webhook certificate can be renewed.
type tree struct {
	dir   certs.Dir
	round int
}

func (c *tree) renew(t *testing.T) {
	t.Helper()
	c.round++
	changes, err := c.dir.Ensure(t.Context(), []certs.Spec{
		{Name: "ca", CommonName: "karmada"},
		{
			Name: "webhook", CA: "ca", CommonName: "karmada-webhook", Usages: certs.ServerAuth, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
			DNSNames: []string{fmt.Sprintf("round-%d", c.round)}, // what it answers for has changed: it has to be made anew
		},
	}, certs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if last := changes[len(changes)-1]; !last.Changed() {
		t.Fatalf("nothing was renewed: %s", last)
	}
}

// trusted is what an API server has been told to trust.
func (c *tree) trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(c.dir.CertFile("ca"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatal("no authority")
	}
	return pool
}

// reviews are questions of an API server, by path.
func reviews(t testing.TB) map[string][]byte {
	t.Helper()
	encode := func(o any) []byte {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	return map[string][]byte{
		"/mutate-propagationpolicy": encode(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{UID: "m", Operation: admissionv1.Create, Object: runtime.RawExtension{
				Raw: []byte(`{"metadata":{"namespace":"n","name":"p"},"spec":{"resourceSelectors":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}],"placement":{"clusterAffinity":{"clusterNames":["member1","member2"]}}}}`),
			}},
		}),
		"/validate-propagationpolicy": encode(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request: &admissionv1.AdmissionRequest{UID: "a", Operation: admissionv1.Create, Object: runtime.RawExtension{
				Raw: []byte(`{"metadata":{"namespace":"n","name":"p"},"spec":{}}`),
			}},
		}),
		convert.Path: encode(apiextensionsv1.ConversionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
			Request: &apiextensionsv1.ConversionRequest{UID: "c", DesiredAPIVersion: "work.karmada.io/v1alpha1", Objects: []runtime.RawExtension{{
				Raw: []byte(`{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"name":"b"},"spec":{"resource":{}}}`),
			}}},
		}),
	}
}

// TestRenewalUnderLoad renews the certificate while API servers ask, over connections that they keep and over new ones.
// No request is lost.
func TestRenewalUnderLoad(t *testing.T) {
	files := &tree{dir: certs.Dir{Path: t.TempDir()}}
	files.renew(t)
	f := flagsFor(files.dir.Path)
	f.CertFile, f.KeyFile = filepath.Base(files.dir.CertFile("webhook")), filepath.Base(files.dir.KeyFile("webhook"))
	server := "https://" + start(t, f)["webhooks"]

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients []*asking
	var running sync.WaitGroup
	for path, body := range reviews(t) {
		for _, keeps := range []bool{true, false} {
			for range 2 {
				c := &asking{url: server + path, body: body, client: &http.Client{Transport: &http.Transport{
					TLSClientConfig: &tls.Config{RootCAs: files.trusted(t)}, DisableKeepAlives: !keeps, ForceAttemptHTTP2: true,
				}}, went: make(chan struct{}, 1)}
				clients = append(clients, c)
				running.Go(func() { c.run(ctx) })
			}
		}
	}
	seen := map[string]bool{}
	for range renewals {
		files.renew(t)
		// Every client has asked, twice, since the files are new: once may have begun before.
		for range 2 {
			for _, c := range clients {
				select {
				case <-c.went:
				case <-t.Context().Done():
					t.Fatal("a client has stopped asking")
				}
			}
		}
		seen[served(t, server, files.trusted(t))] = true
	}
	stop()
	running.Wait()
	total := 0
	for _, c := range clients {
		if err := c.err.Load(); err != nil {
			t.Errorf("%s: %v: no request may be lost while the certificate is renewed", c.url, *err)
		}
		total += c.count
	}
	if len(seen) != renewals {
		t.Errorf("%d certificates were served, want each of %d", len(seen), renewals)
	}
	t.Logf("%d requests, %d renewals", total, renewals)
}

// served is the certificate that a new connection is shown.
func served(t *testing.T, server string, trusted *x509.CertPool) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	resp, err := client.Get(server + "/readyz/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.TLS.PeerCertificates[0].SerialNumber.String()
}

// asking asks one question again and again.
type asking struct {
	url    string
	body   []byte
	client *http.Client
	went   chan struct{} // takes one mark after each answer
	count  int
	err    atomic.Pointer[error] // the first that came
}

func (c *asking) run(ctx context.Context) {
	defer c.client.CloseIdleConnections()
	for ctx.Err() == nil {
		err := c.ask(ctx)
		if err != nil && ctx.Err() == nil {
			c.err.CompareAndSwap(nil, &err)
		}
		c.count++
		select {
		case c.went <- struct{}{}:
		default:
		}
	}
}

func (c *asking) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Response struct {
			UID string `json:"uid"`
		} `json:"response"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || answer.Response.UID == "" {
		return errors.New("no answer: " + resp.Status)
	}
	return nil
}

// BenchmarkReview is what an answer costs without the network.
func BenchmarkReview(b *testing.B) {
	handler, err := handlers(klog.Background(), testHooks(b))
	if err != nil {
		b.Fatal(err)
	}
	for path, body := range reviews(b) {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
