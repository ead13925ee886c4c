package agentcsrapproving

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// Reasons of a Denied condition. Whoever asked is told the message, which says what to do.
const (
	ReasonInvalidRequest         = "InvalidRequest"
	ReasonInvalidClusterName     = "InvalidClusterName"
	ReasonInvalidToken           = "InvalidToken"
	ReasonTokenForAnotherCluster = "TokenForAnotherCluster"
	ReasonClusterExists          = "ClusterExists"
	ReasonClusterIsPush          = "ClusterIsPush"
	ReasonIdentityTaken          = "IdentityTaken"
	ReasonNotOwnIdentity         = "NotOwnIdentity"
	ReasonRightsRemoved          = "RightsRemoved"
	ReasonRBACGeneratorDisabled  = "RBACGeneratorDisabled"
)

// Sub-resources of certificatesigningrequests that whoever asks needs `create` on; they exist in access rules alone
// (spec: behaviour/11 11.6).
const (
	selfClusterAgent = "selfclusteragent"
	clusterAgent     = "clusteragent"
	// namedClusterAgent is for tokens of one cluster, and not in the contract: another approver, which knows nothing of
	// such tokens and asks for clusterAgent, must not approve what they ask for.
	namedClusterAgent = "namedclusteragent"
)

// Messages of an Approved condition (spec: behaviour/11 11.6).
const (
	selfApproved = "Auto approving self karmada agent certificate after SubjectAccessReview."
	approved     = "Auto approving karmada agent certificate after SubjectAccessReview."
)

// facts are what the control plane knows about the cluster that a request names.
type facts struct {
	cluster *clusterv1alpha1.Cluster // nil if there is none
	rights  *rbacv1.ClusterRole      // nil if the agent has none
}

// What is to be done about a request.
type action int

const (
	deny    action = iota
	wait           // until something that is under way is done
	approve        // if whoever asks has the right to
)

// What an approval gives the agent.
type giving int

const (
	nothing   giving = iota
	mending          // the rights that it has, as they should be
	rights           // those of an agent
	generator        // those of registration.RBACGeneratorUser
)

// A verdict says what to do about a request and, for an approval, what it takes and gives.
type verdict struct {
	action          action
	reason, message string // of the condition
	subresource     string // on which whoever asks needs `create`
	give            giving
	token           string // the id of the token that asks
	named           bool   // the token is for that one cluster
}

func denied(reason, format string, args ...any) verdict {
	return verdict{action: deny, reason: reason, message: fmt.Sprintf(format, args...)}
}

// decide says what becomes of a request. That whoever asks may ask at all is for access rules; what they may ask for is
// decided here, because rules know no names of clusters.
func decide(r registration.AgentRequest, f facts, allowGenerator bool) verdict {
	if r.Problem != nil {
		return denied(ReasonInvalidRequest, "%v: make a new key and request", r.Problem)
	}
	if r.User == registration.RBACGeneratorUser {
		return decideGenerator(r, allowGenerator)
	}
	cluster, err := registration.ClusterOfAgent(r.User)
	if err != nil {
		return denied(ReasonInvalidClusterName, "%v", err)
	}
	switch {
	case f.cluster != nil && !f.cluster.DeletionTimestamp.IsZero() && !r.IsRenewal():
		return verdict{action: wait} // its rights would go with it
	case f.cluster != nil && f.cluster.Spec.SyncMode == clusterv1alpha1.Push:
		return denied(ReasonClusterIsPush, "cluster %q is a member in push mode, which has no agent: unjoin it first, or register under another name", cluster)
	case r.IsRenewal():
		return decideRenewal(cluster, f)
	case slices.Contains(r.RequesterGroups, registration.AgentGroup):
		return denied(ReasonNotOwnIdentity, "%s cannot have the certificate of %s: an agent renews its own", r.Requester, r.User)
	}
	if id, ok := registration.TokenOfUser(r.Requester, r.RequesterGroups); ok {
		return decideToken(id, cluster, r, f, allowGenerator)
	}
	if slices.ContainsFunc(r.RequesterGroups, isBootstrapGroup) {
		return denied(ReasonInvalidToken, "%s has a group of bootstrap tokens, but did not come with one", r.Requester)
	}
	return verdict{action: approve, message: approved, subresource: clusterAgent, give: rights}
}

func isBootstrapGroup(group string) bool {
	return strings.HasPrefix(group, bootstrapapi.BootstrapDefaultGroup)
}

