package validate

import "testing"

func TestTaintPolicies(t *testing.T) {
	const head = `
metadata: {name: p}
`
	taints := func(list string) string { return `spec: {taints: [` + list + `]}` }
	condition := func(c string) string {
		return `spec: {taints: [{key: a, effect: NoSchedule}], addOnConditions: [{` + c + `}]}`
	}
	cases := map[string]ruleCase{
		"Everything": {reason: "What the contract has.", object: `spec: {targetClusters: {clusterNames: [m1]}, taints: [{key: a.b/c, value: v, effect: NoSchedule}, {key: a.b/c, effect: PreferNoSchedule}],
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}], removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True", Unknown, "False"]}]}`},
		"Twice":        {reason: "Which value it has could not be told.", object: taints(`{key: a, value: b, effect: NoSchedule}, {key: a, value: c, effect: NoSchedule}`), want: []string{`spec.taints[1]: Duplicate value: "a:NoSchedule"`}},
		"Key":          {reason: "No cluster would take it.", object: taints(`{key: "a b", effect: NoSchedule}, {key: "", effect: NoSchedule}`), want: []string{`spec.taints[0].key: Invalid value: "a b"`, `spec.taints[1].key: Required value`}},
		"Value":        {reason: "Nor that.", object: taints(`{key: a, value: "b c", effect: NoSchedule}`), want: []string{`spec.taints[0].value: Invalid value: "b c"`}},
		"Effect":       {reason: "There are three.", object: taints(`{key: a, effect: Foo}, {key: a, effect: ""}`), want: []string{`spec.taints[0].effect: Unsupported value: "Foo"`, `spec.taints[1].effect: Unsupported value: ""`}},
		"Clusters":     {reason: "Clusters are selected as everywhere.", object: `spec: {taints: [{key: a, effect: NoSchedule}], targetClusters: {fieldSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}}`, want: []string{`spec.targetClusters.fieldSelector.matchExpressions[0].key: …unsupported key "a"`}},
		"NoCondition":  {reason: "It would never hold, or always.", object: condition(`conditionType: "", operator: Is, statusValues: []`), want: []string{`spec.addOnConditions[0].conditionType: Required value`, `spec.addOnConditions[0].operator: Unsupported value: "Is"`, `spec.addOnConditions[0].statusValues: Required value`}},
		"StatusValues": {reason: "A status is one of three.", object: condition(`conditionType: Ready, operator: In, statusValues: ["true"]`), want: []string{`spec.addOnConditions[0].statusValues[0]: Unsupported value: "true"`}},
		"Removal":      {reason: "Both lists have the same rules.", object: `spec: {taints: [{key: a, effect: NoSchedule}], removeOnConditions: [{conditionType: Ready, operator: "", statusValues: [Unknown]}]}`, want: []string{`spec.removeOnConditions[0].operator: Unsupported value: ""`}},
	}
	check(t, taintPolicies(false), head, cases)
	check(t, taintPolicies(true), head, cases)

	evicting := taints(`{key: a, effect: NoExecute}, {key: a, effect: NoSchedule}`)
	check(t, taintPolicies(false), head, map[string]ruleCase{
		"NoExecute": {reason: "It moves workloads, in all clusters at once if it is wrong.", object: evicting, want: []string{`spec.taints[0].effect: Forbidden…--allow-no-execute-taint-policy`}},
	})
	check(t, taintPolicies(true), head, map[string]ruleCase{
		"NoExecute": {reason: "Whoever runs the control plane may allow it.", object: evicting},
	})
}
