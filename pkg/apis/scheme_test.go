package apis_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/randfill"

	"github.com/karmadactl/karmadactl/pkg/apis"
	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/apis/crds"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// kinds are all kinds of the API, without the lists that go with them.
var kinds = []schema.GroupVersionKind{
	{Group: "apps.karmada.io", Version: "v1alpha1", Kind: "WorkloadRebalancer"},
	{Group: "autoscaling.karmada.io", Version: "v1alpha1", Kind: "CronFederatedHPA"},
	{Group: "autoscaling.karmada.io", Version: "v1alpha1", Kind: "FederatedHPA"},
	{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
	{Group: "config.karmada.io", Version: "v1alpha1", Kind: "ResourceInterpreterContext"},
	{Group: "config.karmada.io", Version: "v1alpha1", Kind: "ResourceInterpreterCustomization"},
	{Group: "config.karmada.io", Version: "v1alpha1", Kind: "ResourceInterpreterWebhookConfiguration"},
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceExport"},
	{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceImport"},
	{Group: "networking.karmada.io", Version: "v1alpha1", Kind: "MultiClusterIngress"},
	{Group: "networking.karmada.io", Version: "v1alpha1", Kind: "MultiClusterService"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterOverridePolicy"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterPropagationPolicy"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "ClusterTaintPolicy"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "FederatedResourceQuota"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"},
	{Group: "remedy.karmada.io", Version: "v1alpha1", Kind: "Remedy"},
	{Group: "search.karmada.io", Version: "v1alpha1", Kind: "ResourceRegistry"},
	{Group: "work.karmada.io", Version: "v1alpha1", Kind: "ClusterResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha1", Kind: "ResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"},
	{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ClusterResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"},
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemeHasEveryKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := apis.AddToScheme(s); err != nil {
		t.Fatal(err)
	}

	var got []schema.GroupVersionKind
	for gvk := range s.AllKnownTypes() {
		switch {
		case gvk.Version == runtime.APIVersionInternal, strings.HasSuffix(gvk.Kind, "Options"), gvk.Kind == "WatchEvent":
			continue // what every group has
		case gvk.Group == "" || strings.HasSuffix(gvk.Kind, "List"):
			continue
		}
		got = append(got, gvk)
	}
	byString := cmpopts.SortSlices(func(a, b schema.GroupVersionKind) bool { return a.String() < b.String() })
	if diff := cmp.Diff(kinds, got, byString); diff != "" {
		t.Errorf("registered kinds (-want +got):\n%s", diff)
	}

	for _, gvk := range kinds {
		list := gvk.GroupVersion().WithKind(gvk.Kind + "List")
		if gvk.Kind != "ResourceInterpreterContext" && !s.Recognizes(list) {
			t.Errorf("%s is not registered: clients could not list the kind", list)
		}
	}
}

func TestSchemePrefersStoredVersion(t *testing.T) {
	s := newScheme(t)
	got := s.PrioritizedVersionsForGroup("work.karmada.io")
	if len(got) == 0 || got[0].Version != "v1alpha2" {
		t.Errorf("versions of work.karmada.io are %v, in order of preference; the stored one, v1alpha2, comes first, as the older loses fields", got)
	}
}

func TestNewSchemeIsUsable(t *testing.T) {
	s := newScheme(t)
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	} {
		if !s.Recognizes(gvk) {
			t.Errorf("%s is not registered, and every client of the control plane needs it", gvk)
		}
	}
}

// filler fills objects at random, but with values that mean something where not
// every value can be encoded.
func filler(s *runtime.Scheme) *randfill.Filler {
	own := func(serializer.CodecFactory) []any {
		return []any{
			func(e *runtime.RawExtension, c randfill.Continue) { e.Raw = object(c) },
			func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = object(c) },
		}
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own), rand.NewSource(1), serializer.NewCodecFactory(s))
}

func object(c randfill.Continue) []byte {
	b, err := json.Marshal(map[string]any{"text": c.String(0), "number": c.Int31(), "list": []bool{c.Bool()}})
	if err != nil {
		panic(err) // a map of these types can always be encoded
	}
	return b
}

// rounds is how many random objects of each kind are tried: enough for every
// optional part of the largest one to be set, and to be left out.
const rounds = 50

func TestRoundTrip(t *testing.T) {
	s := newScheme(t)
	strict := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, s, s, jsonserializer.SerializerOptions{Strict: true})
	for _, gvk := range kinds {
		t.Run(gvk.Version+"/"+gvk.Kind, func(t *testing.T) {
			fill := filler(s)
			for range rounds {
				in, err := s.New(gvk)
				if err != nil {
					t.Fatal(err)
				}
				fill.Fill(in)
				in.GetObjectKind().SetGroupVersionKind(gvk)
				kept := in.DeepCopyObject()

				var b bytes.Buffer
				if err := strict.Encode(in, &b); err != nil {
					t.Fatalf("encode: %v", err)
				}
				if diff := cmp.Diff(kept, in); diff != "" {
					t.Fatalf("encoding an object must not change it, and its copy must equal it (-copy +object):\n%s", diff)
				}

				out, _, err := strict.Decode(b.Bytes(), nil, nil)
				if err != nil {
					t.Fatalf("decode what was encoded: %v\n%s", err, b.String())
				}
				if diff := cmp.Diff(in, out, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("nothing may get lost on the wire (-sent +received):\n%s", diff)
				}

				u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
				if err != nil {
					t.Fatalf("convert to unstructured: %v", err)
				}
				var wire map[string]any
				if err := json.Unmarshal(b.Bytes(), &wire); err != nil {
					t.Fatal(err)
				}
				viaJSON, err := json.Marshal(u)
				if err != nil {
					t.Fatal(err)
				}
				var converted map[string]any
				if err := json.Unmarshal(viaJSON, &converted); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(wire, converted); diff != "" {
					t.Fatalf("the dynamic client must send what the typed one sends (-typed +unstructured):\n%s", diff)
				}
			}
		})
	}
}

