package kubectl

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
)

// run runs a verb as a user of p does.
func run(t *testing.T, p *fleettest.Plane, args ...string) (out, errOut string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	s := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	cmds, err := Set{Factory: p.Factory(t, s), Streams: s, Program: "karmadactl"}.Commands(args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := cmds[0]
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args[1:], "--kubeconfig", p.Kubeconfig))
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: y\n"
	namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
	policy    = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: mine\nspec:\n  resourceSelectors: []\n"
	reserved  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: karmada-system\n"
)

func TestApply(t *testing.T) {
	cases := map[string]struct {
		reason string
		input  []string
		args   []string
		out    string
		// policies are name, namespace, kind of what is selected, and clusters.
		policies []string
		errOut   string
		err      string
	}{
		"NoClusters": {
			reason: "Without clusters it is kubectl's apply.", input: []string{configMap},
			out: "configmap/a created\n",
		},
		"OneCluster": {
			reason: "A namespaced object gets a policy beside it.", input: []string{configMap}, args: []string{"-C", "member1"},
			out:      "configmap/a created\npropagationpolicy.policy.karmada.io/a-5d4d9fc664 created\n",
			policies: []string{"PropagationPolicy default/a-5d4d9fc664 v1 ConfigMap default/a [member1]"},
		},
		"ManyObjects": {
			reason: "Each policy comes right behind its object; what is in no namespace gets one that is not either.",
			input:  []string{namespace, configMap}, args: []string{"--cluster", "member1,member2", "-n", "shop"},
			out: "namespace/shop created\nclusterpropagationpolicy.policy.karmada.io/shop-57cf6dd557 created\n" +
				"configmap/a created\npropagationpolicy.policy.karmada.io/a-NAME created\n",
			policies: []string{
				"PropagationPolicy shop/a-NAME v1 ConfigMap shop/a [member1 member2]",
				"ClusterPropagationPolicy /shop-NAME v1 Namespace /shop [member1 member2]",
			},
		},
		"AllClusters": {
			reason: "All are those that no name excludes.", input: []string{configMap}, args: []string{"--all-clusters"},
			out:      "configmap/a created\npropagationpolicy.policy.karmada.io/a-5d4d9fc664 created\n",
			policies: []string{"PropagationPolicy default/a-NAME v1 ConfigMap default/a []"},
		},
		"List": {
			reason: "What is in a list is applied by itself.", args: []string{"-C", "member1", "-o", "name"},
			input: []string{"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"},
			out:   "configmap/a\npropagationpolicy.policy.karmada.io/a-NAME\nconfigmap/b\npropagationpolicy.policy.karmada.io/b-NAME\n",
			policies: []string{
				"PropagationPolicy default/a-NAME v1 ConfigMap default/a [member1]", "PropagationPolicy default/b-NAME v1 ConfigMap default/b [member1]",
			},
		},
		"Policy": {
			reason: "A policy is not propagated itself.", input: []string{policy, configMap}, args: []string{"-C", "member1"},
			out:      "propagationpolicy.policy.karmada.io/mine created\nconfigmap/a created\npropagationpolicy.policy.karmada.io/a-NAME created\n",
			policies: []string{"PropagationPolicy default/mine []", "PropagationPolicy default/a-NAME v1 ConfigMap default/a [member1]"},
		},
		"Reserved": {
			reason: "Where nothing is propagated from no policy helps.", input: []string{reserved}, args: []string{"-C", "member1"},
			out: "configmap/a created\n", errOut: "note: configmaps/a gets no policy: what is in namespace karmada-system is never propagated\n",
		},
		"DryRun": {
			reason: "A dry run makes neither.", input: []string{configMap}, args: []string{"-C", "member1", "--dry-run=client"},
			out: "configmap/a created (dry run)\npropagationpolicy.policy.karmada.io/a-NAME created (dry run)\n",
		},
		"Both":           {reason: "One of the two.", input: []string{configMap}, args: []string{"-C", "member1", "--all-clusters"}, err: "--all-clusters and --cluster cannot be used together"},
		"UnknownCluster": {reason: "Nothing is applied.", input: []string{configMap}, args: []string{"-C", "member1,x,y"}, err: "cluster x does not exist\ncluster y does not exist"},
		"MissingFile":    {reason: "The path is named.", args: []string{"-C", "member1", "-f", "nowhere.yaml"}, err: `the path "nowhere.yaml" does not exist`},
		"OneIsNoObject": {
			reason: "The rest is applied, and what is wrong is said.", input: []string{configMap, "apiVersion: v1\nkind: Nonsense\nmetadata:\n  name: odd\n"}, args: []string{"-C", "member1"},
			out:      "configmap/a created\npropagationpolicy.policy.karmada.io/a-NAME created\n",
			policies: []string{"PropagationPolicy default/a-NAME v1 ConfigMap default/a [member1]"},
			err:      `no matches for kind "Nonsense" in version "v1"`,
		},
		"FlagsAreChecked": {
			reason: "kubectl's checks hold with clusters, too.", input: []string{configMap}, args: []string{"-C", "member1", "--force-conflicts"},
			err: "--force-conflicts only works with --server-side",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			p := fleettest.New(t)
			p.Join("member1")
			p.Join("member2")
			args := append([]string{"apply", "--validate=false"}, tc.args...)
			if len(tc.input) > 0 {
				file := filepath.Join(t.TempDir(), "input.yaml")
				if err := os.WriteFile(file, []byte(strings.Join(tc.input, "---\n")), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "-f", file)
			}
			out, errOut, err := run(t, p, args...)
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got error %v: %s", err, tc.reason)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got error %v, want %q: %s", err, tc.err, tc.reason)
			}
			if diff := cmp.Diff(nameless(tc.out), nameless(out)); diff != "" {
				t.Errorf("output (-want +got): %s\n%s", tc.reason, diff)
			}
			if tc.err == "" {
				if diff := cmp.Diff(tc.errOut, errOut); diff != "" {
					t.Errorf("standard error (-want +got): %s\n%s", tc.reason, diff)
				}
			}
			var policies []string
			for _, kind := range []string{"PropagationPolicy", "ClusterPropagationPolicy"} {
				for _, o := range p.Objects(kind) {
					policies = append(policies, summary(t, o))
				}
			}
			var want []string
			for _, one := range tc.policies {
				want = append(want, nameless(one))
			}
			if diff := cmp.Diff(want, policies); diff != "" {
				t.Errorf("policies (-want +got): %s\n%s", tc.reason, diff)
			}
		})
	}
}

