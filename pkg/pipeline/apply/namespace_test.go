package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

var aNamespace = obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":{}}`)

// inside returns an object of the namespace a; its uid is its name.
func inside(version, kind, name string, change ...func(*metav1.ObjectMeta)) runtime.Object {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(kind + " " + name)},
	}
	for _, f := range change {
		f(&o.ObjectMeta)
	}
	return o
}

func ownedBy(version, kind, name string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(kind + " " + name)})
	}
}

func annotated(key, value string) func(*metav1.ObjectMeta) {
	return func(o *metav1.ObjectMeta) { o.Annotations = map[string]string{key: value} }
}

func managed(o *metav1.ObjectMeta) { o.Labels = map[string]string{"karmada.io/managed": "true"} }

func TestNamespaceOnWithdrawal(t *testing.T) {
	everywhere := []runtime.Object{
		inside("v1", "ServiceAccount", "default"), inside("v1", "ConfigMap", "kube-root-ca.crt"),
		inside("v1", "Secret", "default-token-x", annotated("kubernetes.io/service-account.name", "default")),
		inside("v1", "Event", "e"), inside("v1", "Endpoints", "s"), inside("coordination.k8s.io/v1", "Lease", "leader"),
	}
	and := func(objects ...runtime.Object) []runtime.Object { return append(slices.Clone(everywhere), objects...) }
	const keptFor = "Work: Warning NamespaceKept: Namespace a was not deleted from cluster m1 but released, as "
	const then = ". Delete it there if it is not needed any more."

	cases := map[string]struct {
		reason    string
		cluster   *clusterv1alpha1.Cluster
		namespace *unstructured.Unstructured // as it is on the member
		inside    []runtime.Object
		notListed error
		kept      bool
		event     string
	}{
		"Empty": {reason: "What every namespace has is nothing.", namespace: ours(aNamespace), inside: everywhere},
		"Ours":  {reason: "What we put there may go with it.", namespace: ours(aNamespace), inside: and(inside("v1", "ConfigMap", "c", managed))},
		"OurPod": {
			reason: "So may what that made.", namespace: ours(aNamespace),
			inside: and(inside("apps/v1", "ReplicaSet", "r", managed), inside("v1", "Pod", "p", ownedBy("apps/v1", "ReplicaSet", "r"))),
		},
		"OurToken": {
			reason: "Also where that is told otherwise.", namespace: ours(aNamespace),
			inside: and(inside("v1", "ServiceAccount", "s", managed), inside("v1", "Secret", "s-token", annotated("kubernetes.io/service-account.uid", "ServiceAccount s"))),
		},
		"OwnerGone": {
			reason: "A pod whose owner was deleted just before is about to be collected.", namespace: ours(aNamespace),
			inside: and(inside("v1", "Pod", "p", ownedBy("apps/v1", "ReplicaSet", "r"))),
		},
		"Going": {
			reason: "What is being deleted need not be saved.", namespace: ours(aNamespace),
			inside: and(inside("v1", "Pod", "p", func(o *metav1.ObjectMeta) {
				o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: metav1.Unix(1, 0).Time}, []string{"f"}
			})),
		},
		"Theirs": {
			reason: "What somebody else put there must not be lost.", namespace: ours(aNamespace),
			inside: and(inside("v1", "ConfigMap", "c", managed), inside("v1", "Secret", "precious")),
			kept:   true, event: keptFor + "it holds what was not propagated to it: Secret/precious" + then,
		},
		"Many": {
			reason: "Three names are enough to find the rest.", namespace: ours(aNamespace),
			inside: and(inside("v1", "Secret", "d"), inside("v1", "Secret", "c"), inside("v1", "Secret", "b"), inside("v1", "Secret", "a")),
			kept:   true, event: keptFor + "it holds 4 objects that were not propagated to it, such as Secret/a, Secret/b, Secret/c" + then,
		},
		"TheirPod": {
			reason: "What belongs to theirs is theirs.", namespace: ours(aNamespace),
			inside: and(inside("apps/v1", "ReplicaSet", "r"), inside("v1", "Pod", "p", ownedBy("apps/v1", "ReplicaSet", "r"))),
			kept:   true, event: keptFor + "it holds what was not propagated to it: Pod/p, ReplicaSet/r" + then,
		},
		"SharedPod": {
			reason: "An object of two owners stays with the one that stays.", namespace: ours(aNamespace),
			inside: and(inside("v1", "ConfigMap", "c", managed), inside("v1", "ConfigMap", "t"), inside("v1", "Pod", "p", ownedBy("v1", "ConfigMap", "c"), ownedBy("v1", "ConfigMap", "t"))),
			kept:   true, event: keptFor + "it holds what was not propagated to it: ConfigMap/t, Pod/p" + then,
		},
		"OwnerElsewhere": {
			reason: "An owner that is in no namespace may well be alive.", namespace: ours(aNamespace),
			inside: and(inside("v1", "Pod", "p", ownedBy("v1", "Node", "n"))),
			kept:   true, event: keptFor + "it holds what was not propagated to it: Pod/p" + then,
		},
		"Circle": {
			reason: "Owners in a circle are nobody's, and must not hold us up.", namespace: ours(aNamespace),
			inside: and(inside("v1", "Pod", "p", ownedBy("v1", "Pod", "q")), inside("v1", "Pod", "q", ownedBy("v1", "Pod", "p"))),
			kept:   true, event: keptFor + "it holds what was not propagated to it: Pod/p, Pod/q" + then,
		},
		"AnotherControlPlane": {
			reason: "The mark is everybody's; that of a Work for another cluster is not ours.", namespace: ours(aNamespace),
			inside: and(inside("v1", "ConfigMap", "c", managed, annotated("work.karmada.io/namespace", "karmada-es-other"))),
			kept:   true, event: keptFor + "it holds what was not propagated to it: ConfigMap/c" + then,
		},
		"NotListed": {
			reason: "Not to be told is not to know.", namespace: ours(aNamespace), inside: everywhere,
			notListed: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errBoom),
			kept:      true, event: keptFor + "what is in it could not be found out: list secrets in namespace a: secrets is forbidden: boom" + then,
		},
		"KindGone": {
			reason: "A kind that has gone since has no objects.", namespace: ours(aNamespace), inside: everywhere,
			notListed: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, ""),
		},
		"Leaving": {
			reason: "A cluster that leaves is treated no worse.", cluster: aCluster(leaving), namespace: ours(aNamespace),
			inside: and(inside("v1", "Secret", "precious")),
			kept:   true, event: keptFor + "it holds what was not propagated to it: Secret/precious" + then,
		},
		"Adopted": {
			reason: "What was there before us stays, empty or not.", namespace: with(ours(aNamespace), "annotations", "work.karmadactl.io/adopted", "true"),
			inside: everywhere, kept: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t, tc.namespace)
			m.inside, m.notListed = tc.inside, tc.notListed
			if tc.cluster == nil {
				tc.cluster = aCluster()
			}
			w := newWorld(t, m, tc.cluster, aWork(t, []*unstructured.Unstructured{aNamespace}, deleted))
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if w.work(t) != nil {
				t.Error("the Work must go in any case")
			}
			var events []string
			if tc.event != "" {
				events = []string{tc.event}
			}
			if diff := cmp.Diff(events, w.events.take()); diff != "" {
				t.Errorf("%s\nevents (-want +got):\n%s", tc.reason, diff)
			}
			got := m.get(t, aNamespace)
			if !tc.kept {
				if got != nil {
					t.Errorf("%s\nbut it is still there", tc.reason)
				}
				return
			}
			if got == nil {
				t.Fatalf("%s\nbut it is gone", tc.reason)
			}
			if diff := cmp.Diff(binding.Relevant(aNamespace), binding.Relevant(got)); diff != "" {
				t.Errorf("what is released has no mark (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamespaceTakenOver(t *testing.T) {
	const adopted = "work.karmadactl.io/adopted"
	overwrite := with(aNamespace, "annotations", "work.karmada.io/conflict-resolution", "overwrite")
	m := newFakeMember(t, with(aNamespace, "labels", "theirs", "1"))
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{overwrite}))
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if got := m.get(t, aNamespace); !isManaged(got) || got.GetAnnotations()[adopted] != "true" {
		t.Fatalf("what was there before is noted when it is taken over: %v", got)
	}

	changed := aWork(t, []*unstructured.Unstructured{with(overwrite, "labels", "new", "1")})
	current := w.work(t)
	current.Spec, current.Generation = changed.Spec, 2
	if err := w.control.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if got := m.get(t, aNamespace); got.GetLabels()["new"] != "1" || got.GetAnnotations()[adopted] != "true" {
		t.Fatalf("later updates keep the note: %v", got)
	}

	if err := w.control.Delete(t.Context(), w.work(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	got := m.get(t, aNamespace)
	if got == nil || isManaged(got) || got.GetLabels()["theirs"] != "1" || got.GetAnnotations()[adopted] != "" {
		t.Errorf("it stays, and is theirs again: %v", got)
	}
	if calls := m.take(); slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, "delete") }) {
		t.Errorf("requests %q", calls)
	}
}

