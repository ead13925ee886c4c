// Package member is how a member cluster is reached: clients, informers, push
// and pull.
//
// An Endpoint says where a member is and how connections to it are made,
// without credentials. Config adds the credentials that the control plane has
// for a push member. A Pool keeps one Member, a live connection, per cluster:
// whatever works with a cluster shares it, with its rate limit, and gets another
// one when the cluster's address or authority changes. A Member's informers
// watch only what this control plane manages, and only kinds that some Work needs.
//
// Nothing here waits for a member while it holds what another member needs.
package member
