// Package dependencies is the part of stage bind that sends along what a template
// refers to: the ConfigMaps and Secrets of a Deployment, for example, when its
// policy says propagateDeps (spec: behaviour/03 3.10).
//
// A ResourceBinding that asks for it is called independent here. What its template
// depends on is recorded on it, and each of those objects gets a binding of its own,
// which is attached: it goes to the clusters of the bindings that require it. A
// template can be required by several bindings, and be claimed by a policy as well.
//
// A dependency is detached only when the template was read and interpreted, and does
// not name it: whatever cannot be found out leaves everything as it is.
package dependencies
