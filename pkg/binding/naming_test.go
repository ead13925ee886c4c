package binding

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// An indexes gives a fake client the indices that a cache would have.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(o, field, values)
	return nil
}

func indexed(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(workv1alpha1.AddToScheme(scheme), workv1alpha2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs)
	if err := Index(t.Context(), indexes{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// bound returns a binding of a template.
func bound(name string, ref workv1alpha2.ObjectReference, change ...func(Object)) client.Object {
	b := New(ref.Namespace)
	b.SetNamespace(ref.Namespace)
	b.SetName(name)
	b.BindingSpec().Resource = ref
	for _, f := range change {
		f(b)
	}
	return b
}

func deleting(b Object) {
	b.SetFinalizers([]string{"karmada.io/binding-controller"})
	b.SetDeletionTimestamp(ptr.To(metav1.Unix(1, 0)))
}

func TestNameFor(t *testing.T) {
	ref := func(apiVersion, kind, namespace, name, uid string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
	var (
		deployment = ref("apps/v1", "Deployment", "default", "nginx", "u1")
		foreign    = ref("example.com/v1", "Deployment", "default", "nginx", "u2")
		colon      = ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:foo", "u3")
		point      = ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system.foo", "u4")
		upper      = ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "Foo", "u5")
		lower      = ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "foo", "u6")
		invalid    = ref("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a_b", "u7")
	)
	anew := deployment
	anew.UID = "u1-anew"
	const besideDeployment, besideFoo = "nginx-deployment--74dddcbbd4", "foo-clusterrole--678bfc5f55"
	cases := map[string]struct {
		reason  string
		objects []client.Object
		ref     workv1alpha2.ObjectReference
		want    string
	}{
		"New":          {"The classic name.", nil, deployment, "nginx-deployment"},
		"Kept":         {"The binding that there is.", []client.Object{bound("nginx-deployment", deployment)}, deployment, "nginx-deployment"},
		"KeptStrange":  {"By whatever name it goes.", []client.Object{bound("x", deployment)}, deployment, "x"},
		"OtherVersion": {"A template is the same object in each version of its API.", []client.Object{bound("x", ref("apps/v1beta1", "Deployment", "default", "nginx", "u1"))}, deployment, "x"},
		"OtherGroup":   {"Kinds of two groups do not share a binding.", []client.Object{bound("nginx-deployment", foreign)}, deployment, besideDeployment},
		"Beside": {
			"What was put beside another stays there when the classic name is free at last.",
			[]client.Object{bound(besideDeployment, deployment)}, deployment, besideDeployment,
		},
		"Colon":          {"A colon becomes a point.", nil, colon, "system.foo-clusterrole"},
		"ColonAfter":     {"But is none.", []client.Object{bound("system.foo-clusterrole", point)}, colon, "system.foo-clusterrole--5c5bbb8894"},
		"Case":           {"Names are lowered.", nil, upper, "foo-clusterrole"},
		"CaseAfter":      {"But are not the same.", []client.Object{bound("foo-clusterrole", upper)}, lower, besideFoo},
		"Invalid":        {"What can be no name is not tried.", nil, invalid, "a-b-clusterrole--868f5bd9cc"},
		"OtherNamespace": {"A binding of another namespace has nothing to do with it.", []client.Object{bound("x", ref("apps/v1", "Deployment", "prod", "nginx", "u9"))}, deployment, "nginx-deployment"},
		"MadeAnew": {
			"The binding of a template that was deleted is in the way: its name is given, and the owner says that it must go first.",
			[]client.Object{bound("nginx-deployment", deployment)}, anew, "nginx-deployment",
		},
		"Two": {
			"Of two, the one of the template as it is counts.",
			[]client.Object{bound("nginx-deployment", deployment), bound("x", anew)}, anew, "x",
		},
		"TwoOneGoes":   {"Then the one that stays.", []client.Object{bound("nginx-deployment", deployment, deleting), bound("x", deployment)}, deployment, "x"},
		"TwoOfClassic": {"Then the classic one.", []client.Object{bound("a", deployment), bound("nginx-deployment", deployment)}, deployment, "nginx-deployment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NameFor(t.Context(), indexed(t, interceptor.Funcs{}, tc.objects...), tc.ref)
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q\n%s", got, err, tc.want, tc.reason)
			}
		})
	}
}

func TestNameForErrors(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		reason string
		funcs  interceptor.Funcs
	}{
		"List": {
			"That nobody can tell is no reason to give the classic name.",
			interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom }},
		},
		"Get": {
			"Nor to give another.",
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return boom
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NameFor(t.Context(), indexed(t, tc.funcs), workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "s"})
			if !errors.Is(err, boom) || got != "" {
				t.Errorf("got %q, %v\n%s", got, err, tc.reason)
			}
		})
	}
}
