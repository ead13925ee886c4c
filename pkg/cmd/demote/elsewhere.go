package demote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/promotion"
)

const (
	// atOnce is how many clusters are asked at a time.
	atOnce = 16
	// longest is how long one may take to answer.
	longest = 10 * time.Second
)

// elsewhere looks in all clusters for an object.
type elsewhere struct {
	factory  *factory.Factory
	plane    client.Reader
	mapper   meta.RESTMapper
	patience time.Duration
}

// find names the clusters that have an object which no control plane manages. That one does not answer is an error only when
// nobody has it.
func (e elsewhere) find(ctx context.Context, f promotion.Farewell) ([]string, error) {
	mapping, err := promotion.MappingFor(e.mapper, f.Type)
	if err != nil {
		return nil, err
	}
	var clusters clusterv1alpha1.ClusterList
	if err := e.plane.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
		found []string
		errs  []error
	)
	group.SetLimit(atOnce)
	for i := range clusters.Items {
		name := clusters.Items[i].Name
		group.Go(func() error {
			has, err := e.has(ctx, name, mapping, f)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("look for it in cluster %s: %w", name, err))
			} else if has {
				found = append(found, name)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(found) > 0 {
		slices.Sort(found)
		return found, nil
	}
	return nil, errors.Join(errs...)
}

// has says whether a cluster has the object, without a mark of a control plane.
func (e elsewhere) has(ctx context.Context, cluster string, m *meta.RESTMapping, f promotion.Farewell) (bool, error) {
	cfg, err := e.factory.Through(ctx, factory.ThroughOptions{Cluster: cluster, Patience: min(longest, e.patience)}).ToRESTConfig()
	if err != nil {
		return false, err
	}
	c, err := metadata.NewForConfig(cfg)
	if err != nil {
		return false, fmt.Errorf("make a metadata client: %w", err)
	}
	o, err := object(ctx, c, m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, f)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && o.Labels[names.ManagedLabel] != names.True, err
}

func object(ctx context.Context, c metadata.Interface, r schema.GroupVersionResource, namespaced bool, f promotion.Farewell) (*metav1.PartialObjectMetadata, error) {
	if namespaced {
		return c.Resource(r).Namespace(f.Namespace).Get(ctx, f.Name, metav1.GetOptions{})
	}
	return c.Resource(r).Get(ctx, f.Name, metav1.GetOptions{})
}
