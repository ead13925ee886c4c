package clusterstatus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unique"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// legacyPeriod is how often a member is asked what it serves when that takes a
// request for each group: servers before Kubernetes 1.30.
const legacyPeriod = time.Minute

// roots are the two documents of discovery: the core group, and all others.
func roots() []root { return []root{coreRoot, groupsRoot} }

type root string

const (
	coreRoot   root = "api"
	groupsRoot root = "apis"
)

// holds says whether a group and version belongs to a root.
func (r root) holds(gv schema.GroupVersion) bool { return (gv.Group == "") == (r == coreRoot) }

// An apiResource is one that a member serves. Members serve the same resources for
// the most part: their names are kept once for all.
type apiResource = unique.Handle[clusterv1alpha1.APIResource]

// resourcesOf returns the resources of a group and version, sorted by name,
// without sub-resources.
func resourcesOf(list *metav1.APIResourceList) []apiResource {
	var all []apiResource
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") {
			all = append(all, unique.Make(clusterv1alpha1.APIResource{Name: r.Name, Kind: r.Kind}))
		}
	}
	slices.SortFunc(all, func(a, b apiResource) int { return cmp.Compare(a.Value().Name, b.Value().Name) })
	return slices.Clip(all)
}

// A served is what was found out about what a member serves.
type served struct {
	resources map[schema.GroupVersion][]apiResource
	// failed are the groups and versions that exist but could not be found out.
	failed map[schema.GroupVersion]error
	// unknown are the roots of which nothing could be found out.
	unknown map[root]error
}

// err returns what went wrong, nil when everything was found out.
func (s served) err() error {
	var errs []error
	for r, err := range s.unknown {
		errs = append(errs, fmt.Errorf("/%s: %w", r, err))
	}
	if len(s.failed) > 0 {
		errs = append(errs, &discovery.ErrGroupDiscoveryFailed{Groups: s.failed})
	}
	return errors.Join(errs...)
}

// A document is one root as it was read last.
type document struct {
	etag      string
	resources map[schema.GroupVersion][]apiResource
	failed    map[schema.GroupVersion]error
}

// A catalogue asks a member what it serves, with one request for each root, and
// without an answer when nothing has changed.
type catalogue struct {
	documents map[root]document

	// legacy is what a server without such documents served at asked.
	legacy served
	asked  time.Time
}

// errNotAggregated says that a server does not have one document for a root.
var errNotAggregated = errors.New("not in one document")

// read finds out what a member serves.
func (c *catalogue) read(ctx context.Context, r remote, client discovery.DiscoveryInterface, now time.Time) served {
	if !c.asked.IsZero() && now.Sub(c.asked) < legacyPeriod {
		return c.legacy
	}
	s := served{
		resources: map[schema.GroupVersion][]apiResource{},
		failed:    map[schema.GroupVersion]error{},
		unknown:   map[root]error{},
	}
	for _, path := range roots() {
		d, err := c.fetch(ctx, r, path)
		if errors.Is(err, errNotAggregated) {
			return c.readLegacy(ctx, client, now)
		}
		if err != nil {
			s.unknown[path] = err
			continue
		}
		maps.Copy(s.resources, d.resources)
		maps.Copy(s.failed, d.failed)
	}
	c.asked = time.Time{}
	return s
}

// fetch reads one root, or finds it unchanged.
func (c *catalogue) fetch(ctx context.Context, r remote, path root) (document, error) {
	known, isKnown := c.documents[path]
	header := http.Header{"Accept": {discovery.AcceptV2 + "," + discovery.AcceptV1}}
	if isKnown && known.etag != "" {
		header.Set("If-None-Match", known.etag)
	}
	a, err := r.get(ctx, string(path), header)
	switch {
	case err != nil:
		return document{}, err
	case a.code == http.StatusNotModified && isKnown:
		return known, nil
	case a.code == http.StatusNotFound:
		return document{}, nil // an API server need not have both
	case a.code == http.StatusNotAcceptable:
		return document{}, errNotAggregated
	case a.code != http.StatusOK:
		return document{}, fmt.Errorf("the cluster answers %d: %s", a.code, excerpt(a.body))
	case !isAggregated(a.header.Get("Content-Type")):
		return document{}, errNotAggregated
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(a.body, &list); err != nil {
		return document{}, fmt.Errorf("read the answer: %w", err)
	}
	_, lists, failed := discovery.SplitGroupsAndResources(list)
	d := document{etag: a.header.Get("ETag"), resources: map[schema.GroupVersion][]apiResource{}, failed: failed}
	for gv, list := range lists {
		d.resources[gv] = resourcesOf(list)
	}
	if c.documents == nil {
		c.documents = map[root]document{}
	}
	c.documents[path] = d
	return d, nil
}

func isAggregated(contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	return err == nil && params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2" && params["as"] == "APIGroupDiscoveryList"
}

// readLegacy asks for each group on its own.
func (c *catalogue) readLegacy(ctx context.Context, client discovery.DiscoveryInterface, now time.Time) served {
	s := served{
		resources: map[schema.GroupVersion][]apiResource{},
		failed:    map[schema.GroupVersion]error{},
		unknown:   map[root]error{},
	}
	_, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // nobody could ask for it
		}
		s.resources[gv] = resourcesOf(list)
	}
	var partial *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partial):
		s.failed = partial.Groups
	case err != nil:
		for _, r := range roots() {
			s.unknown[r] = err
		}
	}
	c.legacy, c.asked = s, now
	if s.err() != nil {
		c.asked = time.Time{} // what failed is tried again with the next look
	}
	return s
}
