package override

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

// workload returns a workload of a kind with two containers and an init
// container, all of the image nginx:1.
func workload(kind string) *unstructured.Unstructured {
	container := func(name string) any {
		return map[string]any{"name": name, "image": "nginx:1", "args": []any{"a", "b", "a"}}
	}
	pod := map[string]any{
		"containers":     []any{container("web"), container("side")},
		"initContainers": []any{container("init")},
	}
	spec := pod
	switch kind {
	case "Pod":
	case "CronJob":
		spec = map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}}}
	default:
		spec = map[string]any{"template": map[string]any{"spec": pod}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "web"}, "spec": spec,
	}}
}

// applied returns an object after some overriders, written in YAML.
func applied(t *testing.T, obj *unstructured.Unstructured, overriders string) (*unstructured.Unstructured, error) {
	t.Helper()
	var o policyv1alpha1.Overriders
	if err := yaml.UnmarshalStrict([]byte(overriders), &o); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopy()
	r, err := Apply(obj, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}, []policyv1alpha1.ClusterOverridePolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: o}}},
	}}, nil)
	if diff := cmp.Diff(before, obj); diff != "" {
		t.Errorf("the object that was given has changed (-want +got):\n%s", diff)
	}
	return r.Object, err
}

func TestDefaultImages(t *testing.T) {
	tests := map[string]struct {
		reason string
		kinds  []string
		want   []string // of the containers web and side, and of init
	}{
		"Workloads": {
			reason: "All containers are covered, init containers are not.",
			kinds:  []string{"Pod", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob"},
			want:   []string{"r.io/nginx:1", "r.io/nginx:1", "nginx:1"},
		},
		"Others": {
			reason: "Other kinds need a predicate.",
			kinds:  []string{"Rollout", "PodTemplate"},
			want:   []string{"nginx:1", "nginx:1", "nginx:1"},
		},
	}
	for name, tc := range tests {
		for _, kind := range tc.kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				got, err := applied(t, workload(kind), "imageOverrider: [{component: Registry, operator: replace, value: r.io}]")
				if err != nil {
					t.Fatal(err)
				}
				// Every kind's pods look alike: read them as if they were known.
				var images []string
				as := got.DeepCopy()
				if _, ok := podSpecOf(kind); !ok {
					as.SetKind("Deployment")
				}
				for _, c := range containersOf(as, "containers", "initContainers") {
					images = append(images, c.fields["image"].(string))
				}
				if diff := cmp.Diff(tc.want, images); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func TestOverriders(t *testing.T) {
	configMap := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": data,
		}}
	}
	annotated := func() *unstructured.Unstructured {
		o := configMap(nil)
		o.SetLabels(map[string]string{"app": "web", "example.com/tier": "edge"})
		return o
	}

	tests := map[string]struct {
		reason     string
		object     *unstructured.Unstructured
		overriders string
		path       string // JSON pointer to what is compared
		want       string // as JSON
	}{
		"ImagePredicate": {
			reason:     "A predicate leads to init containers, too.",
			object:     workload("Deployment"),
			overriders: "imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: replace, value: '2'}]",
			path:       "/spec/template/spec/initContainers/0/image", want: `"nginx:2"`,
		},
		"ImagePredicateAlone": {
			reason:     "With a predicate nothing else changes.",
			object:     workload("Deployment"),
			overriders: "imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: replace, value: '2'}]",
			path:       "/spec/template/spec/containers/0/image", want: `"nginx:1"`,
		},
		"ImagePredicateEscaped": {
			reason:     "Any string field of any object can be an image.",
			object:     configMap(map[string]any{"a/b~c": "nginx"}),
			overriders: "imageOverrider: [{predicate: {path: /data/a~1b~0c}, component: Registry, operator: add, value: r.io}]",
			path:       "/data/a~1b~0c", want: `"r.io/nginx"`,
		},
		"ImagesInTurn": {
			reason: "Each item sees what the one before it made.",
			object: workload("Pod"),
			overriders: `imageOverrider:
- {component: Repository, operator: remove}
- {component: Repository, operator: add, value: httpd}
- {component: Registry, operator: replace, value: r.io}
- {component: Registry, operator: add, value: .cn}`,
			path: "/spec/containers/0/image", want: `"r.io.cn/httpd:1"`,
		},
		"ImagesOfOthers": {
			reason: "A kind of another group that only has the name of a workload is left alone.",
			object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Job", "metadata": map[string]any{"name": "x"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
					"odd", map[string]any{"image": map[string]any{"name": "x"}}, map[string]any{"name": "none"},
				}}}},
			}},
			overriders: "imageOverrider: [{component: Registry, operator: replace, value: r.io}]",
			path:       "/spec/template/spec/containers/2", want: `{"name":"none"}`,
		},
		"ArgsAdded": {
			reason:     "What is added comes last.",
			object:     workload("Deployment"),
			overriders: "argsOverrider: [{containerName: side, operator: add, value: [c, a]}]",
			path:       "/spec/template/spec/containers/1/args", want: `["a","b","a","c","a"]`,
		},
		"ArgsOfOthers": {
			reason:     "Only the container that is named changes.",
			object:     workload("Deployment"),
			overriders: "argsOverrider: [{containerName: side, operator: add, value: [c]}]",
			path:       "/spec/template/spec/containers/0/args", want: `["a","b","a"]`,
		},
		"ArgsRemoved": {
			reason:     "Every element that equals a value goes.",
			object:     workload("CronJob"),
			overriders: "argsOverrider: [{containerName: web, operator: remove, value: [a, z]}]",
			path:       "/spec/jobTemplate/spec/template/spec/containers/0/args", want: `["b"]`,
		},
		"ArgsOfInit": {
			reason:     "An init container can be named.",
			object:     workload("Job"),
			overriders: "argsOverrider: [{containerName: init, operator: remove, value: [a, b]}]",
			path:       "/spec/template/spec/initContainers/0/args", want: `[]`,
		},
		"CommandSet": {
			reason:     "A command that is not there is made.",
			object:     workload("Pod"),
			overriders: "commandOverrider: [{containerName: web, operator: add, value: [sh, -c]}, {containerName: web, operator: add, value: [exit]}]",
			path:       "/spec/containers/0/command", want: `["sh","-c","exit"]`,
		},
		"CommandRemoved": {
			reason:     "Where there is no command there is none to be removed, and none is made.",
			object:     workload("Pod"),
			overriders: "commandOverrider: [{containerName: web, operator: remove, value: [sh]}, {containerName: web, operator: add}]",
			path:       "/spec/containers/0", want: `{"args":["a","b","a"],"image":"nginx:1","name":"web"}`,
		},
		"LabelsAdded": {
			reason:     "A label is made, and one that is there is set.",
			object:     annotated(),
			overriders: "labelsOverrider: [{operator: add, value: {app: x, new: z}}]",
			path:       "/metadata/labels", want: `{"app":"x","example.com/tier":"edge","new":"z"}`,
		},
		"LabelsReplaced": {
			reason:     "Only a label that is there is replaced.",
			object:     annotated(),
			overriders: "labelsOverrider: [{operator: replace, value: {example.com/tier: x, new: y}}]",
			path:       "/metadata/labels", want: `{"app":"web","example.com/tier":"x"}`,
		},
		"LabelsRemoved": {
			reason:     "The value does not count when a label is removed.",
			object:     annotated(),
			overriders: "labelsOverrider: [{operator: remove, value: {app: '', new: ''}}]",
			path:       "/metadata/labels", want: `{"example.com/tier":"edge"}`,
		},
		"AnnotationsAdded": {
			reason:     "The first annotation makes the map.",
			object:     annotated(),
			overriders: "annotationsOverrider: [{operator: add, value: {a/b: c}}]",
			path:       "/metadata/annotations", want: `{"a/b":"c"}`,
		},
		"AnnotationsRemoved": {
			reason:     "What is not there is not made in order to be changed.",
			object:     annotated(),
			overriders: "annotationsOverrider: [{operator: remove, value: {a: ''}}, {operator: replace, value: {a: b}}]",
			path:       "/metadata", want: `{"labels":{"app":"web","example.com/tier":"edge"},"name":"web"}`,
		},
		"FieldYAML": {
			reason: "A YAML document comes back with its keys sorted.",
			object: configMap(map[string]any{"db.yaml": "# main\nport: 5432\nhost: db\nfrom: [a, b]\n"}),
			overriders: `fieldOverrider:
- fieldPath: /data/db.yaml
  yaml:
  - {subPath: /host, operator: replace, value: db.m1}
  - {subPath: /from/0, operator: remove}
  - {subPath: /opts, operator: add, value: {tls: true, max: 1}}`,
			path: "/data/db.yaml", want: `"from:\n- b\nhost: db.m1\nopts:\n  max: 1\n  tls: true\nport: 5432\n"`,
		},
		"FieldJSON": {
			reason: "A JSON document keeps the order of its keys, and how its numbers are written.",
			object: configMap(map[string]any{"c.json": ` {"z": 1.0, "big": 123456789012345678901234567890, "a": {"b": "<&>"}} `}),
			overriders: `fieldOverrider:
- fieldPath: /data/c.json
  json:
  - {subPath: /a/c, operator: add, value: x}
  - {subPath: /z1, operator: add, value: 2.5}`,
			path: "/data/c.json", want: `"{\"z\":1.0,\"big\":123456789012345678901234567890,\"a\":{\"b\":\"<&>\",\"c\":\"x\"},\"z1\":2.5}"`,
		},
		"FieldList": {
			reason:     "A document may be a list.",
			object:     configMap(map[string]any{"l": "\n[1,2]"}),
			overriders: "fieldOverrider: [{fieldPath: /data/l, json: [{subPath: /-, operator: add, value: 3}]}]",
			path:       "/data/l", want: `"[1,2,3]"`,
		},
		"FieldNothing": {
			reason:     "Without changes the document stays as it is written.",
			object:     configMap(map[string]any{"l": "no document"}),
			overriders: "fieldOverrider: [{fieldPath: /data/l}]",
			path:       "/data/l", want: `"no document"`,
		},
		"FieldComment": {
			reason:     "A comment in front of the first separator is no document.",
			object:     configMap(map[string]any{"c": "# mine\n---\na: 1\n"}),
			overriders: "fieldOverrider: [{fieldPath: /data/c, yaml: [{subPath: /a, operator: replace, value: 2}]}]",
			path:       "/data/c", want: `"a: 2\n"`,
		},
		"Plaintext": {
			reason: "The list is one JSON patch, each item sees what the one before made.",
			object: workload("Deployment"),
			overriders: `plaintext:
- {path: /spec/strategy, operator: add, value: {}}
- {path: /spec/strategy/type, operator: add, value: Recreate}
- {path: /spec/template/spec/containers/1, operator: remove}
- {path: /spec/template/spec/containers/0/args, operator: replace, value: ["<", 1]}`,
			path: "/spec", want: `{"strategy":{"type":"Recreate"},"template":{"spec":{"containers":[{"args":["<",1],"image":"nginx:1","name":"web"}],` +
				`"initContainers":[{"args":["a","b","a"],"image":"nginx:1","name":"init"}]}}}`,
		},
		"PlaintextNull": {
			reason:     "Without a value null is set.",
			object:     workload("Pod"),
			overriders: "plaintext: [{path: /spec/containers, operator: replace}]",
			path:       "/spec/containers", want: `null`,
		},
		"Order": {
			reason: "The order of overriders is fixed, whatever the manifest says.",
			object: workload("Pod"),
			overriders: `plaintext: [{path: /spec/containers/0/image, operator: replace, value: last}]
fieldOverrider: [{fieldPath: /metadata/annotations/doc, json: [{subPath: /b, operator: add, value: 1}]}]
annotationsOverrider: [{operator: add, value: {doc: '{}'}}]
imageOverrider: [{component: Tag, operator: replace, value: first}]`,
			path: "/metadata/annotations/doc", want: `"{\"b\":1}"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := applied(t, tc.object, tc.overriders)
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, at(t, got, tc.path)); diff != "" {
				t.Errorf("%s\n%s (-want +got):\n%s", tc.reason, tc.path, diff)
			}
		})
	}
}

// at returns what a JSON pointer leads to, as JSON.
func at(t *testing.T, obj *unstructured.Unstructured, pointer string) string {
	t.Helper()
	var v any = obj.Object
	for part := range strings.SplitSeq(pointer[1:], "/") {
		switch in := v.(type) {
		case map[string]any:
			v = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		case []any:
			v = in[part[0]-'0']
		default:
			t.Fatalf("%s leads nowhere", pointer)
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestOverridersFail(t *testing.T) {
	odd := func() *unstructured.Unstructured {
		o := workload("Deployment")
		o.Object["data"] = map[string]any{"text": "no: [document", "json": "{", "word": "word", "several": "a: 1\n---\nb: 1\n", "yaml": "a: 1", "n": int64(1), "empty": ""}
		return o
	}
	const prefix = "ClusterOverridePolicy p: spec.overrideRules[0].overriders."

	tests := map[string]struct {
		reason     string
		change     func(*unstructured.Unstructured)
		overriders string
		want       string // the message behind prefix
	}{
		"ImageMissing": {
			reason:     "A predicate must lead somewhere.",
			overriders: "imageOverrider: [{predicate: {path: /spec/image}, component: Tag, operator: remove}]",
			want:       `imageOverrider[0] at /spec/image: there is no field "image"`,
		},
		"ImageItemMissing": {
			reason:     "A predicate must lead somewhere.",
			overriders: "imageOverrider: [{predicate: {path: /spec/template/spec/containers/2/image}, component: Tag, operator: remove}]",
			want:       `imageOverrider[0] at /spec/template/spec/containers/2/image: there is no item 2 in a list of 2`,
		},
		"ImageNoItem": {
			reason:     "An item of a list has a number.",
			overriders: "imageOverrider: [{predicate: {path: /spec/template/spec/containers/web/image}, component: Tag, operator: remove}]",
			want:       `imageOverrider[0] at /spec/template/spec/containers/web/image: "web" is no index of a list`,
		},
		"ImageNoString": {
			reason:     "An image is a string.",
			overriders: "imageOverrider: [{component: Tag, operator: remove}, {predicate: {path: /data/n}, component: Tag, operator: remove}]",
			want:       `imageOverrider[1] at /data/n: it is not a string`,
		},
		"ImageBelowString": {
			reason:     "There is nothing below a string.",
			overriders: "imageOverrider: [{predicate: {path: /data/word/x}, component: Tag, operator: remove}]",
			want:       `imageOverrider[0] at /data/word/x: there is no field "x"`,
		},
		"ImageNoPointer": {
			reason:     "What is no JSON pointer leads to the wrong place.",
			overriders: "imageOverrider: [{predicate: {path: spec.image}, component: Tag, operator: remove}]",
			want:       `imageOverrider[0] at spec.image: a path must begin with a slash`,
		},
		"ImageNothingLeft": {
			reason:     "No cluster can pull nothing.",
			overriders: "imageOverrider: [{component: Registry, operator: add, value: r.io}, {component: Repository, operator: remove}]",
			want:       `imageOverrider[1] at /spec/template/spec/containers/0/image: an image needs a repository`,
		},
		"Args": {
			reason:     "A list of arguments is one.",
			change:     func(o *unstructured.Unstructured) { containersOf(o, "containers")[1].fields["args"] = "x" },
			overriders: "argsOverrider: [{containerName: side, operator: add, value: [x]}]",
			want:       `argsOverrider[0] at /spec/template/spec/containers/1/args: it is not a list`,
		},
		"ArgsReplaced": {
			reason:     "Arguments are added and removed.",
			overriders: "argsOverrider: [{containerName: side, operator: replace, value: [x]}]",
			want:       `argsOverrider[0] at /spec/template/spec/containers/1/args: unsupported operator "replace"`,
		},
		"Labels": {
			reason:     "Labels are a map.",
			change:     func(o *unstructured.Unstructured) { o.Object["metadata"].(map[string]any)["labels"] = []any{} },
			overriders: "labelsOverrider: [{operator: add, value: {a: b}}]",
			want:       `labelsOverrider[0] at /metadata/labels: it is not a map`,
		},
		"Annotations": {
			reason:     "An operator that nobody knows does nothing right.",
			overriders: "annotationsOverrider: [{operator: move, value: {a: b}}]",
			want:       `annotationsOverrider[0] at /metadata/annotations: unsupported operator "move"`,
		},
		"FieldMissing": {
			reason:     "A document must be there.",
			overriders: "fieldOverrider: [{fieldPath: /data/x, json: [{subPath: /a, operator: remove}]}]",
			want:       `fieldOverrider[0] at /data/x: there is no field "x"`,
		},
		"FieldNoString": {
			reason:     "A document is a string.",
			overriders: "fieldOverrider: [{fieldPath: /data, yaml: [{subPath: /a, operator: remove}]}]",
			want:       `fieldOverrider[0] at /data: it is not a string`,
		},
		"FieldNoJSON": {
			reason:     "A document that cannot be read cannot be changed.",
			overriders: "fieldOverrider: [{fieldPath: /data/json, json: [{subPath: /a, operator: remove}]}]",
			want:       `fieldOverrider[0] at /data/json: it is not a JSON document`,
		},
		"FieldEmpty": {
			reason:     "An empty text is no JSON document.",
			overriders: "fieldOverrider: [{fieldPath: /data/empty, json: [{subPath: /a, operator: add, value: 1}]}]",
			want:       `fieldOverrider[0] at /data/empty: it is not a JSON document`,
		},
		"FieldWord": {
			reason:     "There is nothing in a word that could be changed.",
			overriders: "fieldOverrider: [{fieldPath: /data/word, yaml: [{subPath: /a, operator: add, value: 1}]}]",
			want:       `fieldOverrider[0] at /data/word: the document is neither a map nor a list`,
		},
		"FieldNothing": {
			reason:     "There is nothing in an empty document that could be changed.",
			overriders: "fieldOverrider: [{fieldPath: /data/empty, yaml: [{subPath: /a, operator: add, value: 1}]}]",
			want:       `fieldOverrider[0] at /data/empty: the document is neither a map nor a list`,
		},
		"FieldSeveral": {
			reason:     "No document may be lost.",
			overriders: "fieldOverrider: [{fieldPath: /data/several, yaml: [{subPath: /a, operator: add, value: 1}]}]",
			want:       `fieldOverrider[0] at /data/several: it has several YAML documents, and would lose all but the first`,
		},
		"FieldOperation": {
			reason:     "The operation and its place in the document are named.",
			overriders: "fieldOverrider: [{fieldPath: /data/yaml, yaml: [{subPath: /b, operator: add, value: 1}, {subPath: /c/d, operator: add, value: 1}]}]",
			want:       `fieldOverrider[0].yaml[1] at /data/yaml: at /c/d of the document: what it is to be added to is not there`,
		},
		"PlaintextRemove": {
			reason:     "What is not there cannot be removed.",
			overriders: "plaintext: [{path: /spec/x, operator: remove}, {path: /spec/y, operator: remove}]",
			want:       `plaintext[0] at /spec/x: there is nothing there to remove`,
		},
		"PlaintextPlace": {
			reason:     "A list has no gaps.",
			overriders: "plaintext: [{path: /spec/template/spec/containers/9, operator: add, value: {}}]",
			want:       `plaintext[0] at /spec/template/spec/containers/9: the list has no such place`,
		},
		"PlaintextNoPointer": {
			reason:     "What is no JSON pointer leads to the wrong place.",
			overriders: "plaintext: [{path: spec/x, operator: add, value: 1}]",
			want:       `plaintext[0] at spec/x: a path must begin with a slash`,
		},
		"PlaintextWhole": {
			reason:     "The whole object is no field of it.",
			overriders: "plaintext: [{path: '', operator: replace, value: {}}]",
			want:       `plaintext[0]: a path must begin with a slash`,
		},
		"PlaintextOperator": {
			reason:     "Other operations of JSON patches are none here.",
			overriders: "plaintext: [{path: /spec/x, operator: test, value: 1}]",
			want:       `plaintext[0] at /spec/x: unsupported operator "test"`,
		},
		"PlaintextIdentity": {
			reason:     "What has no name is no object.",
			overriders: "plaintext: [{path: /metadata, operator: remove}]",
			want:       `plaintext: no object can be without /metadata/name`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := odd()
			if tc.change != nil {
				tc.change(obj)
			}
			_, err := applied(t, obj, tc.overriders)
			if err == nil {
				t.Fatalf("%s\nthere is no error", tc.reason)
			}
			if diff := cmp.Diff(prefix+tc.want, err.Error()); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMalformed applies overriders that make no sense to objects that make no
// sense either. Whatever comes of it, nothing panics and nothing that was given
// is changed.
func TestMalformed(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	values := []func() any{
		func() any { return nil }, func() any { return "text" }, func() any { return int64(1) }, func() any { return true },
		func() any { return []any{} }, func() any { return map[string]any{} }, func() any { return []any{nil, "x", map[string]any{"name": "web", "image": nil}} },
		func() any { return "{}" }, func() any { return "[null]" }, func() any { return "a: &x [*x]" }, func() any { return "null" }, func() any { return 1.5 },
	}
	paths := []string{
		"", "/", "//", "/metadata", "/metadata/labels/app", "/spec", "/spec/template/spec/containers", "/spec/template/spec/containers/0",
		"/spec/template/spec/containers/-", "/spec/template/spec/containers/-1", "/spec/template/spec/containers/00/image", "/spec/template/spec/containers/0/image",
		"/spec/template/spec/containers/99999999999999999999", "spec", "/spec/~", "/spec/~2/x", "/data/doc", "/kind", "/metadata/name",
	}
	raw := []string{"", "null", "1", `"x"`, "{}", "[]", "{", "nul", `{"a":null}`}
	operators := []policyv1alpha1.OverriderOperator{add, remove, replace, "", "test", "move", "copy"}

	for i := range 4000 {
		obj := workload(pick("Pod", "Deployment", "CronJob", "Odd"))
		obj.Object["data"] = map[string]any{"doc": values[r.IntN(len(values))]()}
		for _, field := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "template", "spec", "containers"}, {"spec"}, {"metadata"}} {
			if r.IntN(5) == 0 {
				_ = unstructured.SetNestedField(obj.Object, values[r.IntN(len(values))](), field...)
			}
		}
		operator := func() policyv1alpha1.OverriderOperator { return operators[r.IntN(len(operators))] }
		value := func() apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(raw[r.IntN(len(raw))])} }
		o := policyv1alpha1.Overriders{}
		for range 1 + r.IntN(2) {
			switch r.IntN(6) {
			case 0:
				image := policyv1alpha1.ImageOverrider{
					Component: policyv1alpha1.ImageComponent(pick("Registry", "Repository", "Tag", "")), Operator: operator(), Value: pick("", "@", ":", "/", "a@b", "x"),
				}
				if r.IntN(2) == 0 {
					image.Predicate = &policyv1alpha1.ImagePredicate{Path: paths[r.IntN(len(paths))]}
				}
				o.ImageOverrider = append(o.ImageOverrider, image)
			case 1:
				o.ArgsOverrider = append(o.ArgsOverrider, policyv1alpha1.CommandArgsOverrider{ContainerName: pick("web", ""), Operator: operator(), Value: []string{"a"}})
			case 2:
				o.LabelsOverrider = append(o.LabelsOverrider, policyv1alpha1.LabelAnnotationOverrider{Operator: operator(), Value: map[string]string{"app": ""}})
			case 3, 4:
				edit := []policyv1alpha1.DocumentPatchOperation{{SubPath: paths[r.IntN(len(paths))], Operator: operator(), Value: value()}}
				f := policyv1alpha1.FieldOverrider{FieldPath: pick("/data/doc", paths[r.IntN(len(paths))])}
				if r.IntN(2) == 0 {
					f.JSON = edit
				} else {
					f.YAML = edit
				}
				o.FieldOverrider = append(o.FieldOverrider, f)
			default:
				o.Plaintext = append(o.Plaintext, policyv1alpha1.PlaintextOverrider{Path: paths[r.IntN(len(paths))], Operator: operator(), Value: value()})
			}
		}
		before := obj.DeepCopy()
		result, err := Apply(obj, &clusterv1alpha1.Cluster{}, []policyv1alpha1.ClusterOverridePolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: policyv1alpha1.OverrideSpec{Overriders: o},
		}}, nil)
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Fatalf("seed %d, round %d: the object that was given has changed by %+v (-want +got):\n%s", seed, i, o, diff)
		}
		if err == nil && (result.Object.GetKind() == "" || result.Object.GetAPIVersion() == "") {
			t.Fatalf("seed %d, round %d: no object is left by %+v", seed, i, o)
		}
	}
}
