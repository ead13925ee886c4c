package why

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet/fleettest"
	"github.com/karmadactl/karmadactl/pkg/cmd/host"
)

// An explainer answers as it is told.
type explainer struct {
	answer *explanation.Explanation
	err    error
}

func (e explainer) Explain(context.Context, *unstructured.Unstructured, string) (*explanation.Explanation, error) {
	return e.answer, e.err
}

func TestRun(t *testing.T) {
	boom := errors.New("boom")
	answer := func(unread ...string) *explanation.Explanation {
		return &explanation.Explanation{
			Summary: "Deployment web is for no cluster", Unread: unread, Clusters: []explanation.Cluster{},
			Findings: []explanation.Finding{{Code: explanation.NoPolicy, Message: "no policy selects it", Next: "karmadactl get"}},
		}
	}
	cases := map[string]struct {
		reason    string
		explainer explainer
		output    host.Output
		want      string // in the error
		out       string // in the output
	}{
		"Found":  {"That something is wrong is an answer, and no error.", explainer{answer: answer()}, "", "", "1. NoPolicy: no policy selects it\n     next: karmadactl get\n"},
		"JSON":   {"Programs get the codes.", explainer{answer: answer()}, "json", "", `"code": "NoPolicy"`},
		"YAML":   {"In either format.", explainer{answer: answer()}, "yaml", "", "code: NoPolicy"},
		"Failed": {"Without an answer nothing is shown.", explainer{err: boom}, "", "boom", ""},
		"Gaps":   {"An answer with gaps is shown, and then it is an error.", explainer{answer: answer("Works: no")}, "", "the answer has gaps, as not all could be read: Works: no", "NOT READ"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &Options{Explainer: tc.explainer, Output: tc.output, IOStreams: streams, Now: time.Now}
			err := o.Run(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q: %s", err, tc.want, tc.reason)
			}
			if !strings.Contains(out.String(), tc.out) || tc.out == "" && out.Len() > 0 {
				t.Errorf("output %q, want %q: %s", out, tc.out, tc.reason)
			}
		})
	}
}

// TestCommand asks a control plane as users do.
func TestCommand(t *testing.T) {
	p := fleettest.New(t)
	p.API = fleettest.NewAPI(append(fleettest.PlaneTypes(),
		fleettest.Type{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding", Resource: "resourcebindings", Namespaced: true},
		fleettest.Type{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work", Resource: "works", Namespaced: true},
		fleettest.Type{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy", Resource: "overridepolicies", Namespaced: true},
		fleettest.Type{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterOverridePolicy", Resource: "clusteroverridepolicies"},
		fleettest.Type{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true},
	)...)
	p.Join("m1")
	p.Add(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"u"}}`,
		`{"apiVersion":"policy.karmada.io/v1alpha1","kind":"PropagationPolicy","metadata":{"namespace":"shop","name":"api"},"spec":{"resourceSelectors":[{"apiVersion":"apps/v1","kind":"Deployment","name":"api"}]}}`)
	cases := map[string]struct {
		reason string
		args   []string
		out    string
		want   string // in the error
	}{
		"Text":           {"The answer, and where to go on.", []string{"deployment/web", "-n", "shop"}, "next: karmadactl edit propagationpolicy/api -n shop", ""},
		"Two":            {"Short names work, and type and name apart.", []string{"deploy", "web", "-n", "shop", "-C", "m1"}, "is not for cluster m1", ""},
		"JSON":           {"Programs get codes.", []string{"deploy/web", "-n", "shop", "-o", "json"}, `"code": "NoPolicy"`, ""},
		"UnknownCluster": {"In the words of get.", []string{"deploy/web", "-n", "shop", "-C", "m9"}, "", "clusters don't exist: m9"},
		"UnknownName":    {"In the words of the server.", []string{"deploy/api", "-n", "shop"}, "", `deployments.apps "api" not found`},
		"UnknownKind":    {"In the words of kubectl.", []string{"nonsense/web"}, "", `the server doesn't have a resource type "nonsense"`},
		"UnknownFormat":  {"Before anything is asked.", []string{"deploy/web", "-o", "wide"}, "", `output format "wide"`},
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
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q: %s", err, tc.want, tc.reason)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("%q is not in\n%s\n%s", tc.out, out, tc.reason)
			}
			if name == "JSON" && !json.Valid(out.Bytes()) {
				t.Errorf("no JSON: %s", out)
			}
		})
	}
	for _, r := range p.Requests() {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("why has written: %s", r)
		}
	}
}
