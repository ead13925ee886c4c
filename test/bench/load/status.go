package load

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CreateWithStatus is Create for objects that have a status from the beginning:
// nobody is there who would find it out.
func (t *Target) CreateWithStatus(ctx context.Context, count, concurrently int, object func(i int) *unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrently)
	for i := range count {
		group.Go(func() error {
			u := object(i)
			r, err := t.resource(u)
			if err != nil {
				return err
			}
			created, err := r.Create(ctx, u, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
			}
			created.Object["status"] = u.Object["status"]
			if _, err := r.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
				return fmt.Errorf("write the status of %s %s on %s: %w", u.GetKind(), u.GetName(), t.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
