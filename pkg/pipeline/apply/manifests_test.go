package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelevant(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Always": {
			reason: "What an API server and controllers write says nothing about what is wanted.",
			in: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"},
				"creationTimestamp":null,"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"generation":1,
				"managedFields":[],"resourceVersion":"1","selfLink":"/","uid":"u","ownerReferences":[],"finalizers":["f"]},
				"data":{"k":"v"},"status":{"x":1}}`,
			want: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}},"data":{"k":"v"}}`,
		},
		"Deployment": {
			reason: "The member counts revisions for itself.",
			in: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"deployment.kubernetes.io/revision":"1",
				"deployment.kubernetes.io/revision-history":"1","mine":"1"}}}`,
			want: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"mine":"1"}}}`,
		},
		"DeploymentOfAnotherGroup": {
			reason: "A kind is its group, too.",
			in:     `{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"deployment.kubernetes.io/revision":"1"}}}`,
			want:   `{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"deployment.kubernetes.io/revision":"1"}}}`,
		},
		"Job": {
			reason: "Each member makes its own selector.",
			in: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"ttlSecondsAfterFinished":1,
				"selector":{"matchLabels":{"controller-uid":"u","batch.kubernetes.io/controller-uid":"u","mine":"1"}},
				"template":{"metadata":{"labels":{"controller-uid":"u","job-name":"a","batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","mine":"1"}}}}}`,
			want: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"mine":"1"}},
				"template":{"metadata":{"labels":{"mine":"1"}}}}}`,
		},
		"JobManualSelector": {
			reason: "A selector that the user wrote is wanted.",
			in: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"manualSelector":true,
				"selector":{"matchLabels":{"controller-uid":"u"}}}}`,
			want: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"manualSelector":true,
				"selector":{"matchLabels":{"controller-uid":"u"}}}}`,
		},
		"Secret": {
			reason: "The user's data is wanted.",
			in:     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"type":"Opaque","data":{"k":"dg=="}}`,
			want:   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"type":"Opaque","data":{"k":"dg=="}}`,
		},
		"TokenSecret": {
			reason: "A token is of one cluster.",
			in: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"kubernetes.io/service-account.uid":"u",
				"kubernetes.io/service-account.name":"s"}},"type":"kubernetes.io/service-account-token","data":{"token":"dg=="}}`,
			want: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"kubernetes.io/service-account.name":"s"}},"type":"kubernetes.io/service-account-token"}`,
		},
		"ServiceAccount": {
			reason: "Its token is, too.",
			in:     `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"a-token-x"},{"name":"mine"}]}`,
			want:   `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"mine"}]}`,
		},
		"Service": {
			reason: "Addresses are of one cluster.",
			in:     `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"type":"ClusterIP"}}`,
			want:   `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"type":"ClusterIP"}}`,
		},
		"HeadlessService": {
			reason: "To have none is wanted.",
			in:     `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`,
			want:   `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"None","clusterIPs":["None"]}}`,
		},
		"PersistentVolumeClaim": {
			reason: "Nodes are of one cluster.",
			in:     `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{"volume.kubernetes.io/selected-node":"n"}}}`,
			want:   `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := obj(tc.in)
			if diff := cmp.Diff(obj(tc.want).Object, relevant(in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(obj(tc.in).Object, in.Object); diff != "" {
				t.Errorf("what is cached must not be changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	cases := map[string]struct {
		reason            string
		observed, desired string
		want              bool
	}{
		"Same":             {"It is there.", `{"a":1}`, `{"a":1}`, true},
		"Default":          {"The API server filled in b.", `{"a":1,"b":2}`, `{"a":1}`, true},
		"DefaultInList":    {"Also within entries.", `{"l":[{"a":1,"b":2}]}`, `{"l":[{"a":1}]}`, true},
		"Missing":          {"a was removed.", `{}`, `{"a":1}`, false},
		"Changed":          {"a was changed.", `{"a":2}`, `{"a":1}`, false},
		"ListLonger":       {"Arguments are one value.", `{"l":["a","b"]}`, `{"l":["a"]}`, false},
		"ListShorter":      {"As well.", `{"l":["a"]}`, `{"l":["a","b"]}`, false},
		"ListOtherOrder":   {"As well.", `{"l":["b","a"]}`, `{"l":["a","b"]}`, false},
		"NullIsAbsent":     {"null asks for nothing.", `{}`, `{"a":null}`, true},
		"NullIsNotZero":    {"but not for something.", `{"a":1}`, `{"a":null}`, false},
		"EmptyIsAbsent":    {"API servers drop what is empty.", `{}`, `{"a":{},"l":[],"n":{"m":{}}}`, true},
		"NotEmptyIsThere":  {"and nothing else.", `{}`, `{"n":{"m":{"a":0}}}`, false},
		"AnotherType":      {"1 is not a map.", `{"a":1}`, `{"a":{"b":1}}`, false},
		"AnotherTypeEmpty": {"Nor an empty one.", `{"a":1}`, `{"a":{}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wrap := func(s string) any { return obj(`{"apiVersion":"v1","kind":"X","spec":` + s + `}`).Object["spec"] }
			if got := holds(wrap(tc.observed), wrap(tc.desired)); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestCarryOver(t *testing.T) {
	cases := map[string]struct{ reason, desired, observed, want string }{
		"Member": {
			reason:   "Identity, finalizers, owners and status are the member's.",
			desired:  `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","finalizers":["mine"]},"status":{"x":1}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","resourceVersion":"7","uid":"u","finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"u"}]},"status":{"x":2}}`,
			want:     `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","resourceVersion":"7","uid":"u","finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Y","name":"y","uid":"u"}]},"status":{"x":2}}`,
		},
		"Keys": {
			reason: "What others added stays, what was ours and is gone goes, what is ours has our value.",
			desired: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"new"},
				"annotations":{"ours":"new"}}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"old","gone":"1","theirs":"1"},
				"annotations":{"ours":"old","gone":"1","theirs":"1",
				"resourcetemplate.karmada.io/managed-labels":"gone,ours","resourcetemplate.karmada.io/managed-annotations":"gone,ours,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels"}}}`,
			want: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"ours":"new","theirs":"1"},
				"annotations":{"ours":"new","theirs":"1"}}}`,
		},
		"KeysWithoutBookkeeping": {
			reason:   "Where nobody knows what was ours, everything stays.",
			desired:  `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`,
			observed: `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}}}`,
			want:     `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"l":"1"},"annotations":{"a":"1"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, observed := obj(tc.desired), obj(tc.observed)
			carryOver(desired, observed)
			if diff := cmp.Diff(obj(tc.want).Object, desired.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(obj(tc.observed).Object, observed.Object); diff != "" {
				t.Errorf("what is cached must not be changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRetainAllocated(t *testing.T) {
	cases := map[string]struct {
		reason                  string
		desired, observed, want string
		wantErr                 bool
	}{
		"Deployment": {
			reason:   "Replicas are ours,",
			desired:  `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1}}`,
			observed: `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`,
			want:     `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1}}`,
		},
		"DeploymentOfAutoscaler": {
			reason:   "unless an autoscaler of the member decides.",
			desired:  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"resourcetemplate.karmada.io/retain-replicas":"true"}},"spec":{"replicas":1}}`,
			observed: `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`,
			want:     `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"resourcetemplate.karmada.io/retain-replicas":"true"}},"spec":{"replicas":5}}`,
		},
		"DeploymentWithoutReplicas": {
			reason:   "Not to know is an error, not 1.",
			desired:  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"resourcetemplate.karmada.io/retain-replicas":"true"}},"spec":{"replicas":1}}`,
			observed: `{"apiVersion":"apps/v1","kind":"Deployment","spec":{}}`,
			wantErr:  true,
		},
		"Pod": {
			reason: "A Pod cannot move, and has the mounts of its token.",
			desired: `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","image":"new"},{"name":"b","volumeMounts":[{"name":"m"}]}],
				"initContainers":[{"name":"i"}]}}`,
			observed: `{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n","serviceAccountName":"s","volumes":[{"name":"t"}],
				"containers":[{"name":"b"},{"name":"a","image":"old","volumeMounts":[{"name":"t"}]}],"initContainers":[{"name":"i","volumeMounts":[{"name":"t"}]}]}}`,
			want: `{"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n","serviceAccountName":"s","volumes":[{"name":"t"}],
				"containers":[{"name":"a","image":"new","volumeMounts":[{"name":"t"}]},{"name":"b","volumeMounts":[{"name":"m"}]}],
				"initContainers":[{"name":"i","volumeMounts":[{"name":"t"}]}]}}`,
		},
		"Service": {
			reason:   "Addresses and ports that the member gave out stay.",
			desired:  `{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer"}}`,
			observed: `{"apiVersion":"v1","kind":"Service","spec":{"clusterIP":"10.0.0.1","healthCheckNodePort":30000}}`,
			want:     `{"apiVersion":"v1","kind":"Service","spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","healthCheckNodePort":30000}}`,
		},
		"ServiceWithoutAddress": {
			reason:   "What is not there is not made up.",
			desired:  `{"apiVersion":"v1","kind":"Service","spec":{}}`,
			observed: `{"apiVersion":"v1","kind":"Service","spec":{"clusterIP":"","healthCheckNodePort":0}}`,
			want:     `{"apiVersion":"v1","kind":"Service","spec":{}}`,
		},
		"ServiceAccount": {
			reason:   "Tokens of the member stay beside what is wanted.",
			desired:  `{"apiVersion":"v1","kind":"ServiceAccount","secrets":[{"name":"mine"}]}`,
			observed: `{"apiVersion":"v1","kind":"ServiceAccount","secrets":[{"name":"theirs"},{"name":"mine","x":"1"}],"imagePullSecrets":[{"name":"pull"}]}`,
			want:     `{"apiVersion":"v1","kind":"ServiceAccount","secrets":[{"name":"mine"},{"name":"theirs"}],"imagePullSecrets":[{"name":"pull"}]}`,
		},
		"PersistentVolumeClaim": {
			reason:   "It is bound.",
			desired:  `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{}}`,
			observed: `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"v"}}`,
			want:     `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeName":"v"}}`,
		},
		"PersistentVolume": {
			reason:   "So is this.",
			desired:  `{"apiVersion":"v1","kind":"PersistentVolume","spec":{}}`,
			observed: `{"apiVersion":"v1","kind":"PersistentVolume","spec":{"claimRef":{"name":"c"}}}`,
			want:     `{"apiVersion":"v1","kind":"PersistentVolume","spec":{"claimRef":{"name":"c"}}}`,
		},
		"Job": {
			reason:   "A Job's selector cannot change.",
			desired:  `{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{"x":1}}}}`,
			observed: `{"apiVersion":"batch/v1","kind":"Job","spec":{"selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{"labels":{"a":"1"}}}}}`,
			want:     `{"apiVersion":"batch/v1","kind":"Job","spec":{"selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{"labels":{"a":"1"}},"spec":{"x":1}}}}`,
		},
		"TokenSecret": {
			reason:   "The token was made by the member.",
			desired:  `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token"}`,
			observed: `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","data":{"token":"dg=="}}`,
			want:     `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","data":{"token":"dg=="}}`,
		},
		"Secret": {
			reason:   "Other data is ours.",
			desired:  `{"apiVersion":"v1","kind":"Secret","data":{}}`,
			observed: `{"apiVersion":"v1","kind":"Secret","data":{"k":"dg=="}}`,
			want:     `{"apiVersion":"v1","kind":"Secret","data":{}}`,
		},
		"AnotherKind": {
			reason:   "Nobody knows what it means.",
			desired:  `{"apiVersion":"example.com/v1","kind":"Service","spec":{}}`,
			observed: `{"apiVersion":"example.com/v1","kind":"Service","spec":{"clusterIP":"10.0.0.1"}}`,
			want:     `{"apiVersion":"example.com/v1","kind":"Service","spec":{}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := obj(tc.observed)
			got, err := RetainAllocated(obj(tc.desired), observed)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s\ngot %v", tc.reason, err)
			}
			if diff := cmp.Diff(obj(tc.observed).Object, observed.Object); diff != "" {
				t.Errorf("what is cached must not be changed (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(obj(tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
