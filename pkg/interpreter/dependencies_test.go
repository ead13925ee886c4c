package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
)

// named are references to objects in one namespace.
func named(kind string, names ...string) []configv1alpha1.DependentObjectReference {
	var all []configv1alpha1.DependentObjectReference
	for _, name := range names {
		all = append(all, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: kind, Namespace: "ns", Name: name})
	}
	return all
}

func together(lists ...[]configv1alpha1.DependentObjectReference) []configv1alpha1.DependentObjectReference {
	var all []configv1alpha1.DependentObjectReference
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func TestPodDependencies(t *testing.T) {
	cases := map[string]struct {
		reason, pod string
		want        []configv1alpha1.DependentObjectReference
	}{
		"Nothing": {reason: "A pod may stand alone.", pod: `{containers: [{name: c, image: i}], serviceAccountName: default}`},
		"Env": {
			"Values, and whole maps, of all containers.",
			`{containers: [{name: c, env: [{name: e, value: v}, {name: f, valueFrom: {configMapKeyRef: {name: m1, key: k}}}, {name: g, valueFrom: {secretKeyRef: {name: s1, key: k}}}, {name: h, valueFrom: {fieldRef: {fieldPath: x}}}],
			  envFrom: [{configMapRef: {name: m2}}, {secretRef: {name: s2}}]}],
			  initContainers: [{name: i, envFrom: [{configMapRef: {name: m3}}]}], ephemeralContainers: [{name: d, envFrom: [{secretRef: {name: s3}}]}]}`,
			together(named("ConfigMap", "m1", "m2", "m3"), named("Secret", "s1", "s2", "s3")),
		},
		"Volumes": {
			"What is mounted.",
			`{volumes: [{name: a, configMap: {name: m1}}, {name: b, secret: {secretName: s1}}, {name: c, persistentVolumeClaim: {claimName: p1}},
			  {name: d, projected: {sources: [{configMap: {name: m2}}, {secret: {name: s2}}, {serviceAccountToken: {path: x}}]}}, {name: e, emptyDir: {}}]}`,
			together(named("ConfigMap", "m1", "m2"), named("Secret", "s1", "s2"), named("PersistentVolumeClaim", "p1")),
		},
		"VolumeSecrets": {
			"What is needed to mount, of every kind of volume there ever was.",
			`{volumes: [{name: a, azureFile: {secretName: azure, shareName: x}}, {name: b, cephfs: {monitors: [], secretRef: {name: ceph}}}, {name: c, cinder: {volumeID: x, secretRef: {name: cinder}}},
			  {name: d, csi: {driver: x, nodePublishSecretRef: {name: csi}}}, {name: e, flexVolume: {driver: x, secretRef: {name: flex}}}, {name: f, iscsi: {targetPortal: x, iqn: q, lun: 0, secretRef: {name: iscsi}}},
			  {name: g, rbd: {monitors: [], image: x, secretRef: {name: rbd}}}, {name: h, scaleIO: {gateway: x, system: z, secretRef: {name: scaleio}}}, {name: i, storageos: {secretRef: {name: storageos}}},
			  {name: j, csi: {driver: x}}]}`,
			named("Secret", "azure", "ceph", "cinder", "csi", "flex", "iscsi", "rbd", "scaleio", "storageos"),
		},
		"Account": {
			"Who it runs as, and with what it pulls.",
			`{serviceAccountName: sa, imagePullSecrets: [{name: pull}]}`,
			together(named("Secret", "pull"), named("ServiceAccount", "sa")),
		},
		"Order": {
			"By kind, then by name, each once.",
			`{serviceAccountName: sa, volumes: [{name: a, persistentVolumeClaim: {claimName: p}}, {name: b, secret: {secretName: z}}, {name: c, secret: {secretName: a}}, {name: d, secret: {secretName: z}}, {name: e, configMap: {name: m}}]}`,
			together(named("ConfigMap", "m"), named("Secret", "a", "z"), named("ServiceAccount", "sa"), named("PersistentVolumeClaim", "p")),
		},
		"NoNames": {"A reference to nothing is none.", `{imagePullSecrets: [{}], volumes: [{name: a, secret: {}}, {name: b, configMap: {}}]}`, nil},
	}
	kinds := map[string]string{
		"Deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns}, spec: {template: {spec: POD}}}`,
		"ReplicaSet":  `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, namespace: ns}, spec: {template: {spec: POD}}}`,
		"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns}, spec: {template: {spec: POD}}}`,
		"DaemonSet":   `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: ns}, spec: {template: {spec: POD}}}`,
		"Job":         `{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns}, spec: {template: {spec: POD}}}`,
		"CronJob":     `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: ns}, spec: {jobTemplate: {spec: {template: {spec: POD}}}}}`,
		"Pod":         `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}, spec: POD}`,
	}
	for name, tc := range cases {
		for kind, object := range kinds {
			t.Run(name+kind, func(t *testing.T) {
				o := parse(t, replaced(object, tc.pod))
				got, err := New(Options{}).Dependencies(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
				}
				unchanged(t, "object", replaced(object, tc.pod), o)
			})
		}
	}
}

func TestDependencies(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           []configv1alpha1.DependentObjectReference
	}{
		"StatefulSetClaims": {
			"A claim that it makes itself is not propagated.",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: ns}, spec: {volumeClaimTemplates: [{metadata: {name: own}}],
			  template: {spec: {volumes: [{name: own, persistentVolumeClaim: {claimName: own}}, {name: other, persistentVolumeClaim: {claimName: other}}, {name: s, secret: {secretName: own}}]}}}}`,
			together(named("Secret", "own"), named("PersistentVolumeClaim", "other")),
		},
		"Ingress": {
			"Certificates.",
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: ns}, spec: {tls: [{secretName: z}, {hosts: [x]}, {secretName: a}, {secretName: z}]}}`,
			named("Secret", "a", "z"),
		},
		"IngressPlain": {"There need be none.", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: ns}, spec: {}}`, nil},
		"ServiceImport": {
			"The Service that is made of it, and the endpoints of that.",
			`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: web, namespace: ns}}`,
			[]configv1alpha1.DependentObjectReference{
				{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "derived-web"},
				{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "ns", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/service-name": "derived-web"}}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := New(Options{}).Dependencies(t.Context(), parse(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
