package protect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var errBoom = errors.New("boom")

const (
	label    = "resourcetemplate.karmada.io/deletion-protected"
	contract = "This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected"
)

// An answer is what of a response users see.
type answer struct {
	Code     int32 // 0: allowed
	Message  string
	Warnings []string
}

func answerOf(r admission.Response) answer {
	a := answer{Warnings: r.Warnings}
	if !r.Allowed {
		a.Code, a.Message = r.Result.Code, r.Result.Message
	}
	return a
}

// ask sends a deletion of an object, as JSON, to one of the hooks.
func ask(t *testing.T, o Options, hook, object string, change ...func(*admission.Request)) answer {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete}}
	req.OldObject.Raw = []byte(object)
	for _, f := range change {
		f(&req)
	}
	hooks := Hooks(o)
	for _, h := range hooks {
		if h.Name == hook {
			return answerOf(h.Handler.Handle(t.Context(), req))
		}
	}
	t.Fatalf("there is no hook %s", hook)
	return answer{}
}

func TestHooks(t *testing.T) {
	paths := func(o Options) []string {
		var all []string
		for _, h := range Hooks(o) {
			all = append(all, h.Name+" "+h.Path)
		}
		return all
	}
	one := []string{"resourcedeletionprotection.karmada.io /validate-resourcedeletionprotection"}
	if diff := cmp.Diff(one, paths(Options{})); diff != "" {
		t.Errorf("without a way to look, there is the contract's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(3, len(paths(newPlane().options()))); diff != "" {
		t.Errorf("with one, there are those of this control plane, too (-want +got):\n%s", diff)
	}
}

func TestObject(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		change func(*admission.Request)
		want   answer
	}{
		"Protected": {"The label protects, and scripts know the words.", `{"metadata":{"name":"a","labels":{"` + label + `":"Always"}}}`, nil, answer{Code: 403, Message: contract}},
		"DryRun":    {"A trial tells what would be.", `{"metadata":{"labels":{"` + label + `":"Always"}}}`, func(r *admission.Request) { r.DryRun = new(true) }, answer{Code: 403, Message: contract}},
		"Controller": {"Whoever asks: the garbage collector is refused for what its owner took along.", `{"metadata":{"labels":{"` + label + `":"Always"}}}`, func(r *admission.Request) {
			r.UserInfo.Username = "system:serviceaccount:kube-system:generic-garbage-collector"
		}, answer{Code: 403, Message: contract}},
		"AnyKind":    {"Nothing but metadata is looked at, so every kind is the same.", `{"kind":"Odd","spec":[1],"metadata":{"labels":{"` + label + `":"Always","a":"b"}}}`, nil, answer{Code: 403, Message: contract}},
		"OtherValue": {"One value protects.", `{"metadata":{"labels":{"` + label + `":"Sometimes"}}}`, nil, answer{}},
		"OtherCase":  {"In one spelling.", `{"metadata":{"labels":{"` + label + `":"always"}}}`, nil, answer{}},
		"Empty":      {"An empty value is none.", `{"metadata":{"labels":{"` + label + `":""}}}`, nil, answer{}},
		"Annotation": {"An annotation is no label.", `{"metadata":{"annotations":{"` + label + `":"Always"}}}`, nil, answer{}},
		"Plain":      {"Most objects have no such label.", `{"metadata":{"name":"a"}}`, nil, answer{}},
		"Update":     {"What is protected can be changed, and so the label removed.", `{"metadata":{"labels":{"` + label + `":"Always"}}}`, func(r *admission.Request) { r.Operation = admissionv1.Update }, answer{}},
		"NoObject":   {"Who asks about nothing is told.", ``, nil, answer{Code: 400, Message: "read the object to delete: the request does not have it"}},
		"Unreadable": {"So is who sends something else.", `{"metadata":[]}`, nil, answer{Code: 400, Message: "read the object to delete: json: cannot unmarshal array into Go struct field PartialObjectMetadata.metadata of type v1.ObjectMeta"}},
		"NewIsEnough": {"The object that counts is the one that would go.", `{"metadata":{}}`, func(r *admission.Request) {
			r.Object.Raw = []byte(`{"metadata":{"labels":{"` + label + `":"Always"}}}`)
		}, answer{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var change []func(*admission.Request)
			if c.change != nil {
				change = append(change, c.change)
			}
			if diff := cmp.Diff(c.want, ask(t, Options{}, ObjectHook, c.object, change...)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// A plane is a control plane with kinds and objects.
type plane struct {
	kinds    []schema.GroupVersionResource
	kindsErr error
	objects  []runtime.Object
	fail     map[string]error // by resource

	mu     sync.Mutex
	listed []string // namespaces and resources, with selectors
}

func newPlane(objects ...runtime.Object) *plane {
	return &plane{
		kinds: []schema.GroupVersionResource{
			{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
			{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "x.io", Version: "v2", Resource: "gadgets"},
		},
		objects: objects, fail: map[string]error{},
	}
}

func (p *plane) options() Options {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, p.objects...)
	client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		list := a.(clienttesting.ListAction)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.listed = append(p.listed, fmt.Sprintf("%s/%s %s", list.GetNamespace(), list.GetResource().Resource, list.GetListRestrictions().Labels))
		err := p.fail[list.GetResource().Resource]
		return err != nil, nil, err
	})
	return Options{
		Namespaced: func(context.Context) ([]schema.GroupVersionResource, error) { return p.kinds, p.kindsErr },
		Metadata:   client,
	}
}

// thing is one of a kind; with a value it has the label.
func thing(apiVersion, kind, namespace, name string, value ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
	for _, v := range value {
		o.Labels = map[string]string{label: v}
	}
	return o
}

func TestNamespace(t *testing.T) {
	const always = "Always"
	shop := `{"metadata":{"name":"shop"}}`
	web := thing("apps/v1", "Deployment", "shop", "web", always)
	cases := map[string]struct {
		reason string
		plane  *plane
		change func(*plane)
		object string
		want   answer
		unseen bool // nothing is looked at
	}{
		"Empty": {
			reason: "It goes.", plane: newPlane(), object: shop,
		},
		"Plain": {
			reason: "So does one whose objects are not protected, or in another namespace.",
			plane: newPlane(
				thing("v1", "ConfigMap", "shop", "a"), thing("v1", "Secret", "shop", "b", "Sometimes"), thing("v1", "Secret", "other", "c", always)),
			object: shop,
		},
		"Protected": {
			reason: "Everything else in it would be lost, and it could not be used again.",
			plane:  newPlane(thing("v1", "ConfigMap", "shop", "a"), web), object: shop,
			want: answer{Code: 403, Message: "namespace shop holds protected resources, please make sure to remove the label: " + label + " of deployments.apps/web"},
		},
		"Several": {
			reason: "One of each kind is named, of kinds that nobody here knows, too.",
			plane:  newPlane(web, thing("x.io/v2", "Gadget", "shop", "g", always), thing("v1", "Secret", "shop", "b", always), thing("v1", "Secret", "shop", "c", always)), object: shop,
			want: answer{Code: 403, Message: "namespace shop holds protected resources, please make sure to remove the label: " + label + " of deployments.apps/web, gadgets.x.io/g, secrets/b"},
		},
		"Deleted": {
			reason: "What is being deleted already is nothing to save.",
			plane:  newPlane(web), object: `{"metadata":{"name":"shop","deletionTimestamp":"2026-01-02T03:04:05Z"}}`, unseen: true,
		},
		"Execution": {
			reason: "Our own namespaces hold nothing of users: a cluster that leaves does not wait.",
			plane:  newPlane(thing("v1", "Secret", "karmada-es-m1", "a", always)), object: `{"metadata":{"name":"karmada-es-m1"}}`, unseen: true,
		},
		"OneKindFails": {
			reason: "A broken API does not keep namespaces for ever; the user is told.",
			plane:  newPlane(), change: func(p *plane) { p.fail["gadgets"] = errBoom }, object: shop,
			want: answer{Warnings: []string{"namespace shop may hold protected resources, which would keep it from ending: could not look for gadgets.x.io (boom)"}},
		},
		"FailsAndProtected": {
			reason: "What is known is enough.",
			plane:  newPlane(web), change: func(p *plane) { p.fail["gadgets"] = errBoom }, object: shop,
			want: answer{Code: 403, Message: "namespace shop holds protected resources, please make sure to remove the label: " + label + " of deployments.apps/web"},
		},
		"KindGone": {
			reason: "A kind that is not served any more has no objects.",
			plane:  newPlane(), change: func(p *plane) {
				p.fail["gadgets"] = apierrors.NewNotFound(schema.GroupResource{Resource: "gadgets"}, "")
				p.fail["secrets"] = apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "secrets"}, "list")
			}, object: shop,
		},
		"KindsUnknown": {
			reason: "It is not known what could be in it; what is protected still is, one by one.",
			plane:  newPlane(web), change: func(p *plane) { p.kinds, p.kindsErr = nil, errBoom }, object: shop,
			want: answer{Warnings: []string{"namespace shop may hold protected resources, which would keep it from ending: could not look for boom"}},
		},
		"SomeKindsUnknown": {
			reason: "The kinds that are known are looked at all the same.",
			plane:  newPlane(web), change: func(p *plane) { p.kindsErr = errBoom }, object: shop,
			want: answer{Code: 403, Message: "namespace shop holds protected resources, please make sure to remove the label: " + label + " of deployments.apps/web"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.plane)
			}
			if diff := cmp.Diff(c.want, ask(t, c.plane.options(), NamespaceHook, c.object)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
			if c.unseen && len(c.plane.listed) > 0 {
				t.Errorf("%s\nlisted %v", c.reason, c.plane.listed)
			}
			for _, l := range c.plane.listed {
				if !strings.HasPrefix(l, "shop/") || !strings.HasSuffix(l, " "+label+"=Always") {
					t.Errorf("only protected objects of the namespace are of interest: %s", l)
				}
			}
		})
	}
}

