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
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A tokenPlane is a control plane as the administrator and as holders of tokens see it.
type tokenPlane struct {
	kubeconfig string
	config     *rest.Config
	admin      kubernetes.Interface
}

func newTokenPlane(t *testing.T) tokenPlane {
	t.Helper()
	dir, err := shared.controlPlane()
	if err != nil {
		t.Fatal(err)
	}
	p := tokenPlane{kubeconfig: filepath.Join(dir, "karmada-apiserver.config")}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	if p.admin, err = kubernetes.NewForConfig(p.config); err != nil {
		t.Fatal(err)
	}
	return p
}

// as returns a client of whoever holds the token, and nothing else.
func (p tokenPlane) as(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// whoAmI asks the API server, as `kubectl auth whoami` does.
func whoAmI(t *testing.T, client kubernetes.Interface) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// delete removes a token at the end of a test.
func (p tokenPlane) delete(t *testing.T, token string) {
	t.Helper()
	t.Cleanup(func() {
		id, _, _ := strings.Cut(token, ".")
		err := p.admin.CoreV1().Secrets("kube-system").Delete(context.WithoutCancel(t.Context()), "bootstrap-token-"+id, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// TestTokenLife is the story of a classic token: made, seen, used, deleted.
func TestTokenLife(t *testing.T) {
	p := newTokenPlane(t)
	token := strings.TrimSuffix(with(t, p.kubeconfig, "token", "create", "--description", "for the test"), "\n")
	p.delete(t, token)
	if !regexp.MustCompile(`\A[a-z0-9]{6}\.[a-z0-9]{16}\z`).MatchString(token) {
		t.Fatalf("%q is not a token", token)
	}
	id, secret, _ := strings.Cut(token, ".")

	list := with(t, p.kubeconfig, "token", "list")
	want := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(token) + ` +(23h|1d) +\S+Z +authentication,signing +for the test +system:bootstrappers:karmada:default-cluster-token$`)
	if !strings.HasPrefix(list, "TOKEN ") || !want.MatchString(list) {
		t.Errorf("the list does not have the token:\n%s", list)
	}
	for _, format := range []string{"json", "yaml", "name"} {
		if out := with(t, p.kubeconfig, "token", "list", "-o", format); !strings.Contains(out, id) || strings.Contains(out, secret) {
			t.Errorf("list -o %s has to have the id and not the secret:\n%s", format, out)
		}
	}

	holder := p.as(t, token)
	user, err := whoAmI(t, holder)
	if err != nil {
		t.Fatalf("the token is not taken: %v", err)
	}
	if user.Username != "system:bootstrap:"+id || !slices.Contains(user.Groups, "system:bootstrappers:karmada:default-cluster-token") {
		t.Errorf("the holder is %q in %q", user.Username, user.Groups)
	}
	p.checkPowerless(t, holder)
	if _, err := holder.CertificatesV1().CertificateSigningRequests().Create(t.Context(), request(t), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("a classic token has to be good for requesting a certificate: %v", err)
	}

	eventually(t, "cluster-info is signed for the token", func() (bool, string) {
		info, err := p.as(t, "").CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return info.Data["jws-kubeconfig-"+id] != "", fmt.Sprint(slices.Sorted(maps.Keys(info.Data)))
	})

	if out := with(t, p.kubeconfig, "token", "delete", token); out != fmt.Sprintf("bootstrap token %q deleted\n", id) {
		t.Errorf("delete says %q", out)
	}
	refusedToken(t, holder)
	refused(t, 1, []string{fmt.Sprintf(`failed to delete secret "bootstrap-token-%[1]s", err: secrets "bootstrap-token-%[1]s" not found`, id)},
		"token", "delete", id, "--kubeconfig", p.kubeconfig)
}

// refusedToken waits until the API server takes a token no longer; it learns of changes from a cache.
func refusedToken(t *testing.T, holder kubernetes.Interface) {
	t.Helper()
	eventually(t, "the token is refused", func() (bool, string) {
		user, err := whoAmI(t, holder)
		return apierrors.IsUnauthorized(err), fmt.Sprintf("still taken for %q (%v)", user.Username, err)
	})
}

// request is one for the identity of a cluster's agent.
func request(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "system:karmada:agent:member3", Organization: []string{"system:karmada:agents"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "token-test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

// checkPowerless checks that the holder of a token can neither read what is secret nor gain more rights.
func (p tokenPlane) checkPowerless(t *testing.T, holder kubernetes.Interface) {
	t.Helper()
	attempts := map[string]func() error{
		"ListSecrets": func() error {
			_, err := holder.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"CreateBinding": func() error {
			_, err := holder.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "token-test"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers"}},
			}, metav1.CreateOptions{})
			return err
		},
		"CreateToken": func() error {
			_, err := holder.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-zzzzzz"}, Type: "bootstrap.kubernetes.io/token"}, metav1.CreateOptions{})
			return err
		},
		"ApproveRequest": func() error {
			r := request(t)
			r.Name = "token-test"
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "x"}}
			_, err := holder.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), r.Name, r, metav1.UpdateOptions{})
			return err
		},
	}
	for name, attempt := range attempts {
		if err := attempt(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want that it is forbidden", name, err)
		}
	}
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "*", Group: "*", Resource: "*"},
		{Verb: "list", Group: "cluster.karmada.io", Resource: "clusters"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "approve", Group: "certificates.k8s.io", Resource: "signers", Name: certificatesv1.KubeAPIServerClientSignerName},
	} {
		review, err := holder.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			t.Errorf("the holder of a token may %s %s of group %q", a.Verb, a.Resource, a.Group)
		}
	}
}

