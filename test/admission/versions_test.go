package admission

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/webhook/convert"
	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// TestOldVersion checks that an old client which reads, changes and writes a binding loses nothing of it, and that what
// it changes counts.
func TestOldVersion(t *testing.T) {
	const namespace = "versions"
	makeNamespace(t, namespace)
	web := fleetrig.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: versions, name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27.0", resources: {requests: {cpu: 10m}}}]}}}}`)
	created(t, fleetrig.Object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: versions, name: web}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}],
		placement: {clusterAffinity: {clusterNames: [member1]}, clusterTolerations: [{key: a, operator: Exists}], replicaScheduling: {replicaSchedulingType: Divided}}}}`))
	created(t, web)
	b := &unstructured.Unstructured{}
	b.SetAPIVersion("work.karmada.io/v1alpha2")
	b.SetKind("ResourceBinding")
	b.SetNamespace(namespace)
	b.SetName(names.Binding("Deployment", "web"))
	old := b.DeepCopy()
	old.SetAPIVersion("work.karmada.io/v1alpha1")
	shared.Control.Await(t, b, "it runs, and nothing more becomes of it", fleetrig.All(fleetrig.IsThere,
		has("Healthy", "status", "aggregatedStatus", "0", "health"), has(int64(2), "status", "aggregatedStatus", "0", "status", "availableReplicas"),
		func(u *unstructured.Unstructured) error {
			conditions, err := at(u.Object, "status", "conditions")
			if err != nil {
				return err
			}
			for _, c := range conditions.([]any) {
				if c := c.(map[string]any); c["type"] == "FullyApplied" && c["status"] == "True" {
					return nil
				}
			}
			return fmt.Errorf("its conditions are %v", conditions)
		}))
	// From here on nobody but this test writes its spec.
	shared.Control.Patch(t, b, `{"spec":{"suspension":{"scheduling":true}}}`)
	before := shared.Control.Await(t, b, "it is there", fleetrig.IsThere)

	r, err := shared.Control.Resource(old)
	if err != nil {
		t.Fatal(err)
	}
	// rewrite changes it as an old client does: it writes all that it has read.
	rewrite := func(change func(*unstructured.Unstructured) error) *unstructured.Unstructured {
		t.Helper()
		fleetrig.Eventually(t, "an old client changes the binding", func() error {
			read, err := r.Get(t.Context(), old.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if err := change(read); err != nil {
				t.Fatal(err)
			}
			_, err = r.Update(t.Context(), read, metav1.UpdateOptions{})
			return err
		})
		return shared.Control.Await(t, b, "it is there", fleetrig.IsThere)
	}

	after := rewrite(func(u *unstructured.Unstructured) error {
		labels := u.GetLabels()
		labels["old"] = "client"
		u.SetLabels(labels)
		return nil
	})
	if after.GetLabels()["old"] != "client" {
		t.Errorf("what the old client wrote is not there: %v", after.GetLabels())
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("it lost something of the spec (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object["status"], after.Object["status"]); diff != "" {
		t.Errorf("it lost something of the status (-before +after):\n%s", diff)
	}
	if text, ok := after.GetAnnotations()[convert.Annotation]; ok {
		t.Errorf("what travels is stored: %s", text)
	}

	after = rewrite(func(u *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": member, "replicas": int64(5)}}, "spec", "clusters")
	})
	want := before.DeepCopy()
	if err := unstructured.SetNestedSlice(want.Object, []any{map[string]any{"name": member, "replicas": int64(5)}}, "spec", "clusters"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("what the old client changed counts, and nothing else changes (-want +got):\n%s", diff)
	}
	list, err := r.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetAPIVersion() != old.GetAPIVersion() {
		t.Errorf("an old client lists %v, %v, want one binding", list, err)
	}
	shared.Control.Delete(t, web)
	shared.Control.Await(t, b, "it goes with its template", fleetrig.IsGone)
}
