package bind

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Key names a template, as an object of one version of its kind.
type Key struct {
	schema.GroupVersionKind
	Namespace, Name string
}

func keyOf(u *unstructured.Unstructured) Key {
	return Key{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func keyOfRef(ref workv1alpha2.ObjectReference) Key {
	return Key{GroupVersionKind: binding.GVK(ref), Namespace: ref.Namespace, Name: ref.Name}
}

// ref returns how a binding refers to the template, but for its UID and version.
func (k Key) ref() workv1alpha2.ObjectReference {
	apiVersion, kind := k.ToAPIVersionAndKind()
	return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: k.Namespace, Name: k.Name}
}

// later is the priority of what nobody waits for: what was there before, and what
// a policy has to say about many templates (spec: behaviour/03 3.1).
const later = -100

// An inbox is where keys of templates are put for the controller, whether or not
// its queue is there yet.
type inbox struct {
	exempt func(namespace string) bool

	mu     sync.Mutex
	queue  workqueue.TypedRateLimitingInterface[Key]
	before map[Key]int // what came before the queue, with its priority
}

func newInbox(exempt func(string) bool) *inbox {
	return &inbox{exempt: exempt, before: map[Key]int{}}
}

// open says which queue keys go to.
func (i *inbox) open(q workqueue.TypedRateLimitingInterface[Key]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue = q
	for k, priority := range i.before {
		add(q, k, priority)
	}
	clear(i.before)
}

// put adds a key, unless what it names is never propagated.
func (i *inbox) put(k Key, priority int) {
	if i.isExempt(k) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue != nil {
		add(i.queue, k, priority)
		return
	}
	if now, ok := i.before[k]; !ok || now < priority {
		i.before[k] = priority
	}
}

func add(q workqueue.TypedRateLimitingInterface[Key], k Key, priority int) {
	if p, ok := q.(priorityqueue.PriorityQueue[Key]); ok {
		p.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(priority)}, k)
		return
	}
	q.Add(k)
}

// isExempt reports whether a template is never propagated because of where it is,
// or what it is (spec: behaviour/01 1.1).
func (i *inbox) isExempt(k Key) bool {
	switch {
	case k.Namespace != "" && i.exempt(k.Namespace):
		return true
	case k.Group != "":
		return false
	case k.Kind == "Namespace":
		return names.IsReservedNamespace(k.Name)
	default:
		return k.Kind == "ConfigMap" && k.Namespace == "kube-system" && k.Name == "extension-apiserver-authentication"
	}
}
