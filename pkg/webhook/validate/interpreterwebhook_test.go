package validate

import "testing"

func TestInterpreterWebhooks(t *testing.T) {
	const good = `name: a.b.io, clientConfig: {url: "https://h/p"}, interpreterContextVersions: [v1alpha1]`
	hook := func(body string) string { return `webhooks: [{` + body + `}]` }
	client := func(config string) string {
		return hook(`name: a.b.io, clientConfig: {` + config + `}, interpreterContextVersions: [v1alpha1]`)
	}
	rule := func(body string) string { return hook(good + `, rules: [{` + body + `}]`) }
	versions := func(list string) string {
		return hook(`name: a.b.io, clientConfig: {url: "https://h"}, interpreterContextVersions: ` + list)
	}
	const kinds = `apiGroups: [""], apiVersions: [v1], kinds: [Pod]`
	check(t, interpreterWebhooks(), "", map[string]ruleCase{
		"None":       {reason: "No webhook is asked nothing.", object: `webhooks: []`},
		"Good":       {reason: "The least there is.", object: hook(good)},
		"TwoNames":   {reason: "They are told apart by their names.", object: `webhooks: [{` + good + `}, {` + good + `}]`, want: []string{`webhooks[1].name: Duplicate value: "a.b.io"`}},
		"ShortName":  {reason: "A name is fully qualified, as of the API server's own.", object: hook(`name: a, clientConfig: {url: "https://h"}, interpreterContextVersions: [v1alpha1]`), want: []string{`webhooks[0].name: Invalid value: "a"`}},
		"NoName":     {reason: "And it is there.", object: hook(`name: "", clientConfig: {url: "https://h"}, interpreterContextVersions: [v1alpha1]`), want: []string{`webhooks[0].name: Required value`}},
		"NoClient":   {reason: "It must be said where it is.", object: client(``), want: []string{`webhooks[0].clientConfig: Required value: exactly one of url or service is required`}},
		"BothClient": {reason: "Once.", object: client(`url: "https://h", service: {namespace: n, name: s}`), want: []string{`webhooks[0].clientConfig: Required value: exactly one of url or service is required`}},
		"Http":       {reason: "It is asked by TLS.", object: client(`url: "http://h"`), want: []string{`webhooks[0].clientConfig.url: Invalid value: "http"`}},
		"BadURL":     {reason: "What is no URL leads nowhere.", object: client(`url: "https://%"`), want: []string{`webhooks[0].clientConfig.url: `}},
		"Service":    {reason: "The port has a default.", object: client(`service: {namespace: n, name: s}`)},
		"Port":       {reason: "A port is a number.", object: client(`service: {namespace: n, name: s, port: 70000}`), want: []string{`webhooks[0].clientConfig.service.port: Invalid value: 70000`}},
		"NoService":  {reason: "Both parts of the name are needed.", object: client(`service: {namespace: "", name: ""}`), want: []string{`webhooks[0].clientConfig.service.name: Required value`, `webhooks[0].clientConfig.service.namespace: Required value`}},
		"Path":       {reason: "A path begins with a slash.", object: client(`service: {namespace: n, name: s, path: p}`), want: []string{`webhooks[0].clientConfig.service.path: Invalid value: "p"`, `webhooks[0].clientConfig.service.path: …segment[0] may not be empty`}},

		"Second":      {reason: "One second is the least.", object: hook(good + `, timeoutSeconds: 1`)},
		"HalfMinute":  {reason: "Thirty are the most.", object: hook(good + `, timeoutSeconds: 30`)},
		"NoTime":      {reason: "None is no time to answer.", object: hook(good + `, timeoutSeconds: 0`), want: []string{`webhooks[0].timeoutSeconds: Invalid value: 0: must be between 1 and 30 seconds`}},
		"LongTime":    {reason: "What waits for longer holds others up.", object: hook(good + `, timeoutSeconds: 31`), want: []string{`webhooks[0].timeoutSeconds: Invalid value: 31`}},
		"Wildcards":   {reason: "All operations on all kinds.", object: rule(`operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], kinds: ["*"]`)},
		"Operations":  {reason: "Every operation that is asked.", object: rule(`operations: [InterpretReplica, InterpretComponent, ReviseReplica, Retain, AggregateStatus, InterpretStatus, InterpretHealth, InterpretDependency], ` + kinds)},
		"Prune":       {reason: "It is never asked.", object: rule(`operations: [Prune], ` + kinds), want: []string{`webhooks[0].rules[0].operations[0]: Unsupported value: "Prune"`}},
		"Unknown":     {reason: "There is no such question.", object: rule(`operations: [Retain, Foo], ` + kinds), want: []string{`webhooks[0].rules[0].operations[1]: Unsupported value: "Foo"`}},
		"NoOperation": {reason: "A rule without says nothing.", object: rule(`operations: [], ` + kinds), want: []string{`webhooks[0].rules[0].operations: Required value`}},
		"AllAndOne":   {reason: "All are all.", object: rule(`operations: ["*", Retain], ` + kinds), want: []string{`webhooks[0].rules[0].operations: Invalid value: ["*","Retain"]: if '*' is present, must not specify other operations`}},
		"NoKinds":     {reason: "Nor does one without kinds.", object: rule(`operations: [Retain], apiGroups: [], apiVersions: [], kinds: []`), want: []string{`webhooks[0].rules[0].apiGroups: Required value`, `webhooks[0].rules[0].apiVersions: Required value`, `webhooks[0].rules[0].kinds: Required value`}},
		"EmptyNames":  {reason: "The core group has no name; versions and kinds have one.", object: rule(`operations: [Retain], apiGroups: [""], apiVersions: [""], kinds: [""]`), want: []string{`webhooks[0].rules[0].apiVersions[0]: Required value`, `webhooks[0].rules[0].kinds[0]: Required value`}},
		"AllAndKinds": {reason: "Kinds are as operations.", object: rule(`operations: [Retain], apiGroups: ["*", a], apiVersions: ["*", v1], kinds: ["*", K]`), want: []string{`webhooks[0].rules[0].apiGroups: …if '*' is present, must not specify other API groups`, `webhooks[0].rules[0].apiVersions: …other API versions`, `webhooks[0].rules[0].kinds: …other kinds`}},

		"NoVersion":    {reason: "It must be known how to ask.", object: versions(`[]`), want: []string{`webhooks[0].interpreterContextVersions: Required value`}},
		"OtherVersion": {reason: "We ask in one version.", object: versions(`[v1]`), want: []string{`webhooks[0].interpreterContextVersions: Invalid value: ["v1"]: must include v1alpha1`}},
		"MoreVersions": {reason: "Others may be there for others.", object: versions(`[v1, v1alpha1]`)},
		"SameVersion":  {reason: "Each once.", object: versions(`[v1alpha1, v1alpha1]`), want: []string{`webhooks[0].interpreterContextVersions[1]: Duplicate value: "v1alpha1"`}},
		"BadVersion":   {reason: "A version is a name.", object: versions(`[v1alpha1, "1"]`), want: []string{`webhooks[0].interpreterContextVersions[1]: Invalid value: "1"`}},
	})
}
