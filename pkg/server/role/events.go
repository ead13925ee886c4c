package role

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// WithDistinctEvents returns a manager whose events of one object and reason are
// told apart by what they say. client-go counts events of the same action as one,
// whatever their notes are: of several clusters in which something failed a user
// would see the first alone, and of a failure that has changed never the second.
func WithDistinctEvents(mgr manager.Manager) manager.Manager {
	return distinct{mgr}
}

type distinct struct{ manager.Manager }

func (d distinct) GetEventRecorder(name string) recorder.EventRecorder {
	return distinctRecorder{next: d.Manager.GetEventRecorder(name), scheme: d.GetScheme()}
}

type distinctRecorder struct {
	next   recorder.EventRecorder
	scheme *runtime.Scheme
}

// Eventf makes the note part of the action, in short, and leaves the version of
// the object out: the same event of two versions is one.
func (r distinctRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, kind, reason, action, note, args...)
}

// AnnotatedEventf is Eventf with annotations on the event.
func (r distinctRecorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, kind, reason, action, note string, args ...any,
) {
	text := fmt.Sprintf(note, args...)
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash never fails to write
	r.next.AnnotatedEventf(r.unversioned(regarding), related, annotations, kind, reason, fmt.Sprintf("%s-%08x", action, h.Sum32()), "%s", text)
}

func (r distinctRecorder) unversioned(o runtime.Object) runtime.Object {
	ref, err := reference.GetReference(r.scheme, o)
	if err != nil {
		return o // which is for the recorder to complain about
	}
	return &corev1.ObjectReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, FieldPath: ref.FieldPath,
	}
}