func TestOnlyNamespacesAreNoted(t *testing.T) {
	there := binding.Manifest(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "earlier"}}, aNamespace)
	cases := map[string]struct {
		reason          string
		there, manifest *unstructured.Unstructured
	}{
		"Others":   {"Anything else is deleted as it is in Karmada.", config("theirs"), with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")},
		"Created":  {"What we make was not there before.", config("other"), aNamespace},
		"FromOurs": {"What comes from another Work is ours already.", there, aNamespace},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t, tc.there)
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{tc.manifest}))
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := m.get(t, tc.manifest); !isManaged(got) || got.GetAnnotations()["work.karmadactl.io/adopted"] != "" {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
}

func TestInventoryReadsAllPages(t *testing.T) {
	pages := map[string]*metav1.PartialObjectMetadataList{
		"":     {ListMeta: metav1.ListMeta{Continue: "more"}, Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "first", UID: "1"}}}},
		"more": {Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "last", UID: "2"}}}},
	}
	all := inventory{objects: map[types.UID]item{}}
	if err := all.add(t.Context(), &paged{pages: pages}, "Secret"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Secret/first", "Secret/last"}, all.others("karmada-es-m1")); diff != "" {
		t.Errorf("the last object may be the one that matters (-want +got):\n%s", diff)
	}
}

type paged struct {
	metadata.ResourceInterface
	pages map[string]*metav1.PartialObjectMetadataList
}

func (p *paged) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if o.Limit == 0 {
		return nil, errors.New("a list without limit")
	}
	return p.pages[o.Continue], nil
}
