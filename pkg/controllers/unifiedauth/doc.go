// Package unifiedauth lets users reach members as themselves: whoever may use
// the proxy to a cluster, by a ClusterRole of the control plane, may be
// impersonated there. The rights for that travel to each member in two Works
// (spec: behaviour/02 2.8).
package unifiedauth