func decideRenewal(cluster string, f facts) verdict {
	// An administrator removes them to lock an agent out; with the Cluster they go by themselves.
	if f.rights == nil || goesWithAnother(f) {
		return denied(ReasonRightsRemoved, "the rights of the agent of cluster %q were removed (ClusterRole %s): register it again with a new token",
			cluster, registration.AgentRightsName(cluster))
	}
	v := verdict{action: approve, message: selfApproved, subresource: selfClusterAgent}
	if _, ours := registration.GrantOf(f.rights); ours {
		v.give = mending
	}
	return v
}

// goesWithAnother reports whether the rights are tied to a Cluster that is gone, so that they are about to go too.
func goesWithAnother(f facts) bool {
	owner, tied := registration.OwnerOfAgentRights(f.rights)
	return tied && (f.cluster == nil || f.cluster.UID != owner)
}

func decideToken(id, cluster string, r registration.AgentRequest, f facts, allowGenerator bool) verdict {
	named, err := registration.ClusterOfGroups(r.RequesterGroups)
	switch {
	case err != nil:
		return denied(ReasonInvalidToken, "the token cannot be trusted: %v", err)
	case named != "" && named != cluster:
		return denied(ReasonTokenForAnotherCluster, "the token is for cluster %q, not for %q: register as %s, or make a token with `karmadactl token create --cluster %s`",
			named, cluster, named, cluster)
	}
	v := verdict{action: approve, message: approved, subresource: clusterAgent, give: rights, token: id}
	if named != "" {
		v.subresource, v.named = namedClusterAgent, true
		if why, taken := takenByClassic(cluster, f); taken {
			return why
		}
		return v
	}

	// A classic token is for any cluster, so that it must not become one that is there.
	if f.cluster != nil {
		return denied(ReasonClusterExists, "cluster %q is registered already, and the token is for new clusters only: unregister it first, or make a token with `karmadactl token create --cluster %s`",
			cluster, cluster)
	}
	if f.rights == nil || goesWithAnother(f) {
		return v
	}
	switch grant, ours := registration.GrantOf(f.rights); {
	case ours && grant.TokenID == id:
		return v // it tries again
	case !ours && allowGenerator:
		v.give = nothing // the client of the classic flow has just made them
		return v
	}
	if why, taken := takenByClassic(cluster, f); taken {
		return why
	}
	return denied(ReasonIdentityTaken, "another registration of cluster %q has begun: make a token with `karmadactl token create --cluster %s`, or delete ClusterRole %s if that one is given up",
		cluster, cluster, registration.AgentRightsName(cluster))
}

// takenByClassic denies an identity that is not a Cluster's yet, but that a classic token has got: its holder could do in
// the new agent's name what the administrator has meant for another. One that a token for this cluster has got may be
// taken: an administrator makes a second one when the first has run out.
func takenByClassic(cluster string, f facts) (verdict, bool) {
	if f.cluster != nil || f.rights == nil || goesWithAnother(f) {
		return verdict{}, false
	}
	whose := "was made for somebody whom nobody has noted"
	if grant, ours := registration.GrantOf(f.rights); ours {
		if !grant.IsClassic() {
			return verdict{}, false
		}
		whose = fmt.Sprintf("was given to the holder of classic token %s at %s", grant.TokenID, grant.At.UTC().Format(time.RFC3339))
	}
	name := registration.AgentRightsName(cluster)
	return denied(ReasonIdentityTaken, "the identity of cluster %q %s, whose certificate may still be valid and would have the rights of this agent: "+
		"choose another name, or delete ClusterRole %s if whoever asked then is trusted, and register again", cluster, whose, name), true
}

// decideGenerator is about the identity that, in the classic flow, a token holder makes an agent's rights with.
func decideGenerator(r registration.AgentRequest, allowed bool) verdict {
	if !allowed {
		return denied(ReasonRBACGeneratorDisabled, "%s may do everything, and is therefore switched off: register with a karmadactl that does not need it, "+
			"or let karmada-controller-manager run with --enable-agent-rbac-generator", registration.RBACGeneratorUser)
	}
	if slices.Contains(r.RequesterGroups, registration.AgentGroup) {
		return denied(ReasonNotOwnIdentity, "%s cannot have the certificate of %s", r.Requester, r.User)
	}
	if named, err := registration.ClusterOfGroups(r.RequesterGroups); err != nil || named != "" {
		return denied(ReasonTokenForAnotherCluster, "a token for one cluster cannot have the certificate of %s, which is for all", r.User)
	}
	return verdict{action: approve, message: approved, subresource: clusterAgent, give: generator}
}
