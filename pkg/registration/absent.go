package registration

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// isAbsent reports that a server says that there is no such object. One that does not serve the kind at all, or is no API
// server, answers "not found" too, but not in the words of one that looked.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// isConflict reports that an object has changed since it was read.
func isConflict(err error) bool { return apierrors.IsConflict(err) }
