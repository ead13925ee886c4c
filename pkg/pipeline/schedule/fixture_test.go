package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/pending"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(epoch.Add(-d))) }

// A clusterOption changes a Cluster that a test begins with.
type clusterOption func(*clusterv1alpha1.Cluster)

// cluster returns one that serves Deployments and ConfigMaps.
func cluster(name string, options ...clusterOption) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{names.ClusterFinalizer}}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
	}
	for _, o := range options {
		o(c)
	}
	return c
}

func leaving(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = ago(0) }

func tainted(c *clusterv1alpha1.Cluster) {
	c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
}

func withRoom(pods string) clusterOption {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: quantity(pods)}}
	}
}

// An option changes a binding that a test begins with.
type option func(binding.Object)

// workload returns the binding of a Deployment of 3 replicas, at generation 1,
// that nobody has scheduled yet.
func workload(options ...option) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-deployment", UID: "uid-b", Generation: 1,
		Labels: map[string]string{names.PropagationPolicyIDLabel: "id"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web", UID: "a"}
	b.Spec.Replicas = 3
	b.Spec.Placement = &policyv1alpha1.Placement{}
	for _, o := range options {
		o(b)
	}
	return b
}

// global returns the ClusterResourceBinding of something without replicas.
func global(options ...option) *workv1alpha2.ClusterResourceBinding {
	b := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "cfg-configmap", UID: "uid-c", Generation: 1, Labels: map[string]string{names.ClusterPropagationPolicyIDLabel: "id"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "cfg"}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	for _, o := range options {
		o(b)
	}
	return b
}

func divided(b binding.Object) {
	b.BindingSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
}

func dynamic(b binding.Object) {
	divided(b)
	b.BindingSpec().Placement.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}
}

// components makes it a workload of three pods of two kinds.
func components(b binding.Object) {
	b.BindingSpec().Replicas = 0
	b.BindingSpec().Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 2}}
}

// toOne lets a workload go to one cluster only.
func toOne(b binding.Object) {
	b.BindingSpec().Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: "cluster", MinGroups: 1, MaxGroups: 1}}
}

func toClusters(names ...string) option {
	return func(b binding.Object) {
		b.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	}
}

// terms makes an affinity term of each cluster, of the same name.
func terms(names ...string) option {
	return func(b binding.Object) {
		for _, n := range names {
			p := b.BindingSpec().Placement
			p.ClusterAffinities = append(p.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{
				AffinityName: n, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{n}},
			})
		}
	}
}

func inTermOf(name string) option {
	return func(b binding.Object) { b.BindingStatus().SchedulerObservedAffinityName = name }
}

func replicas(n int32) option { return func(b binding.Object) { b.BindingSpec().Replicas = n } }

// on puts a binding on clusters, "name:replicas" each.
func on(targets ...string) option {
	return func(b binding.Object) {
		b.BindingSpec().Clusters = nil
		for _, t := range targets {
			name, number, _ := strings.Cut(t, ":")
			n := int32(0)
			_, _ = fmt.Sscan(number, &n)
			b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: n})
		}
	}
}

// scheduled says that the binding, as it is now, was scheduled a minute ago.
func scheduled(b binding.Object) {
	text, _ := json.Marshal(b.BindingSpec().Placement)
	b.SetAnnotations(map[string]string{names.AppliedPlacementAnnotation: string(text)})
	status := b.BindingStatus()
	status.SchedulerObservedGeneration = b.GetGeneration()
	status.LastScheduledTime = ago(time.Minute)
	status.Conditions = []metav1.Condition{condition(nil)}
	status.Conditions[0].LastTransitionTime = *ago(time.Minute)
}

// told sets the condition Scheduled to what an error makes it.
func told(err error) option {
	return func(b binding.Object) {
		c := condition(err)
		c.LastTransitionTime = *ago(time.Minute)
		b.BindingStatus().Conditions = []metav1.Condition{c}
	}
}

// edited says that the spec has changed since.
func edited(b binding.Object) { b.SetGeneration(b.GetGeneration() + 1) }

// A world is an API server, and what was asked of it.
type world struct {
	t      *testing.T
	client client.WithWatch
	mu     sync.Mutex // of what follows
	events []string
	writes []string
	// refuse, unless it is nil, is asked before each write.
	refuse func(write string) error
	lists  int // live ones of Clusters
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}).Build()
	w.client = interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := w.wrote("patch", o, p); err != nil {
				return err
			}
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			// A real server counts changes of the spec.
			o.SetGeneration(o.GetGeneration() + 1)
			return c.Update(ctx, o)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.wrote("patch "+sub, o, p); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return w
}

func (w *world) wrote(verb string, o client.Object, p client.Patch) error {
	data, err := p.Data(o)
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(string(data), `"resourceVersion"`) {
		w.t.Errorf("%s %s could overwrite what others wrote", verb, data)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, verb)
	if w.refuse != nil {
		return w.refuse(verb)
	}
	return nil
}

// Eventf implements events.EventRecorder.
func (w *world) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	about := "Template"
	if _, ok := regarding.(binding.Object); ok {
		about = "Binding"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s: %s %s: %s", about, kind, reason, fmt.Sprintf(note, args...)))
}

// live is the API server, without the cache.
type live struct {
	client.Reader
	w *world
}

func (l live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.lists++
	return l.Reader.List(ctx, list, opts...)
}

// reconciler returns a Reconciler whose cache is cached, the server itself when
// it is nil.
func (w *world) reconciler(cached client.Client, options Options) *Reconciler {
	w.t.Helper()
	if cached == nil {
		cached = w.client
	}
	options.Registerer = prometheus.NewRegistry()
	options, err := options.complete()
	if err != nil {
		w.t.Fatal(err)
	}
	instruments, err := newInstruments(options.Registerer)
	if err != nil {
		w.t.Fatal(err)
	}
	r := options.reconciler(cached, live{w.client, w}, w, instruments)
	r.now = func() time.Time { return epoch }
	if options.Pending {
		r.pending = pending.New(r.now)
	}
	return r
}

func requestFor(b binding.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}
}

// get returns the binding as it is now.
func (w *world) get(b binding.Object) binding.Object {
	w.t.Helper()
	now := binding.New(b.GetNamespace())
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(b), now); err != nil {
		w.t.Fatal(err)
	}
	return now
}

// targetsOf writes the clusters of a binding as on takes them.
func targetsOf(b binding.Object) string {
	var all []string
	for _, t := range b.BindingSpec().Clusters {
		all = append(all, fmt.Sprintf("%s:%d", t.Name, t.Replicas))
	}
	return strings.Join(all, " ")
}

func conditionOf(b binding.Object) string {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func duplicated(b binding.Object) {
	b.BindingSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}
}

func toleration(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }
