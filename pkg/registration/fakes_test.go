package registration

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A cluster is an API server in memory that gives objects UIDs and, unless it is slow, tokens to ServiceAccounts. It
// counts what is written.
type cluster struct {
	client.WithWatch
	writes atomic.Int64
	slow   bool
	// fail is asked before each write.
	fail func(verb string, obj client.Object) error
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{fail: func(string, client.Object) error { return nil }}
	var uids atomic.Int64
	for i, o := range objects {
		copied, _ := o.DeepCopyObject().(client.Object)
		if copied.GetUID() == "" {
			copied.SetUID(types.UID(fmt.Sprintf("uid-%d", uids.Add(1))))
		}
		objects[i] = copied
	}
	write := func(verb string, obj client.Object) error {
		if err := c.fail(verb, obj); err != nil {
			return err
		}
		c.writes.Add(1)
		return nil
	}
	c.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := write("create", obj); err != nil {
				return err
			}
			obj.SetUID(types.UID(fmt.Sprintf("uid-%d", uids.Add(1))))
			if s, ok := obj.(*corev1.Secret); ok && s.Type == corev1.SecretTypeServiceAccountToken && !c.slow {
				if err := c.fillIn(ctx, w, s); err != nil {
					return err
				}
			}
			return w.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := write("update", obj); err != nil {
				return err
			}
			return w.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := write("patch", obj); err != nil {
				return err
			}
			return w.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := write("delete", obj); err != nil {
				return err
			}
			return w.Delete(ctx, obj, opts...)
		},
	}).Build()
	return c
}

// fillIn is the token controller.
func (c *cluster) fillIn(ctx context.Context, r client.Reader, s *corev1.Secret) error {
	var sa corev1.ServiceAccount
	if err := r.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Annotations[corev1.ServiceAccountNameKey]}, &sa); err != nil {
		return err
	}
	s.Annotations[corev1.ServiceAccountUIDKey] = string(sa.UID)
	s.Data = map[string][]byte{
		corev1.ServiceAccountTokenKey:  []byte("token-of-" + sa.Name + "-" + string(s.UID)),
		corev1.ServiceAccountRootCAKey: []byte("ca"),
	}
	return nil
}

// has reports whether obj is there, and reads it.
func (c *cluster) has(t *testing.T, obj client.Object) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	if err != nil && !isAbsent(err) {
		t.Fatal(err)
	}
	return err == nil
}

// named is the metadata of an object that only has to be found.
func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// ours is the same for one that the system made.
func ours(namespace, name string) metav1.ObjectMeta {
	m := named(namespace, name)
	markSystem(&m)
	return m
}
