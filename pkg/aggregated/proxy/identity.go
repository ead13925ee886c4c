package proxy

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
)

// bearerProtocol is how a browser sends a token beside an upgrade to WebSocket.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// removeIdentity takes out of a request's header everything that says who sent
// it: what a requester may say to this control plane is nobody else's to know,
// and must not be taken by a member for what we say.
func removeIdentity(h http.Header) {
	for key := range h {
		// Some servers take an underscore for a dash.
		name := strings.ToLower(strings.ReplaceAll(key, "_", "-"))
		if name == "authorization" || name == "proxy-authorization" ||
			strings.HasPrefix(name, "impersonate-") || strings.HasPrefix(name, "x-remote-") {
			delete(h, key)
		}
	}
	const protocols = "Sec-Websocket-Protocol"
	var kept []string
	for _, value := range h[protocols] {
		for p := range strings.SplitSeq(value, ",") {
			if p = strings.TrimSpace(p); !strings.HasPrefix(p, bearerProtocol) {
				kept = append(kept, p)
			}
		}
	}
	h.Del(protocols)
	if len(kept) > 0 {
		h.Set(protocols, strings.Join(kept, ","))
	}
}

// impersonate makes a header without identity speak for a user of a member. A
// member knows the user's name and groups, and adds by itself those that tell
// whether anybody is logged in (spec: behaviour/09 9.2).
func impersonate(h http.Header, u user.Info) {
	h.Set(transport.ImpersonateUserHeader, u.GetName())
	for _, group := range groupsOf(u) {
		h.Add(transport.ImpersonateGroupHeader, group)
	}
}

// impersonating speaks for a user of this control plane, to which everything
// about the user matters.
func impersonating(u user.Info, next http.RoundTripper) http.RoundTripper {
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: u.GetName(), UID: u.GetUID(), Groups: groupsOf(u), Extra: u.GetExtra(),
	}, next)
}

func groupsOf(u user.Info) []string {
	return slices.DeleteFunc(slices.Clone(u.GetGroups()), func(group string) bool {
		return group == user.AllAuthenticated || group == user.AllUnauthenticated
	})
}
