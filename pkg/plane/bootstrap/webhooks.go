package bootstrap

import (
	_ "embed"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

//go:embed manifests/webhooks.yaml
var webhooks []byte

// Webhooks returns what makes kube-apiserver ask the webhook server at an address such as https://127.0.0.1:8443 (spec:
// behaviour/08 8.1, 8.2). ca has signed the server's certificate. What our own components write with everything filled in
// is not asked about: neither costs it a request, nor does it stop while nobody answers.
func Webhooks(server string, ca []byte) ([]*unstructured.Unstructured, error) {
	objects, err := decode(webhooks)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		for i := range hooks {
			hook, _ := hooks[i].(map[string]any)
			path, _, err := unstructured.NestedString(hook, "clientConfig", "url")
			if err != nil {
				return nil, fmt.Errorf("read webhook %d of %s %s: %w", i, o.GetKind(), o.GetName(), err)
			}
			hook["clientConfig"] = map[string]any{"url": server + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
		}
		if err := unstructured.SetNestedSlice(o.Object, hooks, "webhooks"); err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return objects, nil
}
