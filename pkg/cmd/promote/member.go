package promote

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/promotion"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// A source is the cluster that objects are promoted from.
type source struct {
	client  client.Client
	kinds   promotion.Kinds
	cluster *clusterv1alpha1.Cluster
}

// member returns the cluster that the objects are in: by a kubeconfig of its own, or through the control plane with the
// credentials for that (spec: cli/commands.md 2.3).
func (f *Flags) member(ctx context.Context, c *factory.Factory, plane *rest.Config) (*source, error) {
	api, err := registration.NewAPI(plane)
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := api.Client.Get(ctx, client.ObjectKey{Name: f.Cluster}, cluster); err != nil {
		return nil, err // tests match the server's words
	}
	if cluster.DeletionTimestamp != nil {
		return nil, fmt.Errorf("cluster %s is leaving the control plane: nothing can be promoted from it", f.Cluster)
	}
	if f.ClusterKubeconfig == "" {
		cfg, err := c.Through(ctx, factory.ThroughOptions{Cluster: f.Cluster, Patience: f.Patience}).ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return newSource(cluster, cfg)
	}
	way := c.Member(factory.MemberOptions{
		Name: f.Cluster, Kubeconfig: f.ClusterKubeconfig, Context: f.ClusterContext, PreferContext: f.Cluster,
		KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
	})
	cfg, err := way.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if err := isMember(ctx, cfg, cluster, way.Source()); err != nil {
		return nil, err
	}
	return newSource(cluster, cfg)
}

// isMember makes sure that a kubeconfig leads to the cluster that was named: the object of another one would be made to
// replace what that has.
func isMember(ctx context.Context, cfg *rest.Config, cluster *clusterv1alpha1.Cluster, source string) error {
	if cluster.Spec.ID == "" {
		return nil
	}
	c, err := registration.NewClient(cfg)
	if err != nil {
		return err
	}
	id, err := registration.ClusterID(ctx, c)
	if err != nil {
		return err
	}
	if id != cluster.Spec.ID {
		return fmt.Errorf("%s leads to a cluster with ID %s, and cluster %s is the one with ID %s: give a kubeconfig of that, or leave --cluster-kubeconfig out",
			source, id, cluster.Name, cluster.Spec.ID)
	}
	return nil
}

// newSource returns a cluster with the kinds that it serves, and their short names.
func newSource(cluster *clusterv1alpha1.Cluster, cfg *rest.Config) (*source, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client of %s: %w", cfg.Host, err)
	}
	cached := memory.NewMemCacheClient(d)
	var mapper meta.RESTMapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	c, err := newClient(cfg, mapper)
	if err != nil {
		return nil, err
	}
	kinds := func(context.Context) ([]*metav1.APIResourceList, error) {
		return discovery.ServerPreferredNamespacedResources(cached)
	}
	return &source{client: c, kinds: kinds, cluster: cluster}, nil
}