// nameless takes off the end of generated names, which package names tests.
func nameless(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '/' })
	for _, w := range words {
		base, _, generated := strings.Cut(w, "-")
		if generated && (base == "a" || base == "b" || base == "shop") {
			text = strings.ReplaceAll(text, w, base+"-NAME")
		}
	}
	return text
}

func summary(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text := o.GetKind() + " " + o.GetNamespace() + "/" + nameless(o.GetName())
	selectors, _, err := unstructured.NestedSlice(o.Object, "spec", "resourceSelectors")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range selectors {
		get := func(field string) string { text, _ := s.(map[string]any)[field].(string); return text }
		text += " " + get("apiVersion") + " " + get("kind") + " " + get("namespace") + "/" + get("name")
	}
	clusters, _, err := unstructured.NestedStringSlice(o.Object, "spec", "placement", "clusterAffinity", "clusterNames")
	if err != nil {
		t.Fatal(err)
	}
	return text + " [" + strings.Join(clusters, " ") + "]"
}

// A policy follows what is asked for the next time.
func TestApplyAgain(t *testing.T) {
	p := fleettest.New(t)
	p.Join("member1")
	p.Join("member2")
	file := filepath.Join(t.TempDir(), "input.yaml")
	if err := os.WriteFile(file, []byte(configMap), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ clusters, out string }{
		{"member1", "configmap/a created\npropagationpolicy.policy.karmada.io/a-NAME created\n"},
		{"member1", "configmap/a unchanged\npropagationpolicy.policy.karmada.io/a-NAME unchanged\n"},
		{"member2", "configmap/a unchanged\npropagationpolicy.policy.karmada.io/a-NAME configured\n"},
	} {
		out, _, err := run(t, p, "apply", "--validate=false", "-f", file, "-C", step.clusters)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.out, nameless(out)); diff != "" {
			t.Errorf("applied to %s (-want +got):\n%s", step.clusters, diff)
		}
	}
	policies := p.Objects("PropagationPolicy")
	if len(policies) != 1 || summary(t, policies[0]) != "PropagationPolicy default/a-NAME v1 ConfigMap default/a [member2]" {
		t.Errorf("got %v, want one policy for member2", policies)
	}
}
