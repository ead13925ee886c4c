package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// The clusters of this test.
const (
	mine   = "rights-a"
	theirs = "rights-b"
)

// A person is somebody who sends requests: clients of both kinds, with the same credentials.
type person struct {
	kubernetes.Interface
	objects client.Client
}

func (p tokenPlane) person(t *testing.T, config *rest.Config) person {
	t.Helper()
	log.SetLogger(klog.Background())
	config = rest.CopyConfig(config)
	config.QPS = -1
	// Warnings are not looked at here, and there may be many.
	config.WarningHandler = rest.NoWarnings{}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	// Whoever has few rights has no use for discovery; the administrator's is as good.
	admin, err := client.New(p.config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(config, client.Options{Scheme: scheme, Mapper: admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return person{clients, objects}
}

func (p tokenPlane) holder(t *testing.T, token string) person {
	t.Helper()
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken = token
	return p.person(t, config)
}

// token makes a token; one for a named cluster, if there is a name.
func (p tokenPlane) token(t *testing.T, cluster string) string {
	t.Helper()
	args := []string{"token", "create"}
	if cluster != "" {
		args = append(args, "--cluster="+cluster)
	}
	token := strings.TrimSpace(with(t, p.kubeconfig, args...))
	p.delete(t, token)
	return token
}

// agentRequest returns a request for the certificate of a user in the group of agents, and the key that it is for.
func agentRequest(t *testing.T, name, user string) (*certificatesv1.CertificateSigningRequest, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:karmada:agents"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, data
}

// ask makes a request and returns the answer: a certificate, or the reason why there is none.
func (p tokenPlane) ask(t *testing.T, who person, csr *certificatesv1.CertificateSigningRequest) (certificate []byte, denied, message string) {
	t.Helper()
	requests := who.CertificatesV1().CertificateSigningRequests()
	if _, err := requests.Create(t.Context(), csr, metav1.CreateOptions{}); err != nil {
		t.Fatalf("request %s: %v", csr.Name, err)
	}
	t.Cleanup(func() {
		err := p.admin.CertificatesV1().CertificateSigningRequests().Delete(context.WithoutCancel(t.Context()), csr.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	eventually(t, "request "+csr.Name+" is answered", func() (bool, string) {
		got, err := requests.Get(t.Context(), csr.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		certificate = got.Status.Certificate
		for _, c := range got.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied {
				denied, message = c.Reason, c.Message
			}
		}
		return len(certificate) > 0 || denied != "", fmt.Sprint(got.Status.Conditions)
	})
	return certificate, denied, message
}

// enrol makes somebody the agent of a cluster, as register does.
func (p tokenPlane) enrol(t *testing.T, who person, cluster string) person {
	t.Helper()
	csr, key := agentRequest(t, cluster+"-enrol", "system:karmada:agent:"+cluster)
	certificate, denied, message := p.ask(t, who, csr)
	if denied != "" {
		t.Fatalf("request %s is denied: %s: %s", csr.Name, denied, message)
	}
	config := rest.AnonymousClientConfig(p.config)
	config.CertData, config.KeyData = certificate, key
	return p.person(t, config)
}

// pulled is the Cluster of an agent as the agent writes it.
func pulled(name string) *clusterv1alpha1.Cluster {
	ref := func(name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
	}
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Pull, ID: "id-of-" + name, APIEndpoint: "https://127.0.0.1:1", SecretRef: ref(name), ImpersonatorSecretRef: ref(name + "-impersonator"),
	}}
}

// forget removes a Cluster at the end of a test.
func (p tokenPlane) forget(t *testing.T, admin person, cluster string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := admin.objects.Delete(ctx, pulled(cluster)); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// TestRightsOfAgents is the matrix: what an agent, or whoever has stolen its certificate, can do.
func TestRightsOfAgents(t *testing.T) {
	p := newTokenPlane(t)
	admin := p.person(t, p.config)
	tokenA, tokenB := p.token(t, mine), p.token(t, theirs)
	agent, other := p.enrol(t, p.holder(t, tokenA), mine), p.enrol(t, p.holder(t, tokenB), theirs)
	for name, who := range map[string]person{mine: agent, theirs: other} {
		p.forget(t, admin, name)
		if err := who.objects.Create(t.Context(), pulled(name)); err != nil {
			t.Fatalf("an agent has to be able to create its Cluster: %v", err)
		}
	}

	t.Run("Matrix", func(t *testing.T) {
		checkMatrix(t, p, agent, append(slices.Clone(everybody), []allowed{
			{"create", "cluster.karmada.io", "clusters", "", ""},
			{"get list watch update patch delete", "cluster.karmada.io", "clusters", "", mine},
			{"get update patch", "cluster.karmada.io", "clusters/status", "", mine},
			{"get list watch", "config.karmada.io", "resourceinterpretercustomizations", "", "*"},
			{"get list watch", "config.karmada.io", "resourceinterpreterwebhookconfigurations", "", "*"},
			{"get", "", "namespaces", "", "karmada-cluster"},
			{"get", "", "namespaces", "", "karmada-es-" + mine},
			{"create", "certificates.k8s.io", "certificatesigningrequests", "", ""},
			{"get delete", "certificates.k8s.io", "certificatesigningrequests", "", "karmada-agent." + mine},
			{"create", "certificates.k8s.io", "certificatesigningrequests/selfclusteragent", "", "*"},
			{"create", "", "secrets", "karmada-cluster", ""},
			{"get update patch", "", "secrets", "karmada-cluster", mine},
			{"get update patch", "", "secrets", "karmada-cluster", mine + "-impersonator"},
			{"create", "coordination.k8s.io", "leases", "karmada-cluster", ""},
			{"get update patch", "coordination.k8s.io", "leases", "karmada-cluster", mine},
			{"create", "coordination.k8s.io", "leases", "karmada-system", ""},
			{"get update patch", "coordination.k8s.io", "leases", "karmada-system", "karmada-agent-" + mine},
			{"create", "", "events", "default karmada-system karmada-es-" + mine, ""},
			{"patch", "", "events", "default karmada-system karmada-es-" + mine, "*"},
			{"create", "events.k8s.io", "events", "default karmada-system karmada-es-" + mine, ""},
			{"patch", "events.k8s.io", "events", "default karmada-system karmada-es-" + mine, "*"},
			{"get list watch create update patch delete", "work.karmada.io", "works", "karmada-es-" + mine, "*"},
			{"get update patch", "work.karmada.io", "works/status", "karmada-es-" + mine, "*"},
		}...))
	})
	t.Run("Requests", func(t *testing.T) { checkRequests(t, admin, agent, other) })
	t.Run("Renewal", func(t *testing.T) { checkRenewal(t, p, agent) })
	t.Run("Token", func(t *testing.T) {
		c := pulled(mine)
		if err := agent.objects.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			t.Fatal(err)
		}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: metav1.Now()}}
		if err := agent.objects.Status().Update(t.Context(), c); err != nil {
			t.Fatalf("an agent has to be able to report: %v", err)
		}
		refusedToken(t, p.holder(t, tokenA)) // used up
		if _, err := whoAmI(t, p.holder(t, tokenB)); err != nil {
			t.Errorf("a token whose cluster is not Ready has to serve again: %v", err)
		}
	})
	t.Run("Removal", func(t *testing.T) {
		if err := agent.objects.Delete(t.Context(), pulled(mine)); err != nil {
			t.Fatalf("an agent has to be able to delete its Cluster: %v", err)
		}
		eventually(t, "the agent's rights go with its Cluster", func() (bool, string) {
			err := agent.objects.Get(t.Context(), client.ObjectKey{Name: mine}, &clusterv1alpha1.Cluster{})
			return apierrors.IsForbidden(err), fmt.Sprint(err)
		})
		if err := other.objects.Get(t.Context(), client.ObjectKey{Name: theirs}, &clusterv1alpha1.Cluster{}); err != nil {
			t.Errorf("another agent has lost its rights: %v", err)
		}
	})
}

// TestRightsOfTokens is the same for the holders of bootstrap tokens.
func TestRightsOfTokens(t *testing.T) {
	p := newTokenPlane(t)
	admin := p.person(t, p.config)
	named, classic, second := p.holder(t, p.token(t, "rights-c")), p.holder(t, p.token(t, "")), p.holder(t, p.token(t, ""))

	t.Run("Named", func(t *testing.T) {
		checkMatrix(t, p, named, append(slices.Clone(everybody), []allowed{
			{"create get", "certificates.k8s.io", "certificatesigningrequests", "", "*"},
			{"create", "certificates.k8s.io", "certificatesigningrequests/namedclusteragent", "", "*"},
		}...))
	})
	t.Run("Classic", func(t *testing.T) {
		checkMatrix(t, p, classic, append(slices.Clone(everybody), []allowed{
			{"create get list watch", "certificates.k8s.io", "certificatesigningrequests", "", "*"},
			{"create", "certificates.k8s.io", "certificatesigningrequests/clusteragent", "", "*"},
		}...))
	})

	// A cluster that is registered, and one whose agent has its certificate and has not come yet.
	p.forget(t, admin, "rights-e")
	if err := p.enrol(t, p.holder(t, p.token(t, "rights-e")), "rights-e").objects.Create(t.Context(), pulled("rights-e")); err != nil {
		t.Fatal(err)
	}
	p.enrol(t, classic, "rights-d")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := registration.RemoveAgentRights(ctx, registration.NewWriter(admin.objects), "rights-d"); err != nil {
			t.Error(err)
		}
		if err := p.admin.CoreV1().Namespaces().Delete(ctx, "karmada-es-rights-d", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	push := pulled("rights-f")
	push.Spec.SyncMode, push.Spec.SecretRef, push.Spec.ImpersonatorSecretRef = clusterv1alpha1.Push, nil, nil
	p.forget(t, admin, push.Name)
	pushToken := p.holder(t, p.token(t, push.Name)) // once the cluster is there, no token is made for it any more
	if err := admin.objects.Create(t.Context(), push); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		who    person
		name   string // of the request
		user   string // that it is for
		denied string
		says   string
	}{
		"NamedOther":        {"It is for one cluster.", named, "rights-c-x1", "system:karmada:agent:rights-d", "TokenForAnotherCluster", "--cluster rights-d"},
		"NamedGenerator":    {"It would be for everything.", named, "rights-c-x2", "system:karmada:agent:rbac-generator", "RBACGeneratorDisabled", "--enable-agent-rbac-generator"},
		"NamedPush":         {"A push member has no agent.", pushToken, "rights-f-x1", "system:karmada:agent:rights-f", "ClusterIsPush", "unjoin"},
		"ClassicRegistered": {"It is for new clusters.", classic, "rights-e-x1", "system:karmada:agent:rights-e", "ClusterExists", "--cluster rights-e"},
		"ClassicTaken":      {"Another token's registration is under way.", second, "rights-d-x1", "system:karmada:agent:rights-d", "IdentityTaken", "choose another name"},
		"ClassicAgain":      {"The same token may try again.", classic, "rights-d-x2", "system:karmada:agent:rights-d", "", ""},
		"Generator":         {"With it a token holder becomes administrator.", classic, "agent-rbac-generator-x1", "system:karmada:agent:rbac-generator", "RBACGeneratorDisabled", "--enable-agent-rbac-generator"},
		"Impersonator":      {"Its secret would be another member's.", classic, "rights-e-impersonator-x1", "system:karmada:agent:rights-e-impersonator", "InvalidClusterName", "rights-e"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			csr, _ := agentRequest(t, c.name, c.user)
			certificate, denied, message := p.ask(t, c.who, csr)
			if denied != c.denied || !strings.Contains(message, c.says) || (len(certificate) > 0) != (c.denied == "") {
				t.Errorf("got %q (%s), want %q: %s", denied, message, c.denied, c.reason)
			}
		})
	}

	requests := map[string]struct {
		reason string
		who    person
		change func(*certificatesv1.CertificateSigningRequest)
		says   string
	}{
		"OtherName":   {"It is for one cluster.", named, func(r *certificatesv1.CertificateSigningRequest) { r.Name = "rights-d-x9" }, "has to begin with rights-c-"},
		"RenewalName": {"An agent could not renew.", classic, func(r *certificatesv1.CertificateSigningRequest) { r.Name = "karmada-agent.rights-e" }, "no dot"},
		"Signer": {"It would be a node.", classic, func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		}, "client of the API server only"},
		"Server": {"It would be a server.", named, func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		}, "client of the API server only"},
		"Finalizer":  {"It would stay for ever.", classic, func(r *certificatesv1.CertificateSigningRequest) { r.Finalizers = []string{"x.example/y"} }, "neither owners nor finalizers"},
		"Fine":       {"It is what a token is for.", named, func(*certificatesv1.CertificateSigningRequest) {}, ""},
		"FineMadeUp": {"Some clients let the server make up the rest.", named, func(r *certificatesv1.CertificateSigningRequest) { r.Name, r.GenerateName = "", "rights-c-" }, ""},
	}
	for name, c := range requests {
		t.Run(name, func(t *testing.T) {
			csr, _ := agentRequest(t, "rights-c-x9", "system:karmada:agent:rights-c")
			c.change(csr)
			err := c.who.objects.Create(t.Context(), csr, client.DryRunAll)
			checkAnswer(t, c.reason, err, c.says)
		})
	}
}

