package binding

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsSuccessor reports whether a patch that names the UID of its object was refused
// because another object has that name by now: what is to be said of the former is
// not true of it.
func IsSuccessor(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && apierrors.IsInvalid(err) && cause.Field == "metadata.uid"
}
