// Package match is the first stage of the pipeline: which policy wins for a
// template. It writes nothing. An Index knows every propagation policy by what
// it selects, so that the choice for one template looks at the policies that
// may select it, and not at all there are (spec: behaviour/03 3.4).
package match
