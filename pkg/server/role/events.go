package role

import (
	"fmt"
	"hash/fnv"
	"strings"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// How many events of success are recorded: so many at once, and so many a second
// from then on. When many objects change, telling of each that it went well costs
// more than the work itself, in a store that everybody shares. What failed is
// always told. What is told of Works, which are our own, has a limit of its own, so
// that it never keeps off what is told of users' objects.
const (
	successesAtOnce, successesPerSecond = 200, 1
	onWorksAtOnce, onWorksPerSecond     = 50, 0.2
)

// WithEvents returns a manager whose events of one object and reason are told
// apart by what they say, and are not too many. client-go counts events of the same
// action as one, whatever their notes are: of several clusters in which something
// failed a user would see the first alone, and of a failure that has changed never
// the second.
func WithEvents(mgr manager.Manager) manager.Manager {
	return withEvents{Manager: mgr, limits: newLimits()}
}

type withEvents struct {
	manager.Manager
	limits *limits
}

func (w withEvents) GetEventRecorder(name string) recorder.EventRecorder {
	return eventRecorder{next: w.Manager.GetEventRecorder(name), scheme: w.GetScheme(), limits: w.limits}
}

// Limits are shared by all that records events in a process.
type limits struct{ successes, onWorks *rate.Limiter }

func newLimits() *limits {
	return &limits{
		successes: rate.NewLimiter(successesPerSecond, successesAtOnce),
		onWorks:   rate.NewLimiter(onWorksPerSecond, onWorksAtOnce),
	}
}

// allow reports whether there is room for an event, and takes it.
func (l *limits) allow(regarding *corev1.ObjectReference, kind string) bool {
	switch {
	case kind != corev1.EventTypeNormal:
		return true
	case regarding.Kind == "Work" && strings.HasPrefix(regarding.Namespace, names.ExecutionNamespacePrefix):
		return l.onWorks.Allow()
	default:
		return l.successes.Allow()
	}
}

type eventRecorder struct {
	next   recorder.EventRecorder
	scheme *runtime.Scheme
	limits *limits
}

// Eventf makes the note part of the action, in short, and leaves the version of
// the object out: the same event of two versions is one.
func (r eventRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, kind, reason, action, note, args...)
}

// AnnotatedEventf is Eventf with annotations on the event.
func (r eventRecorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, kind, reason, action, note string, args ...any,
) {
	if ref, err := reference.GetReference(r.scheme, regarding); err == nil { // or else the recorder complains
		regarding = &corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, FieldPath: ref.FieldPath,
		}
		if !r.limits.allow(ref, kind) {
			return
		}
	}
	text := fmt.Sprintf(note, args...)
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash never fails to write
	r.next.AnnotatedEventf(regarding, related, annotations, kind, reason, fmt.Sprintf("%s-%08x", action, h.Sum32()), "%s", text)
}
