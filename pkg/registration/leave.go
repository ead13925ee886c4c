package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// Propagated lists what the control plane keeps in a cluster for its users, each as "Kind namespace/name", sorted. What the
// system itself has there is left out.
func Propagated(ctx context.Context, c client.Reader, cluster string) ([]string, error) {
	works, err := worksOf(ctx, c, cluster)
	if err != nil {
		return nil, err
	}
	var found []string
	for i := range works {
		if isSystem(&works[i]) {
			continue
		}
		for _, m := range works[i].Spec.Workload.Manifests {
			found = append(found, describeManifest(m.Raw))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func worksOf(ctx context.Context, c client.Reader, cluster string) ([]workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := c.List(ctx, &list, client.InNamespace(names.ExecutionNamespace(cluster))); err != nil {
		return nil, fmt.Errorf("list what is propagated to cluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

// A Removal is a complete request to take a cluster out of a control plane.
type Removal struct {
	Name string
	// UID is the Cluster that is meant: one that has taken its name since is not.
	UID string
	// Orphan leaves what was propagated in the member; otherwise it is deleted there.
	Orphan bool
	// Wait is how long the control plane has to do it.
	Wait time.Duration
	// Force removes what holds the cluster back after that.
	Force bool
	// Progress gets a line whenever what is waited for changes.
	Progress func(line string)
}

// A StuckError says that a cluster has not gone in time, and what holds it back.
type StuckError struct {
	Name  string
	After time.Duration
	Why   string
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("cluster %s is being removed, but has not gone in %s: %s", e.Name, e.After, e.Why)
}

// RemoveCluster deletes a Cluster and waits until it is gone (spec: cli/commands.md 3.2). When it has not gone in time the
// error is a *StuckError, unless the removal is forced. That it is gone already is no error.
func RemoveCluster(ctx context.Context, c client.Client, r Removal) error {
	for range tries {
		again, err := startRemoval(ctx, c, r)
		if err != nil {
			return err
		}
		if !again {
			break
		}
	}
	err := awaitGone(ctx, c, r, r.Wait)
	var stuck *StuckError
	if !errors.As(err, &stuck) || !r.Force {
		return err
	}
	r.Progress(fmt.Sprintf("%v; it is removed by force", err))
	return forceRemoval(ctx, c, r)
}

// startRemoval says what becomes of what was propagated, then deletes the Cluster. Somebody else may change it in between:
// then again is true.
func startRemoval(ctx context.Context, c client.Client, r Removal) (again bool, err error) {
	cluster, err := FindCluster(ctx, c, r.Name)
	if err != nil || cluster == nil || string(cluster.UID) != r.UID {
		return false, err
	}
	if cascade := cascadeOf(r.Orphan); cluster.Annotations[names.ClusterCascadeAnnotation] != cascade && (r.Orphan || cluster.Annotations[names.ClusterCascadeAnnotation] != "") {
		before := cluster.DeepCopy()
		if cluster.Annotations == nil {
			cluster.Annotations = map[string]string{}
		}
		cluster.Annotations[names.ClusterCascadeAnnotation] = cascade
		if err := c.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
			if isAbsent(err) {
				return false, nil
			}
			return false, fmt.Errorf("say on cluster %s that propagated objects are %sed: %w", r.Name, strings.TrimSuffix(cascade, "e"), err)
		}
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	// A Cluster whose annotation somebody has changed since is read again.
	err = c.Delete(ctx, cluster, client.Preconditions(metav1.Preconditions{UID: &cluster.UID, ResourceVersion: &cluster.ResourceVersion}))
	switch {
	case err == nil, isAbsent(err):
		return false, nil
	case isConflict(err):
		return true, nil
	}
	return false, fmt.Errorf("delete cluster %s: %w", r.Name, err)
}

func cascadeOf(orphan bool) string {
	if orphan {
		return names.CascadeOrphan
	}
	return names.CascadeDelete
}

// awaitGone waits for that, and says what is left if it does not come.
func awaitGone(ctx context.Context, c client.Client, r Removal, patience time.Duration) error {
	why, told := "", ""
	err := poll(ctx, patience, func(ctx context.Context) (bool, error) {
		cluster, err := FindCluster(ctx, c, r.Name)
		switch {
		case err != nil && (isStarting(err) || mayPass(err)):
			why = err.Error()
			return false, nil
		case err != nil:
			return false, err
		case cluster == nil || string(cluster.UID) != r.UID:
			return true, nil
		}
		if why = whyItStays(ctx, c, cluster); why != told {
			told = why
			r.Progress(fmt.Sprintf("waiting until cluster %s is gone: %s", r.Name, why))
		}
		return false, nil
	})
	if errors.Is(err, errPatience) {
		return &StuckError{Name: r.Name, After: patience, Why: why}
	}
	return err
}

// whyItStays says what a Cluster that is being removed waits for.
func whyItStays(ctx context.Context, c client.Reader, cluster *clusterv1alpha1.Cluster) string {
	works, err := worksOf(ctx, c, cluster.Name)
	if err != nil {
		return err.Error()
	}
	if len(works) > 0 {
		var left []string
		for i := range works {
			left = append(left, works[i].Name)
		}
		return fmt.Sprintf("%d Works are left in namespace %s (%s)", len(works), names.ExecutionNamespace(cluster.Name), summary(left))
	}
	ns := &corev1.Namespace{}
	if err := c.Get(ctx, client.ObjectKey{Name: names.ExecutionNamespace(cluster.Name)}, ns); err == nil {
		return fmt.Sprintf("namespace %s is still there (%s)", ns.Name, whyNamespace(ns))
	}
	return fmt.Sprintf("its finalizers are left: %s", strings.Join(cluster.Finalizers, ", "))
}

func whyNamespace(ns *corev1.Namespace) string {
	if ns.DeletionTimestamp.IsZero() {
		return "nobody has begun to delete it, which karmada-controller-manager does"
	}
	return whyNamespaceStays(ns)
}

// forcePatience is how long the control plane has to do what nothing holds back any longer.
const forcePatience = 10 * time.Second

// forceRemoval takes away every finalizer that holds a Cluster back: those of its Works, of its execution namespace and its
// own. It goes on after an error, and returns all of them, and what remains.
func forceRemoval(ctx context.Context, c client.Client, r Removal) error {
	errs := []error{deleteExecutionNamespace(ctx, c, r.Name)}
	works, err := worksOf(ctx, c, r.Name)
	errs = append(errs, err)
	for i := range works {
		errs = append(errs, dropFinalizers(ctx, c, &works[i], func(f string) bool { return f == names.WorkFinalizer }))
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionNamespace(r.Name)}}
	errs = append(errs, dropFinalizers(ctx, c, ns, func(f string) bool { return f == string(corev1.FinalizerKubernetes) }))
	cluster, err := FindCluster(ctx, c, r.Name)
	errs = append(errs, err)
	if cluster != nil && string(cluster.UID) == r.UID {
		errs = append(errs, dropFinalizers(ctx, c, cluster, func(string) bool { return true }))
	}
	errs = append(errs, awaitGone(ctx, c, r, forcePatience))
	errs = append(errs, awaitNoNamespace(ctx, c, r.Name))
	return errors.Join(errs...)
}

// deleteExecutionNamespace begins it, if nobody has.
func deleteExecutionNamespace(ctx context.Context, c client.Client, cluster string) error {
	ns := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: names.ExecutionNamespace(cluster)}, ns)
	switch {
	case isAbsent(err):
		return nil
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", names.ExecutionNamespace(cluster), err)
	case !isSystem(ns):
		return fmt.Errorf("namespace %s stays: it has no label %s=%s, so it is somebody else's", ns.Name, names.SystemLabel, names.True)
	case !ns.DeletionTimestamp.IsZero():
		return nil
	}
	if err := c.Delete(ctx, ns, client.Preconditions(metav1.Preconditions{UID: &ns.UID})); err != nil && !isAbsent(err) {
		return fmt.Errorf("delete namespace %s: %w", ns.Name, err)
	}
	return nil
}

// awaitNoNamespace waits until the execution namespace is gone; one of somebody else stays.
func awaitNoNamespace(ctx context.Context, c client.Reader, cluster string) error {
	ns := &corev1.Namespace{}
	err := poll(ctx, forcePatience, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Name: names.ExecutionNamespace(cluster)}, ns)
		if isAbsent(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("read namespace %s: %w", names.ExecutionNamespace(cluster), err)
		}
		return ns.DeletionTimestamp.IsZero(), nil
	})
	if errors.Is(err, errPatience) {
		return fmt.Errorf("namespace %s is left in the control plane: %s", ns.Name, whyNamespaceStays(ns))
	}
	return err
}

// dropFinalizers takes the finalizers of that kind off an object; one that is gone needs none.
func dropFinalizers(ctx context.Context, c client.Client, obj client.Object, which func(string) bool) error {
	w := NewWriter(c)
	for range tries {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", w.Describe(obj), err)
		}
		left := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), which)
		if len(left) == len(obj.GetFinalizers()) {
			return nil
		}
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copy %s: it is no object", w.Describe(obj))
		}
		obj.SetFinalizers(left)
		err = c.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil, isAbsent(err):
			return nil
		case !isConflict(err):
			return fmt.Errorf("take the finalizers off %s: %w", w.Describe(obj), err)
		}
	}
	return fmt.Errorf("take the finalizers off %s: somebody else changes it all the time", w.Describe(obj))
}
