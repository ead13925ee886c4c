package names_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karmadactl/karmadactl/pkg/names"
)

func TestBindingAndWork(t *testing.T) {
	cases := map[string]struct {
		reason                string
		kind, name, namespace string
		binding, work         string
	}{
		"Deployment": {
			reason: "A namespaced template's Work is hashed with its namespace.",
			kind:   "Deployment", name: "nginx", namespace: "default",
			binding: "nginx-deployment", work: "nginx-687f7fb96f",
		},
		"ClusterRole": {
			reason: "A cluster-scoped template is hashed without a namespace.",
			kind:   "ClusterRole", name: "karmada-impersonator",
			binding: "karmada-impersonator-clusterrole", work: "karmada-impersonator-7cbb6bd5c9",
		},
		"ClusterRoleBinding": {
			reason: "The kind is part of what is hashed.",
			kind:   "ClusterRoleBinding", name: "karmada-impersonator",
			binding: "karmada-impersonator-clusterrolebinding", work: "karmada-impersonator-84f8c8f8c6",
		},
		"Colon": {
			reason: "Colons become dots, and hashes shorter than ten digits are not padded.",
			kind:   "ClusterRole", name: "system:foo",
			binding: "system.foo-clusterrole", work: "system.foo-5f7d88f69",
		},
		"UpperCase": {
			reason: "Names are lowered before they are hashed.",
			kind:   "ConfigMap", name: "Web.Cfg", namespace: "prod",
			binding: "web.cfg-configmap", work: "web.cfg-c66f96cc4",
		},
		"Namespace": {
			reason: "A Namespace is a cluster-scoped template.",
			kind:   "Namespace", name: "team-a",
			binding: "team-a-namespace", work: "team-a-5cc7c7959b",
		},
		"EndpointSlice": {
			reason: "Collected objects are named the same way.",
			kind:   "EndpointSlice", name: "web-abcde", namespace: "prod",
			binding: "web-abcde-endpointslice", work: "web-abcde-677958d45c",
		},
		"ResourceQuota": {
			reason: "Objects without a binding are named the same way.",
			kind:   "ResourceQuota", name: "frq-1", namespace: "prod",
			binding: "frq-1-resourcequota", work: "frq-1-54d48f7649",
		},
		"MultiClusterService": {
			reason: "Kinds of our own are named the same way.",
			kind:   "MultiClusterService", name: "web", namespace: "prod",
			binding: "web-multiclusterservice", work: "web-6f77d987c8",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names.Binding(tc.kind, tc.name); got != tc.binding {
				t.Errorf("Binding: got %q, want %q\n%s", got, tc.binding, tc.reason)
			}
			if got := names.Work(tc.kind, tc.name, tc.namespace); got != tc.work {
				t.Errorf("Work: got %q, want %q\n%s", got, tc.work, tc.reason)
			}
		})
	}
}

