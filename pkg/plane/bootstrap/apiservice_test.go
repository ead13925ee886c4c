package bootstrap

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAggregatedAPI(t *testing.T) {
	objects := AggregatedAPI(32450, []byte("the authority"))
	service, api := objects[0], objects[1]
	if service.GetNamespace() != "karmada-system" || service.GetName() != "karmada-aggregated-apiserver" {
		t.Errorf("service %s/%s, want the contract's", service.GetNamespace(), service.GetName())
	}
	want := map[string]any{
		"group": "cluster.karmada.io", "version": "v1alpha1",
		"groupPriorityMinimum": int64(2000), "versionPriority": int64(10),
		"caBundle": base64.StdEncoding.EncodeToString([]byte("the authority")),
		"service":  map[string]any{"namespace": service.GetNamespace(), "name": service.GetName(), "port": int64(32450)},
	}
	if diff := cmp.Diff(want, api.Object["spec"]); diff != "" || api.GetName() != "v1alpha1.cluster.karmada.io" {
		t.Errorf("APIService %s differs (-want +got):\n%s", api.GetName(), diff)
	}
	for _, o := range objects {
		if _, err := resourceOf(o); err != nil {
			t.Error(err)
		}
	}
}

func TestNotAvailable(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	cases := map[string]struct {
		reason     string
		conditions []any
		want       string // "" is available
	}{
		"Available": {"kube-apiserver has asked it.", []any{condition("Available", "True", "all checks passed")}, ""},
		"NotYet":    {"The reason is the API server's.", []any{condition("Available", "False", "no response\n")}, "it is not available: no response"},
		"Other":     {"Other conditions say nothing about it.", []any{condition("Other", "True", "")}, "nobody has asked it yet"},
		"New":       {"A new one has no conditions.", nil, "nobody has asked it yet"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": c.conditions}}}
			err := notAvailable(u)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q: %s", err, c.want, c.reason)
			}
		})
	}
}
