package crds

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

func names(crds []*apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, c := range crds {
		out = append(out, c.Name)
	}
	return out
}

func TestAll(t *testing.T) {
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	got := names(crds)
	want := []string{
		"clusteroverridepolicies.policy.karmada.io",
		"clusterpropagationpolicies.policy.karmada.io",
		"clusterresourcebindings.work.karmada.io",
		"clustertaintpolicies.policy.karmada.io",
		"cronfederatedhpas.autoscaling.karmada.io",
		"federatedhpas.autoscaling.karmada.io",
		"federatedresourcequotas.policy.karmada.io",
		"multiclusteringresses.networking.karmada.io",
		"multiclusterservices.networking.karmada.io",
		"overridepolicies.policy.karmada.io",
		"propagationpolicies.policy.karmada.io",
		"remedies.remedy.karmada.io",
		"resourcebindings.work.karmada.io",
		"resourceinterpretercustomizations.config.karmada.io",
		"resourceinterpreterwebhookconfigurations.config.karmada.io",
		"serviceexports.multicluster.x-k8s.io",
		"serviceimports.multicluster.x-k8s.io",
		"workloadrebalancers.apps.karmada.io",
		"works.work.karmada.io",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("embedded definitions, sorted by name (-want +got):\n%s", diff)
	}

	again, err := All()
	if err != nil {
		t.Fatal(err)
	}
	crds[0].Spec.Names.Kind = "Changed"
	if again[0].Spec.Names.Kind == "Changed" {
		t.Error("a caller that changes a definition must not change it for the next one")
	}
}

func TestGroups(t *testing.T) {
	cases := map[string]struct {
		reason  string
		groups  []string
		want    []string
		wantErr bool
	}{
		"OneGroup": {
			reason: "Only the group that was asked for is returned, sorted by name.",
			groups: []string{"config.karmada.io"},
			want: []string{
				"resourceinterpretercustomizations.config.karmada.io",
				"resourceinterpreterwebhookconfigurations.config.karmada.io",
			},
		},
		"TwoGroups": {
			reason: "Names are sorted across groups, whatever the order of the arguments.",
			groups: []string{"work.karmada.io", "remedy.karmada.io"},
			want: []string{
				"clusterresourcebindings.work.karmada.io",
				"remedies.remedy.karmada.io",
				"resourcebindings.work.karmada.io",
				"works.work.karmada.io",
			},
		},
		"None": {
			reason: "Whoever asks for no group gets no definition.",
		},
		"Misspelled": {
			reason:  "A group that does not exist is a mistake, not an empty answer.",
			groups:  []string{"work.karmada.io", "polices.karmada.io"},
			wantErr: true,
		},
		"Aggregated": {
			reason:  "A definition would shadow what the aggregated API server serves: there must be none.",
			groups:  []string{"cluster.karmada.io"},
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Groups(tc.groups...)
			if (err != nil) != tc.wantErr {
				t.Fatalf("\n%s\nGroups(%v): error %v, want one: %t", tc.reason, tc.groups, err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("\n%s\nGroups(%v) (-want +got):\n%s", tc.reason, tc.groups, diff)
			}
		})
	}
}

// TestValid asks the API server's own validation, which also demands structural
// schemas, valid defaults and valid printer columns.
func TestValid(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		t.Run(crd.Name, func(t *testing.T) {
			scheme.Default(crd)
			internal := &apiextensions.CustomResourceDefinition{}
			if err := scheme.Convert(crd, internal, nil); err != nil {
				t.Fatalf("convert to the internal version: %v", err)
			}
			for _, v := range internal.Spec.Versions {
				if v.Storage {
					internal.Status.StoredVersions = []string{v.Name}
				}
			}
			for _, e := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
				t.Error(e)
			}
		})
	}
}

func TestBindingVersions(t *testing.T) {
	crds, err := Groups("work.karmada.io")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"resourcebindings.work.karmada.io", "clusterresourcebindings.work.karmada.io"} {
		i := slices.Index(names(crds), name)
		if i < 0 {
			t.Fatalf("no definition of %s", name)
		}
		crd := crds[i]
		if crd.Spec.Conversion != nil {
			t.Errorf("%s: conversion is %v: nothing may be said of a webhook that need not be running", name, crd.Spec.Conversion)
		}
		type version struct {
			Name            string
			Served, Storage bool
		}
		var got []version
		for _, v := range crd.Spec.Versions {
			got = append(got, version{v.Name, v.Served, v.Storage})
		}
		want := []version{{"v1alpha1", true, false}, {"v1alpha2", true, true}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: old clients read v1alpha1, what is stored is v1alpha2 (-want +got):\n%s", name, diff)
		}
	}
}
