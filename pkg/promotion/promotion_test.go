package promotion

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
)

var errBoom = errors.New("boom")

const web = `
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: shop
  name: web
  uid: u1
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: web}
  annotations:
    deployment.kubernetes.io/revision: "3"
    kubectl.kubernetes.io/last-applied-configuration: "{}"
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      securityContext: {}
      affinity: {}
      serviceAccountName: web
      containers:
      - name: web
        image: nginx:1
        resources: {}
        envFrom:
        - configMapRef: {name: settings}
        - secretRef: {name: gone}
      volumes:
      - {name: ca, configMap: {name: kube-root-ca.crt}}
status: {replicas: 2}
`

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop, name: settings, uid: u2}
data: {a: b}
`

const account = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: shop, name: web, uid: u3}
secrets: [{name: web-token-x}]
`

const namespace = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`

const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules: []
`

func object(t *testing.T, text string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	for n, v := range map[string]int64{"replicas": 2} {
		if spec, ok := u.Object["spec"].(map[string]any); ok && spec[n] != nil {
			spec[n] = v
		}
	}
	for _, change := range changes {
		change(u)
	}
	return u
}

// A side is a cluster, or a control plane, in memory.
type side struct {
	client.Client
	created []string // for good
	tried   []string
	update  func(client.Object) error // what the member makes of an update
	patch   bool                      // it may be patched
}

func newSide(t *testing.T, create func(o client.Object, dry bool) error, objects ...*unstructured.Unstructured) *side {
	t.Helper()
	scheme := runtime.NewScheme()
	// Deployments are not of a known type: nothing of them is read and written in another way.
	if err := errors.Join(corev1.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}})
	for gvk, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                       meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ConfigMap"}:                                       meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Secret"}:                                          meta.RESTScopeNamespace,
		{Version: "v1", Kind: "ServiceAccount"}:                                  meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Namespace"}:                                       meta.RESTScopeRoot,
		{Version: "v1", Kind: "Event"}:                                           meta.RESTScopeNamespace,
		{Version: "v1", Kind: "Service"}:                                         meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("OverridePolicy"):                   meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("ClusterOverridePolicy"):            meta.RESTScopeRoot,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}: meta.RESTScopeRoot,
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"):                meta.RESTScopeNamespace,
		policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"):         meta.RESTScopeRoot,
	} {
		mapper.Add(gvk, scope)
	}
	s := &side{}
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
	for _, o := range objects {
		b.WithObjects(o)
	}
	s.Client = interceptor.NewClient(b.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*unstructured.Unstructured); ok { // a server knows what it serves
				gvk := o.GetObjectKind().GroupVersionKind()
				if _, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			name := o.GetObjectKind().GroupVersionKind().Kind + " " + Path(o)
			if len(opts) > 0 {
				s.tried = append(s.tried, name)
			} else {
				s.created = append(s.created, name)
			}
			if create != nil {
				if err := create(o, len(opts) > 0); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if !slices.Contains(opts, client.UpdateOption(client.DryRunAll)) {
				t.Error("nothing that is there may be changed")
				return errBoom
			}
			if s.update != nil {
				if err := s.update(o); err != nil {
					return err
				}
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if s.patch {
				return c.Patch(ctx, o, p, opts...)
			}
			t.Error("nothing that is there may be changed")
			return errBoom
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			t.Error("nothing that is there may be deleted")
			return errBoom
		},
	})
	return s
}

// promoted runs a promotion to its end.
func promoted(member, plane *side, r Request) (plan *Plan, notes, made []string, err error) {
	p := &Promoter{
		Member: member, ControlPlane: plane, Interpreter: interpreter.New(interpreter.Options{}), Program: "karmadactl",
		Note: func(s string) { notes = append(notes, s) },
	}
	if plan, err = p.Read(context.Background(), r); err != nil {
		return nil, notes, nil, err
	}
	if err = p.Check(context.Background(), plan); err != nil {
		return plan, notes, nil, err
	}
	err = p.Make(context.Background(), plan, func(o client.Object) {
		made = append(made, o.GetObjectKind().GroupVersionKind().Kind+" "+Path(o))
	})
	return plan, notes, made, err
}

