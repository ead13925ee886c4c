package bootstrap

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmadactl/karmadactl/pkg/names"
)

// A WebhookServer is where kube-apiserver finds karmada-webhook.
type WebhookServer struct {
	// URL is its address: https://127.0.0.1:8443 on one host, that of a Service, such as
	// https://karmada-webhook.karmada-system.svc:443, in a cluster.
	URL string
	// CA has signed the server's certificate. PEM.
	CA []byte
}

const (
	// answerTimeout is how long kube-apiserver waits for most answers, compileTimeout for those about Lua, in seconds
	// (spec: behaviour/08 8.1).
	answerTimeout  = 3
	compileTimeout = 10
	// convertPath is where bindings are converted (spec: behaviour/08 8.1).
	convertPath = "/convert"
)

// convertedResources have a version besides the one that is stored.
func convertedResources() []schema.GroupResource {
	return []schema.GroupResource{
		{Group: "work.karmada.io", Resource: "resourcebindings"}, {Group: "work.karmada.io", Resource: "clusterresourcebindings"},
	}
}

// A hook is one row of the tables of behaviour/08 8.2 and 8.3. What is not said is the rule there: kube-apiserver asks
// with CREATE and UPDATE, waits for 3 s, and refuses the request when it gets no answer.
type hook struct {
	name, path string
	of         schema.GroupResource
	scope      admissionregistrationv1.ScopeType
	// versions are the ones to be asked in; any when there are none.
	versions   []string
	operations []admissionregistrationv1.OperationType
	labelled   string // by which label objects are known; all are asked about without it
	when       []admissionregistrationv1.MatchCondition
	timeout    int32
	ignored    bool // when there is no answer
	writes     bool // it may change other objects, except for a dry run
}

// What none of the hooks is needed for. See docs/adr/0015-availability-of-admission.md.
const (
	// Our components write what is complete and right, and go on while nobody answers. An agent's user is none of them:
	// it is trusted with less. The garbage collector changes nothing but references to owners.
	theControlPlane = "has(request.userInfo.groups) && 'system:karmada' in request.userInfo.groups || " +
		"has(request.userInfo.username) && request.userInfo.username == 'system:serviceaccount:kube-system:generic-garbage-collector'"
	// What is being deleted loses its finalizers, whatever it holds.
	leaving = "request.operation == 'UPDATE' && has(oldObject.metadata.deletionTimestamp)"
	// The identity of an object stays also then.
	sameLabels = "object.metadata.?labels == oldObject.metadata.?labels"
)

func unless(name, expression string) admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: name, Expression: "!(" + expression + ")"}
}

// withoutIdentity is what our components' objects are not.
func withoutIdentity(label string) admissionregistrationv1.MatchCondition {
	return unless("without-identity", fmt.Sprintf("object.metadata.?labels[?'%s'].orValue('') != ''", label))
}

func mutatingHooks() []hook {
	const namespaced, cluster = admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope
	policies := []admissionregistrationv1.MatchCondition{
		unless("not-our-updates", "request.operation == 'UPDATE' && ("+theControlPlane+")"),
		unless("not-leaving", leaving+" && "+sameLabels),
	}
	return []hook{
		{name: "propagationpolicy.karmada.io", path: "/mutate-propagationpolicy", of: policyResource("propagationpolicies"), scope: namespaced, when: policies},
		{name: "clusterpropagationpolicy.karmada.io", path: "/mutate-clusterpropagationpolicy", of: policyResource("clusterpropagationpolicies"), scope: cluster, when: policies},
		{name: "overridepolicy.karmada.io", path: "/mutate-overridepolicy", of: policyResource("overridepolicies"), scope: namespaced, when: policies},
		{
			name: "resourcebinding.karmada.io", path: "/mutate-resourcebinding", of: workResource("resourcebindings"), scope: namespaced,
			operations: creations(), when: []admissionregistrationv1.MatchCondition{withoutIdentity(names.ResourceBindingIDLabel)},
		},
		{
			name: "clusterresourcebinding.karmada.io", path: "/mutate-clusterresourcebinding", of: workResource("clusterresourcebindings"), scope: cluster,
			operations: creations(), when: []admissionregistrationv1.MatchCondition{withoutIdentity(names.ClusterResourceBindingIDLabel)},
		},
		{
			name: "work.karmada.io", path: "/mutate-work", of: workResource("works"), scope: namespaced,
			when: []admissionregistrationv1.MatchCondition{
				unless("not-ours", fmt.Sprintf("(%s) && object.metadata.?labels[?'%s'].orValue('') != ''", theControlPlane, names.WorkIDLabel)),
				// It is not applied any more; the agent of a pull cluster takes its finalizer off.
				unless("not-leaving", leaving+" && "+sameLabels),
			},
		},
		{name: "autoscaling.karmada.io", path: "/mutate-federatedhpa", of: autoscalingResource("federatedhpas"), scope: namespaced, when: policies},
		{name: "multiclusterservice.karmada.io", path: "/mutate-multiclusterservice", of: networkingResource("multiclusterservices"), scope: namespaced, when: policies},
	}
}

