package proxy

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/streaming/pkg/httpstream"
)

// LongRunning tells requests that take as long as they take, and so are neither
// cut nor counted: watches of Clusters, and whatever is passed on, since it is
// for the member's API server to cut and to count (spec: cli/components.md 4).
func LongRunning() request.LongRunningRequestCheck {
	return filters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString(Subresource))
}

// A target is what a request wants of a member.
type target struct {
	// path, as it was sent, and query; neither scheme nor host.
	path, query string
	// info is what the path says to an API server.
	info *request.RequestInfo
	// lasting says that the answer may take for ever: watches, logs, upgrades, and
	// what the member passes on itself.
	lasting bool
	upgrade bool
}

// prefixSegments is how many segments of a path are before the member's:
// apis, group, version, clusters, name, proxy.
const prefixSegments = 6

// targetOf reads a request for clusters/proxy.
func targetOf(r *http.Request) (*target, error) {
	t := &target{path: memberPath(r.URL), query: originalQuery(r), upgrade: httpstream.IsUpgradeRequest(r)}
	plain, err := url.PathUnescape(t.path)
	if err != nil {
		return nil, apierrors.NewBadRequest("the path is not well encoded")
	}
	// An API server behind a prefix has neighbours.
	if slices.Contains(strings.Split(plain, "/"), "..") {
		return nil, apierrors.NewBadRequest(`the path has a segment "..", which is not passed on to a cluster: ask for the path that is meant`)
	}
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	asked := &http.Request{Method: r.Method, URL: &url.URL{Path: plain, RawQuery: t.query}}
	if t.info, err = resolver.NewRequestInfo(asked); err != nil {
		// Whatever it is, it names no resource; the member may know what it means.
		t.info = &request.RequestInfo{Path: plain, Verb: strings.ToLower(r.Method)}
	}
	longRunning := filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	t.lasting = t.upgrade || longRunning(asked, t.info)
	return t, nil
}

// memberPath returns the part of a path that is for the member, encoded as it
// was sent. It counts segments in the decoded path, as those do who decide by it
// who may send the request to which cluster.
func memberPath(u *url.URL) string {
	encoded := u.EscapedPath()
	for segments := 0; encoded != ""; {
		if encoded[0] == '%' && len(encoded) >= 3 {
			if strings.EqualFold(encoded[:3], "%2f") {
				segments++
			}
			encoded = encoded[3:]
		} else {
			if encoded[0] == '/' {
				segments++
			}
			encoded = encoded[1:]
		}
		if segments > prefixSegments {
			return "/" + encoded
		}
	}
	return "/"
}

// under returns the URL of the target below the root of an API.
func (t *target) under(root *url.URL) *url.URL {
	u := *root
	u.RawPath = strings.TrimRight(root.EscapedPath(), "/") + t.path
	u.Path, _ = url.PathUnescape(u.RawPath) // both parts are well encoded
	u.RawQuery = t.query
	return &u
}

// object returns the target's object itself, without its sub-resource, of which
// whoever looks for it wants to know whether it exists.
func (t *target) object() *target {
	i := t.info
	parts := []string{i.APIPrefix}
	if i.APIGroup != "" {
		parts = append(parts, i.APIGroup)
	}
	parts = append(parts, i.APIVersion)
	if i.Namespace != "" && i.Parts[0] != "namespaces" {
		parts = append(parts, "namespaces", i.Namespace)
	}
	parts = append(parts, i.Parts[:2]...)
	path := ""
	for _, p := range parts {
		path += "/" + url.PathEscape(p)
	}
	return &target{path: path, info: i}
}

type queryKey struct{}

// WithQuery hides the query of requests for clusters/proxy from the handlers
// that come after it and keeps it for this package: it is meant for the member's
// API server. This one would refuse a dry run.
func WithQuery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && info.Subresource == Subresource && r.URL.RawQuery != "" {
			query := r.URL.RawQuery
			r = r.WithContext(context.WithValue(r.Context(), queryKey{}, query))
			u := *r.URL
			u.RawQuery = ""
			r.URL = &u
		}
		next.ServeHTTP(w, r)
	})
}

func originalQuery(r *http.Request) string {
	if query, ok := r.Context().Value(queryKey{}).(string); ok {
		return query
	}
	return r.URL.RawQuery
}
