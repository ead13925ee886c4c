package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// object reads an object; ids of owners are their names.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	u.SetUID(types.UID(u.GetName()))
	return u
}

func deployment(t *testing.T, name string, ready, replicas int) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":%q,"generation":1,"labels":{"karmada.io/managed":"true"}},
		"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"web"}}},"status":{"observedGeneration":1,"readyReplicas":%d,"updatedReplicas":%[2]d}}`, name, replicas, ready))
}

func replicaSet(t *testing.T, name, owner string, ready, replicas int) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"namespace":"shop","name":%q,"labels":{"app":"web"},"ownerReferences":[{"uid":%q}]},
		"spec":{"replicas":%d},"status":{"readyReplicas":%d}}`, name, owner, replicas, ready))
}

// pod returns one that runs, or that does not for a reason.
func pod(t *testing.T, name, owner, reason string) *unstructured.Unstructured {
	t.Helper()
	status := `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"ready":true,"restartCount":0,"state":{"running":{}}}]}`
	if reason != "" {
		status = fmt.Sprintf(`{"phase":"Running","conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"ready":false,"restartCount":4,"state":{"waiting":{"reason":%q}}}]}`, reason)
	}
	return object(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":%q,"labels":{"app":"web"},"ownerReferences":[{"uid":%q}]},
		"spec":{"containers":[{"name":"web"}]},"status":%s}`, name, owner, status))
}

// A world is a control plane with members.
type world struct {
	template *unstructured.Unstructured
	binding  *workv1alpha2.ResourceBinding
	works    map[string]*workv1alpha1.Work
	clusters []string
	gone     []string // clusters that are not there any more
	members  map[string][]*unstructured.Unstructured
	// react answers requests of a member before its objects do.
	react  map[string]clienttesting.ReactionFunc
	only   string
	silent string
}

// newWorld has Deployment shop/web in m1 and m2, with two replicas each, all well.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{template: deployment(t, "web", 4, 4), works: map[string]*workv1alpha1.Work{}, clusters: []string{"m1", "m2"}, members: map[string][]*unstructured.Unstructured{}, react: map[string]clienttesting.ReactionFunc{}}
	w.binding = &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: map[string]string{names.ResourceBindingIDLabel: "id"}}}
	w.binding.Spec.Resource = explanation.RefOf(w.template)
	w.binding.Spec.Placement = &policyv1alpha1.Placement{}
	for _, c := range []string{workv1alpha2.ConditionScheduled, workv1alpha2.ConditionFullyApplied} {
		meta.SetStatusCondition(&w.binding.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: "Success"})
	}
	for _, name := range w.clusters {
		w.binding.Spec.Clusters = append(w.binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
		w.works[name] = w.work(t, name, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`)
		w.members[name] = []*unstructured.Unstructured{
			deployment(t, "web", 2, 2), replicaSet(t, "web-1", "web", 2, 2), replicaSet(t, "web-0", "web", 0, 0),
			pod(t, "web-1-b", "web-1", ""), pod(t, "web-1-a", "web-1", ""), pod(t, "other", "somebody", ""),
		}
	}
	return w
}

func (w *world) work(t *testing.T, cluster string, manifests ...string) *workv1alpha1.Work {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionNamespace(cluster), Name: "web-5", Labels: binding.WorkLabels(w.binding)}}
	for _, m := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
	}
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"})
	return work
}

