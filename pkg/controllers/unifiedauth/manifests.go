package unifiedauth

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// manifests returns what the member of a cluster is to hold so that its
// impersonator may act as these subjects.
func manifests(c *clusterv1alpha1.Cluster, subjects []rbacv1.Subject) ([]*unstructured.Unstructured, error) {
	const name = names.ImpersonatorServiceAccount
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{names.SystemLabel: names.True}}
	version := rbacv1.SchemeGroupVersion.String()
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"},
		ObjectMeta: *meta.DeepCopy(),
		Rules:      impersonation(subjects),
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"},
		ObjectMeta: *meta.DeepCopy(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Spec.ImpersonatorSecretRef.Namespace, Name: name}},
	}
	var all []*unstructured.Unstructured
	for _, o := range []runtime.Object{role, binding} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("convert %T: %w", o, err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all, nil
}

// workOf returns the Work that carries a manifest to a cluster. It goes with the
// Cluster, and is the system's own: what it puts into the member never stays.
func workOf(c *clusterv1alpha1.Cluster, manifest *unstructured.Unstructured) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.ExecutionNamespace(c.Name),
		Name:      names.Work(manifest.GetKind(), manifest.GetName(), manifest.GetNamespace()),
		Labels:    map[string]string{names.SystemLabel: names.True},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(c, clusterv1alpha1.GroupVersion.WithKind("Cluster")),
		},
	}}
}
