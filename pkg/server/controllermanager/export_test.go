package controllermanager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WithConfigMapInformer is Run with one controller, which does nothing but need
// a cache.
func WithConfigMapInformer(ctx context.Context, args []string, p Process) error {
	c, err := parse([]controller{{Name: "needy", Setup: func(mgr manager.Manager, _ *setting) error {
		// Asked for, and not waited for.
		_, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
		return err
	}}}, args, p)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// WithoutControllers is Run with no controller at all.
func WithoutControllers(ctx context.Context, args []string, p Process) error {
	c, err := parse(nil, args, p)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// Unread is unread, for the test that its flags exist.
func Unread() []string { return unread() }

// SchemeKinds returns the kinds of a scheme, as GroupKind.String() has them.
func SchemeKinds(s *runtime.Scheme) []string {
	var kinds []string
	for gvk := range s.AllKnownTypes() {
		kinds = append(kinds, gvk.GroupKind().String())
	}
	return kinds
}