// A refusal stays short, however much is protected.
func TestNamespaceWithMuch(t *testing.T) {
	p := newPlane()
	for i := range 9 {
		gvr := schema.GroupVersionResource{Group: "y.io", Version: "v1", Resource: fmt.Sprintf("kind%ds", i)}
		p.kinds = append(p.kinds, gvr)
		p.objects = append(p.objects, thing("y.io/v1", fmt.Sprintf("Kind%d", i), "shop", "a", "Always"))
	}
	got := ask(t, p.options(), NamespaceHook, `{"metadata":{"name":"shop"}}`)
	if !strings.HasSuffix(got.Message, "kind4s.y.io/a and 4 more") {
		t.Errorf("got %s", got.Message)
	}
}

func TestNamespaceInTime(t *testing.T) {
	o := newPlane().options()
	o.Namespaced = func(ctx context.Context) ([]schema.GroupVersionResource, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("whoever looks has to know when it is too late")
		}
		return nil, nil
	}
	ask(t, o, NamespaceHook, `{"metadata":{"name":"shop"}}`)
}

func TestDefinition(t *testing.T) {
	crd := func(versions string) string {
		return `{"metadata":{"name":"gadgets.x.io"},"spec":{"group":"x.io","names":{"plural":"gadgets","kind":"Gadget"},"versions":` + versions + `}}`
	}
	const stored = `[{"name":"v1","served":true},{"name":"v2","served":true,"storage":true},{"name":"v3","served":true}]`
	cases := map[string]struct {
		reason string
		plane  *plane
		change func(*plane)
		object string
		want   answer
		listed []string
	}{
		"Unused": {
			reason: "It goes.", plane: newPlane(), object: crd(stored),
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"Plain": {
			reason: "So does one whose objects are not protected.",
			plane:  newPlane(thing("x.io/v2", "Gadget", "shop", "g"), thing("v1", "Secret", "shop", "s", "Always")), object: crd(stored),
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"Protected": {
			reason: "Its objects would go without anybody being asked.",
			plane:  newPlane(thing("x.io/v2", "Gadget", "shop", "g", "Always")), object: crd(stored),
			want:   answer{Code: 403, Message: "objects of gadgets.x.io are protected and would be deleted too, please make sure to remove the label: " + label + " of shop/g"},
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"ClusterScope": {
			reason: "Of any scope.",
			plane:  newPlane(thing("x.io/v1", "Gadget", "", "g", "Always")), object: crd(`[{"name":"v1","served":true},{"name":"v2","storage":true}]`),
			want:   answer{Code: 403, Message: "objects of gadgets.x.io are protected and would be deleted too, please make sure to remove the label: " + label + " of g"},
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"Deleted": {
			reason: "What is being deleted already is nothing to save.",
			plane:  newPlane(thing("x.io/v2", "Gadget", "shop", "g", "Always")),
			object: strings.Replace(crd(stored), `"name":"gadgets.x.io"`, `"name":"gadgets.x.io","deletionTimestamp":"2026-01-02T03:04:05Z"`, 1),
		},
		"NotServed": {
			reason: "Nobody can have labelled what nobody can reach.",
			plane:  newPlane(), object: crd(`[{"name":"v1","storage":true}]`),
		},
		"NeverServed": {
			reason: "A definition that was never accepted has no objects.",
			plane:  newPlane(), change: func(p *plane) {
				p.fail["gadgets"] = apierrors.NewNotFound(schema.GroupResource{Resource: "gadgets"}, "")
			}, object: crd(stored),
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"Unknown": {
			reason: "Not to know is not that there is none, and nothing else protects them.",
			plane:  newPlane(), change: func(p *plane) { p.fail["gadgets"] = errBoom }, object: crd(stored),
			want:   answer{Code: 500, Message: "find out whether there are protected gadgets.x.io, which would be deleted too: boom: try again when they can be listed"},
			listed: []string{"/gadgets " + label + "=Always"},
		},
		"Unreadable": {
			reason: "Whoever asks wrongly is told.",
			plane:  newPlane(), object: `{"metadata":{"name":"x"},"spec":[]}`,
			want: answer{Code: 400, Message: "read the object to delete: json: cannot unmarshal array into Go struct field definition.spec of type protect.definitionSpec"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.plane)
			}
			got := ask(t, c.plane.options(), DefinitionHook, c.object)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.listed, c.plane.listed); diff != "" {
				t.Errorf("%s\nlisted (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// Objects are read in the version that is stored, if that is served: it needs no
// conversion, which may be what is broken.
func TestVersionOfDefinition(t *testing.T) {
	cases := map[string]struct {
		reason, versions, want string
	}{
		"Stored":    {"The stored one.", `[{"name":"v1","served":true},{"name":"v2","served":true,"storage":true},{"name":"v3","served":true}]`, "v2"},
		"NotServed": {"Another when that is not served.", `[{"name":"v1","served":true},{"name":"v2","storage":true}]`, "v1"},
		"First":     {"Stored and first.", `[{"name":"v1","served":true,"storage":true},{"name":"v2","served":true}]`, "v1"},
		"None":      {"None.", `[{"name":"v1","storage":true}]`, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var d definition
			if err := json.Unmarshal([]byte(`{"spec":{"group":"x.io","names":{"plural":"gadgets"},"versions":`+c.versions+`}}`), &d); err != nil {
				t.Fatal(err)
			}
			gvr, ok := d.resource()
			if gvr.Version != c.want || ok != (c.want != "") {
				t.Errorf("got %v %v: %s", gvr, ok, c.reason)
			}
		})
	}
}

// nothing is a control plane without objects.
type nothing struct{ metadata.ResourceInterface }

func (n nothing) Resource(schema.GroupVersionResource) metadata.Getter { return n }
func (n nothing) Namespace(string) metadata.ResourceInterface          { return n }
func (nothing) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return &metav1.PartialObjectMetadataList{}, nil
}

// FuzzDeletion: whatever is sent is answered, and a refusal says why.
func FuzzDeletion(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"labels":{"` + label + `":"Always"}}}`, `{"metadata":{"name":"shop"}}`, `null`, `[]`, `{"metadata":null}`,
		`{"metadata":{"name":"gadgets.x.io"},"spec":{"group":"x.io","names":{"plural":"gadgets"},"versions":[{"name":"v1","served":true}]}}`,
	} {
		f.Add([]byte(s))
	}
	o := newPlane().options()
	o.Metadata = nothing{}
	f.Fuzz(func(t *testing.T, raw []byte) {
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete}}
		req.OldObject.Raw = slices.Clone(raw)
		for _, h := range Hooks(o) {
			r := h.Handler.Handle(t.Context(), req)
			if !r.Allowed && r.Result.Message == "" {
				t.Errorf("%s refuses without a word", h.Name)
			}
		}
	})
}