func (w *world) gardener(t *testing.T) *Gardener {
	t.Helper()
	s, err := explanation.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, name := range w.clusters {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		objects = append(objects, c)
	}
	if w.binding != nil {
		objects = append(objects, w.binding)
	}
	for _, work := range w.works {
		objects = append(objects, work)
	}
	mapper := testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)
	widgets := meta.NewDefaultRESTMapper(nil)
	widgets.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, meta.RESTScopeNamespace)
	return &Gardener{
		Reader: fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build(), Program: "karmadactl",
		Mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{mapper, widgets}},
		Member: func(ctx context.Context, cluster string) (dynamic.Interface, error) {
			if cluster == w.silent {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			kinds := map[schema.GroupVersionResource]string{
				{Version: "v1", Resource: "pods"}: "PodList", {Group: "apps", Version: "v1", Resource: "replicasets"}: "ReplicaSetList", {Group: "apps", Version: "v1", Resource: "deployments"}: "DeploymentList",
				{Group: "apps", Version: "v1", Resource: "statefulsets"}: "StatefulSetList", {Group: "apps", Version: "v1", Resource: "daemonsets"}: "DaemonSetList", {Group: "batch", Version: "v1", Resource: "jobs"}: "JobList",
			}
			var objects []runtime.Object
			for _, o := range w.members[cluster] {
				objects = append(objects, o)
			}
			c := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
			if react := w.react[cluster]; react != nil {
				c.PrependReactor("*", "*", react)
			}
			return c, nil
		},
	}
}