func usual() Request {
	return Request{Cluster: "m1", Type: "deployments", Namespace: "shop", Name: "web", Policy: true}
}

func TestPromote(t *testing.T) {
	const generated = "web-5bdc9b7c6f" // whatever it is, it is replaced below
	tests := map[string]struct {
		reason  string
		request func(*Request)
		member  []string
		made    []string
		notes   []string
	}{
		"Deployment": {
			reason: "The template comes with a policy that bears its kind in its name.",
			member: []string{web},
			made:   []string{"Deployment shop/web", "PropagationPolicy shop/" + generated},
		},
		"Dependencies": {
			reason:  "What it refers to comes first, the ServiceAccount before what needs it; what is not there is allowed not to be.",
			request: func(r *Request) { r.Dependencies = true },
			member:  []string{web, settings, account},
			made:    []string{"ServiceAccount shop/web", "ConfigMap shop/settings", "Deployment shop/web", "PropagationPolicy shop/" + generated},
			notes:   []string{"Secret shop/gone, which Deployment shop/web refers to, is not in cluster m1: it is left out"},
		},
		"NoPolicy": {
			reason:  "Where there is a policy already none is made.",
			request: func(r *Request) { r.Policy = false },
			member:  []string{web},
			made:    []string{"Deployment shop/web"},
			notes:   []string{"no policy of the control plane selects Deployment shop/web: until one does it goes nowhere, and what is in cluster m1 is not managed"},
		},
		"PolicyName": {
			reason:  "The policy is called as was asked.",
			request: func(r *Request) { r.PolicyName = "mine" },
			member:  []string{web},
			made:    []string{"Deployment shop/web", "PropagationPolicy shop/mine"},
		},
		"Kind": {
			reason:  "The kind may be written as in manifests.",
			request: func(r *Request) { r.Type = "Deployment.apps" },
			member:  []string{web},
			made:    []string{"Deployment shop/web", "PropagationPolicy shop/" + generated},
		},
		"Version": {
			reason:  "The kind may be written with its version.",
			request: func(r *Request) { r.Type = "deployments.v1.apps" },
			member:  []string{web},
			made:    []string{"Deployment shop/web", "PropagationPolicy shop/" + generated},
		},
		"ClusterScoped": {
			reason:  "What is in no namespace gets a ClusterPropagationPolicy; the namespace that was given does not count.",
			request: func(r *Request) { r.Type, r.Name = "clusterroles", "viewer" },
			member:  []string{role},
			made:    []string{"ClusterRole viewer", "ClusterPropagationPolicy " + generated},
		},
		"Namespace": {
			reason:  "A namespace can be promoted as anything else.",
			request: func(r *Request) { r.Type, r.Name = "ns", "bank" },
			member:  []string{strings.ReplaceAll(namespace, "shop", "bank")},
			made:    []string{"Namespace bank", "ClusterPropagationPolicy " + generated},
		},
		"NoInterpreter": {
			reason:  "Nobody need know what everything refers to.",
			request: func(r *Request) { r.Type, r.Name, r.Dependencies = "configmaps", "settings", true },
			member:  []string{settings},
			made:    []string{"ConfigMap shop/settings", "PropagationPolicy shop/" + generated},
			notes:   []string{"there is no interpreter that knows what a ConfigMap refers to: ConfigMap shop/settings is promoted alone"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var have []*unstructured.Unstructured
			for _, text := range tc.member {
				have = append(have, object(t, text))
			}
			member, plane := newSide(t, nil, have...), newSide(t, nil, object(t, namespace))
			mapShortName(member)
			r := usual()
			if tc.request != nil {
				tc.request(&r)
			}
			plan, notes, made, err := promoted(member, plane, r)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, 0, len(tc.made))
			for _, m := range tc.made {
				if plan.Policy != nil {
					m = strings.ReplaceAll(m, generated, plan.Policy.GetName())
				}
				want = append(want, m)
			}
			if diff := cmp.Diff(want, made); diff != "" {
				t.Errorf("%s\nmade (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s\nnotes (-want +got):\n%s", tc.reason, diff)
			}
			if len(plane.tried) != len(made) {
				t.Errorf("tried %q, made %q: everything must be tried before anything is made", plane.tried, made)
			}
			if plan.Policy != nil && len(plane.created) > 1 && !strings.Contains(plane.created[len(plane.created)-2], "Policy") {
				t.Errorf("made in the order %q: the policy must be there when the template comes, or another one takes that", plane.created)
			}

			// And again.
			plan, _, made, err = promoted(member, plane, r)
			if err != nil || len(made) > 0 || !plan.IsDone() {
				t.Errorf("a second run must find everything done, got %q, %v", made, err)
			}
		})
	}
}

