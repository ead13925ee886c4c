package promotion

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmadactl/karmadactl/pkg/interpreter"
)

func TestReadAll(t *testing.T) {
	named := func(text, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		return object(t, text, append([]func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { u.SetName(name) }}, change...)...)
	}
	owned := func(u *unstructured.Unstructured) {
		yes := true
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "App", Name: "shop", UID: "x", Controller: &yes}})
	}
	labelled := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{key: value}) }
	}
	annotated := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{key: value}) }
	}
	secret := strings.NewReplacer("ConfigMap", "Secret", "a: b", "a: YQ==").Replace(settings)
	member := []*unstructured.Unstructured{
		object(t, web), object(t, service), object(t, settings), object(t, account), named(secret, "s"),
		named(web, "of-app", owned), named(settings, "kube-root-ca.crt"), named(account, "default"),
		named(secret, "web-token-abcde", annotated("kubernetes.io/service-account.name", "web")),
		named(account, "karmada-m1", labelled("karmada.io/system", "true")),
		object(t, role), named(role, "system:node"), named(role, "admin", labelled("kubernetes.io/bootstrapping", "rbac-defaults")),
	}
	verbs := metav1.Verbs{"create", "delete", "list", "watch", "update"}
	lists := []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Namespaced: true, Kind: "Deployment", Verbs: verbs}, {Name: "deployments/scale", Namespaced: true, Kind: "Scale", Verbs: verbs}}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "services", Namespaced: true, Kind: "Service", Verbs: verbs}, {Name: "configmaps", Namespaced: true, Kind: "ConfigMap", Verbs: verbs},
			{Name: "secrets", Namespaced: true, Kind: "Secret", Verbs: verbs}, {Name: "serviceaccounts", Namespaced: true, Kind: "ServiceAccount", Verbs: verbs},
			{Name: "events", Namespaced: true, Kind: "Event", Verbs: verbs}, {Name: "bindings", Namespaced: true, Kind: "Binding", Verbs: metav1.Verbs{"create"}},
		}},
	}
	partly := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1"}: errBoom}}
	tests := map[string]struct {
		reason  string
		request func(*Request)
		having  string
		kindErr error
		plans   []string
		notes   []string
		err     string
	}{
		"Namespace": {
			reason: "Everything in it but what the cluster or a controller makes, what is referred to first.",
			plans:  []string{"ServiceAccount shop/web", "ConfigMap shop/settings", "Secret shop/s", "Service shop/web", "Deployment shop/web"},
			notes: []string{
				"left out, as each belongs to another object, which makes it: Deployment shop/of-app",
				"left out, as each is made by the cluster itself: ConfigMap shop/kube-root-ca.crt, Secret shop/web-token-abcde, ServiceAccount shop/default",
				"left out, as each is part of what connects the cluster to its control plane: ServiceAccount shop/karmada-m1",
			},
		},
		"Labels": {reason: "Of all kinds.", having: "app=web", plans: []string{"Deployment shop/web"}, notes: []string{"Deployment shop/of-app"}},
		"Types": {
			reason: "Only those that are named, each once.", request: func(r *Request) { r.Type = "services,deployments.apps,Service" },
			plans: []string{"Service shop/web", "Deployment shop/web"}, notes: []string{"left out, as each belongs to another object"},
		},
		"ClusterScope": {
			reason: "What every cluster has is left out.", request: func(r *Request) { r.Type = "clusterroles" },
			plans: []string{"ClusterRole viewer"}, notes: []string{"left out, as each is made by the cluster itself: ClusterRole admin, ClusterRole system:node"},
		},
		"Dependencies": {
			reason: "What is promoted itself is no dependency of another.", having: "", request: func(r *Request) { r.Type, r.Dependencies = "deployments,configmaps", true },
			plans: []string{"ConfigMap shop/settings", "Deployment shop/web with [ServiceAccount shop/web]"},
			notes: []string{"Secret shop/gone", "left out", "left out"},
		},
		"Partly": {
			reason: "A kind that cannot be found out about is said to be missed.", having: "app=web", kindErr: partly, plans: []string{"Deployment shop/web"},
			notes: []string{"cluster m1 does not tell of all that it has, so that some may be missed", "Deployment shop/of-app"},
		},
		"NoKinds":  {reason: "Nothing is known.", kindErr: errBoom, err: "find out what kinds of objects cluster m1 has: boom"},
		"Unknown":  {reason: "A kind that the member does not have is a mistake.", request: func(r *Request) { r.Type = "services,gizmos" }, err: `find out what "gizmos" is in cluster m1`},
		"Exempt":   {reason: "What never travels is refused.", request: func(r *Request) { r.Type = "events" }, err: "are never propagated"},
		"Reserved": {reason: "The namespaces of the control plane are its own.", request: func(r *Request) { r.Namespace = "karmada-system" }, err: "belongs to the control plane's own machinery"},
		"Empty":    {reason: "Nothing there is nothing.", request: func(r *Request) { r.Namespace = "bank" }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, nil, member...)
			var notes []string
			p := &Promoter{
				Member: s, Interpreter: interpreter.New(interpreter.Options{}), Note: func(s string) { notes = append(notes, s) },
				Kinds: func(context.Context) ([]*metav1.APIResourceList, error) {
					if tc.kindErr != nil && !errors.Is(tc.kindErr, partly) {
						return nil, tc.kindErr
					}
					return lists, tc.kindErr
				},
			}
			r := Request{Cluster: "m1", Namespace: "shop", Policy: true}
			if tc.request != nil {
				tc.request(&r)
			}
			having, err := labels.Parse(tc.having)
			if err != nil {
				t.Fatal(err)
			}
			plans, err := p.ReadAll(t.Context(), r, having)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s\nerror %v, want one with %q", tc.reason, err, tc.err)
			}
			var got []string
			for _, plan := range plans {
				text := plan.Template.String()
				if len(plan.Dependencies) > 0 {
					var along []string
					for _, d := range plan.Dependencies {
						along = append(along, d.String())
					}
					text += " with [" + strings.Join(along, ", ") + "]"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.plans, got); diff != "" {
				t.Errorf("%s\nplans (-want +got):\n%s", tc.reason, diff)
			}
			if len(notes) != len(tc.notes) {
				t.Fatalf("%s\nnotes %q, want %d", tc.reason, notes, len(tc.notes))
			}
			for i, n := range tc.notes {
				if !strings.Contains(notes[i], n) {
					t.Errorf("%s\nnote %q, want one with %q", tc.reason, notes[i], n)
				}
			}
		})
	}
}

