package promote

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// member returns a client of the cluster that the object is in: by a kubeconfig of its own, or through the control plane
// with the credentials for that (spec: cli/commands.md 2.3).
func (f *Flags) member(ctx context.Context, c *factory.Factory, plane *rest.Config) (client.Client, error) {
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
		return newMember(throughProxy(plane, f.Cluster))
	}
	source := c.Member(factory.MemberOptions{
		Name: f.Cluster, Kubeconfig: f.ClusterKubeconfig, Context: f.ClusterContext, PreferContext: f.Cluster,
		KubeconfigFlag: "--cluster-kubeconfig", ContextFlag: "--cluster-context",
	})
	cfg, err := source.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if err := isMember(ctx, cfg, cluster, source.Source()); err != nil {
		return nil, err
	}
	return newMember(cfg)
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

// throughProxy returns the way to a cluster through the control plane.
func throughProxy(plane *rest.Config, cluster string) *rest.Config {
	cfg := rest.CopyConfig(plane)
	cfg.Host = strings.TrimSuffix(cfg.Host, "/") + "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/" + cluster + "/proxy"
	return cfg
}

// newMember returns a client that knows the kinds of a member, and their short names.
func newMember(cfg *rest.Config) (client.Client, error) {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client of %s: %w", cfg.Host, err)
	}
	cached := memory.NewMemCacheClient(d)
	var mapper meta.RESTMapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return newClient(cfg, mapper)
}
