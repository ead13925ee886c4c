package admission

import (
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/karmadactl/karmadactl/test/fleetrig"
)

// A listener notes what a client is warned about.
type listener struct {
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (l *listener) HandleWarningHeader(_ int, _, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.warnings = append(l.warnings, text)
}

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.warnings
	l.warnings = nil
	return heard
}

// TestWarnings checks that a policy which selects what is not there is accepted with a warning, and goes again.
func TestWarnings(t *testing.T) {
	makeNamespace(t, "warnings")
	l := &listener{}
	config := rest.CopyConfig(shared.Control.Config)
	config.WarningHandler = l
	c, err := shared.Open("the control plane, with its warnings", config)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason   string
		manifest string
		want     []string
	}{
		"NotInstalled": {
			reason: "It may come later, or be a typing mistake.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: warnings, name: p}, spec: {placement: {},
				resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: none}, {apiVersion: shop.example.com/v7, kind: Nothing}]}}`,
			want: []string{"spec.resourceSelectors[1]: shop.example.com/v7 Nothing is not installed in the control plane: this selects nothing until it is"},
		},
		"OtherGroup": {
			reason: "It was there once.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: warnings}, spec: {placement: {},
				resourceSelectors: [{apiVersion: extensions/v1beta1, kind: Deployment, namespace: warnings}]}}`,
			want: []string{"spec.resourceSelectors[0]: extensions/v1beta1 Deployment is not installed", "did you mean apps/v1 Deployment?"},
		},
		"WrongScope": {
			reason: "A policy in a namespace selects there alone.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: warnings, name: scope}, spec: {placement: {},
				resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]}}`,
			want: []string{"spec.resourceSelectors[0]: rbac.authorization.k8s.io/v1 ClusterRole is cluster-scoped", "use a policy of cluster scope"},
		},
		"Override": {
			reason: "It overrides nothing.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: warnings, name: o}, spec: {overrideRules: [{overriders: {}}],
				resourceSelectors: [{apiVersion: shop.example.com/v7, kind: Nothing}]}}`,
			want: []string{"spec.resourceSelectors[0]: shop.example.com/v7 Nothing is not installed"},
		},
		"Installed": {
			reason: "There is nothing to warn about.",
			manifest: `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: warnings, name: good}, spec: {placement: {},
				resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: none}]}}`,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			u := fleetrig.Object(t, test.manifest)
			r, err := c.Resource(u)
			if err != nil {
				t.Fatal(err)
			}
			l.heard()
			if _, err := r.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Fatalf("it is accepted: %v", err)
			}
			heard := l.heard()
			for _, text := range test.want {
				if !slices.ContainsFunc(heard, func(w string) bool { return strings.Contains(w, text) }) {
					t.Errorf("want a warning that says %q: %s\n%q", text, test.reason, heard)
				}
			}
			if len(test.want) == 0 && len(heard) > 0 {
				t.Errorf("want no warning: %s\n%q", test.reason, heard)
			}
			if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatalf("it can be deleted: %v", err)
			}
			c.Await(t, u, "it goes", fleetrig.IsGone)
			if heard := l.heard(); len(heard) > 0 {
				t.Errorf("a deletion is nothing to warn about: %q", heard)
			}
		})
	}
}
