package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const agentsGroup = "system:karmada:agents"

func from(t *testing.T, name string, groups ...string) context.Context {
	t.Helper()
	return request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: append(groups, "system:authenticated")})
}

// pulled returns the Cluster of the agent of "member" as it registers it.
func pulled(change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := valid(func(c *clusterv1alpha1.Cluster) {
		c.Spec = clusterv1alpha1.ClusterSpec{
			ID: "id-1", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://10.0.0.1:6443",
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "member"},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "member-impersonator"},
		}
		c.Labels = map[string]string{"tier": "test"}
		c.Annotations = map[string]string{"note": "x"}
	})
	for _, f := range change {
		f(c)
	}
	return c
}

var errOther = errors.New("what others say")

func guard(known ...clusterv1alpha1.Cluster) agents {
	return agents{taking: &sync.Mutex{}, clusters: func(context.Context) ([]clusterv1alpha1.Cluster, error) { return known, nil }}
}

func checkForbidden(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want none: %s", err, reason)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
		t.Errorf("got %v, want one line with %q: %s", err, want, reason)
	}
}

func TestAgentCreates(t *testing.T) {
	other := pulled(func(c *clusterv1alpha1.Cluster) { c.Name = "other" })
	ref := func(namespace, name string) *clusterv1alpha1.LocalSecretReference {
		return &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: name}
	}
	cases := map[string]struct {
		reason string
		user   string // the agent of member when it is empty
		known  []clusterv1alpha1.Cluster
		change func(*clusterv1alpha1.Cluster)
		want   string
	}{
		"Own":       {reason: "What an agent is for."},
		"Wishes":    {reason: "Whoever registers a cluster may say how it begins.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} }},
		"NoSecrets": {reason: "It may report none.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = nil, nil }},
		"Other":     {reason: "It is another member's name.", change: func(c *clusterv1alpha1.Cluster) { c.Name = "other" }, want: `can write Cluster "member" only`},
		"Push":      {reason: "The control plane would act on it with the agent's secrets.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, want: "syncMode Pull only"},
		"Secret":    {reason: "It would get another member's token at its own address.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("karmada-cluster", "other") }, want: "karmada-cluster/member only"},
		"Namespace": {reason: "It would get some secret at its own address.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = ref("kube-system", "member") }, want: "karmada-cluster/member only"},
		"Impersonator": {reason: "It would get another member's token at its own address.", change: func(c *clusterv1alpha1.Cluster) {
			c.Spec.ImpersonatorSecretRef = ref("karmada-cluster", "other-impersonator")
		}, want: "karmada-cluster/member-impersonator only"},
		"TakenID":   {reason: "The member is registered under another name.", known: []clusterv1alpha1.Cluster{*other}, want: "the cluster ID id-1 or the cluster name member has been registered: this cluster is registered as other"},
		"OtherID":   {reason: "It is another member.", known: []clusterv1alpha1.Cluster{*other}, change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-2" }},
		"NoID":      {reason: "It could be any member.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }, want: "spec.id"},
		"Finalizer": {reason: "It could not be removed.", change: func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{"x/y"} }, want: "finalizers"},
		"Owner":     {reason: "It would go with something.", change: func(c *clusterv1alpha1.Cluster) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, want: "owners"},
		"Protected": {reason: "It could not be removed.", change: func(c *clusterv1alpha1.Cluster) {
			c.Labels[names.DeletionProtectedLabel] = names.DeletionProtectedAlways
		}, want: names.DeletionProtectedLabel},
		"Generator": {reason: "It is in the group, but no agent.", user: "system:karmada:agent:rbac-generator", want: "rbac-generator"},
		"Stranger":  {reason: "It is in the group, but no agent.", user: "eve", want: "is no agent"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			new := pulled()
			if c.change != nil {
				c.change(new)
			}
			who := c.user
			if who == "" {
				who = "system:karmada:agent:member"
			}
			validate := guard(c.known...).mayCreate(nil)
			checkForbidden(t, c.reason, validate(from(t, who, agentsGroup), new), c.want)
			if err := validate(from(t, "system:admin", "system:masters"), new); err != nil {
				t.Errorf("somebody else is refused: %v", err)
			}
		})
	}
	g := guard()
	g.clusters = func(context.Context) ([]clusterv1alpha1.Cluster, error) { return nil, errOther }
	if err := g.mayCreate(nil)(from(t, "system:karmada:agent:member", agentsGroup), pulled()); !errors.Is(err, errOther) {
		t.Errorf("got %v: who cannot look must not say that an ID is free", err)
	}
}

func TestAgentUpdates(t *testing.T) {
	cases := map[string]struct {
		reason      string
		change, old func(*clusterv1alpha1.Cluster)
		known       []clusterv1alpha1.Cluster
		want        string
	}{
		"Nothing": {reason: "So it is with the status."},
		"Its": {reason: "Where the member is, is the agent's to say.", change: func(c *clusterv1alpha1.Cluster) {
			c.Spec.APIEndpoint, c.Spec.ProxyURL, c.Spec.InsecureSkipTLSVerification = "https://10.0.0.2", "http://proxy", true
			c.Spec.Provider, c.Spec.Region, c.Spec.Zones = "p", "r", []string{"z"}
			c.Spec.SecretRef = nil
		}},
		"Cascade":    {reason: "Unregister says it with the agent's certificate.", change: func(c *clusterv1alpha1.Cluster) { c.Annotations[names.ClusterCascadeAnnotation] = names.CascadeOrphan }},
		"Status":     {reason: "It reports.", change: func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }},
		"Other":      {reason: "It is another member's.", change: func(c *clusterv1alpha1.Cluster) { c.Name = "other" }, old: func(c *clusterv1alpha1.Cluster) { c.Name = "other" }, want: `can write Cluster "member" only`},
		"WasPush":    {reason: "A push member of that name is not the agent's.", old: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, want: "Pull only, not Push"},
		"ToPush":     {reason: "The control plane would act on it.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, want: "Pull only, not Push"},
		"Untaints":   {reason: "It was tainted for a reason.", old: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} }, want: "taints"},
		"Taints":     {reason: "It would drive workloads away.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} }, want: "taints"},
		"Models":     {reason: "They decide about scheduling.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 1}} }, want: "nothing else"},
		"Header":     {reason: "It is not among the agent's flags.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyHeader = map[string]string{"a": "b"} }, want: "nothing else"},
		"Labels":     {reason: "They decide about placement.", change: func(c *clusterv1alpha1.Cluster) { c.Labels["tier"] = "prod" }, want: "labels"},
		"Unlabels":   {reason: "They decide about placement.", change: func(c *clusterv1alpha1.Cluster) { c.Labels = nil }, want: "labels"},
		"Annotates":  {reason: "They are administrators'.", change: func(c *clusterv1alpha1.Cluster) { c.Annotations["note"] = "y" }, want: "annotation"},
		"Finalizers": {reason: "Removal waits for it.", old: func(c *clusterv1alpha1.Cluster) { c.Finalizers = []string{names.ClusterFinalizer} }, want: "finalizers"},
		"Owners":     {reason: "It would go with something.", change: func(c *clusterv1alpha1.Cluster) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, want: "owners"},
		"ID":         {reason: "It would be another member under the name.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id-2" }, want: "belongs to the cluster with ID id-1"},
		"NoID":       {reason: "It would be any member.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }, want: "belongs to the cluster with ID id-1"},
		"FirstID":    {reason: "Whoever wrote the Cluster by hand left it out.", old: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }},
		"TakenID": {
			reason: "The member is registered under another name.", old: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" },
			known: []clusterv1alpha1.Cluster{*pulled(func(c *clusterv1alpha1.Cluster) { c.Name = "other" })}, want: "has been registered",
		},
		"Secret": {reason: "It would get another member's token.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Name = "other" }, want: "karmada-cluster/member only"},
		"KeptSecret": {
			reason: "An administrator has set it.", old: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Namespace = "custom" },
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef.Namespace = "custom" },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old, new := pulled(), pulled()
			if c.old != nil {
				c.old(old)
			}
			if c.change != nil {
				c.change(new)
			}
			validate := guard(c.known...).mayUpdate(nil)
			checkForbidden(t, c.reason, validate(from(t, "system:karmada:agent:member", agentsGroup), new, old), c.want)
			if err := validate(from(t, "system:admin", "system:masters"), new, old); err != nil {
				t.Errorf("somebody else is refused: %v", err)
			}
		})
	}
}

func TestAgentDeletes(t *testing.T) {
	orphan, background, yes := metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, true
	cases := map[string]struct {
		reason string
		change func(*clusterv1alpha1.Cluster)
		o      *metav1.DeleteOptions
		want   string
	}{
		"Own":        {reason: "Unregister does it with the agent's certificate.", o: &metav1.DeleteOptions{PropagationPolicy: &background}},
		"Other":      {reason: "It is another member's.", change: func(c *clusterv1alpha1.Cluster) { c.Name = "other" }, want: `"member" only`},
		"Push":       {reason: "It is not the agent's.", change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, want: "Pull only"},
		"Orphan":     {reason: "Its rights would outlive the Cluster.", o: &metav1.DeleteOptions{PropagationPolicy: &orphan}, want: "leave behind"},
		"Dependents": {reason: "The old way to say it.", o: &metav1.DeleteOptions{OrphanDependents: &yes}, want: "leave behind"},
		"Protected": {reason: "An administrator's protection holds.", change: func(c *clusterv1alpha1.Cluster) {
			c.Labels[names.DeletionProtectedLabel] = names.DeletionProtectedAlways
		}, want: "protected"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old := pulled()
			if c.change != nil {
				c.change(old)
			}
			validate := guard().mayDelete(unlessProtected(nil), c.o)
			checkForbidden(t, c.reason, validate(from(t, "system:karmada:agent:member", agentsGroup), old), c.want)
		})
	}
	checkForbidden(t, "It has one.", guard().mayDeleteCollection(from(t, "system:karmada:agent:member", agentsGroup)), "by name")
	checkForbidden(t, "It is no agent.", guard().mayDeleteCollection(from(t, "system:admin")), "")
}

// What others check is still checked, for agents and for everybody else.
func TestOthersAreAsked(t *testing.T) {
	create := func(context.Context, runtime.Object) error { return errOther }
	update := func(context.Context, runtime.Object, runtime.Object) error { return errOther }
	for _, ctx := range []context.Context{from(t, "system:karmada:agent:member", agentsGroup), from(t, "system:admin"), t.Context()} {
		for _, err := range []error{guard().mayCreate(create)(ctx, pulled()), guard().mayUpdate(update)(ctx, pulled(), pulled()), guard().mayDelete(create, nil)(ctx, pulled())} {
			if !errors.Is(err, errOther) {
				t.Errorf("got %v", err)
			}
		}
	}
}
