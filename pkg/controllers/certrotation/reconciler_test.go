package certrotation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var errBoom = errors.New("boom")

// A signer signs what is asked for.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signer{t, cert, key}
}

func (s signer) sign(csr *certificatesv1.CertificateSigningRequest, from, to time.Time) []byte {
	s.t.Helper()
	block, _ := pem.Decode(csr.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: asked.Subject, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, asked.PublicKey, s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pair returns a certificate of the agent of a cluster with its key.
func (s signer) pair(cluster string, from, to time.Time) registration.Pair {
	s.t.Helper()
	key, err := registration.NewKey()
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := registration.AgentCertificateRequest(cluster, key, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	csr, err := r.Object()
	if err != nil {
		s.t.Fatal(err)
	}
	pair, err := registration.NewPair(s.sign(csr, from, to), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pair
}

// A memory is a Store.
type memory struct {
	pair       registration.Pair
	load, save error
	saved      int
}

func (m *memory) Load(context.Context) (registration.Pair, error) { return m.pair, m.load }

func (m *memory) Save(_ context.Context, p registration.Pair) error {
	if m.save == nil {
		m.pair = p
		m.saved++
	}
	return m.save
}

func TestReconcile(t *testing.T) {
	s := newSigner(t)
	now := time.Now().Truncate(time.Second)
	hours := func(before, after int) registration.Pair {
		return s.pair("m", now.Add(-time.Duration(before)*time.Hour), now.Add(time.Duration(after)*time.Hour))
	}
	cases := map[string]struct {
		reason   string
		store    memory
		cluster  string // of the object; "m" is ours
		existing bool   // a request of a process that was killed
		deny     bool
		is       error
		err      string
		asked    int
		renewed  bool
	}{
		"Young":     {reason: "More than a fifth is left.", store: memory{pair: hours(1, 9)}},
		"JustAbove": {reason: "A little more than a fifth is left.", store: memory{pair: hours(78, 22)}},
		"Old":       {reason: "A fifth is left (behaviour/11 11.8).", store: memory{pair: hours(80, 20)}, asked: 1, renewed: true},
		"Over":      {reason: "It was asleep for too long; the control plane decides whether that still counts.", store: memory{pair: hours(10, -1)}, asked: 1, renewed: true},
		"Killed":    {reason: "A request is there whose key was lost with its process.", store: memory{pair: hours(90, 10)}, existing: true, asked: 1, renewed: true},
		"Denied":    {reason: "The old one stays.", store: memory{pair: hours(90, 10)}, deny: true, err: "not now", asked: 1},
		"NoStore":   {reason: "Nothing is asked for what is not known.", store: memory{load: errBoom}, is: errBoom},
		"NoSave":    {reason: "What cannot be kept is tried again.", store: memory{pair: hours(90, 10), save: errBoom}, is: errBoom, asked: 1},
		"Other":     {reason: "The Cluster of another is none of its business.", store: memory{pair: hours(90, 10)}, cluster: "n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientset()
			requests := c.CertificatesV1().CertificateSigningRequests()
			if tc.existing {
				stale := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "karmada-agent.m"}}
				if _, err := requests.Create(t.Context(), stale, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			c.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
				csr, ok := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
				if !ok {
					t.Fatalf("created %v", action)
				}
				asked++
				if csr.Name != "karmada-agent.m" || *csr.Spec.ExpirationSeconds != int32(tc.store.pair.Validity()/time.Second) {
					t.Errorf("an agent may ask by one name, for as long as the old certificate had; got %s, %d", csr.Name, *csr.Spec.ExpirationSeconds)
				}
				if tc.deny {
					csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Message: "not now"}}
				} else {
					csr.Status.Certificate = s.sign(csr, now, now.Add(100*time.Hour))
				}
				return false, nil, nil
			})
			object := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
			if tc.cluster != "" {
				object.Name = tc.cluster
			}
			store := tc.store
			old := store.pair
			r := NewReconciler(Options{Cluster: "m", Store: &store, Interval: time.Minute, Threshold: 0.2}, requests, logr.Discard())
			r.now = func() time.Time { return now }
			result, err := r.Reconcile(t.Context(), object)

			switch {
			case tc.is != nil:
				if !errors.Is(err, tc.is) {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\ngot %v, want %q", tc.reason, err, tc.err)
				}
			case err != nil:
				t.Errorf("%s\ngot %v", tc.reason, err)
			case tc.cluster == "" && result != reconcile.Result{RequeueAfter: time.Minute}:
				t.Errorf("it is looked at again after the interval, got %+v", result)
			}
			if asked != tc.asked || (store.saved == 1) != tc.renewed {
				t.Errorf("%s\nasked %d times, saved %d times", tc.reason, asked, store.saved)
			}
			if !tc.renewed {
				return
			}
			if diff := cmp.Diff(old.Leaf.Subject.String(), store.pair.Leaf.Subject.String()); diff != "" {
				t.Errorf("the subject stays (-want +got):\n%s", diff)
			}
			if old.Leaf.PublicKey.(*ecdsa.PublicKey).Equal(store.pair.Leaf.PublicKey) {
				t.Error("the key is new")
			}
			if left, err := requests.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
				t.Errorf("the request is not left behind: %v, %v", left.Items, err)
			}
		})
	}
}

