package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDefinitionOnWithdrawal(t *testing.T) {
	definition := obj(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.io"},
		"spec":{"group":"example.io","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1alpha1","served":false},{"name":"v1","served":true}]}}`)
	unserved := obj(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.io"},
		"spec":{"group":"example.io","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":false}]}}`)
	const keptFor = "Work: Warning CustomResourceDefinitionKept: CustomResourceDefinition widgets.example.io was not deleted from cluster m1 but released, as "
	const then = ". Delete it there if it is not needed any more."

	cases := map[string]struct {
		reason     string
		definition *unstructured.Unstructured
		objects    []runtime.Object
		notListed  error
		event      string // it is kept if there is one
	}{
		"None": {reason: "A kind without objects takes nothing along.", definition: definition},
		"Ours": {reason: "What we put there goes with its kind.", definition: definition, objects: []runtime.Object{inside("example.io/v1", "Widget", "w", managed)}},
		"Theirs": {
			reason: "What somebody else made must not be lost.", definition: definition,
			objects: []runtime.Object{inside("example.io/v1", "Widget", "w", managed), inside("example.io/v1", "Widget", "mine")},
			event:   keptFor + "there are objects of its kind that were not propagated, such as a/mine" + then,
		},
		"NotListed": {
			reason: "Not to be told is not to know.", definition: definition,
			notListed: apierrors.NewForbidden(schema.GroupResource{Group: "example.io", Resource: "widgets"}, "", errBoom),
			event:     keptFor + "it could not be found out whether there are objects of its kind: list widgets.example.io: widgets.example.io is forbidden: boom" + then,
		},
		"Gone": {
			reason: "A kind that has gone since has no objects.", definition: definition,
			notListed: apierrors.NewNotFound(schema.GroupResource{Group: "example.io", Resource: "widgets"}, ""),
		},
		"Unserved": {reason: "Nobody can use what is not served.", definition: unserved},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t, ours(tc.definition))
			m.inside, m.notListed = tc.objects, tc.notListed
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{tc.definition}, deleted))
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			var events []string
			if tc.event != "" {
				events = []string{tc.event}
			}
			if diff := cmp.Diff(events, w.events.take()); diff != "" {
				t.Errorf("%s\nevents (-want +got):\n%s", tc.reason, diff)
			}
			got := m.get(t, tc.definition)
			if (got != nil) != (tc.event != "") {
				t.Fatalf("%s\nbut the definition is %v", tc.reason, got)
			}
			if got != nil && len(got.GetLabels())+len(got.GetAnnotations()) > 0 {
				t.Errorf("what is released has no mark, but %v, %v", got.GetLabels(), got.GetAnnotations())
			}
		})
	}
}
