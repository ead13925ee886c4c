package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// propagated returns a control plane with Deployment shop/web, and its Works in these
// clusters, which are still to join.
func propagated(t *testing.T, clusters ...string) *fleettest.Plane {
	t.Helper()
	p := fleettest.New(t)
	p.API = fleettest.NewAPI(append(fleettest.PlaneTypes(),
		fleettest.Type{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding", Resource: "resourcebindings", Namespaced: true},
		fleettest.Type{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work", Resource: "works", Namespaced: true},
	)...)
	manifest := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`
	p.Add(
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"},"spec":{"replicas":1},"status":{"readyReplicas":1}}`,
		fmt.Sprintf(`{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"namespace":"shop","name":"web-deployment","labels":{%q:"id"}},
			"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"},"clusters":[{"name":%q}]}}`, names.ResourceBindingIDLabel, clusters[0]),
	)
	for _, c := range clusters {
		p.Add(fmt.Sprintf(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work","metadata":{"namespace":%q,"name":"web","labels":{%q:"id"}},"spec":{"workload":{"manifests":[%s]}}}`,
			names.ExecutionNamespace(c), names.ResourceBindingIDLabel, manifest))
	}
	return p
}

const inMember = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"d","labels":{"karmada.io/managed":"true"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}}},"status":{"readyReplicas":2}}`

// TestCommand asks members through the proxy of a control plane, as users do.
func TestCommand(t *testing.T) {
	p := propagated(t, "good", "silent", "broken", "liar")
	p.Join("good", inMember,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":"web-1","labels":{"app":"web"},"ownerReferences":[{"uid":"d"}]},"spec":{"containers":[{}]},"status":{"phase":"Running"}}`)
	p.JoinAs("silent", fleettest.Silent())
	p.JoinAs("broken", fleettest.Broken())
	p.JoinAs("liar", fleettest.Liar())

	cases := map[string]struct {
		reason  string
		args    []string
		out     []string
		problem []string // in the error
	}{
		"All": {
			reason: "One that does not answer, cannot be reached, or breaks off costs its own branch.",
			args:   []string{"deployment/web", "-n", "shop", "--cluster-timeout=1s"},
			out:    []string{"Deployment shop/web", "Cluster good", "Pod web-1", "Cluster silent", "no answer within 1s", "Cluster broken", "connection refused", "Cluster liar"},
			problem: []string{
				"cluster(broken)", "cluster(liar)", "cluster(silent)",
			},
		},
		"One": {
			reason: "Of one that answers nothing is missing.",
			args:   []string{"deploy", "web", "-n", "shop", "-C", "good"},
			out:    []string{"Cluster good", "2/2 ready"},
		},
		"JSON": {
			reason: "Programs get the same.",
			args:   []string{"deploy/web", "-n", "shop", "-C", "good", "-o", "json"},
			out:    []string{`"kind": "Pod"`},
		},
		"UnknownCluster": {
			reason: "In the words of get.", args: []string{"deploy/web", "-n", "shop", "-C", "nowhere"}, problem: []string{"clusters don't exist: nowhere"},
		},
		"UnknownName": {
			reason: "In the words of the server.", args: []string{"deploy/api", "-n", "shop"}, problem: []string{`deployments.apps "api" not found`},
		},
		"UnknownKind": {
			reason: "In the words of kubectl.", args: []string{"nonsense/api", "-n", "shop"}, problem: []string{`the server doesn't have a resource type "nonsense"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			cmd, err := NewCmd(p.Factory(t, streams), streams, "karmadactl")
			if err != nil {
				t.Fatal(err)
			}
			cmd.SilenceErrors = true
			cmd.SetArgs(tc.args)
			err = cmd.ExecuteContext(t.Context())
			if (err == nil) != (len(tc.problem) == 0) {
				t.Errorf("error %v, want %q: %s", err, tc.problem, tc.reason)
			}
			for _, want := range tc.problem {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q: %s", err, want, tc.reason)
				}
			}
			for _, want := range tc.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s\n%s", want, out, tc.reason)
				}
			}
			if name == "JSON" && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", out)
			}
		})
	}
}