// TestGrow compares drawings with testdata/<case>.txt. With UPDATE_GOLDEN=1 these are
// written.
func TestGrow(t *testing.T) {
	fails := func(err error) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	}
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 404, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse}}},
	}}
	cases := map[string]struct {
		reason string
		change func(*testing.T, *world)
		silent string // clusters that were not heard
	}{
		"Well": {"From the template to its pods; ReplicaSets that are history, and what belongs to others, are not shown.", func(*testing.T, *world) {}, ""},
		"OneCluster": {
			"Of one cluster nothing else is asked.", func(_ *testing.T, w *world) {
				w.only = "m2"
				w.react["m1"] = fails(errors.New("nobody asked"))
			}, "",
		},
		"NotReady": {
			"What does not work is told with the reason.", func(t *testing.T, w *world) {
				w.members["m2"] = []*unstructured.Unstructured{
					deployment(t, "web", 1, 2), replicaSet(t, "web-1", "web", 1, 2), pod(t, "web-1-a", "web-1", ""), pod(t, "web-1-b", "web-1", "CrashLoopBackOff"),
				}
			}, "",
		},
		"Missing": {
			"That an object is not there is told apart from its kind not being served.", func(_ *testing.T, w *world) {
				w.members["m1"] = nil
				w.react["m2"] = fails(unserved)
			}, "",
		},
		"NotOurs": {
			"An object that the control plane does not manage is somebody else's.", func(_ *testing.T, w *world) {
				w.members["m1"][0].SetLabels(nil)
				w.works["m1"].Status.Conditions[0] = metav1.Condition{Type: "Applied", Status: metav1.ConditionFalse, Message: "it already\nexists"}
			}, "",
		},
		"Silent": {
			"One that does not answer is named; others are shown.", func(_ *testing.T, w *world) {
				w.react["m1"] = fails(&factory.Silence{Cluster: "m1", After: factoryPatience})
			}, "m1",
		},
		"Forbidden": {
			"So is one that does not let us look.", func(_ *testing.T, w *world) {
				w.react["m2"] = func(a clienttesting.Action) (bool, runtime.Object, error) {
					return a.GetVerb() == "list", nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
				}
			}, "m2",
		},
		"NoBinding": {"What is not propagated has no tree.", func(_ *testing.T, w *world) { w.binding, w.works = nil, nil }, ""},
		"NoWork": {
			"A cluster that is chosen may have no Work, one that is not may have one, and one may be gone.", func(t *testing.T, w *world) {
				w.works["m3"] = w.works["m2"].DeepCopy()
				w.works["m3"].Namespace = names.ExecutionNamespace("m3")
				w.works["m3"].Finalizers = []string{"x"}
				w.works["m3"].DeletionTimestamp = ptr.To(metav1.Now())
				w.clusters = append(w.clusters, "m3")
				w.members["m3"] = []*unstructured.Unstructured{deployment(t, "web", 2, 2)}
				delete(w.works, "m2")
				w.binding.Spec.Clusters = append(w.binding.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m9", Replicas: 1})
				w.works["m9"] = w.work(t, "m9", `{}`)
				w.binding.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionFalse, Reason: "NoClusterFit"}}
			}, "",
		},
		"ManyPods": {
			"Of many pods those are shown that do not work, and how many more there are.", func(t *testing.T, w *world) {
				all := []*unstructured.Unstructured{deployment(t, "web", 38, 40), replicaSet(t, "web-1", "web", 38, 40)}
				for i := range 40 {
					reason := ""
					if i > 37 {
						reason = "ImagePullBackOff"
					}
					all = append(all, pod(t, fmt.Sprintf("web-1-%02d", i), "web-1", reason))
				}
				w.members["m1"], w.only = all, "m1"
			}, "",
		},
		"Kinds": {
			"Each kind says in its own words how it is.", func(t *testing.T, w *world) {
				w.only = "m1"
				of := func(kind, apiVersion, rest string) string {
					return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"shop","name":"a-%s","labels":{"karmada.io/managed":"true"}}%s}`, apiVersion, kind, strings.ToLower(kind), rest)
				}
				all := []string{
					of("StatefulSet", "apps/v1", `,"spec":{"replicas":3,"selector":{"matchLabels":{"app":"db"}}},"status":{"readyReplicas":3,"updatedReplicas":1}`),
					of("DaemonSet", "apps/v1", `,"spec":{"selector":{"matchLabels":{"app":"ds"}}},"status":{"numberReady":2,"desiredNumberScheduled":3}`),
					of("Job", "batch/v1", `,"spec":{"completions":5,"selector":{"matchLabels":{"job":"a"}}},"status":{"succeeded":2,"active":1,"failed":1}`),
					of("CronJob", "batch/v1", ""),
					of("ConfigMap", "v1", ""),
					of("PersistentVolumeClaim", "v1", `,"status":{"phase":"Pending"}`),
					of("Widget", "example.com/v1", `,"status":{"conditions":[{"type":"Ready","status":"False","reason":"Warming"}]}`),
					of("ReplicationController", "v1", `,"spec":{"replicas":1,"selector":{"app":"rc"}},"status":{"readyReplicas":1}`),
					of("Deployment", "apps/v1", `,"spec":{}`),
				}
				w.works["m1"] = w.work(t, "m1", append(all, of("Unknown", "nowhere/v1", ""))...)
				w.members["m1"] = nil
				for _, text := range all {
					w.members["m1"] = append(w.members["m1"], object(t, text))
				}
				w.members["m1"] = append(w.members["m1"],
					object(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"shop","name":"tick","ownerReferences":[{"uid":"a-cronjob"}]},"status":{"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}}`),
					object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"tick-1","ownerReferences":[{"uid":"tick"}]},"spec":{"containers":[{}]},"status":{"phase":"Failed"}}`),
					object(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"below","generation":2,"ownerReferences":[{"uid":"a-widget"}]},"spec":{"replicas":1},"status":{"observedGeneration":1}}`),
					object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"below-1","ownerReferences":[{"uid":"below"}]},"spec":{"containers":[{}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`),
					object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"gone","deletionTimestamp":"2026-01-01T00:00:00Z","ownerReferences":[{"uid":"a-replicationcontroller"}],"labels":{"app":"rc"}}}`),
				)
			}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(t, w)
			root, silent, err := w.gardener(t).Grow(t.Context(), w.template, w.only)
			if err != nil {
				t.Fatalf("Grow: %v\n%s", err, tc.reason)
			}
			var unheard []string
			for _, e := range silent {
				unheard = append(unheard, e.Cluster)
			}
			if got := strings.Join(unheard, " "); got != tc.silent {
				t.Errorf("not heard %q, want %q: %s", got, tc.silent, tc.reason)
			}
			var text bytes.Buffer
			if err := Draw(&text, root, explanation.Style{}); err != nil {
				t.Fatal(err)
			}
			golden(t, name, text.String(), tc.reason)
		})
	}
}

const factoryPatience = 10 * 1e9

func golden(t *testing.T, name, got, reason string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("drawing (-want +got):\n%s\n%s", diff, reason)
	}
}

