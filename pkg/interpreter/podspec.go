package interpreter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

// podSpec reads the spec of an object's pods, empty when there is none.
func podSpec(object map[string]any, path ...string) (*corev1.PodSpec, error) {
	spec := &corev1.PodSpec{}
	raw, found, err := at[map[string]any](object, path...)
	if err != nil || !found {
		return spec, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, spec); err != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(path, "."), err)
	}
	return spec, nil
}

// podDependencies returns what the pods of an object refer to.
func podDependencies(path ...string) func(map[string]any) ([]configv1alpha1.DependentObjectReference, error) {
	return func(o map[string]any) ([]configv1alpha1.DependentObjectReference, error) {
		namespace, err := orZero[string](o, "metadata", "namespace")
		if err != nil {
			return nil, err
		}
		spec, err := podSpec(o, path...)
		if err != nil {
			return nil, err
		}
		return PodDependencies(spec, namespace), nil
	}
}

// statefulSetDependencies leaves out the claims that the StatefulSet makes itself.
func statefulSetDependencies(o map[string]any) ([]configv1alpha1.DependentObjectReference, error) {
	all, err := podDependencies("spec", "template", "spec")(o)
	if err != nil {
		return nil, err
	}
	templates, err := objects(o, "spec", "volumeClaimTemplates")
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, t := range templates {
		name, err := orZero[string](t, "metadata", "name")
		if err != nil {
			return nil, fmt.Errorf("spec.volumeClaimTemplates: %w", err)
		}
		own[name] = true
	}
	return slices.DeleteFunc(all, func(r configv1alpha1.DependentObjectReference) bool {
		return r.Kind == "PersistentVolumeClaim" && own[r.Name]
	}), nil
}

// PodDependencies returns the objects that pods refer to, in their namespace:
// ConfigMaps, Secrets, the ServiceAccount if it is not the default one, and
// claims, in this order and by name (spec: behaviour/06 6.5).
func PodDependencies(spec *corev1.PodSpec, namespace string) []configv1alpha1.DependentObjectReference {
	d := dependencies{configMaps: map[string]bool{}, secrets: map[string]bool{}, claims: map[string]bool{}}
	for _, s := range spec.ImagePullSecrets {
		d.secrets[s.Name] = true
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		d.addEnv(c.Env, c.EnvFrom)
	}
	for _, c := range spec.EphemeralContainers {
		d.addEnv(c.Env, c.EnvFrom)
	}
	for _, v := range spec.Volumes {
		d.addVolume(v.VolumeSource)
	}
	account := map[string]bool{}
	if spec.ServiceAccountName != "default" {
		account[spec.ServiceAccountName] = true
	}
	return slices.Concat(
		references("v1", "ConfigMap", namespace, d.configMaps),
		references("v1", "Secret", namespace, d.secrets),
		references("v1", "ServiceAccount", namespace, account),
		references("v1", "PersistentVolumeClaim", namespace, d.claims),
	)
}

// references refers to objects of a kind by names, in their order; "" is no name.
func references(apiVersion, kind, namespace string, names map[string]bool) []configv1alpha1.DependentObjectReference {
	var all []configv1alpha1.DependentObjectReference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != "" {
			all = append(all, configv1alpha1.DependentObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
		}
	}
	return all
}

// dependencies are the names of objects that pods refer to.
type dependencies struct{ configMaps, secrets, claims map[string]bool }

func (d dependencies) addEnv(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			d.configMaps[r.Name] = true
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			d.secrets[r.Name] = true
		}
	}
	for _, e := range from {
		if e.ConfigMapRef != nil {
			d.configMaps[e.ConfigMapRef.Name] = true
		}
		if e.SecretRef != nil {
			d.secrets[e.SecretRef.Name] = true
		}
	}
}

func (d dependencies) addVolume(v corev1.VolumeSource) {
	if v.ConfigMap != nil {
		d.configMaps[v.ConfigMap.Name] = true
	}
	if v.PersistentVolumeClaim != nil {
		d.claims[v.PersistentVolumeClaim.ClaimName] = true
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				d.configMaps[s.ConfigMap.Name] = true
			}
			if s.Secret != nil {
				d.secrets[s.Secret.Name] = true
			}
		}
	}
	d.secrets[secretName(v)] = true
}

// secretName returns the secret that a volume is, or is mounted with, "" when
// there is none.
func secretName(v corev1.VolumeSource) string {
	var r *corev1.LocalObjectReference
	switch {
	case v.Secret != nil:
		return v.Secret.SecretName
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	case v.CephFS != nil:
		r = v.CephFS.SecretRef
	case v.Cinder != nil:
		r = v.Cinder.SecretRef
	case v.CSI != nil:
		r = v.CSI.NodePublishSecretRef
	case v.FlexVolume != nil:
		r = v.FlexVolume.SecretRef
	case v.ISCSI != nil:
		r = v.ISCSI.SecretRef
	case v.RBD != nil:
		r = v.RBD.SecretRef
	case v.ScaleIO != nil:
		r = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		r = v.StorageOS.SecretRef
	}
	if r == nil {
		return ""
	}
	return r.Name
}
