package validate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverridePolicies(t *testing.T) {
	const head = `
metadata: {namespace: shop, name: p}
`
	rule := func(overriders string) string { return `spec: {overrideRules: [{overriders: {` + overriders + `}}]}` }
	const at = `spec.overrideRules[0].overriders.`
	check(t, overridePolicies(), head, map[string]ruleCase{
		"Everything": {
			reason: "What the contract has may be used all at once.",
			object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: shop}], overrideRules: [{
targetCluster: {labelSelector: {matchLabels: {a: b}}, fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [z]}]}},
overriders: {
  imageOverrider: [{component: Tag, operator: replace, value: v2, predicate: {path: /spec/a~1b/0}}, {component: Registry, operator: remove}],
  commandOverrider: [{containerName: c, operator: add, value: [x]}], argsOverrider: [{containerName: c, operator: remove, value: [x]}],
  labelsOverrider: [{operator: add, value: {a/b: c}}], annotationsOverrider: [{operator: remove, value: {a: "any text: at all"}}],
  fieldOverrider: [{fieldPath: /data/x.json, json: [{subPath: /a, operator: add, value: {b: [1]}}, {subPath: /c, operator: remove}]},
    {fieldPath: /data/x.yaml, yaml: [{subPath: /a, operator: replace, value: false}]}],
  plaintext: [{path: /spec/replicas, operator: replace, value: 3}, {path: /a~0b, operator: remove}]}}]}`,
		},
		"Empty":            {reason: "Nothing is overridden, which does no harm.", object: `spec: {}`},
		"OtherNamespace":   {reason: "A namespaced policy selects in its own namespace alone.", object: `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: bank}]}`, want: []string{`spec.resourceSelectors[0].namespace: Invalid value: "bank"`}},
		"RulesAndTarget":   {reason: "The deprecated fields would be ignored.", object: `spec: {targetCluster: {}, overrideRules: [{overriders: {}}]}`, want: []string{`spec.targetCluster: Forbidden`}},
		"RulesAndOthers":   {reason: "Here, too.", object: `spec: {overriders: {plaintext: [{path: /a, operator: remove}]}, overrideRules: [{overriders: {}}]}`, want: []string{`spec.overriders: Forbidden`}},
		"RulesAndDocument": {reason: "The contract does not count it; there is a warning.", object: `spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}, overrideRules: [{overriders: {}}]}`},
		"Deprecated":       {reason: "Without rules the deprecated fields are in use.", object: `spec: {targetCluster: {clusterNames: [m1]}, overriders: {plaintext: [{path: /a, operator: add}]}}`},
		"DeprecatedWrong":  {reason: "They fail for the same reasons.", object: `spec: {targetCluster: {fieldSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}, overriders: {plaintext: [{path: a, operator: add}]}}`, want: []string{`spec.targetCluster.fieldSelector.matchExpressions[0].key: …unsupported key "a", must be provider, region, or zone`, `spec.overriders.plaintext[0].path: `}},
		"Target":           {reason: "Clusters are selected as everywhere.", object: `spec: {overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: zone, operator: Lt, values: [b]}]}}, overriders: {}}]}`, want: []string{`spec.overrideRules[0].targetCluster.fieldSelector.matchExpressions[0].operator: …unsupported operator "Lt", must be In or NotIn`}},

		"LabelValue":      {reason: "No cluster would take it.", object: rule(`labelsOverrider: [{operator: add, value: {a: "b c"}}]`), want: []string{at + `labelsOverrider[0].value: Invalid value: "b c"`}},
		"LabelKey":        {reason: "Nor that.", object: rule(`labelsOverrider: [{operator: remove, value: {"a b": ""}}]`), want: []string{at + `labelsOverrider[0].value: Invalid value: "a b"`}},
		"AnnotationKey":   {reason: "Annotations have any value, and keys as labels have.", object: rule(`annotationsOverrider: [{operator: add, value: {"a b": "c d"}}]`), want: []string{at + `annotationsOverrider[0].value: Invalid value: "a b"`}},
		"ImagePath":       {reason: "A path begins at the root.", object: rule(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: spec/image}}]`), want: []string{at + `imageOverrider[0].predicate.path: Invalid value: "spec/image"`}},
		"Escape":          {reason: "A tilde means something.", object: rule(`imageOverrider: [{component: Tag, operator: remove, predicate: {path: /a~2}}, {component: Tag, operator: remove, predicate: {path: /a~}}]`), want: []string{at + `imageOverrider[0].predicate.path: Invalid value: "/a~2"`, at + `imageOverrider[1].predicate.path: Invalid value: "/a~"`}},
		"Plaintext":       {reason: "A path that is none would fail at every cluster.", object: rule(`plaintext: [{path: "", operator: remove}]`), want: []string{at + `plaintext[0].path: Invalid value: ""`}},
		"BothDocuments":   {reason: "A document is one of them.", object: rule(`fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}], yaml: [{subPath: /a, operator: remove}]}]`), want: []string{at + `fieldOverrider[0].yaml: Forbidden`}},
		"NoDocument":      {reason: "Which document it is must be said.", object: rule(`fieldOverrider: [{fieldPath: /a}]`), want: []string{at + `fieldOverrider[0]: Required value`}},
		"DocumentPath":    {reason: "Both paths are pointers.", object: rule(`fieldOverrider: [{fieldPath: a, yaml: [{subPath: b, operator: remove}]}]`), want: []string{at + `fieldOverrider[0].fieldPath: Invalid value: "a"`, at + `fieldOverrider[0].yaml[0].subPath: Invalid value: "b"`}},
		"NoValue":         {reason: "What is added has to be there. The API server makes no difference between null and nothing.", object: rule(`fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: add}, {subPath: /b, operator: replace}, {subPath: /b, operator: add, value: null}]}]`), want: []string{at + `fieldOverrider[0].json[0].value: Required value`, at + `fieldOverrider[0].json[1].value: Required value`, at + `fieldOverrider[0].json[2].value: Required value`}},
		"RemovedValue":    {reason: "To remove is not to compare.", object: rule(`fieldOverrider: [{fieldPath: /a, yaml: [{subPath: /a, operator: remove, value: 1}]}]`), want: []string{at + `fieldOverrider[0].yaml[0].value: Forbidden`}},
		"UnknownOperator": {reason: "The schema refuses it first, but who knows.", object: rule(`fieldOverrider: [{fieldPath: /a, yaml: [{subPath: /a, operator: move}]}]`), want: []string{at + `fieldOverrider[0].yaml[0].operator: Unsupported value: "move"`}},
		"SecondRule":      {reason: "Every rule is looked at.", object: `spec: {overrideRules: [{overriders: {}}, {overriders: {plaintext: [{path: a, operator: remove}]}}]}`, want: []string{`spec.overrideRules[1].overriders.plaintext[0].path: `}},
	})
	check(t, clusterOverridePolicies(), `metadata: {name: p}`, map[string]ruleCase{
		"AnyNamespace": {reason: "It selects in every namespace, or in one.", object: "\n" + `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: bank}, {apiVersion: v1, kind: Secret}]}`},
		"SameRules":    {reason: "What the two scopes share has the same rules.", object: "\n" + `spec: {overrideRules: [{overriders: {plaintext: [{path: a, operator: remove}]}}]}`, want: []string{`spec.overrideRules[0].overriders.plaintext[0].path: `}},
	})
}

func TestOverrideAdvice(t *testing.T) {
	const ignored = `spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}, overrideRules: [{overriders: {}}]}`
	const used = `spec: {overriders: {fieldOverrider: [{fieldPath: /a, json: [{subPath: /a, operator: remove}]}]}}`
	want := []string{"spec.overriders has no effect beside spec.overrideRules: move its fieldOverrider into a rule"}
	if diff := cmp.Diff(want, advise(t, overridePolicies(), ignored)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, advise(t, clusterOverridePolicies(), ignored)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := advise(t, overridePolicies(), used); got != nil {
		t.Errorf("got %q: it is in use", got)
	}
}
