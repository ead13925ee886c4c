package convert

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// typical is a binding as there are many, with a field for each sort of thing that v1alpha1 does not have.
const typical = `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding",
"metadata":{"namespace":"shop","name":"web-deployment","uid":"b-uid","annotations":{"a":"b"}},
"spec":{
 "resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web","uid":"web-uid","resourceVersion":"9"},
 "replicas":5,"replicaRequirements":{"resourceRequest":{"cpu":"1000m","memory":1024},"nodeClaim":{"nodeSelector":{"disk":"ssd"}}},
 "clusters":[{"name":"member1","replicas":2,"components":[{"name":"x","replicas":1}]},{"name":"member2","replicas":3}],
 "placement":{"clusterAffinity":{"clusterNames":["member1","member2"]}},
 "conflictResolution":"Abort","schedulerName":"default-scheduler"},
"status":{
 "conditions":[{"type":"Scheduled","status":"True","reason":"Success","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],
 "aggregatedStatus":[{"clusterName":"member1","applied":true,"health":"Healthy","status":{"replicas":2}},{"clusterName":"member2","applied":false,"appliedMessage":"no","health":"Unknown"}],
 "schedulerObservedGeneration":3}}`

func TestToOlder(t *testing.T) {
	got := content(t, convert(t, New(), []byte(typical), workv1alpha1.GroupVersion))
	annotations := got["metadata"].(map[string]any)["annotations"].(map[string]any)
	carried := content(t, []byte(annotations[Annotation].(string)))
	delete(annotations, Annotation)
	want := `{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding",
"metadata":{"namespace":"shop","name":"web-deployment","uid":"b-uid","annotations":{"a":"b"}},
"spec":{
 "resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web","resourceVersion":"9","replicas":5,"resourcePerReplicas":{"cpu":"1000m","memory":1024}},
 "clusters":[{"name":"member1","replicas":2},{"name":"member2","replicas":3}]},
"status":{
 "conditions":[{"type":"Scheduled","status":"True","reason":"Success","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}],
 "aggregatedStatus":[{"clusterName":"member1","applied":true,"status":{"replicas":2}},{"clusterName":"member2","applied":false,"appliedMessage":"no"}]}}`
	if diff := cmp.Diff(content(t, []byte(want)), got); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
	wantCarried := `{
"spec":{"placement":{"clusterAffinity":{"clusterNames":["member1","member2"]}},"conflictResolution":"Abort","schedulerName":"default-scheduler","replicaRequirements":{"nodeClaim":{"nodeSelector":{"disk":"ssd"}}}},
"resource":{"uid":"web-uid"},"of":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"},
"clusters":[{"index":0,"key":"member1","fields":{"components":[{"name":"x","replicas":1}]}}],
"status":{"schedulerObservedGeneration":3},
"aggregatedStatus":[{"index":0,"key":"member1","fields":{"health":"Healthy"}},{"index":1,"key":"member2","fields":{"health":"Unknown"}}]}`
	if diff := cmp.Diff(content(t, []byte(wantCarried)), carried); diff != "" {
		t.Errorf("what travels beside it (-want +got):\n%s", diff)
	}
}

