package validate

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// rules are what is checked of objects of one kind. A part that is nil holds for
// every object.
type rules[T any] struct {
	// content is what spec looks at. While it is the same as before, spec is not
	// asked.
	content func(o *T) any
	// spec returns what is wrong with an object. Its error is a failure to find
	// out.
	spec func(ctx context.Context, o *T) (field.ErrorList, error)
	// change returns what is wrong with what becomes of an object; was is nil when
	// it is created. It must accept that nothing changes.
	change func(was, now *T) field.ErrorList
	// advice returns what the user should know about an object that is accepted.
	advice func(ctx context.Context, o *T) []string
	// quantities are the fields that hold quantities, or lists or maps of them.
	quantities []string
}

// plain makes rules of functions that cannot fail and look at nothing else.
func plain[T any](content func(*T) any, spec func(*T) field.ErrorList) rules[T] {
	return rules[T]{content: content, spec: func(_ context.Context, o *T) (field.ErrorList, error) { return spec(o), nil }}
}

// validating makes a handler of rules.
func validating[T any, P interface {
	*T
	client.Object
}](r rules[T]) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		if len(req.Object.Raw) == 0 {
			return admission.Allowed("") // a deletion
		}
		if errs := OutOfRange(req.Object.Raw, r.quantities...); len(errs) > 0 {
			if spared(req) {
				return admission.Allowed("")
			}
			return verdict(req, errs)
		}
		now := P(new(T))
		if err := json.Unmarshal(req.Object.Raw, now); err != nil {
			if spared(req) {
				return admission.Allowed("")
			}
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the object: %w", err))
		}
		if !now.GetDeletionTimestamp().IsZero() {
			return admission.Allowed("")
		}
		var was P
		if len(req.OldObject.Raw) > 0 {
			was = P(new(T))
			if len(OutOfRange(req.OldObject.Raw, r.quantities...)) > 0 || json.Unmarshal(req.OldObject.Raw, was) != nil {
				was = nil // what is stored is broken: what takes its place is looked at as if it were new
			}
		}

		var errs field.ErrorList
		if r.change != nil {
			errs = r.change(was, now)
		}
		if was != nil && equality.Semantic.DeepEqual(r.content(was), r.content(now)) {
			return verdict(req, errs)
		}
		more, err := r.spec(ctx, now)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		resp := verdict(req, append(errs, more...))
		if resp.Allowed && r.advice != nil {
			resp.Warnings = r.advice(ctx, now)
		}
		return resp
	})
}

// A refusal must fit into a response: an object may be wrong in a hundred thousand
// places. These are far more than anybody reads.
const (
	mostErrors     = 100
	longestMessage = 32 << 10 // in bytes
)

// verdict allows what nothing is wrong with. A refusal has all the errors in its
// message, for people and for scripts that match it, and one by one as causes, for
// programs.
func verdict(req admission.Request, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	errs = errs[:min(len(errs), mostErrors)]
	resp := admission.Denied(brief.Text(errs.ToAggregate().Error(), longestMessage))
	resp.Result.Details = &metav1.StatusDetails{Name: req.Name, Group: req.Kind.Group, Kind: req.Kind.Kind}
	for _, e := range errs {
		resp.Result.Details.Causes = append(resp.Result.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(e.Type), Message: brief.Text(e.ErrorBody(), longestMessage/mostErrors), Field: e.Field,
		})
	}
	return resp
}

// spared says whether an update of an object that our types cannot hold is one
// that is never refused: the object is being deleted, or only its metadata
// changes.
func spared(req admission.Request) bool {
	var now, was map[string]any
	if json.Unmarshal(req.Object.Raw, &now) != nil || json.Unmarshal(req.OldObject.Raw, &was) != nil {
		return false
	}
	if metadata, ok := now["metadata"].(map[string]any); ok && metadata["deletionTimestamp"] != nil {
		return true
	}
	delete(now, "metadata")
	delete(was, "metadata")
	return equality.Semantic.DeepEqual(was, now)
}

// unchangeable says that an identity, once there, stays: a label by which others
// know the object.
func unchangeable(was, now client.Object, label string) *field.Error {
	had, has := was.GetLabels()[label], now.GetLabels()[label]
	if had == "" || had == has {
		return nil
	}
	return field.Invalid(field.NewPath("metadata", "labels").Key(label), has,
		fmt.Sprintf("cannot be changed from %q: it is the identity by which others know this object", had))
}

// invalid makes an error of each problem that a value has.
func invalid(path *field.Path, value string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}
