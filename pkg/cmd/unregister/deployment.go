package unregister

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// Names of what an agent in the cluster is made of, beside its Deployment (spec: cli/commands.md 3.4).
const (
	agentServiceAccount = "karmada-agent-sa"
	agentSecret         = "karmada-kubeconfig"
)

// deployment returns the Deployment of the cluster's agent, nil if there is none. One of another cluster is an error.
func (o *Options) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d, err := o.MemberClient.AppsV1().Deployments(o.AgentNamespace).Get(ctx, o.AgentName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for the agent in the cluster: %w", err)
	}
	if name := flagOf(d, "cluster-name"); name != o.Cluster {
		return nil, fmt.Errorf("Deployment %s/%s in the cluster is the agent of cluster %q, not of %s: unregister that, or name another with --agent-name", d.Namespace, d.Name, name, o.Cluster)
	}
	return d, nil
}

// flagOf returns the value of a flag that the agent is started with.
func flagOf(d *appsv1.Deployment, name string) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
				return value
			}
		}
	}
	return ""
}

// deploymentCredentials returns the way to the control plane of an agent that runs in the cluster, nil if there is none
// (spec: cli/commands.md 3.5).
func (o *Options) deploymentCredentials(ctx context.Context) (*rest.Config, error) {
	d, err := o.deployment(ctx)
	if err != nil {
		return nil, o.Explain(err)
	}
	if d == nil {
		return nil, nil
	}
	file := flagOf(d, "karmada-kubeconfig")
	secret, err := secretBehind(d, file)
	if err != nil {
		return nil, err
	}
	s, err := o.MemberClient.CoreV1().Secrets(d.Namespace).Get(ctx, secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // it goes before the Deployment, and after the Cluster
	}
	if err != nil {
		return nil, o.Explain(fmt.Errorf("read the credentials of the agent in the cluster: %w", err))
	}
	config, err := clientcmd.Load(s.Data[path.Base(file)])
	if err != nil {
		return nil, fmt.Errorf("read the credentials of the agent, key %s of secret %s/%s: %w; give --karmada-config", path.Base(file), s.Namespace, s.Name, err)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*config, flagOf(d, "karmada-context"), &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("use the credentials of the agent in secret %s/%s: %w; give --karmada-config", s.Namespace, s.Name, err)
	}
	cfg.Timeout = requestTimeout
	return cfg, nil
}

// secretBehind finds the Secret that is mounted where a file is.
func secretBehind(d *appsv1.Deployment, file string) (string, error) {
	spec := d.Spec.Template.Spec
	for _, c := range spec.Containers {
		for _, m := range c.VolumeMounts {
			if m.MountPath != path.Dir(file) {
				continue
			}
			i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.Secret != nil })
			if i >= 0 {
				return spec.Volumes[i].Secret.SecretName, nil
			}
		}
	}
	return "", fmt.Errorf("Deployment %s/%s in the cluster does not say which Secret the agent's credentials are in: give --karmada-config", d.Namespace, d.Name)
}

// removeDeployment removes an agent that runs in the cluster, the Deployment last: it says that the rest is its own.
func (o *Options) removeDeployment(ctx context.Context) error {
	d, err := o.deployment(ctx)
	if err != nil || d == nil {
		return err
	}
	core, rbac := o.MemberClient.CoreV1(), o.MemberClient.RbacV1()
	now := metav1.DeleteOptions{}
	var errs []error
	for _, err := range []error{
		rbac.ClusterRoleBindings().Delete(ctx, names.Agent, now),
		rbac.ClusterRoles().Delete(ctx, names.Agent, now),
		core.ServiceAccounts(d.Namespace).Delete(ctx, agentServiceAccount, now),
		core.Secrets(d.Namespace).Delete(ctx, agentSecret, now),
	} {
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the agent in the cluster: %w", err)
	}
	err = o.MemberClient.AppsV1().Deployments(d.Namespace).Delete(ctx, d.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &d.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the agent in the cluster: %w", err)
	}
	return nil
}
