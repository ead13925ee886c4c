package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

// agents holds the agents of pull mode clusters to their own Cluster, and to
// what of it is theirs to say. Access rules cannot: they name nothing when a
// Cluster is created, and do not see what is written; the admission policies of
// the control plane never meet requests for Clusters. For everybody else it does
// nothing.
type agents struct {
	// clusters returns what is stored now.
	clusters func(context.Context) ([]clusterv1alpha1.Cluster, error)
	// taking is held while an agent takes a name and an ID: two that have the
	// same ID must not both find it free.
	taking *sync.Mutex
}

// An agent is who sends a request.
type agent struct {
	cluster string
	err     error // it is in the group, but the agent of no cluster
}

// agentOf returns the agent that sends a request; false if it is not one.
func agentOf(ctx context.Context) (agent, bool) {
	u, ok := request.UserFrom(ctx)
	if !ok || !slices.Contains(u.GetGroups(), registration.AgentGroup) {
		return agent{}, false
	}
	cluster, err := registration.ClusterOfAgent(u.GetName())
	return agent{cluster: cluster, err: err}, true
}

// take returns what ends the taking of a name and an ID.
func (a agents) take(ctx context.Context) (done func()) {
	if _, is := agentOf(ctx); !is {
		return func() {}
	}
	a.taking.Lock()
	return a.taking.Unlock
}

// mayCreate lets an agent create its own Cluster.
func (a agents) mayCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if agent, is := agentOf(ctx); is {
			c, ok := obj.(*clusterv1alpha1.Cluster)
			if !ok {
				return notCluster(obj)
			}
			if err := cmp.Or(agent.owns(c), agent.mayCreate(c)); err != nil {
				return forbidden(c.Name, err)
			}
			if err := a.checkID(ctx, c); err != nil {
				return err
			}
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}

// mayUpdate lets an agent change its own Cluster, where that is the agent's.
func (a agents) mayUpdate(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, obj, old runtime.Object) error {
		if agent, is := agentOf(ctx); is {
			c, o, err := pair(obj, old)
			if err != nil {
				return err
			}
			if err := cmp.Or(agent.owns(o), agent.owns(c), agent.mayChange(c, o)); err != nil {
				return forbidden(c.Name, err)
			}
			if c.Spec.ID != o.Spec.ID {
				if err := a.checkID(ctx, c); err != nil {
					return err
				}
			}
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj, old)
	}
}

// mayDelete lets an agent delete its own Cluster, with everything that belongs
// to it.
func (a agents) mayDelete(validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if agent, is := agentOf(ctx); is {
			c, ok := obj.(*clusterv1alpha1.Cluster)
			if !ok {
				return notCluster(obj)
			}
			if err := cmp.Or(agent.owns(c), mayLeave(o)); err != nil {
				return forbidden(c.Name, err)
			}
		}
		return validate(ctx, obj)
	}
}

// mayDeleteCollection refuses agents: none has more than one Cluster.
func (a agents) mayDeleteCollection(ctx context.Context) error {
	if agent, is := agentOf(ctx); is {
		return forbidden("", fmt.Errorf("the agent of cluster %q can delete its own Cluster by name", agent.cluster))
	}
	return nil
}

func forbidden(name string, err error) error {
	return apierrors.NewForbidden(groupResource(), name, err)
}

// owns returns an error unless a Cluster is the agent's.
func (a agent) owns(c *clusterv1alpha1.Cluster) error {
	switch {
	case a.err != nil:
		return fmt.Errorf("group %s is for agents: %w", registration.AgentGroup, a.err)
	case c.Name != a.cluster:
		return fmt.Errorf("the agent of cluster %q can write Cluster %q only", a.cluster, a.cluster)
	case c.Spec.SyncMode != clusterv1alpha1.Pull:
		return fmt.Errorf("an agent can write a Cluster with spec.syncMode Pull only, not %s", c.Spec.SyncMode)
	}
	return nil
}

// mayRefer returns an error unless the secrets that a Cluster newly names are the
// agent's: others would be sent to whatever address the agent gives.
func (a agent) mayRefer(c, old *clusterv1alpha1.Cluster) error {
	refused := func(ref, old *clusterv1alpha1.LocalSecretReference, name string) bool {
		own := clusterv1alpha1.LocalSecretReference{Namespace: names.ClusterNamespace, Name: name}
		return ref != nil && *ref != own && (old == nil || *ref != *old)
	}
	switch impersonator := names.ImpersonatorSecret(a.cluster); {
	case refused(c.Spec.SecretRef, old.Spec.SecretRef, a.cluster):
		return fmt.Errorf("the agent of cluster %q can set spec.secretRef to secret %s/%s only", a.cluster, names.ClusterNamespace, a.cluster)
	case refused(c.Spec.ImpersonatorSecretRef, old.Spec.ImpersonatorSecretRef, impersonator):
		return fmt.Errorf("the agent of cluster %q can set spec.impersonatorSecretRef to secret %s/%s only", a.cluster, names.ClusterNamespace, impersonator)
	}
	return nil
}

