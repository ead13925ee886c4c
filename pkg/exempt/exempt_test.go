package exempt_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/exempt"
)

func TestAPIs(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   string
		has    []string // group/version/Kind
		hasNot []string
	}{
		"Default": {
			reason: "Our own machinery, leases and events are exempt whatever the flag says; what users write is not.",
			has: []string{
				"cluster.karmada.io/v1alpha1/Cluster", "policy.karmada.io/v1alpha1/PropagationPolicy",
				"work.karmada.io/v1alpha2/ResourceBinding", "config.karmada.io/v1alpha1/ResourceInterpreterCustomization",
				"networking.karmada.io/v1alpha1/MultiClusterService", "autoscaling.karmada.io/v1alpha1/FederatedHPA",
				"remedy.karmada.io/v1alpha1/Remedy", "apps.karmada.io/v1alpha1/WorkloadRebalancer",
				"events.k8s.io/v1/Event", "coordination.k8s.io/v1/Lease", "/v1/Event",
			},
			hasNot: []string{
				"search.karmada.io/v1alpha1/ResourceRegistry", "multicluster.x-k8s.io/v1alpha1/ServiceExport",
				"coordination.k8s.io/v1beta1/Lease", "/v1/ConfigMap", "apps/v1/Deployment",
			},
		},
		"Group": {
			reason: "A token without a slash is a group, in every version.",
			list:   "apps",
			has:    []string{"apps/v1/Deployment", "apps/v1beta1/StatefulSet", "work.karmada.io/v1alpha1/Work"},
			hasNot: []string{"batch/v1/Job"},
		},
		"GroupVersion": {
			reason: "A token with one slash is a version of a group.",
			list:   "batch/v1beta1",
			has:    []string{"batch/v1beta1/CronJob"},
			hasNot: []string{"batch/v1/CronJob"},
		},
		"Kinds": {
			reason: "A token with two slashes lists kinds, in any case.",
			list:   "apps/v1/deployment,StatefulSet",
			has:    []string{"apps/v1/Deployment", "apps/v1/StatefulSet"},
			hasNot: []string{"apps/v1/DaemonSet", "apps/v1beta1/Deployment"},
		},
		"CoreKinds": {
			reason: "v1 is the version of the group without a name.",
			list:   "v1/secret,ConfigMap",
			has:    []string{"/v1/Secret", "/v1/ConfigMap", "/v1/Event"},
			hasNot: []string{"/v1/Service", "v1/v1/Secret"},
		},
		"GroupThatBeginsLikeAVersion": {
			reason: "Only v1 itself means the core group.",
			list:   "v1beta.example.com/v1",
			has:    []string{"v1beta.example.com/v1/Anything"},
		},
		"Several": {
			reason: "Tokens add up; blanks and empty ones do no harm.",
			list:   " apps ; v1/Secret;; batch/v1/Job;",
			has:    []string{"apps/v1/Deployment", "/v1/Secret", "batch/v1/Job"},
			hasNot: []string{"batch/v1/CronJob"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			apis, err := exempt.ParseAPIs(tc.list)
			if err != nil {
				t.Fatalf("ParseAPIs: %v\n%s", err, tc.reason)
			}
			for _, s := range tc.has {
				if !apis.Has(gvk(s)) {
					t.Errorf("%s is not exempt\n%s", s, tc.reason)
				}
			}
			for _, s := range tc.hasNot {
				if apis.Has(gvk(s)) {
					t.Errorf("%s is exempt\n%s", s, tc.reason)
				}
			}
		})
	}
}

func TestParseAPIsErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   string
		names  []string // what the error must name
	}{
		"TooManySlashes": {reason: "Three slashes mean nothing.", list: "apps/v1/Deployment/web", names: []string{"apps/v1/Deployment/web", "too many slashes"}},
		"EmptyGroup":     {reason: "The core group is written v1.", list: "/v1", names: []string{`"/v1"`}},
		"EmptyVersion":   {reason: "A version is needed after the slash.", list: "apps/", names: []string{`"apps/"`}},
		"EmptyKind":      {reason: "A kind is needed after the comma.", list: "apps/v1/Deployment,", names: []string{`"apps/v1/Deployment,"`}},
		"KindAsVersion":  {reason: "A kind in the place of a version is a mistake.", list: "v1beta1/Job", names: []string{`version "Job"`}},
		"All":            {reason: "Every mistake is reported, not the first alone.", list: "a/b/c/d;apps;/v2", names: []string{`"a/b/c/d"`, `"/v2"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := exempt.ParseAPIs(tc.list)
			if err == nil {
				t.Fatalf("no error\n%s", tc.reason)
			}
			for _, want := range tc.names {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q\n%s", err, want, tc.reason)
				}
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason   string
		patterns []string
		has      []string
		hasNot   []string
	}{
		"None": {
			reason: "Reserved namespaces are exempt whatever the flag says, and what is in no namespace never is.",
			has:    []string{"karmada-system", "karmada-cluster", "karmada-es-m1"},
			hasNot: []string{"default", "kube-system", ""},
		},
		"Default": {
			reason:   "The flag's default exempts the namespaces of Kubernetes.",
			patterns: []string{"kube-.*"},
			has:      []string{"kube-system", "kube-public", "karmada-system"},
			hasNot:   []string{"my-kube-system", "kube", ""},
		},
		"Anchored": {
			reason:   "Each expression is matched against the whole name, alternatives included.",
			patterns: []string{"a|b", ".*"},
			has:      []string{"a", "b", "ab"},
			hasNot:   []string{""},
		},
		"Alternatives": {
			reason:   "Anchors bind around all the alternatives.",
			patterns: []string{"a|b"},
			has:      []string{"a", "b"},
			hasNot:   []string{"ax", "xb"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, err := exempt.ParseNamespaces(tc.patterns)
			if err != nil {
				t.Fatalf("ParseNamespaces: %v\n%s", err, tc.reason)
			}
			for _, s := range tc.has {
				if !n.Has(s) {
					t.Errorf("%q is not exempt\n%s", s, tc.reason)
				}
			}
			for _, s := range tc.hasNot {
				if n.Has(s) {
					t.Errorf("%q is exempt\n%s", s, tc.reason)
				}
			}
		})
	}

	_, err := exempt.ParseNamespaces([]string{"(", "fine", "["})
	if err == nil || !strings.Contains(err.Error(), `"("`) || !strings.Contains(err.Error(), `"["`) {
		t.Errorf("every expression that does not compile is to be named, got: %v", err)
	}
}

func gvk(s string) schema.GroupVersionKind {
	part := strings.Split(s, "/")
	return schema.GroupVersionKind{Group: part[0], Version: part[1], Kind: part[2]}
}