// TestTokenOfOneCluster checks that a token for a named cluster says so in each request, and is no classic token.
func TestTokenOfOneCluster(t *testing.T) {
	p := newTokenPlane(t)
	var made struct {
		Token, ID, Cluster, RegisterCommand string
		Groups                              []string
	}
	decode(t, with(t, p.kubeconfig, "token", "create", "--cluster=member3", "--print-register-command", "-o", "json"), &made)
	p.delete(t, made.Token)
	line := regexp.MustCompile(`\Akarmadactl register \S+:\d+ --token ` + regexp.QuoteMeta(made.Token) + ` --discovery-token-ca-cert-hash sha256:[0-9a-f]{64} --cluster-name member3 --agent=process\z`)
	if made.Cluster != "member3" || !line.MatchString(made.RegisterCommand) {
		t.Errorf("create says %+v", made)
	}
	if out := with(t, p.kubeconfig, "get", "secrets", "-n", "kube-system", "-l", "bootstrap.karmada.io/cluster=member3", "-o", "name"); out != "secret/bootstrap-token-"+made.ID+"\n" {
		t.Errorf("the token is not found by its cluster: %q", out)
	}

	holder := p.as(t, made.Token)
	user, err := whoAmI(t, holder)
	if err != nil {
		t.Fatalf("the token is not taken: %v", err)
	}
	slices.Sort(user.Groups)
	want := []string{"system:authenticated", "system:bootstrappers", "system:bootstrappers:karmada:cluster:member3", "system:bootstrappers:karmada:named-cluster-token"}
	if !slices.Equal(user.Groups, want) {
		t.Errorf("the holder is in %q, want %q", user.Groups, want)
	}
	p.checkPowerless(t, holder)
	// What approves the requests of classic tokens must not approve those of this one, which are for one name only.
	review, err := holder.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "clusteragent"},
	}}, metav1.CreateOptions{})
	if err != nil || review.Status.Allowed {
		t.Errorf("the token has what a classic one has: %v, %v", review.Status, err)
	}
}