// mapShortName teaches the mapper of a member one of the short names that the
// discovery of a real one knows.
func mapShortName(s *side) {
	m, _ := s.RESTMapper().(*meta.DefaultRESTMapper)
	m.AddSpecific(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		schema.GroupVersionResource{Version: "v1", Resource: "ns"}, meta.RESTScopeRoot)
}

// know teaches a side a kind.
func know(t *testing.T, s *side, group, kind string, scope meta.RESTScope) {
	t.Helper()
	m, ok := s.RESTMapper().(*meta.DefaultRESTMapper)
	if !ok {
		t.Fatal("no mapper")
	}
	m.Add(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, scope)
}

func TestTemplate(t *testing.T) {
	member, plane := newSide(t, nil, object(t, web, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app": "web", "karmada.io/managed": "true", "work.karmada.io/permanent-id": "x"})
		annotations := u.GetAnnotations()
		annotations["work.karmada.io/name"], annotations["work.karmada.io/namespace"], annotations["mine"] = "w", "karmada-es-m1", "yes"
		u.SetAnnotations(annotations)
	})), newSide(t, nil, object(t, namespace))
	plan, notes, _, err := promoted(member, plane, usual())
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, web).Object
	want["metadata"] = map[string]any{
		"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"},
		"annotations": map[string]any{"mine": "yes", "work.karmada.io/conflict-resolution": "overwrite"},
	}
	delete(want, "status")
	if diff := cmp.Diff(want, plan.Template.Object.Object); diff != "" {
		t.Errorf("the template has what users wrote, its pods to the letter, and no marks (-want +got):\n%s", diff)
	}
	if len(notes) != 0 {
		t.Errorf("that its own cluster's Work manages it is nothing to tell, got %q", notes)
	}

	yes := true
	wantSpec := policyv1alpha1.PropagationSpec{
		ResourceSelectors:           []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
		ConflictResolution:          policyv1alpha1.ConflictOverwrite,
		PreserveResourcesOnDeletion: &yes,
	}
	if diff := cmp.Diff(&wantSpec, plan.Policy.PropagationSpec()); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
}

func TestTemplateKeeps(t *testing.T) {
	o := object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {work.karmada.io/conflict-resolution: abort}}\nspec: {}\n")
	if err := unstructured.SetNestedField(o.Object, int64(60), "spec", "ttlSecondsAfterFinished"); err != nil {
		t.Fatal(err)
	}
	got := template(o)
	overwrite(got)
	if ttl, _, _ := unstructured.NestedInt64(got.Object, "spec", "ttlSecondsAfterFinished"); ttl != 60 {
		t.Errorf("a finished Job must go in time, got %d s", ttl)
	}
	if how := got.GetAnnotations()["work.karmada.io/conflict-resolution"]; how != "overwrite" {
		t.Errorf("what an earlier propagation has left must not keep it from being taken over, got %q", how)
	}
}

