package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	metricsServiceNamespace = metav1.NamespaceSystem
	metricsServiceName      = "kwok-metrics"

	// MetricsServerName is the DNS name that the serving certificate needs for
	// the API server to trust it with metrics.k8s.io.
	MetricsServerName = metricsServiceName + "." + metricsServiceNamespace + ".svc"

	fieldManager = "karmada-member"
)

// registerMetrics makes the API server send requests for metrics.k8s.io to the
// endpoint. It goes on trying: a young API server has no kube-system yet.
func registerMetrics(ctx context.Context, client dynamic.Interface, o Options) error {
	ca, err := os.ReadFile(o.ServingCAFile)
	if err != nil {
		return fmt.Errorf("register metrics.k8s.io: read certificate authority: %w", err)
	}
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 10, Cap: 10 * time.Second}
	var last error
	err = backoff.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		for _, object := range metricsObjects(ca, o.port()) {
			if last = apply(ctx, client, object); last != nil {
				o.Logger.V(changeVerbosity).Info("metrics.k8s.io is not registered yet", "reason", last.Error())
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("register metrics.k8s.io: %w", last)
	}
	return err
}

// A metricsObject is an object and the resource it is one of.
type metricsObject struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// metricsObjects are a Service that is the name of this host, which is how an
// API server is sent to a loopback address, and the APIService.
func metricsObjects(ca []byte, port int32) []metricsObject {
	return []metricsObject{
		{
			resource: schema.GroupVersionResource{Version: "v1", Resource: "services"},
			object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1",
				"kind":       "Service",
				"metadata":   map[string]any{"name": metricsServiceName, "namespace": metricsServiceNamespace},
				"spec":       map[string]any{"type": "ExternalName", "externalName": "localhost"},
			}},
		},
		{
			resource: schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
			object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1",
				"kind":       "APIService",
				"metadata":   map[string]any{"name": "v1beta1." + metricsv1beta1.GroupName},
				"spec": map[string]any{
					"group":                metricsv1beta1.GroupName,
					"version":              "v1beta1",
					"groupPriorityMinimum": int64(100),
					"versionPriority":      int64(100),
					"caBundle":             ca,
					"service": map[string]any{
						"name": metricsServiceName, "namespace": metricsServiceNamespace, "port": int64(port),
					},
				},
			}},
		},
	}
}

func apply(ctx context.Context, client dynamic.Interface, o metricsObject) error {
	data, err := json.Marshal(o.object.Object)
	if err != nil {
		return err
	}
	var objects dynamic.ResourceInterface = client.Resource(o.resource)
	if ns := o.object.GetNamespace(); ns != "" {
		objects = client.Resource(o.resource).Namespace(ns)
	}
	force := true
	if _, err := objects.Patch(ctx, o.object.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: fieldManager, Force: &force}); err != nil {
		return fmt.Errorf("apply %s %s: %w", o.object.GetKind(), o.object.GetName(), err)
	}
	return nil
}
