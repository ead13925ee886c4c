package agentcsrapproving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmadactl/karmadactl/pkg/apis"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var errBoom = errors.New("boom")

// csrOf returns a request as the API server keeps it.
func csrOf(t *testing.T, r registration.AgentRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: r.User, Organization: []string{registration.AgentGroup}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "m-xyz12"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Username:   r.Requester, Groups: r.RequesterGroups, UID: "u", Extra: map[string]certificatesv1.ExtraValue{"x": {"y"}},
		},
	}
}

func condition(t certificatesv1.RequestConditionType, reason, message string) []certificatesv1.CertificateSigningRequestCondition {
	return []certificatesv1.CertificateSigningRequestCondition{{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message}}
}

func TestReconcile(t *testing.T) {
	m := registration.AgentUser("m")
	cases := map[string]struct {
		reason     string
		request    registration.AgentRequest
		there      []client.Object
		change     func(*certificatesv1.CertificateSigningRequest)
		open       bool
		refuse     bool  // the review says no
		reviewErr  error // the review fails
		createErr  error // making rights fails
		reviewed   string
		conditions []certificatesv1.CertificateSigningRequestCondition
		given      []string // names of ClusterRoles
		again      bool
		err        error
	}{
		"Approved": {
			reason: "Rights first, then the certificate.", request: named("m", m), reviewed: namedClusterAgent, given: []string{"system:karmada:m:agent"},
			conditions: condition(certificatesv1.CertificateApproved, "AutoApproved", "Auto approving karmada agent certificate after SubjectAccessReview."),
		},
		"Renewed": {
			reason: "The other access rule is asked for.", request: agent("m", m), there: []client.Object{rightsOf("", "")}, reviewed: selfClusterAgent, given: []string{"system:karmada:m:agent"},
			conditions: condition(certificatesv1.CertificateApproved, "AutoApproved", "Auto approving self karmada agent certificate after SubjectAccessReview."),
		},
		"Generator": {
			reason: "It needs everything.", request: classic(someToken, registration.RBACGeneratorUser), open: true, reviewed: clusterAgent, given: []string{"system:karmada:agent-rbac-generator"},
			conditions: condition(certificatesv1.CertificateApproved, "AutoApproved", approved),
		},
		"Denied": {
			reason: "Whoever asks is told.", request: classic(someToken, m), there: []client.Object{cluster("Pull", "1")},
			conditions: condition(certificatesv1.CertificateDenied, ReasonClusterExists, "cluster \"m\" is registered already, and the token is for new clusters only: unregister it first, or make a token with `karmadactl token create --cluster m`"),
		},
		"NotAllowed":  {reason: "It is left to an administrator, and nothing is given.", request: classic(someToken, m), refuse: true, reviewed: clusterAgent},
		"ReviewFails": {reason: "It is asked again.", request: classic(someToken, m), reviewErr: errBoom, reviewed: clusterAgent, err: errBoom},
		"GivingFails": {reason: "A certificate without rights would be of no use.", request: classic(someToken, m), createErr: errBoom, reviewed: clusterAgent, err: errBoom},
		"Waits":       {reason: "The Cluster of that name is going.", request: named("m", m), there: []client.Object{leaving(cluster("Pull", "1"))}, again: true},
		"NotAnAgent":  {reason: "Others have their own approvers.", request: classic(someToken, "system:node:m")},
		"OtherSigner": {reason: "Others have their own approvers.", request: named("m", m), change: func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.SignerName = certificatesv1.KubeletServingSignerName
		}},
		"Answered":     {reason: "An answer is final.", request: named("m", m), change: alreadyDenied, conditions: condition(certificatesv1.CertificateDenied, "x", "")},
		"Issued":       {reason: "It is done.", request: named("m", m), change: func(c *certificatesv1.CertificateSigningRequest) { c.Status.Certificate = []byte("x") }},
		"StolenMember": {reason: "An agent is nobody else.", request: agent("n", m), conditions: condition(certificatesv1.CertificateDenied, ReasonNotOwnIdentity, "system:karmada:agent:n cannot have the certificate of system:karmada:agent:m: an agent renews its own")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			csr := csrOf(t, c.request)
			if c.change != nil {
				c.change(csr)
			}
			scheme, err := apis.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(c.there, csr)...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if c.createErr != nil {
						return c.createErr
					}
					return w.Create(ctx, o, opts...)
				},
			}).Build()
			reviewed := ""
			r := NewReconciler(live, func(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
				want := authorizationv1.SubjectAccessReviewSpec{
					User: c.request.Requester, UID: "u", Groups: c.request.RequesterGroups, Extra: map[string]authorizationv1.ExtraValue{"x": {"y"}},
					ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "certificates.k8s.io", Version: "*", Resource: "certificatesigningrequests", Subresource: c.reviewed, Verb: "create"},
				}
				if diff := cmp.Diff(want, spec); diff != "" {
					t.Errorf("review (-want +got):\n%s", diff)
				}
				reviewed = spec.ResourceAttributes.Subresource
				return !c.refuse, c.reviewErr
			}, Options{AllowRBACGenerator: c.open})
			r.now = func() time.Time { return noon }

			result, err := r.Reconcile(t.Context(), csr)
			if !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v: %s", err, c.err, c.reason)
			}
			if again := result.RequeueAfter > 0; again != c.again || reviewed != c.reviewed {
				t.Errorf("again %t, reviewed %q: %s", again, reviewed, c.reason)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.conditions, csr.Status.Conditions, cmpopts.IgnoreFields(certificatesv1.CertificateSigningRequestCondition{}, "LastUpdateTime", "LastTransitionTime")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			var roles rbacv1.ClusterRoleBindingList
			if err := live.List(t.Context(), &roles); err != nil {
				t.Fatal(err)
			}
			var given []string
			for _, binding := range roles.Items {
				given = append(given, binding.RoleRef.Name)
			}
			if diff := cmp.Diff(c.given, given); diff != "" {
				t.Errorf("given: %s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func alreadyDenied(c *certificatesv1.CertificateSigningRequest) {
	c.Status.Conditions = condition(certificatesv1.CertificateDenied, "x", "")
}

// What kind of token asked is noted where the next request finds it.
func TestNamedAfterToken(t *testing.T) {
	m := registration.AgentUser("m")
	second := named("m", m)
	second.Requester = "system:bootstrap:" + otherToken
	cases := map[string]struct {
		reason string
		first  registration.AgentRequest
		want   certificatesv1.RequestConditionType
	}{
		"Named":   {"An administrator has made another token.", named("m", m), certificatesv1.CertificateApproved},
		"Classic": {"Its holder has a certificate for that name.", classic(someToken, m), certificatesv1.CertificateDenied},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := apis.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			before, after := csrOf(t, c.first), csrOf(t, second)
			after.Name = "m-xyz13"
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(before, after).Build()
			r := NewReconciler(live, func(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }, Options{})
			for _, csr := range []*certificatesv1.CertificateSigningRequest{before, after} {
				if _, err := r.Reconcile(t.Context(), csr); err != nil {
					t.Fatal(err)
				}
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
				t.Fatal(err)
			}
			if conditions := after.Status.Conditions; len(conditions) != 1 || conditions[0].Type != c.want {
				t.Errorf("got %v, want %s: %s", conditions, c.want, c.reason)
			}
		})
	}
}

// Two holders of classic tokens that ask for one new name at once: the one that is answered second is refused.
func TestOneOfTwoTokens(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	m := registration.AgentUser("m")
	first, second, again := csrOf(t, classic(someToken, m)), csrOf(t, classic(otherToken, m)), csrOf(t, classic(someToken, m))
	second.Name, again.Name = "m-xyz13", "m-xyz14"
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(first, second, again).Build()
	r := NewReconciler(live, func(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error) { return true, nil }, Options{})
	for _, c := range []struct {
		csr  *certificatesv1.CertificateSigningRequest
		want certificatesv1.RequestConditionType
	}{{first, certificatesv1.CertificateApproved}, {second, certificatesv1.CertificateDenied}, {again, certificatesv1.CertificateApproved}} {
		if _, err := r.Reconcile(t.Context(), c.csr); err != nil {
			t.Fatal(err)
		}
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(c.csr), c.csr); err != nil {
			t.Fatal(err)
		}
		if conditions := c.csr.Status.Conditions; len(conditions) != 1 || conditions[0].Type != c.want {
			t.Errorf("%s: got %v, want %s", c.csr.Name, conditions, c.want)
		}
	}
}
