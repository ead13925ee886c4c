package protect

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmadactl/karmadactl/pkg/names"
)

const (
	// Patience is how long protected objects are looked for. An API server has to
	// wait longer for the answer.
	Patience = 2 * time.Second
	// atOnce is how many kinds are looked at at the same time.
	atOnce = 16
	// mostNamed is how many protected objects a refusal names, and how many kinds a
	// warning.
	mostNamed = 5
)

// namespace refuses to delete a namespace that holds a protected object. What could
// not be looked at is warned about: a broken API must not keep namespaces for ever,
// and what is protected still is, one by one.
func (o Options) namespace(ctx context.Context, ns *metav1.PartialObjectMetadata, _ []byte) admission.Response {
	if ns.DeletionTimestamp != nil || names.IsReservedNamespace(ns.Name) {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("no answer within %s", Patience))
	defer cancel()
	kinds, err := o.Namespaced(ctx)
	var unknown []string
	if err != nil {
		unknown = append(unknown, err.Error())
	}
	found, failed := o.protectedIn(ctx, ns.Name, kinds)
	if len(found) > 0 {
		return admission.Denied(fmt.Sprintf("namespace %s holds protected resources, please make sure to remove the label: %s of %s",
			ns.Name, names.DeletionProtectedLabel, some(found)))
	}
	if unknown = append(unknown, failed...); len(unknown) > 0 {
		return admission.Allowed("").WithWarnings(fmt.Sprintf(
			"namespace %s may hold protected resources, which would keep it from ending: could not look for %s", ns.Name, some(unknown)))
	}
	return admission.Allowed("")
}

// protectedIn returns protected objects of a namespace, one of each kind that has
// any, and what kept it from looking at others.
func (o Options) protectedIn(ctx context.Context, namespace string, kinds []schema.GroupVersionResource) (found, failed []string) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		turns = make(chan struct{}, atOnce)
	)
	for _, gvr := range kinds {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			one, err := o.protected(ctx, gvr, namespace)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
				// The kind is not served any more.
			case err != nil:
				failed = append(failed, fmt.Sprintf("%s (%v)", gvr.GroupResource(), err))
			case one != nil:
				found = append(found, gvr.GroupResource().String()+"/"+one.Name)
			}
		})
	}
	group.Wait()
	slices.Sort(found)
	slices.Sort(failed)
	return found, failed
}

// protected returns one protected object of a kind, nil if there is none. All
// namespaces are looked at when none is given.
func (o Options) protected(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (*metav1.PartialObjectMetadata, error) {
	list, err := o.Metadata.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: names.DeletionProtectedSelector, Limit: 1})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

// A definition is what a CustomResourceDefinition says about where its objects are.
type definition struct {
	Spec definitionSpec `json:"spec"`
}

type definitionSpec struct {
	Group string `json:"group"`
	Names struct {
		Plural string `json:"plural"`
	} `json:"names"`
	Versions []definitionVersion `json:"versions"`
}

type definitionVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
}

// resource returns how the objects can be read, in the version that needs least
// conversion; false if they cannot be.
func (d *definition) resource() (schema.GroupVersionResource, bool) {
	version := ""
	for _, v := range d.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	return schema.GroupVersionResource{Group: d.Spec.Group, Version: version, Resource: d.Spec.Names.Plural}, version != ""
}

// definition refuses to delete a CustomResourceDefinition of which there is a
// protected object. So it does when that cannot be found out: nobody is asked about
// the objects.
func (o Options) definition(ctx context.Context, crd *metav1.PartialObjectMetadata, raw []byte) admission.Response {
	if crd.DeletionTimestamp != nil {
		return admission.Allowed("")
	}
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return unreadable(err)
	}
	gvr, ok := d.resource()
	if !ok {
		return admission.Allowed("") // nothing is served, and so nothing can be labelled
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("no answer within %s", Patience))
	defer cancel()
	one, err := o.protected(ctx, gvr, metav1.NamespaceAll)
	switch {
	case apierrors.IsNotFound(err):
		return admission.Allowed("") // never served
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf(
			"find out whether there are protected %s, which would be deleted too: %w: try again when they can be listed", gvr.GroupResource(), err))
	case one != nil:
		name := one.Name
		if one.Namespace != "" {
			name = one.Namespace + "/" + name
		}
		return admission.Denied(fmt.Sprintf("objects of %s are protected and would be deleted too, please make sure to remove the label: %s of %s",
			crd.Name, names.DeletionProtectedLabel, name))
	}
	return admission.Allowed("")
}

// some joins a few of many.
func some(all []string) string {
	if more := len(all) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostNamed], ", "), more)
	}
	return strings.Join(all, ", ")
}