// mayCreate returns an error unless a new Cluster leaves to others what is
// theirs. Taints, models and labels are wishes of whoever registers it, this once.
func (a agent) mayCreate(c *clusterv1alpha1.Cluster) error {
	switch {
	case c.Spec.ID == "":
		return errors.New("an agent has to say spec.id, the UID of its member's namespace kube-system")
	case len(c.Finalizers) > 0 || len(c.OwnerReferences) > 0:
		return errors.New("an agent can set neither finalizers nor owners of its Cluster")
	case c.Labels[names.DeletionProtectedLabel] != "":
		return fmt.Errorf("an agent cannot keep its Cluster from being deleted, with label %s", names.DeletionProtectedLabel)
	}
	return a.mayRefer(c, &clusterv1alpha1.Cluster{})
}

// mayChange returns an error unless what differs is the agent's to say: where its
// member is and how it is reached. What decides about the workloads that the
// member is given (labels, taints, models) is for administrators.
func (a agent) mayChange(c, old *clusterv1alpha1.Cluster) error {
	rest := old.Spec.DeepCopy()
	theirs := c.Spec
	rest.APIEndpoint, rest.ProxyURL, rest.InsecureSkipTLSVerification = theirs.APIEndpoint, theirs.ProxyURL, theirs.InsecureSkipTLSVerification
	rest.SecretRef, rest.ImpersonatorSecretRef = theirs.SecretRef, theirs.ImpersonatorSecretRef
	rest.Provider, rest.Region, rest.Zone, rest.Zones = theirs.Provider, theirs.Region, theirs.Zone, theirs.Zones
	if rest.ID == "" {
		rest.ID = theirs.ID
	}
	switch {
	case rest.ID != theirs.ID:
		return fmt.Errorf("the name belongs to the cluster with ID %s: an agent cannot make it another's; unregister it first, or register under another name", rest.ID)
	case !apiequality.Semantic.DeepEqual(rest.Taints, theirs.Taints):
		return errors.New("an agent cannot change the taints of its Cluster")
	case !apiequality.Semantic.DeepEqual(*rest, theirs):
		return errors.New("an agent can change spec.apiEndpoint, proxyURL, insecureSkipTLSVerification, secretRef, impersonatorSecretRef, provider, region and zones of its Cluster, and nothing else in it")
	case !maps.Equal(c.Labels, old.Labels):
		return errors.New("an agent cannot change the labels of its Cluster")
	case !maps.Equal(withoutCascade(c.Annotations), withoutCascade(old.Annotations)):
		return fmt.Errorf("an agent can change no annotation of its Cluster but %s", names.ClusterCascadeAnnotation)
	case !slices.Equal(c.Finalizers, old.Finalizers) || !apiequality.Semantic.DeepEqual(c.OwnerReferences, old.OwnerReferences):
		return errors.New("an agent can change neither finalizers nor owners of its Cluster")
	}
	return a.mayRefer(c, old)
}

// withoutCascade leaves out what an agent says when its cluster is unregistered.
func withoutCascade(annotations map[string]string) map[string]string {
	rest := maps.Clone(annotations)
	delete(rest, names.ClusterCascadeAnnotation)
	return rest
}

// mayLeave refuses to leave behind what belongs to a Cluster: its agent's rights
// are part of that.
func mayLeave(o *metav1.DeleteOptions) error {
	if o == nil {
		return nil
	}
	policy := o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan
	if policy || o.OrphanDependents != nil && *o.OrphanDependents { //nolint:staticcheck // deprecated, but still obeyed
		return errors.New("an agent cannot delete its Cluster and leave behind what belongs to it")
	}
	return nil
}

// checkID refuses the ID of a cluster that is registered under another name (spec:
// behaviour/01 1.7). An agent cannot look by itself: it lists no Clusters.
func (a agents) checkID(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	known, err := a.clusters(ctx)
	if err != nil {
		return fmt.Errorf("look for a cluster with the same ID: %w", err)
	}
	for i := range known {
		if by := &known[i]; by.Name != c.Name && by.Spec.ID == c.Spec.ID {
			return forbidden(c.Name, &registration.TakenError{Identity: registration.Identity{Name: c.Name, ID: c.Spec.ID, Mode: c.Spec.SyncMode, Endpoint: c.Spec.APIEndpoint}, By: by})
		}
	}
	return nil
}