// checkAnswer compares an answer: "" is that it is allowed.
func checkAnswer(t *testing.T, reason string, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Errorf("got %v, want that it is allowed: %s", err, reason)
	case refusal != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refusal)):
		t.Errorf("got %v, want that it is forbidden, with %q: %s", err, refusal, reason)
	}
}

// checkRequests tries what access rules leave to others: admission policies, and the API server of Clusters.
func checkRequests(t *testing.T, admin, agent, other person) {
	ctx := t.Context()
	create := func(o client.Object) func() error {
		return func() error { return agent.objects.Create(ctx, o, client.DryRunAll) }
	}
	// change tries an update of the agent's own Cluster.
	change := func(f func(*clusterv1alpha1.Cluster)) func() error {
		return func() error {
			c := pulled(mine)
			if err := admin.objects.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			before := c.DeepCopy()
			f(c)
			return agent.objects.Patch(ctx, c, client.MergeFrom(before), client.DryRunAll)
		}
	}
	cluster := func(f func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := pulled(mine)
		f(c)
		return c
	}
	secret := func(namespace, name string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: kind, Data: map[string][]byte{"token": []byte("x")}}
	}
	account := secret("karmada-cluster", mine, corev1.SecretTypeServiceAccountToken)
	account.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
	owned := func(kind, name string) *corev1.Secret {
		s := secret("karmada-cluster", mine, corev1.SecretTypeOpaque)
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: kind, Name: name, UID: "1"}}
		return s
	}
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	event := func(namespace, kind, name string) *corev1.Event {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rights.1"}, Reason: "x", Type: "Normal"}
		e.InvolvedObject = corev1.ObjectReference{Kind: kind, Name: name, APIVersion: "cluster.karmada.io/v1alpha1"}
		if namespace != "default" {
			e.InvolvedObject.Namespace = namespace
		}
		return e
	}
	csr := func(name string, f func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		r, _ := agentRequest(t, name, "system:karmada:agent:"+mine)
		if f != nil {
			f(r)
		}
		return r
	}
	work := func(namespace string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rights"}}
	}

	// What is there to be tampered with.
	foreign := event("default", "Cluster", theirs)
	foreign.Name = "rights-foreign.1"
	if err := other.objects.Create(ctx, foreign); err != nil {
		t.Fatalf("an agent has to be able to report an event of its Cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := admin.objects.Delete(context.WithoutCancel(ctx), foreign); err != nil {
			t.Error(err)
		}
	})

	const notOwn, only = "can write Cluster \"" + mine + "\" only", "can write"
	cases := map[string]struct {
		reason  string
		request func() error
		refusal string
	}{
		"OtherCluster": {"It is not its.", create(cluster(func(c *clusterv1alpha1.Cluster) { c.Name = "rights-x" })), notOwn},
		"ReadOther": {"It is not its.", func() error {
			return agent.objects.Get(ctx, client.ObjectKey{Name: theirs}, &clusterv1alpha1.Cluster{})
		}, "cannot get resource"},
		"ReadOwn":   {"It is its.", func() error { return agent.objects.Get(ctx, client.ObjectKey{Name: mine}, &clusterv1alpha1.Cluster{}) }, ""},
		"ListAll":   {"Others are not its.", func() error { return agent.objects.List(ctx, &clusterv1alpha1.ClusterList{}) }, "cannot list resource"},
		"ListOwn":   {"This is how it watches its Cluster.", listOwn(ctx, agent), ""},
		"DeleteAll": {"Others are not its.", func() error { return agent.objects.DeleteAllOf(ctx, &clusterv1alpha1.Cluster{}, client.DryRunAll) }, "cannot deletecollection resource"},
		"DeleteOrphan": {"Its rights would outlive its Cluster.", func() error {
			return agent.objects.Delete(ctx, pulled(mine), client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}, "leave behind"},
		"DeleteOwn":    {"Unregister does.", func() error { return agent.objects.Delete(ctx, pulled(mine), client.DryRunAll) }, ""},
		"Endpoint":     {"Its member has moved.", change(func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://127.0.0.1:2" }), ""},
		"Push":         {"The control plane would act on it.", change(func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }), "syncMode Pull only"},
		"Secret":       {"It would be sent another member's token.", change(func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Name = theirs }), "spec.secretRef"},
		"Impersonator": {"It would be sent another member's token.", change(func(c *clusterv1alpha1.Cluster) { c.Spec.ImpersonatorSecretRef.Name = theirs + "-impersonator" }), "spec.impersonatorSecretRef"},
		"Labels":       {"They decide about placement.", change(func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }), "labels"},
		"Taints": {"They decide about placement.", change(func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = []corev1.Taint{{Key: "rights", Effect: corev1.TaintEffectNoExecute}}
		}), "taints"},
		"ID":        {"It would be another member.", change(func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-of-" + theirs }), "belongs to the cluster with ID"},
		"Finalizer": {"It could not be removed.", change(func(c *clusterv1alpha1.Cluster) { c.Finalizers = append(c.Finalizers, "x.example/y") }), "finalizers"},
		"Proxy": {"Whoever reaches members is a user.", func() error {
			return agent.CoreV1().RESTClient().Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters/" + theirs + "/proxy/api").Do(ctx).Error()
		}, "clusters/proxy"},
		"OwnSecret":      {"It reports credentials.", create(secret("karmada-cluster", mine, corev1.SecretTypeOpaque)), ""},
		"OwnSecond":      {"It reports credentials.", create(secret("karmada-cluster", mine+"-impersonator", "")), ""},
		"OtherSecret":    {"It would be used to reach another member.", create(secret("karmada-cluster", "rights-x", corev1.SecretTypeOpaque)), only},
		"BootstrapToken": {"It could register anything.", create(secret("karmada-cluster", mine, corev1.SecretTypeBootstrapToken)), "type Opaque only"},
		"AccountToken":   {"It would be filled with a token.", create(account), "type Opaque only"},
		"SystemSecret":   {"It is not its namespace.", create(secret("kube-system", mine, corev1.SecretTypeOpaque)), "cannot create resource"},
		"OwnerOwn":       {"Its secrets go with its Cluster.", create(owned("Cluster", mine)), ""},
		"OwnerOther":     {"It is not its.", create(owned("Cluster", theirs)), "an owner"},
		"Heartbeat":      {"It lives.", create(lease("karmada-cluster", mine)), ""},
		"Leader":         {"One of them leads.", create(lease("karmada-system", "karmada-agent-"+mine)), ""},
		"OtherHeartbeat": {"A dead member would look alive.", create(lease("karmada-cluster", "rights-x")), only},
		"OtherLeader":    {"A component could not lead.", create(lease("karmada-system", "karmada-scheduler")), only},
		"Event":          {"It reports.", create(event("default", "Cluster", mine)), ""},
		"WorkEvent":      {"It reports.", create(event("karmada-es-"+mine, "Work", "w")), ""},
		"LeaseEvent":     {"It reports.", create(event("karmada-system", "Lease", "karmada-agent-"+mine)), ""},
		"OtherEvent":     {"It is not its.", create(event("default", "Cluster", theirs)), only},
		"OtherKind":      {"It is not its.", create(event("default", "Pod", mine)), only},
		"SystemEvent":    {"It is not its.", create(event("karmada-system", "Lease", "karmada-scheduler")), only},
		"NewEvent": {"The other API for events leads to the same objects.", create(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rights.2"}, EventTime: metav1.NowMicro(), ReportingController: "x", ReportingInstance: "x",
			Action: "x", Reason: "x", Type: "Normal", Regarding: corev1.ObjectReference{Kind: "Cluster", Name: theirs, APIVersion: "cluster.karmada.io/v1alpha1"},
		}), only},
		"PatchEvent": {"It is not its.", func() error {
			return agent.objects.Patch(ctx, foreign.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"message":"all is well","involvedObject":{"name":"`+mine+`"}}`)), client.DryRunAll)
		}, only},
		"Renewal":      {"It renews.", create(csr("karmada-agent."+mine, nil)), ""},
		"OtherRenewal": {"Another agent could not renew.", create(csr("karmada-agent."+theirs, nil)), "and no others"},
		"RenewalSigner": {"It would be a node.", create(csr("karmada-agent."+mine, func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		})), "client of the API server only"},
		"Work":      {"It reports what its member has.", create(work("karmada-es-" + mine)), ""},
		"OtherWork": {"It is another member's.", create(work("karmada-es-" + theirs)), "cannot create resource"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { checkAnswer(t, c.reason, c.request(), c.refusal) })
	}
}

func listOwn(ctx context.Context, agent person) func() error {
	return func() error {
		var found clusterv1alpha1.ClusterList
		if err := agent.objects.List(ctx, &found, client.MatchingFields{"metadata.name": mine}); err != nil {
			return err
		}
		if len(found.Items) != 1 || found.Items[0].Name != mine {
			return fmt.Errorf("it lists %d Clusters", len(found.Items))
		}
		return nil
	}
}

// checkRenewal renews a certificate, and tries to have another's with it.
func checkRenewal(t *testing.T, p tokenPlane, agent person) {
	stolen, _ := agentRequest(t, "karmada-agent."+mine, "system:karmada:agent:"+theirs)
	if certificate, denied, message := p.ask(t, agent, stolen); denied != "NotOwnIdentity" || len(certificate) > 0 {
		t.Errorf("an agent that asks for another's certificate: got %q (%s)", denied, message)
	}
	if err := agent.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), stolen.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("an agent has to be able to clear away an earlier try: %v", err)
	}
	own, _ := agentRequest(t, "karmada-agent."+mine, "system:karmada:agent:"+mine)
	if certificate, denied, message := p.ask(t, agent, own); denied != "" || len(certificate) == 0 {
		t.Errorf("an agent that asks for its own certificate: got %q (%s)", denied, message)
	}
}

// An allowed line says which of all requests are: verbs, namespaces and names are separated by spaces, any name is "*".
type allowed struct{ verbs, group, resource, namespaces, names string }

// everybody is what everybody may who has a name at all: ask what they may.
var everybody = []allowed{
	{"create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "*"},
	{"create", "authorization.k8s.io", "selfsubjectrulesreviews", "", "*"},
	{"create", "authentication.k8s.io", "selfsubjectreviews", "", "*"},
}

func (a allowed) covers(q authorizationv1.ResourceAttributes) bool {
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	among := func(list, value string) bool { return slices.Contains(strings.Fields(list), value) }
	return among(a.verbs, q.Verb) && a.group == q.Group && a.resource == resource &&
		(a.namespaces == q.Namespace || among(a.namespaces, q.Namespace)) && (a.names == "*" || a.names == q.Name)
}

// checkMatrix asks for every verb on every resource that is served, in each namespace that means something, for names
// that are theirs and names that are not: what the table has is allowed, all else is not.
func checkMatrix(t *testing.T, p tokenPlane, who person, table []allowed) {
	t.Helper()
	var questions []authorizationv1.ResourceAttributes
	for _, r := range served(t, p) {
		questions = append(questions, questionsAbout(r)...)
	}
	answers := make([]bool, len(questions))
	rules := map[string][]authorizationv1.ResourceRule{} // by namespace
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i, q := range questions {
		// Of what is in a namespace the rules tell; there are too many questions to ask each.
		if q.Namespace != "" {
			if _, known := rules[q.Namespace]; !known {
				found := rulesIn(t, who, q.Namespace)
				rules[q.Namespace] = found.ResourceRules
				checkPaths(t, found.NonResourceRules)
			}
			answers[i] = slices.ContainsFunc(rules[q.Namespace], func(r authorizationv1.ResourceRule) bool { return allows(r, q) })
			continue
		}
		group.Go(func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &q}}
			review, err := who.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			answers[i] = review.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	used := make([]bool, len(table))
	wrong := 0
	for i, q := range questions {
		want := false
		for j, line := range table {
			if line.covers(q) {
				want, used[j] = true, true
			}
		}
		if answers[i] == want {
			continue
		}
		if wrong++; wrong <= 50 {
			t.Errorf("%s %s/%s.%s %q in namespace %q: allowed %t, want %t", q.Verb, q.Resource, q.Subresource, q.Group, q.Name, q.Namespace, answers[i], want)
		}
	}
	if wrong > 50 {
		t.Errorf("and %d more", wrong-50)
	}
	for j, line := range table {
		if !used[j] {
			t.Errorf("nothing is asked about %v", line)
		}
	}
	t.Logf("%d questions", len(questions))
}

// A servedResource is one that the control plane serves; with a slash, if it is a sub-resource.
type servedResource struct {
	schema.GroupResource
	namespaced bool
}

// served discovers every resource, and adds those that exist in access rules alone.
func served(t *testing.T, p tokenPlane) []servedResource {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(p.config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := []servedResource{}
	add := func(group, resource string, namespaced bool) {
		r := servedResource{schema.GroupResource{Group: group, Resource: resource}, namespaced}
		if !slices.Contains(all, r) { // it may have several versions
			all = append(all, r)
		}
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			add(gv.Group, r.Name, r.Namespaced)
		}
	}
	for _, must := range []string{"clusters.cluster.karmada.io", "clusters/status.cluster.karmada.io", "works.work.karmada.io", "secrets", "serviceaccounts/token", "pods/exec"} {
		if !slices.ContainsFunc(all, func(r servedResource) bool { return r.String() == must }) {
			t.Errorf("%s is not served", must)
		}
	}
	add(clusterv1alpha1.GroupName, "clusters/proxy", false)
	add(certificatesv1.GroupName, "signers", false)
	for _, sub := range []string{"clusteragent", "selfclusteragent", "namedclusteragent", "selfnodeclient", "nodeclient"} {
		add(certificatesv1.GroupName, "certificatesigningrequests/"+sub, false)
	}
	for _, who := range []string{"users", "groups", "uids"} {
		add("", who, false)
	}
	return all
}

// questionsAbout returns every verb on a resource, in each namespace, with each name.
func questionsAbout(r servedResource) []authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(r.Resource, "/")
	namespaces := []string{""}
	if r.namespaced {
		namespaces = append(namespaces, "karmada-es-"+mine, "karmada-es-"+theirs, "karmada-cluster", "karmada-system", "kube-system", "kube-public", "default")
	}
	named := []string{"", mine, theirs, "x"}
	switch resource {
	case "secrets":
		named = append(named, mine+"-impersonator", theirs+"-impersonator", "bootstrap-token-abcdef")
	case "leases":
		named = append(named, "karmada-agent-"+mine, "karmada-agent-"+theirs, "karmada-scheduler")
	case "certificatesigningrequests":
		named = append(named, "karmada-agent."+mine, "karmada-agent."+theirs)
	case "namespaces":
		named = append(named, "karmada-es-"+mine, "karmada-es-"+theirs, "karmada-cluster", "karmada-system", "kube-system", "kube-public", "default")
	case "serviceaccounts", "configmaps":
		named = append(named, "default", "cluster-info")
	case "clusterroles", "clusterrolebindings", "roles", "rolebindings":
		named = append(named, "cluster-admin", "system:karmada:"+mine+":agent")
	}
	var questions []authorizationv1.ResourceAttributes
	for _, namespace := range namespaces {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, name := range named {
				if name != "" && (verb == "create" && sub == "" || verb == "deletecollection") {
					continue // such a request has no name
				}
				questions = append(questions, authorizationv1.ResourceAttributes{
					Verb: verb, Group: r.Group, Resource: resource, Subresource: sub, Namespace: namespace, Name: name,
				})
			}
		}
		for _, verb := range specialVerbs(r.GroupResource) {
			questions = append(questions, authorizationv1.ResourceAttributes{Verb: verb, Group: r.Group, Resource: resource, Subresource: sub, Namespace: namespace})
		}
	}
	return questions
}

// specialVerbs are those that give somebody more rights than they have.
func specialVerbs(r schema.GroupResource) []string {
	switch {
	case r.Group == rbacv1.GroupName:
		return []string{"bind", "escalate"}
	case r.Group == certificatesv1.GroupName && r.Resource == "signers":
		return []string{"approve", "sign", "attest"}
	case r.Group == "" && slices.Contains([]string{"users", "groups", "serviceaccounts", "uids"}, r.Resource):
		return []string{"impersonate"}
	}
	return nil
}

// rulesIn returns what somebody may in a namespace.
func rulesIn(t *testing.T, who person, namespace string) authorizationv1.SubjectRulesReviewStatus {
	t.Helper()
	review, err := who.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status
}

// checkPaths checks that somebody may see what everybody may: which APIs there are, and whether the server is well.
func checkPaths(t *testing.T, rules []authorizationv1.NonResourceRule) {
	t.Helper()
	everybodys := []string{"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"}
	for _, r := range rules {
		if !slices.Equal(r.Verbs, []string{"get"}) {
			t.Errorf("%v may be used with %v", r.NonResourceURLs, r.Verbs)
		}
		for _, path := range r.NonResourceURLs {
			if !slices.Contains(everybodys, path) {
				t.Errorf("%v %s is allowed", r.Verbs, path)
			}
		}
	}
}

// allows does what the authorizer does with a rule.
func allows(r authorizationv1.ResourceRule, q authorizationv1.ResourceAttributes) bool {
	has := func(list []string, values ...string) bool {
		return slices.ContainsFunc(append(values, "*"), func(v string) bool { return slices.Contains(list, v) })
	}
	resources := []string{q.Resource}
	if q.Subresource != "" {
		resources = []string{q.Resource + "/" + q.Subresource, "*/" + q.Subresource}
	}
	return has(r.Verbs, q.Verb) && has(r.APIGroups, q.Group) && has(r.Resources, resources...) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.Name))
}