// TestSchemasKeepEveryField prunes random objects as the API server does before
// it stores them: a field that the schema does not know would be gone.
func TestSchemasKeepEveryField(t *testing.T) {
	s := newScheme(t)
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			t.Run(v.Name+"/"+crd.Spec.Names.Kind, func(t *testing.T) {
				internal := &apiextensions.JSONSchemaProps{}
				if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, internal, nil); err != nil {
					t.Fatal(err)
				}
				structural, err := structuralschema.NewStructural(internal)
				if err != nil {
					t.Fatal(err)
				}
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
				if !slices.Contains(kinds, gvk) {
					t.Fatalf("%s has a definition but no type", gvk)
				}
				fill := filler(s)
				for range rounds {
					in, err := s.New(gvk)
					if err != nil {
						t.Fatal(err)
					}
					fill.Fill(in)
					in.GetObjectKind().SetGroupVersionKind(gvk)
					u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
					if err != nil {
						t.Fatal(err)
					}
					kept := runtime.DeepCopyJSON(u)
					pruning.Prune(kept, structural, true)
					if diff := cmp.Diff(u, kept); diff != "" {
						t.Fatalf("the schema drops fields that the type has (-sent +stored):\n%s", diff)
					}
				}
			})
		}
	}
}

// TestEmptyPartsAreLeftOut encodes objects of which as little as possible is set.
func TestEmptyPartsAreLeftOut(t *testing.T) {
	cases := map[string]struct {
		reason string
		object any
		want   string
	}{
		"OverridePolicy": {
			reason: "The deprecated overriders exclude overrideRules, so nobody may send them by accident.",
			object: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{}}},
			want:   `{"overrideRules":[{"overriders":{}}]}`,
		},
		"RemoveOperation": {
			reason: "A remove has no value; null would be one, and is refused.",
			object: policyv1alpha1.PlaintextOverrider{Path: "/spec", Operator: policyv1alpha1.OverriderOpRemove},
			want:   `{"path":"/spec","operator":"remove"}`,
		},
		"Binding": {
			reason: "An empty status must not overwrite what the schema and others say.",
			object: workv1alpha2.ResourceBinding{},
			want:   `{"metadata":{},"spec":{"resource":{"apiVersion":"","kind":"","name":""}}}`,
		},
		"Eviction": {
			reason: "A task whose time is not known yet has none, rather than null.",
			object: workv1alpha2.GracefulEvictionTask{FromCluster: "member1", Reason: "TaintUntolerated", Producer: "TaintManager"},
			want:   `{"fromCluster":"member1","reason":"TaintUntolerated","producer":"TaintManager"}`,
		},
		"AffinityInUse": {
			reason: "The name of this field on the wire is not the one that the type suggests.",
			object: workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: "primary"},
			want:   `{"schedulerObservingAffinityName":"primary"}`,
		},
		"InterpreterRequest": {
			reason: "Webhooks are always sent a number of replicas.",
			object: configv1alpha1.ResourceInterpreterRequest{UID: "u", Name: "n", Operation: configv1alpha1.InterpreterOperationRetain},
			want:   `{"uid":"u","kind":{"group":"","version":"","kind":""},"name":"n","operation":"Retain","replicas":0}`,
		},
		"InterpretedDependencies": {
			reason: "None at all is an answer to InterpretDependency, and differs from no answer.",
			object: configv1alpha1.ResourceInterpreterResponse{UID: "u", Successful: true, Dependencies: []configv1alpha1.DependentObjectReference{}},
			want:   `{"uid":"u","successful":true,"dependencies":[]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("\n%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
