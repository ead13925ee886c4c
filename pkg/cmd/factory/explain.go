package factory

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain returns the error to show for a command that ended with err: one
// that says why the control plane, or a member, cannot be used when that is the
// reason, err itself otherwise. Only the way to an error pays for it.
func (f *Factory) Explain(err error) error {
	if err == nil {
		return nil
	}
	// A member comes first: a command looks at one when the control plane has
	// answered.
	for _, m := range f.members {
		if e := m.conn.explanationOf(err); e != nil {
			return e
		}
	}
	if e := f.conn.explanationOf(err); e != nil {
		return e
	}
	if e := f.conn.explainMissing(err); e != nil {
		return e
	}
	return Plain(err)
}

// Plain returns the explanation that the way to a server gave when that is why
// err happened: it says all there is to say, and the words of the request
// around it would hide it. Words that a command put around an explanation stay.
func Plain(err error) error {
	var request *url.Error
	var known *Error
	if errors.As(err, &request) && errors.As(request.Err, &known) {
		return known
	}
	return err
}

// isAbout tells whether err tells of the failed request: another error can be
// the end of a command that also failed to reach the server.
func isAbout(err error, last failure) bool {
	var known *Error
	if errors.As(err, &known) {
		return false // explained already, and perhaps wrapped with more
	}
	text := err.Error()
	switch {
	case last.explained.Reason == NotKubernetes:
		return true // whatever was made of a page
	case last.raw == nil:
		return apierrors.IsUnauthorized(err) || strings.Contains(text, "Unauthorized") || strings.Contains(text, "You must be logged in")
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		return isBelow(transport.URL, last.url)
	}
	return strings.Contains(text, last.raw.Error()) || strings.HasPrefix(text, "The connection to the server")
}

// isBelow tells whether a request was one to that server, whose address may
// lack a scheme.
func isBelow(request, server string) bool {
	_, address, ok := strings.Cut(server, "://")
	if !ok {
		address = server
	}
	_, request, _ = strings.Cut(request, "://")
	rest, ok := strings.CutPrefix(withoutUserInfo(request), strings.TrimSuffix(address, "/"))
	return ok && (rest == "" || strings.ContainsAny(rest[:1], "/?"))
}

// withoutUserInfo takes off what may stand before a host.
func withoutUserInfo(address string) string {
	host, path, _ := strings.Cut(address, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return host + "/" + path
}

// explainMissing adds to "the server does not know that" that it is no
// karmada control plane, when it is none. The texts are client-go's and
// kubectl's; what reaches this point has lost its type.
func (c *connection) explainMissing(err error) *Error {
	text := strings.TrimSpace(err.Error())
	if !strings.Contains(text, "the server doesn't have a resource type") &&
		!strings.Contains(text, "no matches for kind") &&
		!strings.Contains(text, "could not find the requested resource") {
		return nil
	}
	client, clientErr := c.ToDiscoveryClient()
	if clientErr != nil {
		return nil
	}
	groups, groupsErr := client.ServerGroups()
	if groupsErr != nil {
		return nil
	}
	for _, g := range groups.Groups {
		if strings.HasSuffix(g.Name, ".karmada.io") {
			return nil
		}
	}
	cfg, cfgErr := c.ToRawKubeConfigLoader().ClientConfig()
	if cfgErr != nil {
		return nil
	}
	return &Error{Reason: NotKarmada, cause: err, text: fmt.Sprintf(
		"%s; %s points to %s, which is not a Karmada control plane: choose another with --kubeconfig or --karmada-context",
		strings.TrimPrefix(text, "error: "), c.from(), cfg.Host)}
}
