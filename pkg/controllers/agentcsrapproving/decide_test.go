package agentcsrapproving

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const (
	someToken  = "abcdef"
	otherToken = "ghijkl"
)

// Who asks.

func classic(id, user string) registration.AgentRequest {
	return registration.AgentRequest{User: user, Requester: "system:bootstrap:" + id, RequesterGroups: []string{"system:bootstrappers", registration.DefaultTokenGroup, "system:authenticated"}}
}

func named(cluster, user string) registration.AgentRequest {
	return registration.AgentRequest{User: user, Requester: "system:bootstrap:" + someToken, RequesterGroups: []string{
		"system:bootstrappers", registration.NamedClusterTokenGroup, registration.ClusterTokenGroup(cluster), "system:authenticated",
	}}
}

func agent(cluster, user string) registration.AgentRequest {
	return registration.AgentRequest{User: user, Requester: registration.AgentUser(cluster), RequesterGroups: []string{registration.AgentGroup, "system:authenticated"}}
}

func admin(user string) registration.AgentRequest {
	return registration.AgentRequest{User: user, Requester: "system:admin", RequesterGroups: []string{"system:masters", "system:authenticated"}}
}

// What is there.

func cluster(mode clusterv1alpha1.ClusterSyncMode, uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: uid}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
}

func leaving(c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
	return c
}

// rightsOf returns the ClusterRole of m's agent as it was given to a token, and tied to a Cluster.
func rightsOf(token string, owner types.UID) *rbacv1.ClusterRole {
	role := foreign()
	role.Annotations = map[string]string{"bootstrap.karmada.io/granted-at": noon.Format(time.RFC3339), "bootstrap.karmada.io/granted-to-token": token}
	if owner != "" {
		role.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "m", UID: owner}}
	}
	return role
}

// toNamed makes the token that rights were given to one for m alone.
func toNamed(role *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	role.Annotations["bootstrap.karmada.io/granted-to-named-token"] = "true"
	return role
}

func foreign() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentRightsName("m")}}
}