// TestShared promotes two Deployments that refer to the same ConfigMap.
func TestShared(t *testing.T) {
	other := object(t, web, func(u *unstructured.Unstructured) { u.SetName("other") })
	member, control := newSide(t, nil, object(t, web), other, object(t, settings), object(t, account)), newSide(t, nil, object(t, namespace))
	p := &Promoter{Member: member, ControlPlane: control, Interpreter: interpreter.New(interpreter.Options{}), Note: func(string) {}}
	plans, err := p.ReadAll(t.Context(), Request{Cluster: "m1", Type: "deployments", Namespace: "shop", Policy: true, Dependencies: true}, labels.Everything())
	if err != nil || len(plans) != 2 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	for _, plan := range plans {
		if err := p.Check(t.Context(), plan); err != nil {
			t.Fatal(err)
		}
	}
	var made []string
	for _, plan := range plans {
		if err := p.Make(t.Context(), plan, func(o client.Object) { made = append(made, o.GetObjectKind().GroupVersionKind().Kind) }); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"ServiceAccount", "ConfigMap", "Deployment", "PropagationPolicy", "Deployment", "PropagationPolicy"}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("what both refer to is made once (-want +got):\n%s", diff)
	}
}

// TestNoDefinition promotes a custom resource that the control plane cannot have.
func TestNoDefinition(t *testing.T) {
	gadget := object(t, "{apiVersion: example.com/v1, kind: Gadget, metadata: {namespace: shop, name: one}, spec: {size: 1}}")
	definition := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}}")
	tests := map[string]struct {
		reason string
		member []*unstructured.Unstructured
		want   string
	}{
		"Defined": {
			reason: "Its definition can be brought there.", member: []*unstructured.Unstructured{gadget, definition},
			want: `the control plane does not serve Gadget (example.com/v1), so that it cannot have Gadget shop/one: bring its CustomResourceDefinition there first, with "karmadactl promote crd gadgets.example.com -C m1"`,
		},
		"BuiltIn": {
			reason: "What an API server has by itself another one may not have.", member: []*unstructured.Unstructured{gadget},
			want: "cluster m1 does not have it by a CustomResourceDefinition either",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			member, control := newSide(t, nil, tc.member...), newSide(t, nil, object(t, namespace))
			know(t, member, "example.com", "Gadget", meta.RESTScopeNamespace)
			know(t, member, "apiextensions.k8s.io", "CustomResourceDefinition", meta.RESTScopeRoot)
			r := usual()
			r.Type, r.Name = "gadgets", "one"
			if _, _, made, err := promoted(member, control, r); err == nil || !strings.Contains(err.Error(), tc.want) || len(made) > 0 {
				t.Errorf("%s\nmade %q, error %v\nwant %s", tc.reason, made, err, tc.want)
			}
			know(t, control, "example.com", "Gadget", meta.RESTScopeNamespace)
			if _, _, made, err := promoted(member, control, r); err != nil || len(made) != 2 {
				t.Errorf("with its definition: made %q, %v", made, err)
			}
		})
	}
}
