package agentrights

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmadactl/karmadactl/pkg/apis"
	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/registration"
)

var (
	noon    = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	errBoom = errors.New("boom")
)

const tokenID = "abcdef"

func cluster(created time.Time, ready metav1.ConditionStatus, since time.Time) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "1", CreationTimestamp: metav1.NewTime(created)}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}
	}
	return c
}

func heartbeat(at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m"}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
}

func TestReconcile(t *testing.T) {
	before, after := noon.Add(-time.Hour), noon.Add(time.Second)
	gone := cluster(before, metav1.ConditionTrue, after)
	gone.DeletionTimestamp, gone.Finalizers = &metav1.Time{Time: noon}, []string{"x/y"}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		lease   *coordinationv1.Lease
		owner   types.UID // of the rights, before
		foreign bool      // the rights were made by somebody else
		leaseOK error
		want    types.UID // of the rights, after
		used    bool      // the token is
		again   bool
		err     error
	}{
		"NoCluster":   {reason: "The agent has not come yet: the token serves again."},
		"Came":        {reason: "The rights go with the Cluster from now on.", cluster: cluster(after, "", noon), want: "1"},
		"CameLeaving": {reason: "It is going already, and takes them along.", cluster: gone, want: "1"},
		"Leaving":     {reason: "Its token may serve the next one of that name.", cluster: gone, owner: "1", want: "1"},
		"Foreign":     {reason: "The rights of a classic flow are left alone.", cluster: cluster(after, metav1.ConditionTrue, after), foreign: true},
		"NotReady":    {reason: "Until it is Ready the token serves again.", cluster: cluster(after, metav1.ConditionFalse, after), owner: "1", want: "1"},
		"Ready":       {reason: "A new Cluster became Ready: the token is used up.", cluster: cluster(after, metav1.ConditionTrue, after), owner: "1", want: "1", used: true},
		"ReadySlow":   {reason: "The agent's clock is behind; when the Cluster was made is said by another.", cluster: cluster(after, metav1.ConditionTrue, before), owner: "1", want: "1", used: true},
		"Again":       {reason: "A Cluster that was there became Ready with the new certificate.", cluster: cluster(before, metav1.ConditionTrue, after), owner: "1", want: "1", used: true},
		"ReadyAlways": {reason: "It was Ready all along: that may be the agent before.", cluster: cluster(before, metav1.ConditionTrue, before), lease: heartbeat(noon.Add(30 * time.Second)), owner: "1", want: "1", again: true},
		"Beats":       {reason: "It has been beating for long enough since.", cluster: cluster(before, metav1.ConditionTrue, before), lease: heartbeat(noon.Add(time.Minute)), owner: "1", want: "1", used: true},
		"NoBeat":      {reason: "There is no sign of life.", cluster: cluster(before, metav1.ConditionTrue, before), owner: "1", want: "1", again: true},
		"LeaseFails":  {reason: "It is asked again.", cluster: cluster(before, metav1.ConditionTrue, before), owner: "1", want: "1", leaseOK: errBoom, err: errBoom},
		"Another":     {reason: "They go with a Cluster that is gone; the one of that name must not keep them.", cluster: cluster(after, metav1.ConditionTrue, after), owner: "0", want: "0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := apis.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			token := registration.Token{ID: tokenID, Secret: "0123456789abcdef", Cluster: "m", Groups: []string{registration.ClusterTokenGroup("m"), registration.NamedClusterTokenGroup}}
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: registration.AgentRightsName("m")}}
			if !c.foreign {
				role.Annotations = map[string]string{"bootstrap.karmada.io/granted-at": noon.Format(time.RFC3339), "bootstrap.karmada.io/granted-to-token": tokenID}
			}
			if c.owner != "" {
				role.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: "m", UID: c.owner}}
			}
			there := []client.Object{role, token.ToSecret()}
			if c.cluster != nil {
				there = append(there, c.cluster)
			}
			if c.lease != nil {
				there = append(there, c.lease)
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, ok := o.(*coordinationv1.Lease); ok && c.leaseOK != nil {
						return c.leaseOK
					}
					return w.Get(ctx, key, o, opts...)
				},
			}).Build()

			request := rightsOf(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}})[0]
			result, err := NewReconciler(live, live).Reconcile(t.Context(), request)
			if !errors.Is(err, c.err) || (result.RequeueAfter > 0) != c.again {
				t.Errorf("got %v, %v, want error %v and to look again %t: %s", result, err, c.err, c.again, c.reason)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
				t.Fatal(err)
			}
			if owner, _ := registration.OwnerOfAgentRights(role); owner != c.want {
				t.Errorf("the rights go with %q, want %q: %s", owner, c.want, c.reason)
			}
			err = live.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-" + tokenID}, &corev1.Secret{})
			if used := apierrors.IsNotFound(err); used != c.used {
				t.Errorf("used up %t, want %t (%v): %s", used, c.used, err, c.reason)
			}
			if g, _ := registration.GrantOf(role); !c.foreign && (g.TokenID == "") != c.used {
				t.Errorf("noted token %q: %s", g.TokenID, c.reason)
			}
		})
	}
}

