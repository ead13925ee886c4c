package validate

import "testing"

func TestIngresses(t *testing.T) {
	const head = `
metadata: {namespace: shop, name: web}
`
	const backend = `backend: {service: {name: s, port: {number: 80}}}`
	path := func(p string) string {
		return `spec: {rules: [{http: {paths: [{` + p + `, ` + backend + `}]}}]}`
	}
	prefix := func(p string) string { return path(`pathType: Prefix, path: "` + p + `"`) }
	behind := func(b string) string { return `spec: {defaultBackend: {` + b + `}}` }
	const first = `spec.rules[0].http.paths[0].`
	check(t, ingresses(), head, map[string]ruleCase{
		"Default": {reason: "One backend for all.", object: behind(`service: {name: s, port: {name: http}}`)},
		"Rules": {reason: "Or one for each host and path.", object: `spec: {ingressClassName: a.b, tls: [{hosts: [a.b, "*.c.d"], secretName: s.t}], rules: [
  {host: a.b, http: {paths: [{pathType: Exact, path: /a/b, ` + backend + `}, {pathType: ImplementationSpecific, ` + backend + `}]}}, {host: "*.c.d"}]}`},
		"Nothing":       {reason: "It would lead nowhere.", object: `spec: {}`, want: []string{"spec: Required value: either `defaultBackend` or `rules` must be specified"}},
		"HostAddress":   {reason: "Requests have names of hosts.", object: `spec: {rules: [{host: 10.0.0.1}, {host: "::1"}]}`, want: []string{`spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address`, `spec.rules[1].host: Invalid value: "::1"`}},
		"Host":          {reason: "Names have letters of names.", object: `spec: {rules: [{host: a_b}, {host: "a.*.b"}]}`, want: []string{`spec.rules[0].host: Invalid value: "a_b"`, `spec.rules[1].host: Invalid value: "a.*.b"`}},
		"TLS":           {reason: "The same for those of certificates.", object: `spec: {defaultBackend: {service: {name: s, port: {number: 1}}}, tls: [{hosts: ["*"], secretName: A}]}`, want: []string{`spec.tls[0].hosts[0]: Invalid value: "*"`, `spec.tls[0].secretName: Invalid value: "A"`}},
		"Class":         {reason: "A class is an object.", object: `spec: {defaultBackend: {service: {name: s, port: {number: 1}}}, ingressClassName: "a b"}`, want: []string{`spec.ingressClassName: Invalid value: "a b"`}},
		"NoPaths":       {reason: "A rule for no path is none.", object: `spec: {rules: [{http: {paths: []}}]}`, want: []string{`spec.rules[0].http.paths: Required value`}},
		"NoType":        {reason: "How paths are compared must be said.", object: path(`path: /a`), want: []string{first + `pathType: Required value: pathType must be specified`}},
		"OtherType":     {reason: "There are three ways.", object: path(`pathType: Regex, path: /a`), want: []string{first + `pathType: Unsupported value: "Regex"`}},
		"Relative":      {reason: "A path begins at the root.", object: prefix("a"), want: []string{first + `path: Invalid value: "a": must be an absolute path`}},
		"NoPath":        {reason: "And is there.", object: path(`pathType: Exact`), want: []string{first + `path: Invalid value: "": must be an absolute path`}},
		"OwnRelative":   {reason: "Whatever it means.", object: path(`pathType: ImplementationSpecific, path: a`), want: []string{first + `path: Invalid value: "a": must be an absolute path`}},
		"OwnAnything":   {reason: "But servers may have a language of their own.", object: path(`pathType: ImplementationSpecific, path: "/a//(.*)/../%2f"`)},
		"Empty":         {reason: "Servers disagree on empty segments.", object: prefix("/a//b"), want: []string{first + `path: Invalid value: "/a//b": must not contain '//'`}},
		"Dots":          {reason: "And on dots.", object: prefix("/a/./b/../c"), want: []string{first + `path: …must not contain '/./'`, first + `path: …must not contain '/../'`}},
		"Slash":         {reason: "And on slashes in disguise.", object: prefix("/a%2fb%2Fc"), want: []string{first + `path: …must not contain '%2f'`, first + `path: …must not contain '%2F'`}},
		"DotsAtEnd":     {reason: "At the end as well.", object: prefix("/a/.."), want: []string{first + `path: …cannot end with '/..'`}},
		"DotAtEnd":      {reason: "One dot, too.", object: prefix("/a/."), want: []string{first + `path: …cannot end with '/.'`}},
		"Root":          {reason: "The shortest path.", object: prefix("/")},
		"NoBackend":     {reason: "It would lead nowhere.", object: behind(``), want: []string{`spec.defaultBackend: Required value: resource or service backend is required`}},
		"TwoBackends":   {reason: "There is one.", object: behind(`service: {name: s, port: {number: 1}}, resource: {kind: K, name: n}`), want: []string{`spec.defaultBackend: Invalid value: "": cannot set both resource and service backends`}},
		"Resource":      {reason: "It may be an object of any kind.", object: behind(`resource: {apiGroup: a.b, kind: K, name: n}`)},
		"BadResource":   {reason: "Which has a name that a URL can have.", object: behind(`resource: {kind: "", name: a/b}`), want: []string{`spec.defaultBackend.resource.kind: Required value`, `spec.defaultBackend.resource.name: Invalid value: "a/b"`}},
		"NoServiceName": {reason: "A service has a name and a port.", object: behind(`service: {name: ""}`), want: []string{`spec.defaultBackend.service.name: Required value`, `spec.defaultBackend.service.port: Required value: port name or number is required`}},
		"ServiceName":   {reason: "Such as services have.", object: behind(`service: {name: 1st, port: {number: 70000}}`), want: []string{`spec.defaultBackend.service.name: Invalid value: "1st"`, `spec.defaultBackend.service.port.number: Invalid value: 70000`}},
		"TwoPorts":      {reason: "A port has a name or a number.", object: behind(`service: {name: s, port: {name: http, number: 80}}`), want: []string{`spec.defaultBackend.service.port: Invalid value: "http": cannot set both port name & port number`}},
		"PortName":      {reason: "The name is one of a port.", object: behind(`service: {name: s, port: {name: a_b}}`), want: []string{`spec.defaultBackend.service.port.name: Invalid value: "a_b"`}},
	})
	const annotated = `{metadata: {annotations: {kubernetes.io/ingress.class: a}}, spec: {defaultBackend: {service: {name: s, port: {number: 1}}}`
	check(t, ingresses(), "", map[string]ruleCase{
		"OldClass":  {reason: "What came before the field still works.", object: annotated + `}}`},
		"TwoClasse": {reason: "Not beside it.", object: annotated + `, ingressClassName: b}}`, want: []string{`metadata.annotations[kubernetes.io/ingress.class]: Invalid value: "a": can not be set when the class field is also set`}},
	})
}
