package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

const (
	// atOnce is how many members are asked at the same time.
	atOnce = 64
	// answerLimit is how much one member may say.
	answerLimit = 512 << 20
)

// everywhere serves one request to clusters/*/proxy (spec: behaviour/09 9.2): what
// is no resource is this control plane's to answer; an object is looked for in
// all clusters, and there must be one; lists are put together.
type everywhere struct {
	*REST
	user      user.Info
	target    *target
	responder rest.Responder
}

func (e *everywhere) serve(w http.ResponseWriter, r *http.Request) error {
	info := e.target.info
	switch {
	case !info.IsResourceRequest:
		h := e.plane.hop(e.user, e.target)
		h.stop, h.fail = e.stop, func(err error) {
			e.responder.Error(badGateway("the request to the control plane failed: %s", oneLine(err)))
		}
		h.serve(w, r)
		return nil
	case len(info.Parts) >= 2:
		return e.one(w, r)
	case info.Verb == "list":
		return e.list(w, r)
	}
	verb := cmp.Or(info.Verb, strings.ToLower(r.Method))
	return newStatus(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "Request verb %s is not support", verb)
}

// one passes a request on to the cluster that has its object.
func (e *everywhere) one(w http.ResponseWriter, r *http.Request) error {
	answers, err := e.ask(r.Context(), e.target.object(), acceptMetadata)
	if err != nil {
		return err
	}
	var (
		found []*clusterv1alpha1.Cluster
		names []string
	)
	for _, a := range answers {
		if a.err == nil && a.code == http.StatusOK {
			found, names = append(found, a.cluster), append(names, a.cluster.Name)
		}
	}
	switch {
	case len(found) == 0:
		return notFound(answers)
	case len(found) > 1:
		return newStatus(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: %s", strings.Join(names, ","))
	}
	warn(r.Context(), answers)
	return e.forward(w, r, found[0], e.user, e.target, e.responder)
}

// list answers with what all clusters have.
func (e *everywhere) list(w http.ResponseWriter, r *http.Request) error {
	t := *e.target
	query, err := listQuery(t.query)
	if err != nil {
		return err
	}
	t.query = query
	answers, err := e.ask(r.Context(), &t, jsonOf(r.Header.Values("Accept")))
	if err != nil {
		return err
	}
	var merged *list
	for i := range answers {
		a := &answers[i]
		if a.err != nil || a.code != http.StatusOK {
			continue
		}
		one := &list{}
		if err := json.Unmarshal(a.body, one); err != nil || one.Kind == "" {
			a.err = fmt.Errorf("cluster %s answers with something that is no list", a.cluster.Name)
			continue
		}
		a.body = nil
		if merged == nil {
			merged = one
			merged.Metadata = json.RawMessage(`{}`)
			continue
		}
		merged.add(one)
	}
	if merged == nil {
		return notFound(answers)
	}
	warn(r.Context(), answers)
	body, err := json.Marshal(merged)
	if err != nil {
		return fmt.Errorf("write the list of all clusters: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // whoever does not want it any more is gone
	return nil
}

// notFound is the answer when no cluster has it. That a cluster could not be
// asked is not the same as that it has nothing; but one that is not meant to be
// asked does not count.
func notFound(answers []answer) error {
	var missed []string
	for _, a := range answers {
		if a.err != nil && a.cluster.Spec.ImpersonatorSecretRef != nil {
			missed = append(missed, a.err.Error())
		}
	}
	const text = "resource not found or don't have permission to get it"
	if len(missed) > 0 {
		return newStatus(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"%s in the clusters that answered; not all did: %s", text, strings.Join(missed, "; "))
	}
	return newStatus(http.StatusNotFound, metav1.StatusReasonNotFound, text)
}

// warn tells which clusters an answer does not speak for.
func warn(ctx context.Context, answers []answer) {
	for _, a := range answers {
		if a.err != nil {
			warning.AddWarning(ctx, "", fmt.Sprintf("left out of the answer: %v", a.err))
		}
	}
}

// listQuery returns the query of a list for members. Everything is listed at
// once: a version or a next page of one member says nothing to another.
func listQuery(text string) (string, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return "", apierrors.NewBadRequest("the query is not well encoded")
	}
	if query.Get("continue") != "" {
		return "", apierrors.NewBadRequest("lists of all clusters have one page: list again without continue")
	}
	query.Del("continue")
	query.Del("limit")
	if query.Get("resourceVersion") != "0" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
	return query.Encode(), nil
}

// jsonOf returns what of the forms that a requester accepts is JSON, which is
// what can be put together.
func jsonOf(accept []string) string {
	var kept []string
	for _, value := range accept {
		for form := range strings.SplitSeq(value, ",") {
			if kind, _, err := mime.ParseMediaType(form); err == nil && kind == "application/json" {
				kept = append(kept, strings.TrimSpace(form))
			}
		}
	}
	return cmp.Or(strings.Join(kept, ","), "application/json")
}

// A list is a list of objects or a table, as far as lists are put together.
type list struct {
	APIVersion        string            `json:"apiVersion,omitempty"`
	Kind              string            `json:"kind,omitempty"`
	Metadata          json.RawMessage   `json:"metadata,omitempty"`
	ColumnDefinitions []column          `json:"columnDefinitions,omitempty"`
	Rows              []row             `json:"rows,omitempty"`
	Items             []json.RawMessage `json:"items,omitempty"`
}

type column = metav1.TableColumnDefinition

type row struct {
	Cells      []json.RawMessage `json:"cells"`
	Conditions json.RawMessage   `json:"conditions,omitempty"`
	Object     json.RawMessage   `json:"object,omitempty"`
}

// MarshalJSON writes the empty list that an object or table without any has.
func (l *list) MarshalJSON() ([]byte, error) {
	type plain list
	if l.Kind == "Table" {
		return json.Marshal(struct {
			*plain
			Rows []row `json:"rows"`
		}{(*plain)(l), append([]row{}, l.Rows...)})
	}
	return json.Marshal(struct {
		*plain
		Items []json.RawMessage `json:"items"`
	}{(*plain)(l), append([]json.RawMessage{}, l.Items...)})
}

// add appends another list. Members of different versions may have different
// columns: cells go where the first table has them.
func (l *list) add(other *list) {
	l.Items = append(l.Items, other.Items...)
	for _, r := range other.Rows {
		cells := make([]json.RawMessage, len(l.ColumnDefinitions))
		for i, c := range l.ColumnDefinitions {
			cells[i] = json.RawMessage("null")
			j := slices.IndexFunc(other.ColumnDefinitions, func(o column) bool { return o.Name == c.Name })
			if j >= 0 && j < len(r.Cells) {
				cells[i] = r.Cells[j]
			}
		}
		if len(l.ColumnDefinitions) == 0 {
			cells = r.Cells // a table without a header
		}
		l.Rows = append(l.Rows, row{Cells: cells, Conditions: r.Conditions, Object: r.Object})
	}
}

// An answer is what one cluster says: an error if it could not be asked, or
// does not know.
type answer struct {
	cluster *clusterv1alpha1.Cluster
	code    int
	body    []byte
	err     error
}

// ask gets a target from all clusters at the same time. Answers are in the order
// of the clusters' names.
func (e *everywhere) ask(ctx context.Context, t *target, accept string) ([]answer, error) {
	clusters, err := e.clusters.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(clusters))
	for i := range clusters {
		answers[i].cluster = &clusters[i]
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.cluster.Name, b.cluster.Name) })
	turns := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			a := &answers[i]
			a.code, a.body, a.err = e.get(ctx, a.cluster, t, accept)
		})
	}
	group.Wait()
	return answers, nil
}

// get gets a target from one cluster on behalf of the user.
func (e *everywhere) get(ctx context.Context, c *clusterv1alpha1.Cluster, t *target, accept string) (int, []byte, error) {
	limit := e.patienceWith(c)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &silence{limit})
	defer cancel()
	code, body, err := e.fetch(ctx, c, e.user, t, accept)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, nil, failure(c, err)
	}
	if code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return 0, nil, fmt.Errorf("cluster %s answers %d %s", c.Name, code, http.StatusText(code))
	}
	return code, body, nil
}

// patienceWith returns how long a cluster may take among many.
func (e *everywhere) patienceWith(c *clusterv1alpha1.Cluster) time.Duration {
	if meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
		return e.patience.all
	}
	return e.patience.doubtful
}
