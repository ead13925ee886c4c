package clusterstatus

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/member"
	"github.com/karmadactl/karmadactl/pkg/metrics"
)

func taint() corev1.Taint { return corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule} }

// A world is a control plane that counts what is written.
type world struct {
	client client.WithWatch
	writes int
	// refuse, unless it is nil, decides about writes of a status.
	refuse func(client.Object) error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes++
				if w.refuse != nil {
					if err := w.refuse(o); err != nil {
						return err
					}
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	return w
}

func (w *world) cluster(t *testing.T) *clusterv1alpha1.Cluster {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "m1"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) lease(t *testing.T) (*coordinationv1.Lease, bool) {
	t.Helper()
	l := &coordinationv1.Lease{}
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: "m1"}, l)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return l, err == nil
}

// A memberServer is the API server of a member with one node and one pod.
type memberServer struct {
	*httptest.Server
	discoverer *discoverer
	mu         sync.Mutex
	ready      int           // status of /readyz
	hold       chan struct{} // pods are sent when it is closed
	forbidden  bool          // nobody may look at pods
	over       chan struct{}
}

func newMemberServer(t *testing.T) *memberServer {
	t.Helper()
	m := &memberServer{discoverer: newDiscoverer(), ready: http.StatusOK, hold: make(chan struct{}), over: make(chan struct{})}
	close(m.hold)
	m.Server = httptest.NewServer(m)
	t.Cleanup(func() {
		close(m.over)
		m.Close()
	})
	return m
}

func (m *memberServer) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *memberServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	ready, hold, forbidden := m.ready, m.hold, m.forbidden
	m.mu.Unlock()
	switch r.URL.Path {
	case "/readyz":
		w.WriteHeader(ready)
	case "/version":
		_, _ = w.Write([]byte(`{"gitVersion":"v1.37.2"}`))
	case "/api/v1/nodes":
		m.stream(w, r, &corev1.Node{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "1"},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
	case "/api/v1/pods":
		if forbidden {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		select {
		case <-hold:
		case <-m.over:
			return
		}
		m.stream(w, r, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p1", UID: "p1", ResourceVersion: "1"},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
		})
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.discoverer.ServeHTTP(w, r)
	}
}

// stream sends an object, and that this is all, and stays open.
func (m *memberServer) stream(w http.ResponseWriter, r *http.Request, o client.Object) {
	w.Header().Set("Content-Type", "application/json")
	end := metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: o.GetObjectKind().GroupVersionKind().Kind},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
	}
	encoder := json.NewEncoder(w)
	for _, e := range []any{map[string]any{"type": "ADDED", "object": o}, map[string]any{"type": "BOOKMARK", "object": end}} {
		if err := encoder.Encode(e); err != nil {
			return
		}
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	select {
	case <-r.Context().Done():
	case <-m.over:
	}
}

// newLoop returns a loop for m1 by way of a server, with a clock of its own.
func newLoop(t *testing.T, w *world, host string) (l *loop, pass func(time.Duration)) {
	t.Helper()
	registered, err := metrics.NewClusters(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	now := epoch
	l = &loop{
		name: "m1", uid: "u", client: w.client, live: w.client, log: logr.Discard(), now: func() time.Time { return now },
		kick: make(chan struct{}, 1), patience: time.Minute,
		o: Options{
			Pool:      member.NewPool(t.Context(), member.Pull("m1", &rest.Config{Host: host}, member.Limits{})),
			Frequency: 10 * time.Second, SuccessThreshold: 30 * time.Second, FailureThreshold: 30 * time.Second,
			ResourceModeling: true, CustomizedModels: true, Metrics: registered,
		},
	}
	return l, func(d time.Duration) { now = now.Add(d) }
}