// TestTokenExpires checks that a token ends by itself.
func TestTokenExpires(t *testing.T) {
	p := newTokenPlane(t)
	token := strings.TrimSuffix(with(t, p.kubeconfig, "token", "create", "--ttl=1s"), "\n")
	p.delete(t, token)
	refusedToken(t, p.as(t, token))
	eventually(t, "the expired token is cleaned up, or listed as such", func() (bool, string) {
		list := with(t, p.kubeconfig, "token", "list")
		return !strings.Contains(list, token) || strings.Contains(list, "<invalid>"), list
	})
}

// TestTokenListOfBrokenSecrets checks that a Secret that is no token hides none of those that are.
func TestTokenListOfBrokenSecrets(t *testing.T) {
	p := newTokenPlane(t)
	token := strings.TrimSuffix(with(t, p.kubeconfig, "token", "create", "--ttl=0"), "\n")
	p.delete(t, token)
	broken := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-broken"}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": "broken", "token-secret": "p4ssw0rd"},
	}
	if _, err := p.admin.CoreV1().Secrets("kube-system").Create(t.Context(), broken, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.delete(t, "broken")
	r := shared.run(t.Context(), nil, "token", "list", "--kubeconfig", p.kubeconfig)
	if r.code != 0 || !strings.Contains(r.stdout, token+"   <forever>   <never>") || strings.Contains(r.stdout, "broken") ||
		!strings.Contains(r.stderr, "bootstrap-token-broken") || strings.Contains(r.stdout+r.stderr, "p4ssw0rd") {
		t.Error(r)
	}

	id, _, _ := strings.Cut(token, ".")
	r = refused(t, 1, []string{`"bootstrap-token-nosuch" not found`}, "token", "delete", "nosuch", id, "--kubeconfig", p.kubeconfig)
	if r.stdout != fmt.Sprintf("bootstrap token %q deleted\n", id) {
		t.Errorf("one that fails keeps the others: %s", r)
	}
}

// TestTokenIsNotMadeInVain checks that nothing is left behind when the command to register with cannot be printed.
func TestTokenIsNotMadeInVain(t *testing.T) {
	p := newTokenPlane(t)
	names := func() string { return with(t, p.kubeconfig, "token", "list", "-o", "name") }
	before := names()

	config, err := clientcmd.LoadFromFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ca := write(t, "ca.crt", "")
	for _, c := range config.Clusters {
		if err := os.WriteFile(ca, c.CertificateAuthorityData, 0o600); err != nil {
			t.Fatal(err)
		}
		c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true
	}
	blind := filepath.Join(t.TempDir(), "blind.config")
	if err := clientcmd.WriteToFile(*config, blind); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, []string{"no certificate authority", "--print-register-command"}, "token", "create", "--print-register-command", "--kubeconfig", blind)
	refused(t, 1, []string{`context "nope" does not exist`}, "token", "create", "--print-register-command", "--kubeconfig", p.kubeconfig, "--karmada-context", "nope")
	if after := names(); after != before {
		t.Errorf("a token was made in vain:\n%s\n%s", before, after)
	}

	// A CA in a file, and a kubeconfig from the environment, do as well as what init wrote.
	for _, c := range config.Clusters {
		c.CertificateAuthority, c.InsecureSkipTLSVerify = ca, false
	}
	byFile := filepath.Join(t.TempDir(), "file.config")
	if err := clientcmd.WriteToFile(*config, byFile); err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	var hashes []string
	for _, kubeconfig := range []string{p.kubeconfig, byFile} {
		r := shared.run(t.Context(), []string{"KUBECONFIG=" + kubeconfig}, "token", "create", "--print-register-command")
		fields := strings.Fields(r.stdout)
		if r.code != 0 || len(fields) != 8 {
			t.Fatal(r)
		}
		p.delete(t, fields[4])
		hashes = append(hashes, hash.FindString(r.stdout))
	}
	if hashes[0] == "" || hashes[0] != hashes[1] {
		t.Errorf("the hashes differ: %q", hashes)
	}
}
