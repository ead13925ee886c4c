package binding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return u
}

func TestPrune(t *testing.T) {
	cases := map[string]struct {
		reason, object, want string
	}{
		"Metadata": {
			"What a server sets, and what refers to objects of one server, does not travel.",
			`{apiVersion: example.io/v1, kind: Thing, metadata: {name: a, namespace: n, labels: {l: x}, annotations: {a: x},
			  creationTimestamp: "2026-01-02T03:04:05Z", deletionTimestamp: "2026-01-02T03:04:05Z", deletionGracePeriodSeconds: 3,
			  generation: 2, managedFields: [{manager: m}], resourceVersion: "7", selfLink: /x, uid: u, ownerReferences: [{name: o}],
			  finalizers: [f]}, spec: {status: kept}, status: {phase: Active}}`,
			`{apiVersion: example.io/v1, kind: Thing, metadata: {name: a, namespace: n, labels: {l: x}, annotations: {a: x}}, spec: {status: kept}}`,
		},
		"LastApplied": {
			"What kubectl remembers on one server is no other's.",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", a: x}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: x}}}`,
		},
		"OnlyLastApplied": {
			"No annotations and an empty map of them are the same.",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		},
		"NoMetadata": {
			"A manifest may be anything.",
			`{apiVersion: v1, kind: ConfigMap, metadata: none, status: {}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: none}`,
		},
		"Deployment": {
			"Revisions are counted by each cluster.",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "3", deployment.kubernetes.io/revision-history: "1,2", a: x}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {a: x}}}`,
		},
		"DeploymentOfOthers": {
			"A kind is one of a group.",
			`{apiVersion: example.io/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "3"}}}`,
			`{apiVersion: example.io/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: "3"}}}`,
		},
		"Job": {
			"A Job selects its pods by its UID, which differs by cluster; one that expired on a member would be run again.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 5, parallelism: 2,
			  selector: {matchLabels: {batch.kubernetes.io/controller-uid: u, controller-uid: u}},
			  template: {metadata: {labels: {app: x, controller-uid: u, job-name: a, batch.kubernetes.io/controller-uid: u, batch.kubernetes.io/job-name: a}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 2, template: {metadata: {labels: {app: x}}}}}`,
		},
		"LabelledJob": {
			"A Job without labels of its own has those of its pods, of which some are one cluster's.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {app: x, controller-uid: u, batch.kubernetes.io/job-name: a}}, spec: {}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {app: x}}, spec: {}}`,
		},
		"ManualJob": {
			"A selector that the user wrote is the user's.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 5, manualSelector: true,
			  selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {job-name: a}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {job-name: a}}}}}`,
		},
		"MalformedJob": {
			"What is malformed is for the server to refuse.",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: 3, selector: {matchLabels: [x]}, template: x}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: 3, selector: {matchLabels: [x]}, template: x}}`,
		},
		"Claim": {
			"A node is one of a cluster.",
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.kubernetes.io/selected-node: n}}, spec: {volumeName: v}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v}}`,
		},
		"Token": {
			"Each cluster issues its own tokens.",
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {kubernetes.io/service-account.name: s, kubernetes.io/service-account.uid: u}}, data: {token: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {kubernetes.io/service-account.name: s}}}`,
		},
		"Secret": {
			"Any other secret travels whole.",
			`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a, annotations: {kubernetes.io/service-account.uid: u}}, data: {k: eA==}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: a, annotations: {kubernetes.io/service-account.uid: u}}, data: {k: eA==}}`,
		},
		"Service": {
			"Each cluster allocates its own addresses.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30000}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, nodePort: 30000}]}}`,
		},
		"HeadlessService": {
			"To have no address is a wish.",
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"ServiceAccount": {
			"Tokens that a cluster made for it are named after it.",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x1}, {name: b-token-x1}, {name: mine}, odd]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: b-token-x1}, {name: mine}, odd]}`,
		},
		"ServiceAccountOnlyTokens": {
			"None and no list are the same.",
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a-token-x1}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.object)
			want := parse(t, tc.want).Object
			if diff := cmp.Diff(want, Relevant(object)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(parse(t, tc.object), object); diff != "" {
				t.Errorf("the object was changed (-want +got):\n%s", diff)
			}
			Prune(object)
			if diff := cmp.Diff(want, object.Object); diff != "" {
				t.Errorf("in place: %s\n(-want +got):\n%s", tc.reason, diff)
			}
			Prune(object)
			if diff := cmp.Diff(want, object.Object); diff != "" {
				t.Errorf("the second time changes something (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManifestIsPrunedByKind(t *testing.T) {
	job := parse(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 5, parallelism: 2}}`)
	m := Manifest(&workv1alpha1.Work{}, job)
	if diff := cmp.Diff(map[string]any{"parallelism": int64(2)}, m.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m.Object["spec"].(map[string]any)["parallelism"] = int64(3)
	if n, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism"); n != 2 {
		t.Error("the manifest shares what it is made of")
	}
}