func TestRefused(t *testing.T) {
	marked := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"karmada.io/managed": "true"}) }
	claimed := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app": "web", "propagationpolicy.karmada.io/permanent-id": "p"})
		u.SetAnnotations(map[string]string{"propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": "other"})
	}
	scaled := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(5), "spec", "replicas")
	}
	deleting := func(u *unstructured.Unstructured) {
		now := metav1.NewTime(time.Unix(1, 0))
		u.SetDeletionTimestamp(&now)
		u.SetFinalizers([]string{"example.com/wait"})
	}
	pp := func(name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		return object(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: shop, name: `+name+`}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
`, change...)
	}
	important := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(1), "spec", "priority")
	}

	tests := map[string]struct {
		reason  string
		request func(*Request)
		member  []*unstructured.Unstructured
		plane   []*unstructured.Unstructured
		create  func(o client.Object, dry bool) error // of the control plane
		want    string                                // part of the error, "" for none
		made    []string
		notes   []string
	}{
		"NotThere": {
			reason: "Scripts match these words.",
			want:   "the deployments or web don't exist in cluster(m1)",
		},
		"NoSuchKind": {
			reason:  "A kind that the member does not know is no missing object.",
			request: func(r *Request) { r.Type = "gadgets" },
			want:    `find out what "gadgets" is in cluster m1: `,
		},
		"Exempt": {
			reason:  "What is never propagated would never get back.",
			request: func(r *Request) { r.Type, r.Name = "events", "e" },
			want:    "are never propagated to member clusters",
		},
		"Reserved": {
			reason:  "The namespaces of the control plane are its own.",
			request: func(r *Request) { r.Namespace = "karmada-system" },
			want:    "namespace karmada-system belongs to the control plane's own machinery",
		},
		"System": {
			reason:  "A mistake in kube-system can be costly: it is allowed, and warned of.",
			request: func(r *Request) { r.Namespace = "kube-system" },
			member:  []*unstructured.Unstructured{object(t, strings.ReplaceAll(web, "shop", "kube-system"))},
			plane:   []*unstructured.Unstructured{object(t, strings.ReplaceAll(namespace, "shop", "kube-system"))},
			made:    []string{"Deployment kube-system/web", "PropagationPolicy kube-system/p"},
			notes:   []string{"namespace kube-system is what a cluster itself runs on"},
		},
		"Owned": {
			reason: "What is owned is changed by its owner.",
			member: []*unstructured.Unstructured{object(t, web, func(u *unstructured.Unstructured) {
				yes := true
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "App", Name: "shop", UID: "x", Controller: &yes}})
			})},
			made:  []string{"Deployment shop/web", "PropagationPolicy shop/p"},
			notes: []string{"Deployment shop/web belongs to App shop"},
		},
		"Deleting": {
			reason: "What goes is not worth managing.",
			member: []*unstructured.Unstructured{object(t, web, deleting)},
			want:   "Deployment shop/web is being deleted in cluster m1",
		},
		"NoNamespace": {
			reason:  "A namespace would be made on every member: that is for the user to say.",
			request: func(r *Request) { r.Namespace = "bank" },
			member:  []*unstructured.Unstructured{object(t, strings.ReplaceAll(web, "shop", "bank"))},
			want:    `the control plane has no namespace bank: create it with "karmadactl create namespace bank"`,
		},
		"PolicyOfThatName": {
			reason:  "A policy that does something else is found before anything is made.",
			request: func(r *Request) { r.PolicyName = "p" },
			member:  []*unstructured.Unstructured{object(t, web)},
			plane:   []*unstructured.Unstructured{pp("p")},
			want:    "the control plane has a PropagationPolicy shop/p already, which does something else",
		},
		"PolicyThatWins": {
			reason: "A policy of higher priority would send the object elsewhere, over what is there.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{pp("all", important)},
			want:   "PropagationPolicy shop/all of the control plane (priority 1) selects Deployment shop/web, too",
		},
		"PolicyThatLoses": {
			reason: "A policy that is less close is no matter.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{pp("all")},
			made:   []string{"Deployment shop/web", "PropagationPolicy shop/p"},
		},
		"TemplateAlone": {
			reason: "What an interrupted run began is taken up.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{object(t, web)},
			made:   []string{"PropagationPolicy shop/p"},
		},
		"TemplateDiffers": {
			reason: "Another object of that name would change what runs.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{object(t, web, scaled)},
			want:   "the control plane has Deployment shop/web already, and it differs from the one in cluster m1 in spec.replicas",
		},
		"TemplateClaimed": {
			reason: "Another policy says where it goes, which is not here: nothing was promoted.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{object(t, web, claimed)},
			want:   "policy shop/other says where it goes",
		},
		"TemplateHere": {
			reason: "What a policy has placed there needs no other.",
			member: []*unstructured.Unstructured{object(t, web, marked)},
			plane:  []*unstructured.Unstructured{object(t, web, claimed)},
			notes:  []string{"is managed by a control plane already", "policy shop/other of the control plane placed Deployment shop/web in cluster m1"},
		},
		"TemplateDeleting": {
			reason: "A template that goes would take a new one's place.",
			member: []*unstructured.Unstructured{object(t, web)},
			plane:  []*unstructured.Unstructured{object(t, web, deleting)},
			want:   "Deployment shop/web is being deleted in the control plane",
		},
		"DependencyDiffers": {
			reason:  "Another ConfigMap of that name would change what the pods read.",
			request: func(r *Request) { r.Dependencies = true },
			member:  []*unstructured.Unstructured{object(t, web), object(t, settings)},
			plane:   []*unstructured.Unstructured{object(t, strings.ReplaceAll(settings, "a: b", "a: c"))},
			notes:   []string{"Secret shop/gone", "ServiceAccount shop/web"},
			want:    "the control plane has ConfigMap shop/settings already, to which Deployment shop/web refers, and it differs from the one in cluster m1 in data.a",
		},
		"DependencyShared": {
			reason:  "A dependency that is there already is shared.",
			request: func(r *Request) { r.Dependencies = true },
			member:  []*unstructured.Unstructured{object(t, web), object(t, settings)},
			plane:   []*unstructured.Unstructured{object(t, settings), object(t, account)},
			made:    []string{"Deployment shop/web", "PropagationPolicy shop/p"},
			notes:   []string{"Secret shop/gone", "ServiceAccount shop/web"},
		},
		"NotTaken": {
			reason: "What the API server refuses is found before anything is made.",
			member: []*unstructured.Unstructured{object(t, web)},
			create: func(o client.Object, _ bool) error {
				if _, ok := o.(*policyv1alpha1.PropagationPolicy); ok {
					return errBoom
				}
				return nil
			},
			want: "the control plane would not take PropagationPolicy shop/p: boom",
		},
		"PodsChanged": {
			reason: "Pods are not started anew by a promotion.",
			member: []*unstructured.Unstructured{object(t, web)},
			create: func(o client.Object, _ bool) error {
				if u, ok := o.(*unstructured.Unstructured); ok {
					unstructured.RemoveNestedField(u.Object, "spec", "template", "spec", "affinity")
				}
				return nil
			},
			want: "the pods of Deployment shop/web in cluster m1 would be started anew or stopped, as spec.template.spec.affinity would change",
		},
		"SpecChanged": {
			reason: "What will be changed is said.",
			member: []*unstructured.Unstructured{object(t, web)},
			create: func(o client.Object, _ bool) error {
				if u, ok := o.(*unstructured.Unstructured); ok {
					scaled(u)
				}
				return nil
			},
			made:  []string{"Deployment shop/web", "PropagationPolicy shop/p"},
			notes: []string{"Deployment shop/web is changed in cluster m1: spec.replicas"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			member := newSide(t, nil, tc.member...)
			plane := newSide(t, tc.create, append(tc.plane, object(t, namespace))...)
			r := usual()
			if tc.request != nil {
				tc.request(&r)
			}
			if r.PolicyName == "" {
				r.PolicyName = "p"
			}
			_, notes, made, err := promoted(member, plane, r)
			if tc.want == "" && err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nerror %v, want one with %q", tc.reason, err, tc.want)
			}
			if tc.want != "" && len(plane.created) > 0 {
				t.Errorf("%s\nwas refused after %q was made", tc.reason, plane.created)
			}
			if diff := cmp.Diff(tc.made, made); diff != "" {
				t.Errorf("%s\nmade (-want +got):\n%s", tc.reason, diff)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("%s\nnotes %q, want %d", tc.reason, notes, len(tc.notes))
			}
			for i, n := range tc.notes {
				if !strings.Contains(notes[i], n) {
					t.Errorf("%s\nnote %q, want one with %q", tc.reason, notes[i], n)
				}
			}
		})
	}
}

// TestInterrupted stops a promotion before each of its steps, and then repeats it.
func TestInterrupted(t *testing.T) {
	const steps = 4
	for stop := range steps {
		member := newSide(t, nil, object(t, web), object(t, settings), object(t, account))
		left := stop
		plane := newSide(t, func(_ client.Object, dry bool) error {
			if dry {
				return nil
			}
			if left == 0 {
				return errBoom
			}
			left--
			return nil
		}, object(t, namespace))
		r := usual()
		r.Dependencies = true
		if _, _, _, err := promoted(member, plane, r); !errors.Is(err, errBoom) {
			t.Fatalf("stopped before step %d: error %v, want %v", stop, err, errBoom)
		}
		left = steps
		plan, _, made, err := promoted(member, plane, r)
		if err != nil || len(made) != steps-stop {
			t.Errorf("stopped before step %d: the next run made %q, %v; want the remaining %d", stop, made, err, steps-stop)
		}
		if err == nil {
			if plan, _, made, err = promoted(member, plane, r); err != nil || !plan.IsDone() || len(made) > 0 {
				t.Errorf("stopped before step %d: a third run made %q, %v, want nothing", stop, made, err)
			}
		}
	}
}

func TestDifference(t *testing.T) {
	tests := map[string]struct {
		reason     string
		have, want any
		at         string
	}{
		"Same":       {reason: "There is none.", have: map[string]any{"a": int64(1)}, want: map[string]any{"a": int64(1)}},
		"Default":    {reason: "Servers fill in defaults.", have: map[string]any{"a": "x", "b": "y"}, want: map[string]any{"a": "x"}},
		"Missing":    {reason: "What is wanted must be there, be it empty.", have: map[string]any{}, want: map[string]any{"a": map[string]any{}}, at: "a"},
		"Null":       {reason: "Null is as good as nothing.", have: map[string]any{}, want: map[string]any{"a": nil}},
		"Value":      {reason: "Values must be the same.", have: map[string]any{"a": map[string]any{"b": "x"}}, want: map[string]any{"a": map[string]any{"b": "y"}}, at: "a.b"},
		"Item":       {reason: "Items must be the same.", have: map[string]any{"a": []any{"x", "z"}}, want: map[string]any{"a": []any{"x", "y"}}, at: "a[1]"},
		"Length":     {reason: "An item more makes another list.", have: map[string]any{"a": []any{"x", "z"}}, want: map[string]any{"a": []any{"x"}}, at: "a"},
		"Types":      {reason: "A map is no list, nor a word.", have: map[string]any{"a": []any{}}, want: map[string]any{"a": map[string]any{}}, at: "a"},
		"Scalar":     {reason: "A map is no list, nor a word.", have: map[string]any{"a": []any{}}, want: map[string]any{"a": "x"}, at: "a"},
		"NotAList":   {reason: "A map is no list, nor a word.", have: map[string]any{"a": "x"}, want: map[string]any{"a": []any{}}, at: "a"},
		"Numbers":    {reason: "Numbers may be read in two ways.", have: map[string]any{"a": 1.0, "b": int64(1)}, want: map[string]any{"a": int64(1), "b": 1.0}},
		"NotNumbers": {reason: "Other numbers are not the same.", have: map[string]any{"a": 1.5}, want: map[string]any{"a": int64(1)}, at: "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if at := difference(tc.have, tc.want, ""); at != tc.at {
				t.Errorf("%s\ndifference() = %q, want %q", tc.reason, at, tc.at)
			}
		})
	}
}
