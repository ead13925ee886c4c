package promotion

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/interpreter"
)

const service = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: web, uid: u9}
spec:
  type: NodePort
  clusterIP: 10.0.0.9
  clusterIPs: [10.0.0.9]
  ports: [{port: 80, nodePort: 30080, protocol: TCP}]
`

// replaceImages is an override policy that a control plane may have for all.
const replaceImages = `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: mirror}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [m1]}
    overriders:
      imageOverrider: [{component: Registry, operator: add, value: mirror.example.com}]
`

const relabel = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {namespace: shop, name: relabel}
spec:
  overrideRules:
  - overriders:
      labelsOverrider: [{operator: add, value: {tier: front}}]
`

func TestForesee(t *testing.T) {
	refuse := func(err error) func(client.Object) error { return func(client.Object) error { return err } }
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	tests := map[string]struct {
		reason  string
		plane   []string
		request func(*Request)
		member  string
		allow   bool
		update  func(client.Object) error // what the member makes of what it is sent
		fields  []string
		pods    []string
		notes   []string
		err     string
	}{
		"Nothing":   {reason: "What comes back is what there is.", member: web},
		"OtherRule": {reason: "An override for another cluster is no matter.", member: web, plane: []string{strings.ReplaceAll(replaceImages, "[m1]", "[m2]")}},
		"Override": {
			reason: "An override policy of the control plane starts pods anew.", member: web, plane: []string{replaceImages},
			fields: []string{"spec.template.spec.containers[0].image"}, pods: []string{"spec.template.spec.containers[0].image"},
			err: "the pods of Deployment shop/web in cluster m1 would be started anew or stopped, as spec.template.spec.containers[0].image would change: --dry-run shows how",
		},
		"Allowed": {
			reason: "Unless the user wants that.", member: web, plane: []string{replaceImages}, allow: true,
			fields: []string{"spec.template.spec.containers[0].image"}, pods: []string{"spec.template.spec.containers[0].image"},
			notes: []string{"the pods of Deployment shop/web in cluster m1 are started anew or stopped: spec.template.spec.containers[0].image changes"},
		},
		"Label": {
			reason: "What concerns no pods is said, and done.", member: web, plane: []string{relabel},
			fields: []string{"metadata.labels.tier"}, notes: []string{"Deployment shop/web is changed in cluster m1: metadata.labels.tier"},
		},
		"BadOverride": {
			reason: "One that cannot be applied would keep the object from its cluster.", member: web,
			plane: []string{strings.ReplaceAll(replaceImages, "imageOverrider: [{component: Registry, operator: add, value: mirror.example.com}]", "plaintext: [{path: /no/such/place, operator: replace, value: 1}]")},
			err:   "an override policy of the control plane would keep Deployment shop/web from getting to cluster m1: ClusterOverridePolicy mirror",
		},
		"MemberFillsIn": {
			reason: "What the member makes of it counts, not what it is sent.", member: web, plane: []string{replaceImages},
			update: func(o client.Object) error {
				u, ok := o.(*unstructured.Unstructured)
				if !ok {
					return errBoom
				}
				containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
				if err != nil {
					return err
				}
				containers[0].(map[string]any)["image"] = "nginx:1"
				return unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
			},
		},
		"MemberScalesDown": {
			reason: "Pods that are stopped are not started anew, but gone.", member: web,
			update: func(o client.Object) error {
				u, ok := o.(*unstructured.Unstructured)
				if !ok {
					return errBoom
				}
				return unstructured.SetNestedField(u.Object, int64(1), "spec", "replicas")
			},
			fields: []string{"spec.replicas"}, pods: []string{"spec.replicas"}, err: "as spec.replicas would change",
		},
		"Forbidden": {
			reason: "Where nobody may try, it is guessed from what will be sent.", member: web, plane: []string{replaceImages},
			update: refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errBoom)),
			fields: []string{"spec.template.spec.containers[0].image"}, pods: []string{"spec.template.spec.containers[0].image"},
			notes: []string{"cluster m1 cannot be asked what it would make of Deployment shop/web, so that is only guessed"}, err: "would be started anew",
		},
		"Immutable": {
			reason: "A member that refuses what it is sent refuses it later, too.", member: web, plane: []string{relabel},
			update: refuse(invalid), err: "cluster m1 would not take Deployment shop/web as the control plane would send it",
		},
		"ImmutableElsewhere": {
			reason: "A field that is not sent is kept when the member refuses to lose it.", member: web, update: refuse(invalid),
		},
		"Changed": {
			reason: "What changes meanwhile is to be looked at again.", member: web,
			update: refuse(apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errBoom)), err: "Deployment shop/web has changed in cluster m1 in the meantime",
		},
		"Service": {
			reason: "Its address and its node port stay.", member: service,
			request: func(r *Request) { r.Type = "services" },
			update: func(o client.Object) error { // as the API server does
				u, ok := o.(*unstructured.Unstructured)
				if !ok {
					return errBoom
				}
				ip, _, err := unstructured.NestedString(u.Object, "spec", "clusterIP")
				if err != nil {
					return err
				}
				return unstructured.SetNestedStringSlice(u.Object, []string{ip}, "spec", "clusterIPs")
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			member, control := newSide(t, nil, object(t, tc.member)), newSide(t, nil, object(t, namespace))
			for _, text := range tc.plane {
				if err := control.Client.Create(t.Context(), object(t, text)); err != nil {
					t.Fatal(err)
				}
			}
			control.created = nil
			member.update = tc.update
			var notes []string
			p := &Promoter{
				Member: member, ControlPlane: control, Interpreter: interpreter.New(interpreter.Options{}), Program: "karmadactl", AllowRestart: tc.allow,
				Cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, Note: func(s string) { notes = append(notes, s) },
			}
			r := usual()
			if tc.request != nil {
				tc.request(&r)
			}
			plan, err := p.Read(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Check(t.Context(), plan)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nerror %v, want one with %q", tc.reason, err, tc.err)
			}
			if restart := (*RestartError)(nil); errors.As(err, &restart) != (len(tc.pods) > 0 && !tc.allow) {
				t.Errorf("%s\nthat it is about pods must be told by the kind of the error, which is %T", tc.reason, err)
			}
			var fields, pods []string
			for _, c := range plan.Changes {
				for _, f := range c.Fields {
					fields = append(fields, f.Path)
				}
				for _, f := range c.Pods {
					pods = append(pods, f.Path)
				}
			}
			if diff := cmp.Diff([][]string{tc.fields, tc.pods}, [][]string{fields, pods}); diff != "" {
				t.Errorf("%s\nchanges, and those of pods (-want +got):\n%s", tc.reason, diff)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("%s\nnotes %q, want %d", tc.reason, notes, len(tc.notes))
			}
			for i, n := range tc.notes {
				if !strings.Contains(notes[i], n) {
					t.Errorf("%s\nnote %q, want one with %q", tc.reason, notes[i], n)
				}
			}
			if len(control.created) > 0 {
				t.Errorf("%s\nmade %q: to look makes nothing", tc.reason, control.created)
			}
		})
	}
}

