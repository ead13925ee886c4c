package bootstrap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// servedFor is how long clusters may take to be served: when the API server has
// asked too early it asks again after 1, 2, 4… seconds.
const servedFor = time.Minute

// AggregatedAPI returns what makes kube-apiserver send requests for Clusters to the server on a port of this host: the
// Service is a name of the host, since a Service cannot lead to a loopback address, and the APIService has the port
// (spec: behaviour/09 9.1). ca has signed the server's certificate.
func AggregatedAPI(port int, ca []byte) []*unstructured.Unstructured {
	gv := clusterv1alpha1.GroupVersion
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       "Service",
			"metadata": map[string]any{
				"namespace": names.SystemNamespace, "name": names.AggregatedAPIServer,
				"labels": map[string]any{names.SystemLabel: names.True},
			},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
		{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1",
			"kind":       "APIService",
			"metadata":   map[string]any{"name": gv.Version + "." + gv.Group},
			"spec": map[string]any{
				"group":                gv.Group,
				"version":              gv.Version,
				"groupPriorityMinimum": int64(2000),
				"versionPriority":      int64(10),
				"caBundle":             base64.StdEncoding.EncodeToString(ca),
				"service": map[string]any{
					"namespace": names.SystemNamespace, "name": names.AggregatedAPIServer, "port": int64(port),
				},
			},
		}},
	}
}

// WaitAvailable returns when Clusters are served: kube-apiserver says that it has found their API server to answer, and
// a request for them gets through. After a restart, only the latter is news. With documented it also waits until they are
// in the API server's OpenAPI, which explain and apply read; that comes a second later.
func WaitAvailable(ctx context.Context, c dynamic.Interface, documented openapi.Client) error {
	gv := clusterv1alpha1.GroupVersion
	services := c.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	clusters := c.Resource(gv.WithResource(clusterv1alpha1.ResourceClusters))
	var why error
	err := wait.PollUntilContextTimeout(ctx, retryInterval/4, servedFor, true, func(ctx context.Context) (bool, error) {
		service, err := services.Get(ctx, gv.Version+"."+gv.Group, metav1.GetOptions{})
		if err == nil {
			err = notAvailable(service)
		}
		if err == nil {
			_, err = clusters.List(ctx, metav1.ListOptions{Limit: 1})
		}
		if err == nil && documented != nil {
			err = notDocumented(documented)
		}
		why = err
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until clusters are served: %w", errors.Join(err, why))
	}
	return nil
}

// notDocumented returns why Clusters are not in the API server's OpenAPI, nil when they are.
func notDocumented(c openapi.Client) error {
	paths, err := c.Paths()
	if err != nil {
		return fmt.Errorf("read the OpenAPI documents: %w", err)
	}
	gv := clusterv1alpha1.GroupVersion
	if _, ok := paths["apis/"+gv.String()]; !ok {
		return fmt.Errorf("the OpenAPI documents have nothing on %s yet", gv)
	}
	return nil
}

// notAvailable returns why an APIService does not answer, nil when it does.
func notAvailable(u *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read its conditions: %w", err)
	}
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("it is not available: %s", strings.TrimSpace(fmt.Sprint(condition["message"])))
	}
	return errors.New("nobody has asked it yet")
}
