package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// How metadata are asked for. Some APIs have no other form than their own.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// unlessProtected refuses a request that deletes an object of a member that is
// protected by its label: the member has no admission that would (spec:
// behaviour/08 8.3, deletion protection). The user reads the object for that, and
// so has to be allowed to. A collection with a protected object stays as a whole.
// Whatever deletes nothing is not held up.
//
// What the member deletes by itself is not looked at: the contents of a namespace,
// objects of a kind that goes, dependants of the object.
func (r *REST) unlessProtected(ctx context.Context, c *clusterv1alpha1.Cluster, u user.Info, t *target) error {
	look, accept := t.doomed()
	if look == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.patience.answer, &silence{r.patience.answer})
	defer cancel()
	code, body, err := r.fetch(ctx, c, u, look, accept)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return failure(c, err)
	}
	switch {
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		// What is not there, or cannot be read by anybody, is for the member to answer.
		return nil
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return failure(c, errRedirect)
	case code != http.StatusOK:
		return unknownProtection(c, look, code, body)
	}
	objects, err := look.objectsIn(body)
	if err != nil {
		return badGateway("cannot find out whether %s of cluster %s is protected from being deleted: the cluster answers with something else: %s", look.name(), c.Name, oneLine(err))
	}
	for i := range objects {
		if o := &objects[i]; names.IsDeletionProtected(o.Labels) {
			return apierrors.NewForbidden(look.groupResource(), o.Name, errors.New(names.DeletionProtectedRefusal))
		}
	}
	return nil
}

// doomed returns what to get of a member to see what the target deletes there, and
// in which form; nil if it deletes nothing. An eviction deletes its pod.
func (t *target) doomed() (look *target, accept string) {
	i := t.info
	if !i.IsResourceRequest {
		return nil, ""
	}
	switch {
	case i.Verb == "delete" && i.Subresource == "",
		i.Verb == "create" && i.APIGroup == "" && i.Resource == "pods" && i.Subresource == "eviction" && i.Name != "":
		return t.object(), acceptMetadata
	case i.Verb == "deletecollection" && i.Subresource == "":
		// The same objects, by the values that an API server reads of a query.
		asked, query := (&url.URL{RawQuery: t.query}).Query(), url.Values{}
		selector := names.DeletionProtectedSelector
		if s := asked.Get("labelSelector"); s != "" {
			selector = s + "," + selector
		}
		query.Set("labelSelector", selector)
		if s := asked.Get("fieldSelector"); s != "" {
			query.Set("fieldSelector", s)
		}
		return &target{path: t.path, query: query.Encode(), info: i}, acceptMetadataList
	}
	return nil, ""
}

// objectsIn reads the answer to what was looked for.
func (t *target) objectsIn(body []byte) ([]metav1.PartialObjectMetadata, error) {
	if t.info.Name == "" {
		var list metav1.PartialObjectMetadataList
		err := json.Unmarshal(body, &list)
		return list.Items, err
	}
	var one metav1.PartialObjectMetadata
	err := json.Unmarshal(body, &one)
	return []metav1.PartialObjectMetadata{one}, err
}

func (t *target) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.info.APIGroup, Resource: t.info.Resource}
}

// name is what users call the target.
func (t *target) name() string {
	if t.info.Name == "" {
		return t.groupResource().String()
	}
	return t.groupResource().String() + "/" + t.info.Name
}

// unknownProtection says that a member does not tell whether an object is protected,
// and why, in the way the member did.
func unknownProtection(c *clusterv1alpha1.Cluster, t *target, code int, body []byte) error {
	var said metav1.Status
	_ = json.Unmarshal(body, &said) // whatever else it says is not for users
	why := cmp.Or(said.Message, http.StatusText(code), "no more is known")
	if code >= http.StatusInternalServerError {
		return badGateway("cannot find out whether %s of cluster %s is protected from being deleted: the cluster answers %d: %s: try again", t.name(), c.Name, code, why)
	}
	err := newStatus(int32(code), said.Reason, "cannot find out whether %s of cluster %s is protected from being deleted: %s", t.name(), c.Name, why)
	if code == http.StatusForbidden {
		err.ErrStatus.Message += ": who deletes through the control plane has to be allowed to read it in the cluster"
	}
	return err
}
