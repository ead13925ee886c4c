package cluster

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

var errBoom = errors.New("boom")

// A clusterOption changes a Cluster that a test begins with.
type clusterOption func(*clusterv1alpha1.Cluster)

// member returns a push mode Cluster named m1.
func member(options ...clusterOption) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "uid-1", CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
	for _, o := range options {
		o(c)
	}
	return c
}

// epoch is when tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func pull(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }

func finalized(c *clusterv1alpha1.Cluster) {
	c.Finalizers = append(c.Finalizers, names.ClusterFinalizer)
}

func deleted(c *clusterv1alpha1.Cluster) {
	c.Finalizers = append(c.Finalizers, names.ClusterFinalizer)
	c.DeletionTimestamp = ptr.To(metav1.NewTime(epoch))
}

func cascade(value string) clusterOption {
	return func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{names.ClusterCascadeAnnotation: value}
	}
}

func ready(status metav1.ConditionStatus) clusterOption {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ConditionReady, Status: status, Reason: "Told", LastTransitionTime: metav1.NewTime(epoch),
		})
	}
}

func tainted(taints ...corev1.Taint) clusterOption {
	return func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, taints...) }
}

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

type workOption func(*workv1alpha1.Work)

// work returns a Work of m1 as the execution controller leaves it.
func work(name string, options ...workOption) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: name, Finalizers: []string{names.WorkFinalizer},
	}}
	for _, o := range options {
		o(w)
	}
	return w
}

func withdrawn(w *workv1alpha1.Work) { w.Finalizers = nil }

func preserving(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = ptr.To(true) }

func ofSystem(w *workv1alpha1.Work) { w.Labels = map[string]string{names.SystemLabel: names.True} }

func going(w *workv1alpha1.Work) { w.DeletionTimestamp = ptr.To(metav1.NewTime(epoch)) }

func space(labelled bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
	if labelled {
		ns.Labels = map[string]string{names.SystemLabel: names.True}
	}
	return ns
}

func newBinding(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.Spec.Clusters = targets(clusters)
	return b
}

func globalBinding(name string, clusters ...string) *workv1alpha2.ClusterResourceBinding {
	b := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.Clusters = targets(clusters)
	return b
}

// scheduled has a scheduler look after a binding.
func scheduled[B binding.Object](b B) B {
	b.SetLabels(map[string]string{names.PropagationPolicyIDLabel: "p"})
	b.BindingSpec().Placement = &policyv1alpha1.Placement{}
	return b
}

func targets(clusters []string) []workv1alpha2.TargetCluster {
	var t []workv1alpha2.TargetCluster
	for _, c := range clusters {
		t = append(t, workv1alpha2.TargetCluster{Name: c, Replicas: 1})
	}
	return t
}

// A world is an API server, and what was asked of it.
type world struct {
	client client.WithWatch
	record *events.FakeRecorder
	writes int
}

func newWorld(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *world {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{record: events.NewFakeRecorder(100)}
	inner := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}).
		WithIndex(&workv1alpha2.ResourceBinding{}, binding.ByCluster, binding.Clusters).
		WithIndex(&workv1alpha2.ClusterResourceBinding{}, binding.ByCluster, binding.Clusters).
		WithInterceptorFuncs(funcs).
		Build()
	w.client = interceptor.NewClient(inner, w.counting())
	return w
}

// reconciler returns a Reconciler without a cache in between.
func (w *world) reconciler() *Reconciler {
	return &Reconciler{
		client:  w.client,
		live:    w.client,
		record:  w.record,
		now:     func() time.Time { return epoch },
		leaving: newNameSet(),
	}
}

func (w *world) events() []string {
	var all []string
	for {
		select {
		case e := <-w.record.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