// A push member has no agent: whatever rights of one there are go, and nothing of them is left for the next of that name.
func TestReconcilePush(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func([]client.Object) []client.Object
		left   int
	}{
		"Given": {"A token has asked before the name was taken.", func(all []client.Object) []client.Object { return all }, 0},
		"Half":  {"Somebody has removed the ClusterRole alone.", func(all []client.Object) []client.Object { return all[1:] }, 0},
		"Foreign": {"The roles are somebody's, but nobody is bound to them.", func(all []client.Object) []client.Object {
			for _, o := range all {
				o.SetLabels(nil)
			}
			return all
		}, 5},
		"None": {"The usual case.", func([]client.Object) []client.Object { return nil }, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := apis.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			push := cluster(noon, metav1.ConditionTrue, noon)
			push.Spec.SyncMode = clusterv1alpha1.Push
			rights, err := registration.AgentRights("m")
			if err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(c.change(rights), push)...).Build()
			if _, err := NewReconciler(live, live).Reconcile(t.Context(), rightsOf(t.Context(), push)[0]); err != nil {
				t.Fatal(err)
			}
			left := 0
			for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.RoleList{}} {
				if err := live.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				left += meta.LenList(list)
			}
			if left != c.left {
				t.Errorf("%d roles are left, want %d: %s", left, c.left, c.reason)
			}
			for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}} {
				if err := live.List(t.Context(), list); err != nil || meta.LenList(list) > 0 {
					t.Errorf("%d bindings are left (%v): %s", meta.LenList(list), err, c.reason)
				}
			}
		})
	}
}

func TestOtherRoles(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	r := NewReconciler(fake.NewClientBuilder().WithScheme(scheme).Build(), nil)
	for _, name := range []string{"cluster-admin", "system:karmada:m:agent"} {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
			t.Errorf("%s, which is not there or not ours: %v", name, err)
		}
	}
}

func TestPredicate(t *testing.T) {
	ready, not := cluster(noon, metav1.ConditionTrue, noon), cluster(noon, metav1.ConditionFalse, noon)
	p := becomes()
	if !p.Create(event.CreateEvent{Object: not}) {
		t.Error("a Cluster that is there owns the rights of its agent, Ready or not")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: not, ObjectNew: ready}) {
		t.Error("becoming Ready uses the token up")
	}
	if p.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: ready}) || p.Update(event.UpdateEvent{ObjectOld: ready, ObjectNew: not}) {
		t.Error("each report of the status is looked at")
	}
	push, pushReady := cluster(noon, metav1.ConditionFalse, noon), cluster(noon, metav1.ConditionTrue, noon)
	push.Spec.SyncMode, pushReady.Spec.SyncMode = clusterv1alpha1.Push, clusterv1alpha1.Push
	if !p.Update(event.UpdateEvent{ObjectOld: not, ObjectNew: push}) {
		t.Error("with its agent a Cluster loses the rights of it")
	}
	if p.Update(event.UpdateEvent{ObjectOld: push, ObjectNew: pushReady}) {
		t.Error("whether it is Ready is nothing to a Cluster without an agent")
	}
}