func TestClash(t *testing.T) {
	taken := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)
	member := newSide(t, nil, object(t, service))
	create := func(o client.Object, dry bool) error {
		if dry && o.GetName() == "web" && o.GetObjectKind().GroupVersionKind().Kind == "Service" {
			return taken
		}
		return nil
	}
	other := object(t, service, func(u *unstructured.Unstructured) { u.SetName("other") })
	control := newSide(t, create, object(t, namespace), other)
	r := usual()
	r.Type = "services"
	_, _, made, err := promoted(member, control, r)
	if !errors.Is(err, taken) || !strings.Contains(err.Error(), "the control plane would not take Service shop/web: node port 30080 is that of Service shop/other there") {
		t.Errorf("who has the port must be named before anything is made, got: %v", err)
	}
	if len(made) > 0 {
		t.Errorf("made %q", made)
	}
}

func TestFields(t *testing.T) {
	tests := map[string]struct {
		reason     string
		have, want any
		fields     []Field
	}{
		"Same":    {reason: "There is none.", have: map[string]any{"a": int64(1)}, want: map[string]any{"a": 1.0}},
		"Comes":   {reason: "It was not there.", have: map[string]any{}, want: map[string]any{"a": "x"}, fields: []Field{{Path: "a", Want: "x"}}},
		"Goes":    {reason: "It was there.", have: map[string]any{"a": "x"}, want: map[string]any{}, fields: []Field{{Path: "a", Have: "x"}}},
		"Deep":    {reason: "Fields are told to the last.", have: map[string]any{"a": []any{map[string]any{"b": "x"}}}, want: map[string]any{"a": []any{map[string]any{"b": "y"}}}, fields: []Field{{Path: "a[0].b", Have: "x", Want: "y"}}},
		"List":    {reason: "A list of another length is another list.", have: map[string]any{"a": []any{}}, want: map[string]any{"a": []any{"x"}}, fields: []Field{{Path: "a", Have: []any{}, Want: []any{"x"}}}},
		"Quoted":  {reason: "A key with dots is one step.", have: map[string]any{"m": map[string]any{}}, want: map[string]any{"m": map[string]any{"a.b/c": "x"}}, fields: []Field{{Path: `m["a.b/c"]`, Want: "x"}}},
		"Another": {reason: "A map is no word.", have: map[string]any{"a": map[string]any{}}, want: map[string]any{"a": "x"}, fields: []Field{{Path: "a", Have: map[string]any{}, Want: "x"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.fields, fields(tc.have, tc.want, "")); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestJob checks that a Job loses what its own cluster wrote into it.
func TestJob(t *testing.T) {
	const job = `
apiVersion: batch/v1
kind: Job
metadata:
  namespace: shop
  name: once
  uid: u7
  labels: {app: once, controller-uid: u7, job-name: once, batch.kubernetes.io/controller-uid: u7, batch.kubernetes.io/job-name: once}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: u7}}
  template:
    metadata: {labels: {app: once, controller-uid: u7, job-name: once, batch.kubernetes.io/controller-uid: u7, batch.kubernetes.io/job-name: once}}
    spec: {containers: []}
`
	tests := map[string]struct {
		reason   string
		manual   bool
		labels   map[string]string
		pods     map[string]any
		selector bool
	}{
		"Generated": {reason: "The UID is another's in the control plane.", labels: map[string]string{"app": "once"}, pods: map[string]any{"app": "once"}},
		"Manual": {
			reason: "What its user has chosen stays.", manual: true, selector: true,
			labels: map[string]string{"app": "once", "controller-uid": "u7", "job-name": "once", "batch.kubernetes.io/controller-uid": "u7", "batch.kubernetes.io/job-name": "once"},
			pods:   map[string]any{"app": "once", "controller-uid": "u7", "job-name": "once", "batch.kubernetes.io/controller-uid": "u7", "batch.kubernetes.io/job-name": "once"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, job)
			if err := unstructured.SetNestedField(o.Object, tc.manual, "spec", "manualSelector"); err != nil {
				t.Fatal(err)
			}
			got := template(o)
			if diff := cmp.Diff(tc.labels, got.GetLabels()); diff != "" {
				t.Errorf("%s\nlabels (-want +got):\n%s", tc.reason, diff)
			}
			pods, _, err := unstructured.NestedMap(got.Object, "spec", "template", "metadata", "labels")
			if diff := cmp.Diff(tc.pods, pods); err != nil || diff != "" {
				t.Errorf("%s\nlabels of pods (-want +got):\n%s %v", tc.reason, diff, err)
			}
			if _, found, err := unstructured.NestedMap(got.Object, "spec", "selector"); err != nil || found != tc.selector {
				t.Errorf("%s\nhas a selector: %t, %v, want %t", tc.reason, found, err, tc.selector)
			}
		})
	}
}

// TestHeld checks that what a demotion left in the control plane is taken up again.
func TestHeld(t *testing.T) {
	held := object(t, web, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app": "web", "resourcetemplate.karmada.io/claimed-by": DemotedBy})
	})
	member, control := newSide(t, nil, object(t, web)), newSide(t, nil, object(t, namespace), held)
	control.patch = true
	_, notes, made, err := promoted(member, control, usual())
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, notes %q", err, notes)
	}
	if len(made) != 2 || made[0] != "Deployment shop/web" {
		t.Errorf("made %q, want the policy and the template that is taken up", made)
	}
	got, err := get(context.Background(), control, held.GroupVersionKind(), client.ObjectKeyFromObject(held))
	if err != nil || got.GetLabels()["resourcetemplate.karmada.io/claimed-by"] != "" {
		t.Errorf("labels %v, %v: policies must be able to claim it", got.GetLabels(), err)
	}
	if plan, _, made, err := promoted(member, control, usual()); err != nil || len(made) > 0 || !plan.IsDone() {
		t.Errorf("the second time: made %q, %v", made, err)
	}
}