// TestWrite changes typical as an old client, by replacing texts of its v1alpha1 form.
func TestWrite(t *testing.T) {
	older := string(convert(t, New(), []byte(typical), workv1alpha1.GroupVersion))
	annotation, err := json.Marshal(content(t, []byte(older))["metadata"].(map[string]any)["annotations"].(map[string]any)[Annotation])
	if err != nil {
		t.Fatal(err)
	}
	carry := func(text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	}
	cases := map[string]struct {
		reason   string
		old, new string // what the client replaces by what
		// want is what of typical is other in the end; wantErr what the refusal says.
		from, to string
		wantErr  string
	}{
		"Nothing": {reason: "Reading and writing changes nothing.", old: "shop", new: "shop"},
		"Replicas": {
			reason: "What the client writes wins.",
			old:    `"replicas":5`, new: `"replicas":6`, from: `"replicas":5`, to: `"replicas":6`,
		},
		"Request": {
			reason: "The request wins, the claim on nodes, which v1alpha1 does not know, stays.",
			old:    `"resourcePerReplicas":{"cpu":"1000m","memory":1024}`, new: `"resourcePerReplicas":{"cpu":"2"}`,
			from: `"resourceRequest":{"cpu":"1000m","memory":1024}`, to: `"resourceRequest":{"cpu":"2"}`,
		},
		"NoRequest": {
			reason: "So does no request.",
			old:    `,"resourcePerReplicas":{"cpu":"1000m","memory":1024}`, new: ``,
			from: `"resourceRequest":{"cpu":"1000m","memory":1024},`, to: ``,
		},
		"ClusterFirst": {
			reason: "A cluster that others come before keeps its components.",
			old:    `"clusters":[`, new: `"clusters":[{"name":"member0"},`,
			from: `"clusters":[`, to: `"clusters":[{"name":"member0"},`,
		},
		"ClusterGone": {
			reason: "A cluster that is taken out takes its components along.",
			old:    `{"name":"member1","replicas":2},`, new: ``,
			from: `{"name":"member1","replicas":2,"components":[{"name":"x","replicas":1}]},`, to: ``,
		},
		"OtherTemplate": {
			reason: "Another template has another UID, which nobody knows yet.",
			old:    `"name":"web"`, new: `"name":"api"`,
			from: `"name":"web","uid":"web-uid"`, to: `"name":"api"`,
		},
		"OtherVersion": {
			reason: "A template that has changed is the same one.",
			old:    `"resourceVersion":"9"`, new: `"resourceVersion":"10"`,
			from: `"resourceVersion":"9"`, to: `"resourceVersion":"10"`,
		},
		"CarriedFields": {
			reason: "What v1alpha1 has fields for is not taken from the annotation, whoever wrote that.",
			old:    string(annotation), new: carry(strings.Replace(mustString(t, annotation), `"schedulerName":`, `"replicas":99,"clusters":[{"name":"evil"}],"resource":{"kind":"Secret"},"schedulerName":`, 1)),
		},
		"WrongSort": {
			reason: "One object that controllers cannot read would stop them for all others.",
			old:    string(annotation), new: carry(`{"spec":{"placement":"everywhere"}}`), wantErr: "spec.placement",
		},
		"Invalid": {
			reason: "What the schema of v1alpha2 does not allow cannot be smuggled in.",
			old:    string(annotation), new: carry(`{"spec":{"conflictResolution":"Ignore"}}`), wantErr: "spec.conflictResolution",
		},
		"NoJSON":     {reason: "A cut annotation is refused, rather than taken for nothing.", old: string(annotation), new: `"{"`, wantErr: Annotation},
		"NoGzip":     {reason: "So is a compressed one.", old: string(annotation), new: `"gzip:AAAA"`, wantErr: Annotation},
		"Incomplete": {reason: "What was not all there is not written back.", old: string(annotation), new: carry(`{"incomplete":true}`), wantErr: ErrIncomplete.Error()},
		"Clusters":   {reason: "What is no list is refused, with its name.", old: `"clusters":[{"name":"member1","replicas":2},{"name":"member2","replicas":3}]`, new: `"clusters":3`, wantErr: "clusters"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(older, c.old) || !strings.Contains(typical, c.from) {
				t.Fatalf("the test replaces what is not there: %s", older)
			}
			got, err := New().Convert([]byte(strings.Replace(older, c.old, c.new, 1)), workv1alpha2.GroupVersion.String())
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) || !strings.Contains(err.Error(), "ResourceBinding shop/web-deployment") {
					t.Fatalf("error %v, want one that names the object and %q: %s", err, c.wantErr, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, c.reason)
			}
			if diff := cmp.Diff(content(t, []byte(strings.Replace(typical, c.from, c.to, 1))), content(t, got)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func mustString(t *testing.T, quoted []byte) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWithoutAnnotation(t *testing.T) {
	cases := map[string]struct{ reason, older, newer string }{
		"New": {
			reason: "A new binding of an old client has what it says, and no more.",
			older:  `{"apiVersion":"work.karmada.io/v1alpha1","kind":"ClusterResourceBinding","metadata":{"name":"b"},"spec":{"resource":{"apiVersion":"v1","kind":"Namespace","name":"n","replicas":0,"resourcePerReplicas":{}},"clusters":[{"name":"m"}]}}`,
			newer:  `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ClusterResourceBinding","metadata":{"name":"b"},"spec":{"resource":{"apiVersion":"v1","kind":"Namespace","name":"n"},"replicas":0,"replicaRequirements":{"resourceRequest":{}},"clusters":[{"name":"m"}]}}`,
		},
		"EmptyLists": {
			reason: "Empty is not missing.",
			older:  `{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{"name":"b"},"spec":{"resource":{},"clusters":[]},"status":{"aggregatedStatus":[],"conditions":[]}}`,
			newer:  `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"name":"b"},"spec":{"resource":{},"clusters":[]},"status":{"aggregatedStatus":[],"conditions":[]}}`,
		},
		"Nothing": {
			reason: "An API server may ask about what it only starts to build.",
			older:  `{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{}}`,
			newer:  `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(content(t, []byte(c.newer)), content(t, convert(t, New(), []byte(c.older), workv1alpha2.GroupVersion))); diff != "" {
				t.Errorf("%s\nto v1alpha2 (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(content(t, []byte(c.older)), content(t, convert(t, New(), []byte(c.newer), workv1alpha1.GroupVersion))); diff != "" {
				t.Errorf("%s\nto v1alpha1 (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestSize(t *testing.T) {
	// required is a binding that n others refer to, as a ConfigMap may be.
	required := func(n int, word func(i int) string, annotations string) []byte {
		var by []string
		for i := range n {
			by = append(by, fmt.Sprintf(`{"namespace":"shop","name":"%s","clusters":[{"name":"member1","replicas":2},{"name":"member2","replicas":3}]}`, word(i)))
		}
		return fmt.Appendf(nil, `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"namespace":"shop","name":"b","annotations":{%s}},"spec":{"resource":{"apiVersion":"v1","kind":"ConfigMap","name":"c"},"requiredBy":[%s]}}`,
			annotations, strings.Join(by, ","))
	}
	plain := func(i int) string { return fmt.Sprintf("web-%d-deployment", i) }
	noise := func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})) }
	cases := map[string]struct {
		reason string
		newer  []byte
		starts string // the annotation
		back   error  // of the way back
		fails  string // of the way there
	}{
		"Small": {reason: "What is short can be read by people.", newer: required(3, plain, ""), starts: "{"},
		"Large": {reason: "An API server allows 256 KiB of annotations; this would be more.", newer: required(5000, plain, ""), starts: "gzip:"},
		"Huge": {
			reason: "It can be read as v1alpha1, and is not written back: that would lose the rest.",
			newer:  required(6000, noise, ""), starts: `{"incomplete":true}`, back: ErrIncomplete,
		},
		"NoRoom": {
			reason: "Annotations are full already. Whoever reads is told, rather than that something gets lost in silence.",
			newer:  required(3, plain, `"a":"`+strings.Repeat("x", 256<<10-10)+`"`), fails: "no room",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			older, err := unchecked().Convert(c.newer, workv1alpha1.GroupVersion.String())
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("error %v, want %q: %s", err, c.fails, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var o workv1alpha1.ResourceBinding
			if err := json.Unmarshal(older, &o); err != nil {
				t.Fatal(err)
			}
			if a := o.Annotations[Annotation]; !strings.HasPrefix(a, c.starts) || len(a)+len(Annotation) > 256<<10 {
				t.Errorf("%d bytes, %.30s…, want %s…: %s", len(a), a, c.starts, c.reason)
			}
			newer, err := unchecked().Convert(older, workv1alpha2.GroupVersion.String())
			if !errors.Is(err, c.back) {
				t.Fatalf("back: %v, want %v: %s", err, c.back, c.reason)
			}
			if c.back == nil {
				if diff := cmp.Diff(content(t, c.newer), content(t, newer)); diff != "" {
					t.Errorf("%s\n(-before +after):\n%s", c.reason, diff)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	cases := map[string]struct{ reason, object, version, says string }{
		"Kind":      {"Works have one version.", `{"apiVersion":"work.karmada.io/v1alpha2","kind":"Work","metadata":{"name":"w"}}`, "work.karmada.io/v1alpha1", "Work w"},
		"From":      {"There was no other version.", `{"apiVersion":"work.karmada.io/v1beta1","kind":"ResourceBinding","metadata":{"name":"b"}}`, "work.karmada.io/v1alpha1", "v1beta1"},
		"To":        {"There is no other version.", `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"name":"b"}}`, "work.karmada.io/v1beta1", "v1beta1"},
		"NoObject":  {"A list is taken apart by who asks.", `[]`, "work.karmada.io/v1alpha1", "read the object"},
		"Null":      {"Nothing is no binding.", `null`, "work.karmada.io/v1alpha1", "only ResourceBinding"},
		"Metadata":  {"It says what is wrong.", `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":[]}`, "work.karmada.io/v1alpha1", "metadata"},
		"Status":    {"It says what is wrong.", `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{},"status":[]}`, "work.karmada.io/v1alpha1", "status"},
		"Reference": {"It says what is wrong.", `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{},"spec":{"resource":"web"}}`, "work.karmada.io/v1alpha1", "resource"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := New().Convert([]byte(c.object), c.version); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q: %s", err, c.says, c.reason)
			}
		})
	}
}

