package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// FuzzReviews asks every webhook about objects that nobody has thought of. What an API server passes on is JSON, and that
// is all that is known of it.
func FuzzReviews(f *testing.F) {
	hooks := testHooks(f)
	handler, err := handlers(klog.Background(), hooks)
	if err != nil {
		f.Fatal(err)
	}
	for i := range hooks {
		f.Add(uint8(i), uint8(0), []byte(`{"metadata":{"name":"o","namespace":"n"},"spec":{}}`), []byte(`{}`))
		f.Add(uint8(i), uint8(1), []byte(`{"metadata":{"name":"o","labels":{"a":"b"}},"spec":{"resourceSelectors":[{"apiVersion":"v1","kind":"Secret","labelSelector":{"matchExpressions":[{"key":"","operator":"x"}]}}],"overrideRules":[{"overriders":{"plaintext":[{"path":"a~2","operator":"add","value":1}],"fieldOverrider":[{"fieldPath":"/d","json":[{"subPath":"~","operator":"remove"}]}]}}],"workload":{"manifests":[{"kind":""}]}}}`), []byte(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`))
		f.Add(uint8(i), uint8(2), []byte(`null`), []byte(`{"metadata":{"name":"n","labels":{"resourcetemplate.karmada.io/deletion-protected":"Always"}},"spec":{"versions":[{"name":"","served":true}]}}`))
	}
	operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	f.Fuzz(func(t *testing.T, hook, operation uint8, now, was []byte) {
		if !json.Valid(now) || !json.Valid(was) {
			t.Skip("an API server does not pass that on")
		}
		h := hooks[int(hook)%len(hooks)]
		request := &admissionv1.AdmissionRequest{UID: "u", Name: "o", Operation: operations[int(operation)%len(operations)], Object: runtime.RawExtension{Raw: now}}
		if request.Operation != admissionv1.Create {
			request.OldObject.Raw = was
		}
		body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, h.Path, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Response.UID != "u" {
			t.Fatalf("%s does not answer: %d %s", h.Path, w.Code, w.Body)
		}
		if result := answer.Response.Result; result != nil && strings.Contains(fmt.Sprint(result.Message), "panic") {
			t.Fatalf("%s: %s", h.Path, result.Message)
		}
	})
}
