package factory

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Explain returns the error to show for a command that ended with err: one
// that says why the control plane cannot be used when that is the reason, err
// itself otherwise. Only the way to an error pays for it.
func (f *Factory) Explain(err error) error {
	if err == nil {
		return nil
	}
	if last := f.conn.lastFailure(); last.explained != nil && isAbout(err, last) {
		return last.explained
	}
	if e := f.conn.explainMissing(err); e != nil {
		return e
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
	if last.raw == nil {
		return strings.Contains(text, "Unauthorized") || strings.Contains(text, "You must be logged in")
	}
	var transport *url.Error
	return errors.As(err, &transport) || strings.Contains(text, last.raw.Error()) ||
		strings.HasPrefix(text, "The connection to the server")
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
