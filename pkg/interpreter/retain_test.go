package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRetain(t *testing.T) {
	cases := map[string]struct {
		reason, desired, observed, want, err string
	}{
		"DeploymentPlain": {
			"Without the label the template rules.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 5}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}`, "",
		},
		"DeploymentLabelled": {
			"An autoscaler of the member rules; what the typed API does not know stays.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2, novelty: {}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 5}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5, novelty: {}}}`, "",
		},
		"DeploymentOtherValue": {
			"Only this value of the label asks for it.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "yes"}}, spec: {replicas: 2}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 5}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "yes"}}, spec: {replicas: 2}}`, "",
		},
		"DeploymentWithout": {
			"A number that is not there cannot be kept, and no number must be made up.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}`,
			"", "it has none",
		},
		"Pod": {
			"Where it runs and what admission mounted is fixed.",
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: new}, {name: d}], initContainers: [{name: i}], volumes: [{name: old}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, serviceAccountName: default, volumes: [{name: token}], containers: [{name: c, image: old, volumeMounts: [{name: token, mountPath: /t}]}, {name: e, volumeMounts: [{name: x}]}], initContainers: [{name: i, volumeMounts: [{name: token}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, serviceAccountName: default, volumes: [{name: token}], containers: [{name: c, image: new, volumeMounts: [{name: token, mountPath: /t}]}, {name: d}], initContainers: [{name: i, volumeMounts: [{name: token}]}]}}`, "",
		},
		"Service": {
			"Addresses are the cluster's; node ports are not kept.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 30001, ports: [{port: 80, nodePort: 30000}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 30001, ports: [{port: 80}]}}`, "",
		},
		"ServiceNothing": {
			"What the cluster has not given is not kept.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: "", healthCheckNodePort: 0}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`, "",
		},
		"ServiceExternalName": {
			"A name of something elsewhere may have no address.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: x.io}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: x.io}}`, "",
		},
		"ServiceAccount": {
			"What the template says comes first, then what only the cluster has.",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: mine}], imagePullSecrets: [{name: p}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x}, {name: mine}], imagePullSecrets: [{name: q}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: mine}, {name: a-token-x}], imagePullSecrets: [{name: p}, {name: q}]}`, "",
		},
		"ServiceAccountEmpty": {
			"Nothing and nothing is nothing.",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`, "",
		},
		"Claim": {
			"The volume, and the class if the template leaves it to the cluster.",
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {requests: {storage: 2Gi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v, storageClassName: fast, resources: {requests: {storage: 1Gi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v, storageClassName: fast, resources: {requests: {storage: 2Gi}}}}`, "",
		},
		"ClaimOfClass": {
			"A class that the template names is its wish, also an empty one.",
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: ""}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: fast}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: ""}}`, "",
		},
		"Volume": {
			"Whose it is the cluster knows.",
			`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {storage: 1Gi}}}`,
			`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {name: c, uid: u}}}`,
			`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {storage: 1Gi}, claimRef: {name: c, uid: u}}}`, "",
		},
		"Job": {
			"By what it finds its pods is fixed.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 2, template: {spec: {}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 1, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 2, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}, spec: {}}}}`, "",
		},
		"Token": {
			"Only the cluster can issue it.",
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token, data: {token: eA==}}`, "",
		},
		"Secret": {
			"Any other is as the template says.",
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, data: {k: eA==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, data: {l: eQ==}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, data: {k: eA==}}`, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, observed := parse(t, tc.desired), parse(t, tc.observed)
			got, err := New(Options{}).Retain(t.Context(), desired, observed)
			if fails(t, tc.reason, tc.err, err) || tc.err != "" {
				return
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			for _, path := range leaves(got.Object) { // nothing is shared: whatever is spoilt is the result's own
				put(got.Object, path, "spoilt")
			}
			unchanged(t, "desired object", tc.desired, desired)
			unchanged(t, "observed object", tc.observed, observed)
		})
	}
}

// TestRetainIsFinal makes sure that what was retained once is retained the second
// time without a change, so that nothing is written again.
func TestRetainIsFinal(t *testing.T) {
	i := New(Options{})
	for name, full := range fullObjects() {
		o := parse(t, full)
		if !i.Supports(o.GroupVersionKind(), opRetain) {
			continue
		}
		got, err := i.Retain(t.Context(), o, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(o.Object, got.Object); diff != "" {
			t.Errorf("%s retained from itself changes (-want +got):\n%s", name, diff)
		}
	}
}
