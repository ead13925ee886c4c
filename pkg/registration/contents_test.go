package registration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestContents(t *testing.T) {
	verbs := metav1.Verbs{"list", "delete"}
	kinds := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
			{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: verbs},
			{Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true, Verbs: verbs},
			{Name: "events", Kind: "Event", Namespaced: true, Verbs: verbs},
			{Name: "namespaces", Kind: "Namespace", Verbs: verbs},
		}},
		{GroupVersion: "metrics.k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}},
	}
	object := func(kind, name string, annotations map[string]string) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: annotations},
		}
	}
	everywhere := []runtime.Object{
		object("ServiceAccount", "default", nil), object("ConfigMap", "kube-root-ca.crt", nil),
		object("Secret", "default-token-x", map[string]string{"kubernetes.io/service-account.name": "default"}),
		object("Event", "e", nil),
	}
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		fail    error
		want    []string
		err     string
	}{
		"Empty":     {reason: "What every namespace has is nothing.", objects: everywhere},
		"Mine":      {reason: "Anything else is something.", objects: append(everywhere, object("ConfigMap", "mine", nil), object("Secret", "karmada-m", nil)), want: []string{"ConfigMap/mine", "Secret/karmada-m"}},
		"Forbidden": {reason: "Not to be told is not to know.", objects: everywhere, fail: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errBoom), err: "list secrets in namespace karmada-cluster"},
		"NotServed": {reason: "A kind that has gone since has no objects.", objects: everywhere, fail: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: kinds}}
			scheme := fakemetadata.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			m := fakemetadata.NewSimpleMetadataClient(scheme, tc.objects...)
			if tc.fail != nil {
				m.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fail })
			}
			got, err := contentsOf(d, m)(t.Context(), ns)
			check(t, tc.reason, err, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("CannotTell", func(t *testing.T) {
		bad := []*metav1.APIResourceList{{GroupVersion: "a/b/c", APIResources: kinds[0].APIResources}}
		d := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: bad}}
		got, err := contentsOf(d, fakemetadata.NewSimpleMetadataClient(fakemetadata.NewTestScheme()))(t.Context(), ns)
		if err == nil {
			t.Errorf("got %v: what cannot be found out is an error", got)
		}
	})
}