func reviewOf(t testing.TB, n int) *apiextensionsv1.ConversionRequest {
	t.Helper()
	var object bytes.Buffer
	if err := json.Compact(&object, []byte(typical)); err != nil {
		t.Fatal(err)
	}
	r := &apiextensionsv1.ConversionRequest{UID: "request", DesiredAPIVersion: workv1alpha1.GroupVersion.String()}
	for range n {
		r.Objects = append(r.Objects, runtime.RawExtension{Raw: object.Bytes()})
	}
	return r
}

func TestHandler(t *testing.T) {
	good := reviewOf(t, 3)
	bad := reviewOf(t, 3)
	bad.Objects[1] = runtime.RawExtension{Raw: []byte(`{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"name":"broken"},"spec":[]}`)}
	review := func(r *apiextensionsv1.ConversionRequest) string {
		data, err := json.Marshal(apiextensionsv1.ConversionReview{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}, Request: r})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	cases := map[string]struct {
		reason, body string
		code         int
		status       string
		objects      int
		says         string
	}{
		"All":        {reason: "Each object has its answer.", body: review(good), code: 200, status: "Success", objects: 3},
		"One":        {reason: "There is no half of an answer, and it says which object is the matter.", body: review(bad), code: 200, status: "Failure", says: "ResourceBinding broken"},
		"None":       {reason: "No objects are converted at once.", body: review(&apiextensionsv1.ConversionRequest{UID: "request"}), code: 200, status: "Success"},
		"NoJSON":     {reason: "Whoever asks wrongly is told.", body: "{", code: 400, says: "ConversionReview"},
		"NoRequest":  {reason: "An answer is no question.", body: review(nil), code: 400, says: "ConversionReview"},
		"OldVersion": {reason: "The configuration asks for v1.", body: strings.Replace(review(good), "/v1", "/v1beta1", 1), code: 400, says: "apiextensions.k8s.io/v1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			New().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(c.body)))
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Fatalf("got %d %s, want %d with %q: %s", w.Code, w.Body, c.code, c.says, c.reason)
			}
			if c.code != http.StatusOK {
				return
			}
			var answer apiextensionsv1.ConversionReview
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			r := answer.Response
			if answer.Kind != "ConversionReview" || answer.APIVersion != "apiextensions.k8s.io/v1" || r == nil || r.UID != "request" || r.Result.Status != c.status || len(r.ConvertedObjects) != c.objects {
				t.Errorf("answer %s: %s", w.Body, c.reason)
			}
		})
	}
}

// TestSchemas makes sure that what the API server accepts is not refused on its way through v1alpha1.
func TestSchemas(t *testing.T) {
	for _, kind := range []string{workv1alpha2.KindResourceBinding, workv1alpha2.KindClusterResourceBinding} {
		if err := New().check(kind, []byte(strings.Replace(typical, "ResourceBinding", kind, 1))); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