func TestDecide(t *testing.T) {
	m := registration.AgentUser("m")
	bad := classic(someToken, m)
	bad.Problem = errBoom
	mixed := named("m", m)
	mixed.RequesterGroups = append(mixed.RequesterGroups, registration.DefaultTokenGroup)
	certificate := classic(someToken, m)
	certificate.Requester = "eve"
	byToken := verdict{action: approve, message: approved, subresource: clusterAgent, give: rights, token: someToken}
	byNamed := byToken
	byNamed.subresource, byNamed.named = namedClusterAgent, true
	cases := map[string]struct {
		reason  string
		request registration.AgentRequest
		facts   facts
		open    bool // to the generator
		want    verdict
		says    string
	}{
		"NamedNew":          {reason: "What such a token is for.", request: named("m", m), want: byNamed},
		"NamedAgain":        {reason: "It serves the same name again.", request: named("m", m), facts: facts{rights: toNamed(rightsOf(someToken, ""))}, want: byNamed},
		"NamedAfterNamed":   {reason: "An administrator makes another when one has run out.", request: named("m", m), facts: facts{rights: toNamed(rightsOf(otherToken, ""))}, want: byNamed},
		"NamedAfterAdmin":   {reason: "Whoever needs no token is trusted.", request: named("m", m), facts: facts{rights: rightsOf("", "")}, want: byNamed},
		"NamedAfterClassic": {reason: "The holder of the other certificate would have the rights too.", request: named("m", m), facts: facts{rights: rightsOf(otherToken, "")}, want: verdict{reason: ReasonIdentityTaken}, says: "token ghijkl at 2026-05-04T12:00:00Z, whose certificate may still be valid"},
		"NamedSameID":       {reason: "An id can come again; what kind of token it was counts.", request: named("m", m), facts: facts{rights: rightsOf(someToken, "")}, want: verdict{reason: ReasonIdentityTaken}, says: "choose another name, or delete ClusterRole system:karmada:m:agent"},
		"NamedAfterForeign": {reason: "Nobody knows whose they are.", request: named("m", m), facts: facts{rights: foreign()}, want: verdict{reason: ReasonIdentityTaken}, says: "delete ClusterRole system:karmada:m:agent"},
		"NamedClassicGone":  {reason: "The Cluster is gone, its rights are about to.", request: named("m", m), facts: facts{rights: rightsOf(otherToken, "1")}, want: byNamed},
		"NamedClassicCame":  {reason: "A member that a classic token made may be registered anew.", request: named("m", m), facts: facts{cluster: cluster("Pull", "1"), rights: rightsOf(otherToken, "1")}, want: byNamed},
		"NamedRegistered":   {reason: "A member may be registered anew.", request: named("m", m), facts: facts{cluster: cluster("Pull", "1"), rights: rightsOf("", "1")}, want: byNamed},
		"NamedOther":        {reason: "It is for one cluster.", request: named("n", m), want: verdict{reason: ReasonTokenForAnotherCluster}, says: "karmadactl token create --cluster m"},
		"NamedPush":         {reason: "A push member has no agent.", request: named("m", m), facts: facts{cluster: cluster("Push", "1")}, want: verdict{reason: ReasonClusterIsPush}, says: "unjoin"},
		"NamedLeaving":      {reason: "The rights would go with the Cluster.", request: named("m", m), facts: facts{cluster: leaving(cluster("Pull", "1"))}, want: verdict{action: wait}},
		"NamedAndClassic":   {reason: "Nobody may pick what suits.", request: mixed, want: verdict{reason: ReasonInvalidToken}},
		"NamedGenerator":    {reason: "A token for a cluster of that name would be one for everything.", request: named("rbac-generator", registration.RBACGeneratorUser), open: true, want: verdict{reason: ReasonTokenForAnotherCluster}},
		"NamedImpersonator": {reason: "The name is refused for what else it would reach.", request: named("m-impersonator", registration.AgentUser("m-impersonator")), want: verdict{reason: ReasonInvalidClusterName}},

		"ClassicNew":        {reason: "A new identity is what it is for.", request: classic(someToken, m), want: byToken},
		"ClassicAgain":      {reason: "The same token may try again.", request: classic(someToken, m), facts: facts{rights: rightsOf(someToken, "")}, want: byToken},
		"ClassicTaken":      {reason: "The agent of another registration must not be impersonated before its Cluster is there.", request: classic(otherToken, m), facts: facts{rights: toNamed(rightsOf(someToken, ""))}, want: verdict{reason: ReasonIdentityTaken}, says: "token create --cluster m"},
		"ClassicByClassic":  {reason: "A token for the cluster would be refused too.", request: classic(otherToken, m), facts: facts{rights: rightsOf(someToken, "")}, want: verdict{reason: ReasonIdentityTaken}, says: "choose another name"},
		"ClassicForeign":    {reason: "Somebody has given these rights to somebody.", request: classic(someToken, m), facts: facts{rights: foreign()}, want: verdict{reason: ReasonIdentityTaken}},
		"ClassicRegistered": {reason: "It cannot become a member that is there.", request: classic(someToken, m), facts: facts{cluster: cluster("Pull", "1"), rights: rightsOf(someToken, "1")}, want: verdict{reason: ReasonClusterExists}, says: "unregister"},
		"ClassicGone":       {reason: "The Cluster is gone, its rights are about to.", request: classic(someToken, m), facts: facts{rights: rightsOf(otherToken, "1")}, want: byToken},
		"ClassicAdmin":      {reason: "Not every name after the prefix is a cluster's.", request: classic(someToken, registration.AgentUser("")), want: verdict{reason: ReasonInvalidClusterName}},
		"ClassicBadKey":     {reason: "It is told what is wrong.", request: bad, want: verdict{reason: ReasonInvalidRequest}, says: "boom"},
		"BootstrapNoToken":  {reason: "A certificate with that group does not make a token.", request: certificate, want: verdict{reason: ReasonInvalidToken}},

		"GeneratorOff":     {reason: "With it a token holder becomes administrator.", request: classic(someToken, registration.RBACGeneratorUser), want: verdict{reason: ReasonRBACGeneratorDisabled}, says: "--enable-agent-rbac-generator"},
		"GeneratorOn":      {reason: "The administrator has chosen so.", request: classic(someToken, registration.RBACGeneratorUser), open: true, want: verdict{action: approve, message: approved, subresource: clusterAgent, give: generator}},
		"GeneratorByAgent": {reason: "An agent is nobody else.", request: agent("m", registration.RBACGeneratorUser), open: true, want: verdict{reason: ReasonNotOwnIdentity}},
		"GeneratorRenews":  {reason: "It is for a moment.", request: agent("rbac-generator", registration.RBACGeneratorUser), open: true, want: verdict{reason: ReasonNotOwnIdentity}},
		"GeneratorMade":    {reason: "The classic flow has made what its agent needs.", request: classic(someToken, m), facts: facts{rights: foreign()}, open: true, want: verdict{action: approve, message: approved, subresource: clusterAgent, token: someToken}},

		"Renewal":        {reason: "An agent renews its own, and what it may do is made right.", request: agent("m", m), facts: facts{cluster: cluster("Pull", "1"), rights: rightsOf("", "1")}, want: verdict{action: approve, message: selfApproved, subresource: selfClusterAgent, give: mending}},
		"RenewalEarly":   {reason: "Its Cluster may not be there yet.", request: agent("m", m), facts: facts{rights: rightsOf(someToken, "")}, want: verdict{action: approve, message: selfApproved, subresource: selfClusterAgent, give: mending}},
		"RenewalForeign": {reason: "Rights of the classic flow stay as they are.", request: agent("m", m), facts: facts{cluster: cluster("Pull", "1"), rights: foreign()}, want: verdict{action: approve, message: selfApproved, subresource: selfClusterAgent}},
		"RenewalLeaving": {reason: "It still has Works to take down.", request: agent("m", m), facts: facts{cluster: leaving(cluster("Pull", "1")), rights: rightsOf("", "1")}, want: verdict{action: approve, message: selfApproved, subresource: selfClusterAgent, give: mending}},
		"RenewalRevoked": {reason: "An administrator has locked it out.", request: agent("m", m), facts: facts{cluster: cluster("Pull", "1")}, want: verdict{reason: ReasonRightsRemoved}, says: "new token"},
		"RenewalGone":    {reason: "Its Cluster is gone, and so is its claim to the name.", request: agent("m", m), facts: facts{rights: rightsOf("", "1")}, want: verdict{reason: ReasonRightsRemoved}},
		"RenewalAnew":    {reason: "The Cluster of that name is another one by now.", request: agent("m", m), facts: facts{cluster: cluster("Pull", "2"), rights: rightsOf("", "1")}, want: verdict{reason: ReasonRightsRemoved}},
		"RenewalPush":    {reason: "A push member has no agent.", request: agent("m", m), facts: facts{cluster: cluster("Push", "2"), rights: rightsOf("", "2")}, want: verdict{reason: ReasonClusterIsPush}},
		"Stolen":         {reason: "An agent's certificate is good for its own name alone.", request: agent("n", m), want: verdict{reason: ReasonNotOwnIdentity}},

		"Admin": {reason: "Whoever has the right may ask for any.", request: admin(m), facts: facts{cluster: cluster("Pull", "1")}, want: verdict{action: approve, message: approved, subresource: clusterAgent, give: rights}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(c.request, c.facts, c.open)
			message := got.message
			if got.action == deny {
				got.message = ""
			}
			if got != c.want {
				t.Errorf("got %+v (%s), want %+v: %s", got, message, c.want, c.reason)
			}
			if got.action == deny && message == "" || !strings.Contains(message, c.says) || strings.Contains(message, "\n") {
				t.Errorf("message %q: want one line with %q", message, c.says)
			}
		})
	}
}