func TestDerivedNames(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	cases := map[string]struct {
		reason    string
		got, want string
	}{
		"ReferenceKey": {
			reason: "The key is the hash of namespace/name.",
			got:    names.BindingReferenceKey("default", "nginx-deployment"), want: "5bdc5c4dcf",
		},
		"DependedByLabel": {
			reason: "The reference key ends the label key.",
			got:    names.DependedByLabel(names.BindingReferenceKey("default", "nginx-deployment")),
			want:   "resourcebinding.karmada.io/depended-by-5bdc5c4dcf",
		},
		"ClusterScopedReferenceKey": {
			reason: "Without a namespace the name alone is hashed; this value is the hash of a Work's source.",
			got:    "karmada-impersonator-" + names.BindingReferenceKey("", "karmada-impersonator-clusterrole"),
			want:   names.Work("ClusterRole", "karmada-impersonator", ""),
		},
		"GeneratedPolicy": {
			reason: "The name is lowered, colons become dots, and the kind decides about the hash.",
			got:    names.GeneratedPolicy(deployment, "Web:A", "prod"),
			want:   "web.a-" + names.BindingReferenceKey("", "prodapps/v1, Kind=Deployment"),
		},
		"ExecutionNamespace":    {reason: "Prefix and cluster.", got: names.ExecutionNamespace("m1"), want: "karmada-es-m1"},
		"ClusterServiceAccount": {reason: "Prefix and cluster.", got: names.ClusterServiceAccount("m1"), want: "karmada-m1"},
		"ClusterRole": {
			reason: "Named for who uses it and for the service account.",
			got:    names.ClusterRole("m1"), want: "karmada-controller-manager:karmada-m1",
		},
		"ImpersonatorSecret":    {reason: "Cluster first.", got: names.ImpersonatorSecret("m1"), want: "m1-impersonator"},
		"ImportedEndpointSlice": {reason: "Cluster before slice.", got: names.ImportedEndpointSlice("m1", "web-x"), want: "imported-m1-web-x"},
		"DerivedService":        {reason: "Prefix and name.", got: names.DerivedService("web"), want: "derived-web"},
		"EstimatorService": {
			reason: "The prefix is a flag of the scheduler.",
			got:    names.EstimatorService("est", "m1"), want: "est-m1",
		},
		"EstimatorDeployment": {reason: "The prefix is fixed.", got: names.EstimatorDeployment("m1"), want: "karmada-scheduler-estimator-m1"},
		"AgentLease":          {reason: "One lease for each cluster.", got: names.AgentLease("m1"), want: "karmada-agent-m1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q\n%s", tc.got, tc.want, tc.reason)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string
		reserved  bool
		cluster   string
	}{
		"System":      {reason: "The system's own namespace is reserved.", namespace: "karmada-system", reserved: true},
		"Credentials": {reason: "The namespace of credentials is reserved.", namespace: "karmada-cluster", reserved: true},
		"Execution":   {reason: "Execution namespaces are reserved.", namespace: "karmada-es-m1", reserved: true, cluster: "m1"},
		"NoCluster":   {reason: "The bare prefix names no cluster.", namespace: "karmada-es-", reserved: true},
		"Default":     {reason: "What is in default is propagated.", namespace: "default"},
		"KubeSystem":  {reason: "kube-* is skipped by a flag, not reserved.", namespace: "kube-system"},
		"Similar":     {reason: "Only the whole prefix counts.", namespace: "karmada-essential"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names.IsReservedNamespace(tc.namespace); got != tc.reserved {
				t.Errorf("IsReservedNamespace: got %v, want %v\n%s", got, tc.reserved, tc.reason)
			}
			cluster, err := names.ClusterOfExecutionNamespace(tc.namespace)
			if cluster != tc.cluster || (err == nil) != (tc.cluster != "") {
				t.Errorf("ClusterOfExecutionNamespace: got %q, %v, want %q\n%s", cluster, err, tc.cluster, tc.reason)
			}
		})
	}
}

func TestBeside(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	role := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	cases := map[string]struct {
		reason string
		a, b   string
	}{
		"Groups": {
			"Two kinds of one name in different groups are different things.",
			names.BindingBeside(deployment, "web", "default"), names.BindingBeside(schema.GroupKind{Group: "example.com", Kind: "Deployment"}, "web", "default"),
		},
		"Case":  {"RBAC names may differ by case only.", names.BindingBeside(role, "A", ""), names.BindingBeside(role, "a", "")},
		"Colon": {"RBAC names have colons, which become points.", names.WorkBeside(role, "a:b", ""), names.WorkBeside(role, "a.b", "")},
		"Namespaces": {
			"All namespaces share the execution namespace.",
			names.WorkBeside(deployment, "web", "a"), names.WorkBeside(deployment, "web", "b"),
		},
		"Classic":  {"A name beside the classic one is another one.", names.WorkBeside(deployment, "web", "a"), names.Work("Deployment", "web", "a")},
		"Unusable": {"What no DNS name can have is left out.", names.BindingBeside(role, "a_b/..-c", ""), names.BindingBeside(role, "a-b/..-c", "")},
		"Long":     {"Long names are cut, and stay different.", names.BindingBeside(role, strings.Repeat("x", 253), ""), names.BindingBeside(role, strings.Repeat("x", 252), "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.a == tc.b {
				t.Errorf("both are %q\nreason they differ: %s", tc.a, tc.reason)
			}
			for _, got := range []string{tc.a, tc.b} {
				if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
					t.Errorf("%q is no name: %v", got, problems)
				}
			}
		})
	}
}
