package explanation

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// epoch is when tests ask.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(epoch.Add(-d)) }

// A world is what there is in a control plane.
type world struct {
	template *unstructured.Unstructured
	policy   *policyv1alpha1.PropagationPolicy // has claimed the template
	binding  *workv1alpha2.ResourceBinding
	works    map[string]*workv1alpha1.Work
	clusters map[string]*clusterv1alpha1.Cluster
	others   []client.Object
	resource string
	cluster  string // that is asked about
	deny     []string
}

// newWorld returns one in which all is well: Deployment shop/web with 4 replicas, two
// each in m1 and m2 of three clusters.
func newWorld(t *testing.T) *world {
	w := &world{works: map[string]*workv1alpha1.Work{}, clusters: map[string]*clusterv1alpha1.Cluster{}, resource: "deployments"}
	w.policy = &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "policy", CreationTimestamp: ago(time.Hour), Labels: map[string]string{names.PropagationPolicyIDLabel: "policy-id"},
	}}
	w.policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	w.policy.Spec.Placement = policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		},
	}
	w.template = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"replicas": int64(4),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1"}}}},
		},
	}}
	w.template.SetNamespace("shop")
	w.template.SetName("web")
	w.template.SetUID("template")
	w.template.SetGeneration(2)
	w.template.SetCreationTimestamp(ago(50 * time.Minute))
	policy.By(w.policy).Put(w.template)

	w.binding = &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "binding", Generation: 3, CreationTimestamp: ago(50 * time.Minute),
		Labels: map[string]string{names.ResourceBindingIDLabel: "binding-id"}, Annotations: map[string]string{names.TemplateFingerprintAnnotation: "x-y"},
		Finalizers: []string{names.ResourceBindingFinalizer},
	}}
	policy.By(w.policy).Put(w.binding)
	w.binding.Spec.Resource = RefOf(w.template)
	w.binding.Spec.Replicas = 4
	w.place(t, "m1", "m2")
	w.binding.Status.LastScheduledTime = ptr.To(ago(40 * time.Minute))
	w.scheduled(nil, "Success", "Binding has been scheduled successfully.")
	meta.SetStatusCondition(&w.binding.Status.Conditions, metav1.Condition{
		Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionTrue, Reason: "FullyAppliedSuccess", LastTransitionTime: ago(30 * time.Minute),
	})
	for _, name := range []string{"m1", "m2", "m3"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: ago(2 * time.Hour), Finalizers: []string{names.ClusterFinalizer}}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady", LastTransitionTime: ago(time.Hour)}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		}
		w.clusters[name] = c
	}
	return w
}

// place puts the template into clusters, two replicas each, and lets all go well there.
func (w *world) place(t *testing.T, clusters ...string) {
	t.Helper()
	placement := w.policy.Spec.Placement
	w.binding.Spec.Placement = &placement
	applied, err := json.Marshal(placement)
	if err != nil {
		t.Fatal(err)
	}
	w.binding.Annotations[names.AppliedPlacementAnnotation] = string(applied)
	w.binding.Spec.Clusters = nil
	w.works = map[string]*workv1alpha1.Work{}
	for _, name := range clusters {
		w.binding.Spec.Clusters = append(w.binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: int32(4 / len(clusters))})
		w.works[name] = w.work(t, name)
	}
}

// work returns the Work of a cluster that has taken it, and is healthy.
func (w *world) work(t *testing.T, cluster string) *workv1alpha1.Work {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ExecutionNamespace(cluster), Name: names.Work("Deployment", "web", "shop"), UID: types.UID("work-" + cluster), Generation: 1,
		CreationTimestamp: ago(40 * time.Minute), Labels: binding.WorkLabels(w.binding), Annotations: binding.WorkAnnotations(w.binding), Finalizers: []string{names.WorkFinalizer},
	}}
	w.carry(t, work, w.template.GetGeneration())
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful", ObservedGeneration: 1, LastTransitionTime: ago(35 * time.Minute),
	}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Health: workv1alpha1.ResourceHealthy,
	}}
	return work
}

// carry lets a Work say which generation of the template it carries.
func (w *world) carry(t *testing.T, work *workv1alpha1.Work, generation int64) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{names.TemplateGenerationAnnotation: fmt.Sprint(generation)}}})
	if err != nil {
		t.Fatal(err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
}

// scheduled sets the condition Scheduled; nil clusters leaves where the binding is.
func (w *world) scheduled(clusters []workv1alpha2.TargetCluster, reason, message string) {
	status := metav1.ConditionFalse
	if reason == workv1alpha2.ReasonScheduled {
		status = metav1.ConditionTrue
		w.binding.Status.SchedulerObservedGeneration = w.binding.Generation
	}
	if clusters != nil {
		w.binding.Spec.Clusters = clusters
	}
	w.binding.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionScheduled, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(10 * time.Minute)}}
}

// refuse lets a cluster not take the Work.
func (w *world) refuse(cluster, message string) {
	work := w.works[cluster]
	work.Status.Conditions = []metav1.Condition{{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "AppliedFailed", Message: message, ObservedGeneration: 1, LastTransitionTime: ago(7 * time.Minute),
	}}
	work.Status.ManifestStatuses = nil
}

// warn adds an event of an object.
func (w *world) warn(namespace string, about types.UID, reason, message string) {
	w.others = append(w.others, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", about, reason, len(w.others))}, InvolvedObject: corev1.ObjectReference{UID: about},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 3, LastTimestamp: ago(2 * time.Minute),
	})
}

// without takes the binding away, and what follows from it.
func (w *world) without() {
	w.binding, w.works = nil, nil
}

// unclaimed takes the policy's claim off the template, and the policy away.
func (w *world) unclaimed() {
	policy.By(w.policy).Remove(w.template)
	w.policy = nil
	w.without()
}

// client returns a control plane that has all this.
func (w *world) client(t *testing.T) client.Client {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	objects := w.others
	if w.policy != nil {
		objects = append(objects, w.policy)
	}
	if w.binding != nil {
		objects = append(objects, w.binding)
	}
	for _, c := range w.clusters {
		objects = append(objects, c)
	}
	for _, work := range w.works {
		objects = append(objects, work)
	}
	uid := func(o client.Object) []string {
		if e, ok := o.(*corev1.Event); ok {
			return []string{string(e.InvolvedObject.UID)}
		}
		return nil
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&corev1.Event{}, "involvedObject.uid", uid).Build()
	return interceptor.NewClient(c, interceptor.Funcs{List: w.list})
}

func (w *world) explainer(t *testing.T) *Explainer {
	t.Helper()
	return &Explainer{
		Reader: w.client(t), Interpreter: interpreter.New(interpreter.Options{}), Resource: w.resource, Program: "karmadactl", Now: func() time.Time { return epoch },
	}
}

func gvkOf(list client.ObjectList, scheme *runtime.Scheme) schema.GroupVersionKind {
	kinds, _, err := scheme.ObjectKinds(list)
	if err != nil || len(kinds) == 0 {
		return schema.GroupVersionKind{}
	}
	return kinds[0]
}
