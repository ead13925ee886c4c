package get

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

// planeName is what CLUSTER calls the control plane.
const planeName = "Karmada"

// A source is one cluster that is asked: the control plane or a member.
type source struct {
	name   string
	member bool
	// factory may take the control plane's word for what a type is; own, of a
	// member, does not.
	factory cmdutil.Factory
	own     func() cmdutil.Factory
}

// A query is what is asked of each source.
type query struct {
	args           []string
	namespace      string
	allNamespaces  bool
	labels, fields string
	ignoreNotFound bool
	// table asks for rows instead of objects, whole for the objects with them.
	table, whole bool
}

// A part of an answer is a page of a list, or one object.
type part struct {
	from *source
	// at is the place of from among the sources.
	at         int
	resource   schema.GroupVersionResource
	kind       schema.GroupKind
	namespaced bool
	// object is a table, a list or an object, as the server sent it.
	object runtime.Object
	// event is set when this part is a change that was watched.
	event string
}

// build returns the request for a source. The builder writes into its arguments.
func (q *query) build(f cmdutil.Factory) *resource.Builder {
	return f.NewBuilder().
		Unstructured().
		NamespaceParam(q.namespace).DefaultNamespace().AllNamespaces(q.allNamespaces).
		LabelSelectorParam(q.labels).
		FieldSelectorParam(q.fields).
		RequestChunksOf(cmdutil.DefaultChunkSize).
		ResourceTypeOrNameArgs(true, slices.Clone(q.args)...).
		Latest().
		TransformRequests(q.transform)
}

// transform asks the server for a table, which it may not know how to make.
func (q *query) transform(req *rest.Request) {
	if !q.table {
		return
	}
	req.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json")
	if q.whole {
		req.Param("includeObject", "Object")
	}
}

// ask sends what a source has, part by part. one is set when the query was for
// one object, and for no list.
func (q *query) ask(s *source, send func(part) error) (one bool, err error) {
	sent := make(map[string]bool)
	visit := func(f cmdutil.Factory, skip map[string]bool) error {
		r := q.build(f).ContinueOnError().Do()
		if q.ignoreNotFound {
			r.IgnoreErrors(isObjectMissing)
		}
		return r.IntoSingleItemImplied(&one).Visit(func(info *resource.Info, err error) error {
			if err != nil {
				return err
			}
			p := newPart(s, info)
			key := p.resource.String() + " " + info.Name // a list has no name
			if skip[key] {
				return nil
			}
			if err := send(p); err != nil {
				return err
			}
			sent[key] = true
			return nil
		})
	}
	err = visit(s.factory, nil)
	if s.own == nil || !slices.ContainsFunc(split(err), isNotServed) {
		return one, err
	}
	// A type is something else there than it is in the control plane.
	return one, visit(s.own(), maps.Clone(sent))
}

func newPart(s *source, info *resource.Info) part {
	m := info.ResourceMapping()
	return part{
		from: s, resource: m.Resource, kind: m.GroupVersionKind.GroupKind(),
		namespaced: m.Scope.Name() != meta.RESTScopeNameRoot, object: info.Object,
	}
}

// isNotServed tells a path that a server does not know from an object that it
// does not have.
func isNotServed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != 404 {
		return false
	}
	details := status.Status().Details
	return details == nil || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

func isObjectMissing(err error) bool { return apierrors.IsNotFound(err) && !isNotServed(err) }

// split returns the single errors that one is made of.
func split(err error) []error {
	var many utilerrors.Aggregate
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		return utilerrors.Flatten(many).Errors()
	}
	return []error{err}
}

// failures says of each source what went wrong with it.
func failures(sources []*source, errs []error) error {
	if len(sources) == 1 && !sources[0].member {
		// The words of kubectl, and its exit code.
		return utilerrors.Reduce(utilerrors.NewAggregate(split(errs[0])))
	}
	var all fleet.Errors
	for i, err := range errs {
		for _, one := range split(err) {
			all = append(all, &fleet.Error{Cluster: sources[i].name, Err: one})
		}
	}
	return all.Err()
}

// asked starts to ask all sources. Each sends its parts to its channel, and says
// when it is done.
func (q *query) asked(ctx context.Context, sources []*source, channel func(i int) chan<- part, done func(i int, one bool, err error)) {
	for i, s := range sources {
		go func() {
			one, err := q.ask(s, func(p part) error {
				p.at = i
				select {
				case channel(i) <- p:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			done(i, one, err)
		}()
	}
}

// nothing says that there is nothing, in kubectl's words.
func (o *Options) nothing(namespaced bool) error {
	text := "No resources found"
	if namespaced && !o.Query.allNamespaces {
		text = fmt.Sprintf("No resources found in %s namespace.", o.Query.namespace)
	}
	_, err := fmt.Fprintln(o.ErrOut, text)
	return err
}

// hasTypes tells whether the arguments name several types.
func (q *query) hasTypes() bool {
	types := make(map[string]bool)
	for i, arg := range q.args {
		before, _, slash := strings.Cut(arg, "/")
		switch {
		case slash:
			types[before] = true
		case i == 0:
			for t := range strings.SplitSeq(arg, ",") {
				types[t] = true
			}
		}
	}
	return len(types) > 1 || types["all"]
}

func (q *query) patience() time.Duration {
	if q.hasTypes() {
		return togetherMany
	}
	return together
}