func TestFileStore(t *testing.T) {
	s := newSigner(t)
	dir := t.TempDir()
	store := FileStore(filepath.Join(dir, "agent.pem"))
	if _, err := store.Load(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there is an error, got %v", err)
	}
	pair := s.pair("m", time.Now(), time.Now().Add(time.Hour))
	if err := store.Save(t.Context(), pair); err != nil {
		t.Fatal(err)
	}
	got, err := store.Load(t.Context())
	if err != nil || !got.Leaf.Equal(pair.Leaf) {
		t.Errorf("what was saved is loaded: %v", err)
	}
	info, err := os.Stat(string(store))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a key is for its owner: %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(string(store), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context()); err == nil || !strings.Contains(err.Error(), string(store)) {
		t.Errorf("a damaged file is named, got %v", err)
	}
}

func TestSecretStore(t *testing.T) {
	s := newSigner(t)
	pair := s.pair("m", time.Now(), time.Now().Add(time.Hour))
	certs, key := pair.Split()
	config := clientcmdapi.NewConfig()
	config.Clusters["karmada-apiserver"] = &clientcmdapi.Cluster{Server: "https://c"}
	config.AuthInfos["m"] = &clientcmdapi.AuthInfo{ClientCertificateData: certs, ClientKeyData: key}
	config.AuthInfos["other"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["m@karmada-apiserver"] = &clientcmdapi.Context{Cluster: "karmada-apiserver", AuthInfo: "m"}
	config.CurrentContext = "m@karmada-apiserver"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"}
	c := fake.NewClientset(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"karmada-kubeconfig": data, "note": []byte("x")}})
	store := SecretStore{Secrets: c.CoreV1().Secrets("karmada-system")}
	got, err := store.Load(t.Context())
	if err != nil || !got.Leaf.Equal(pair.Leaf) {
		t.Fatalf("the certificate of the current context is loaded: %v", err)
	}

	renewed := s.pair("m", time.Now(), time.Now().Add(2*time.Hour))
	if err := store.Save(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	if got, err = store.Load(t.Context()); err != nil || !got.Leaf.Equal(renewed.Leaf) {
		t.Errorf("what was saved is loaded: %v", err)
	}
	secret, err := c.CoreV1().Secrets("karmada-system").Get(t.Context(), meta.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.Load(secret.Data["karmada-kubeconfig"])
	if err != nil || after.AuthInfos["other"] == nil || after.CurrentContext != config.CurrentContext || string(secret.Data["note"]) != "x" {
		t.Errorf("everything else stays: %v\n%s", err, secret.Data)
	}
	for reason, bad := range map[string]string{"There is no kubeconfig.": "", "It is none.": "x", "It has no context.": "apiVersion: v1\nkind: Config\n"} {
		c := fake.NewClientset(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"karmada-kubeconfig": []byte(bad)}})
		if _, err := (SecretStore{Secrets: c.CoreV1().Secrets("karmada-system")}).Load(t.Context()); err == nil {
			t.Error(reason)
		}
	}
}
