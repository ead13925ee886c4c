package aggregated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// TestConcurrentReaders makes sure that readers do not share what the server
// marks with kind and version while it writes it out.
func TestConcurrentReaders(t *testing.T) {
	const readers, rounds = 8, 40
	c := create(t, newCluster("concurrent"))
	clusters, err := dynamic.NewForConfig(shared.config)
	if err != nil {
		t.Fatal(err)
	}
	resource := clusters.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters"))
	complete := func(o *unstructured.Unstructured) error {
		if o.GetKind() != "Cluster" || o.GetAPIVersion() != clusterv1alpha1.GroupVersion.String() {
			return fmt.Errorf("got kind %q, version %q", o.GetKind(), o.GetAPIVersion())
		}
		return nil
	}
	get := func(ctx context.Context) error {
		body, err := do(ctx, shared.config, shared.config.Host+api+"/concurrent?resourceVersion=0", "application/json")
		if err != nil {
			return err
		}
		o := &unstructured.Unstructured{}
		return errors.Join(json.Unmarshal(body, &o.Object), complete(o))
	}
	events := func(ctx context.Context) error {
		w, err := resource.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=concurrent", ResourceVersion: c.ResourceVersion})
		if err != nil {
			return err
		}
		defer w.Stop()
		for range rounds {
			o, ok := (<-w.ResultChan()).Object.(*unstructured.Unstructured)
			if !ok {
				return errors.New("the watch has ended")
			}
			if err := complete(o); err != nil {
				return err
			}
		}
		return nil
	}

	errs := make(chan error, 2*readers*rounds)
	var group sync.WaitGroup
	for range readers {
		group.Go(func() { errs <- events(t.Context()) })
		group.Go(func() {
			for range rounds {
				errs <- get(t.Context())
			}
		})
	}
	latest := c.DeepCopy()
	for i := range rounds {
		latest.Labels = map[string]string{"round": fmt.Sprint(i)}
		if err := shared.client.Update(t.Context(), latest); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