func TestGrowFails(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.gardener(t).Grow(t.Context(), w.template, "m9")
	if err == nil || err.Error() != "clusters don't exist: m9" {
		t.Errorf("got %v: scripts know these words from get", err)
	}
}

// TestPatience has a member that never answers.
func TestPatience(t *testing.T) {
	w := newWorld(t)
	w.silent = "m1"
	g := w.gardener(t)
	g.Patience = 1
	g.Member = func(member func(context.Context, string) (dynamic.Interface, error)) func(context.Context, string) (dynamic.Interface, error) {
		return func(ctx context.Context, cluster string) (dynamic.Interface, error) {
			if cluster != w.silent {
				ctx = t.Context() // only one is late
			}
			return member(ctx, cluster)
		}
	}(g.Member)
	_, silent, err := g.Grow(t.Context(), w.template, "")
	if err != nil || len(silent) == 0 || silent[0].Cluster != "m1" {
		t.Fatalf("got %v, %v: m1 is not heard", silent, err)
	}
	var s *factory.Silence
	if !errors.As(silent[0], &s) || s.Cluster != "m1" {
		t.Errorf("got %v: that it did not answer in time is the reason", silent[0])
	}
}

func TestNamespace(t *testing.T) {
	w := newWorld(t)
	w.template = object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"},"status":{"phase":"Active"}}`)
	w.works = map[string]*workv1alpha1.Work{"m1": w.work(t, "m1", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}
	w.works["m1"].Name = names.Work("Namespace", "shop", "")
	w.members["m1"] = []*unstructured.Unstructured{object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"karmada.io/managed":"true"}},"status":{"phase":"Active"}}`)}
	w.binding = nil
	root, silent, err := w.gardener(t).Grow(t.Context(), w.template, "")
	if err != nil || len(silent) > 0 {
		t.Fatal(silent, err)
	}
	var text bytes.Buffer
	if err := Draw(&text, root, explanation.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "Namespace", text.String(), "A Namespace goes to clusters without a binding.")
}

func TestStyles(t *testing.T) {
	w := newWorld(t)
	w.members["m2"] = nil
	root, _, err := w.gardener(t).Grow(t.Context(), w.template, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, style := range map[string]explanation.Style{"StyleNarrow": {Width: 40}, "StyleColor": {Width: 120, Color: true}} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := Draw(&text, root, style); err != nil {
				t.Fatal(err)
			}
			golden(t, name, text.String(), "No line is longer than the terminal is wide, and colours do not count.")
		})
	}
}

// A grower answers as it is told.
type grower struct {
	root   *Node
	silent fleet.Errors
	err    error
}

func (g grower) Grow(context.Context, *unstructured.Unstructured, string) (*Node, fleet.Errors, error) {
	return g.root, g.silent, g.err
}

func TestRun(t *testing.T) {
	boom := errors.New("boom")
	root := &Node{Kind: "Deployment", Name: "web", Ready: ptr.To(true), State: "1/1 ready"}
	cases := map[string]struct {
		reason string
		grower grower
		want   string // in the error
		out    string // in the output
		isJSON bool
	}{
		"Well":   {"A tree is no error.", grower{root: root}, "", "Deployment web   1/1 ready\n", false},
		"JSON":   {"Programs get it all.", grower{root: root}, "", `"kind": "Deployment"`, true},
		"Failed": {"Without an answer nothing is shown.", grower{err: boom}, "boom", "", false},
		"Silent": {"What there is is shown, and then it is an error.", grower{root: root, silent: fleet.Errors{{Cluster: "m1", Err: boom}}}, "cluster(m1): boom", "Deployment web", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &Options{Gardener: tc.grower, IOStreams: streams}
			if tc.isJSON {
				o.Output = "json"
			}
			err := o.Run(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q: %s", err, tc.want, tc.reason)
			}
			if !strings.Contains(out.String(), tc.out) || tc.out == "" && out.Len() > 0 {
				t.Errorf("output %q, want %q: %s", out, tc.out, tc.reason)
			}
			if tc.isJSON && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", out)
			}
		})
	}
}