func validatingHooks() []hook {
	const namespaced, cluster = admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope
	users := []admissionregistrationv1.MatchCondition{unless("not-ours", theControlPlane), unless("not-leaving", leaving)}
	return []hook{
		{name: "propagationpolicy.karmada.io", path: "/validate-propagationpolicy", of: policyResource("propagationpolicies"), scope: namespaced, when: users},
		{name: "clusterpropagationpolicy.karmada.io", path: "/validate-clusterpropagationpolicy", of: policyResource("clusterpropagationpolicies"), scope: cluster, when: users},
		{name: "overridepolicy.karmada.io", path: "/validate-overridepolicy", of: policyResource("overridepolicies"), scope: namespaced, when: users},
		{name: "clusteroverridepolicy.karmada.io", path: "/validate-clusteroverridepolicy", of: policyResource("clusteroverridepolicies"), scope: cluster, when: users},
		{name: "config.karmada.io", path: "/validate-resourceinterpreterwebhookconfiguration", of: configResource("resourceinterpreterwebhookconfigurations"), scope: cluster, when: users},
		{name: "resourceinterpretercustomization.karmada.io", path: "/validate-resourceinterpretercustomization", of: configResource("resourceinterpretercustomizations"), scope: cluster, when: users, timeout: compileTimeout},
		{name: "federatedresourcequota.karmada.io", path: "/validate-federatedresourcequota", of: policyResource("federatedresourcequotas"), scope: namespaced, when: users},
		{name: "multiclusteringress.karmada.io", path: "/validate-multiclusteringress", of: networkingResource("multiclusteringresses"), scope: namespaced, when: users},
		{name: "federatedhpa.karmada.io", path: "/validate-federatedhpa", of: autoscalingResource("federatedhpas"), scope: namespaced, when: users},
		{name: "cronfederatedhpa.karmada.io", path: "/validate-cronfederatedhpa", of: autoscalingResource("cronfederatedhpas"), scope: namespaced, when: users},
		{name: "multiclusterservice.karmada.io", path: "/validate-multiclusterservice", of: networkingResource("multiclusterservices"), scope: namespaced, when: users},
		{
			name: "resourcedeletionprotection.karmada.io", path: "/validate-resourcedeletionprotection",
			of: schema.GroupResource{Group: "*", Resource: "*/*"}, scope: admissionregistrationv1.AllScopes, operations: deletions(), labelled: names.DeletionProtectedLabel,
		},
		{
			// The rules know v1alpha2: what is written as v1alpha1 is converted before it is looked at.
			name: "resourcebinding.karmada.io", path: "/validate-resourcebinding", of: workResource("resourcebindings"), scope: namespaced,
			versions: []string{"v1alpha2"}, when: users, writes: true,
		},
		{name: "clustertaintpolicy.karmada.io", path: "/validate-clustertaintpolicy", of: policyResource("clustertaintpolicies"), scope: cluster, when: users},
		{
			// While nobody answers the objects in it are still protected, each by itself, and no namespace is kept for ever.
			name: "namespacedeletionprotection.karmadactl.io", path: "/validate-namespacedeletionprotection",
			of: schema.GroupResource{Resource: "namespaces"}, scope: cluster, operations: deletions(), ignored: true,
			when: []admissionregistrationv1.MatchCondition{unless("not-ours", theControlPlane)},
		},
		{
			name: "definitiondeletionprotection.karmadactl.io", path: "/validate-definitiondeletionprotection",
			of: schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}, scope: cluster, operations: deletions(),
		},
	}
}

func policyResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "policy.karmada.io", Resource: resource}
}

func workResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "work.karmada.io", Resource: resource}
}

func configResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "config.karmada.io", Resource: resource}
}

func autoscalingResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "autoscaling.karmada.io", Resource: resource}
}

func networkingResource(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "networking.karmada.io", Resource: resource}
}

func creations() []admissionregistrationv1.OperationType {
	return []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
}

func deletions() []admissionregistrationv1.OperationType {
	return []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
}

// Webhooks returns what makes kube-apiserver ask the webhook server (spec: behaviour/08 8.1 to 8.3). What our own
// components write is not asked about: neither costs it a request, nor does it stop while nobody answers.
func Webhooks(server WebhookServer) ([]*unstructured.Unstructured, error) {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{names.SystemLabel: names.True, "app": names.Webhook}}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("mutating-config")}
	for _, h := range mutatingHooks() {
		v := h.webhook(server)
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules, MatchConditions: v.MatchConditions, ObjectSelector: v.ObjectSelector,
			FailurePolicy: v.FailurePolicy, TimeoutSeconds: v.TimeoutSeconds, SideEffects: v.SideEffects, AdmissionReviewVersions: v.AdmissionReviewVersions,
		})
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("validating-config")}
	for _, h := range validatingHooks() {
		validating.Webhooks = append(validating.Webhooks, h.webhook(server))
	}
	var objects []*unstructured.Unstructured
	for _, c := range []struct {
		kind string
		o    runtime.Object
	}{{"MutatingWebhookConfiguration", mutating}, {"ValidatingWebhookConfiguration", validating}} {
		u, err := toUnstructured(c.o, admissionregistrationv1.SchemeGroupVersion.WithKind(c.kind))
		if err != nil {
			return nil, err
		}
		objects = append(objects, u)
	}
	return objects, nil
}

func (h hook) webhook(server WebhookServer) admissionregistrationv1.ValidatingWebhook {
	if len(h.versions) == 0 {
		h.versions = []string{"*"}
	}
	if len(h.operations) == 0 {
		h.operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	}
	if h.timeout == 0 {
		h.timeout = answerTimeout
	}
	failure, effects := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	if h.ignored {
		failure = admissionregistrationv1.Ignore
	}
	if h.writes {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	var selector *metav1.LabelSelector
	if h.labelled != "" {
		selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: h.labelled, Operator: metav1.LabelSelectorOpExists}}}
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:         h.name,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(server.URL + h.path), CABundle: server.CA},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: h.operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{h.of.Group}, APIVersions: h.versions, Resources: []string{h.of.Resource}, Scope: &h.scope},
		}},
		MatchConditions: h.when, ObjectSelector: selector,
		FailurePolicy: &failure, TimeoutSeconds: &h.timeout, SideEffects: &effects,
		AdmissionReviewVersions: []string{"v1"},
	}
}

// convertBy has kube-apiserver ask the webhook server for the versions of a definition that are not stored (spec: api/README.md).
func convertBy(crd *apiextensionsv1.CustomResourceDefinition, server WebhookServer) {
	for _, r := range convertedResources() {
		if crd.Spec.Group == r.Group && crd.Spec.Names.Plural == r.Resource {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new(server.URL + convertPath), CABundle: server.CA},
					ConversionReviewVersions: []string{"v1"},
				},
			}
		}
	}
}

// toUnstructured is a typed object as it is applied.
func toUnstructured(o runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", gvk.Kind, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}
