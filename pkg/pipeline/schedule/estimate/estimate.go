// Package estimate tells how many replicas a cluster has room for: what is asked,
// what an estimator answers, and the general estimator, which reads what the
// cluster's status sums up (spec: behaviour/04 4.8, 4.16, 4.17).
//
// All of it is pure. Estimators that ask somebody else are the scheduler's, and
// their answers come to the algorithm as values.
package estimate

import (
	"math"
	"time"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// A Request is what is to be placed: many replicas, each like the other, or sets
// of components.
type Request struct {
	// Object is the template; estimators note it in their logs.
	Object workv1alpha2.ObjectReference
	// Replica is what one replica asks for. Nil: a place for a pod alone.
	Replica *workv1alpha2.ReplicaRequirements
	// Components are what one set consists of. Not empty: sets are counted, and
	// Replica means nothing.
	Components []workv1alpha2.Component
}

// Of returns what a binding asks estimators.
func Of(spec *workv1alpha2.ResourceBindingSpec) Request {
	return Request{Object: spec.Resource, Replica: spec.ReplicaRequirements, Components: spec.Components}
}

// Unknown is the answer of an estimator that cannot tell about a cluster. It
// does not count (spec: behaviour/04 4.8).
const Unknown int32 = -1

// An Answer is what one estimator says about one cluster.
type Answer struct {
	// Replicas is how many more replicas, or sets, fit; Unknown if that cannot be
	// told.
	Replicas int32
	// At is when what the answer is made from was true. Zero: nobody knows.
	At time.Time
	// By names the estimator.
	By string
	// Counted says that the estimator was told of what is reserved, and has counted
	// it.
	Counted bool
}

// Beside returns the answer to a request once others have taken what is reserved,
// unless they are counted in it. The room that an estimator sees, on certain nodes
// say, may be just what they take: so as much of what the request asks for is
// taken to be gone.
func (a Answer) Beside(held *Reserved, r Request) Answer {
	if a.Replicas <= 0 || a.Counted || held.IsEmpty() {
		return a
	}
	each, _ := r.unit()
	if len(each) == 0 {
		each = amounts{podsName: 1}
	}
	gone := int64(0)
	for name, amount := range each {
		gone = max(gone, (held.sums[name]+amount-1)/amount)
	}
	a.Replicas = clamp(int64(a.Replicas) - gone)
	return a
}

// unit returns what one replica, or one set of components, asks for, and how many
// pods it is.
func (r Request) unit() (each amounts, pods int64) {
	if len(r.Components) == 0 {
		if r.Replica != nil {
			each = amountsOf(r.Replica.ResourceRequest)
		}
		return each, 1
	}
	each = amounts{}
	for _, c := range r.Components {
		replicas := int64(max(0, c.Replicas))
		if replicas == 0 {
			continue
		}
		pods += replicas
		for name, amount := range amountsOf(requestOf(c)) {
			each[name] = min(mostReserved, each[name]+times(amount, replicas))
		}
	}
	return each, pods
}

// GeneralName is the name under which the general estimator answers.
const GeneralName = "general-estimator"

// A General estimator tells from a cluster's status. Which nodes a replica may
// run on is not considered.
type General struct {
	// Models counts free resources by node where the status does so: what fits
	// into their sum need not fit into any node.
	Models bool
}

// Replicas returns how many more replicas, or sets, fit into a cluster beside what
// is reserved there; nil when nothing is.
func (g General) Replicas(c *clusterv1alpha1.Cluster, r Request, held *Reserved) int32 {
	s := c.Status.ResourceSummary
	if s == nil {
		return 0
	}
	if len(r.Components) > 0 {
		return clamp(g.sets(c, r, held))
	}
	room := held.leaves(podsOf(s), podsName)
	if r.Replica == nil || room == 0 {
		return clamp(room)
	}
	if g.Models && len(s.AllocatableModelings) > 0 && len(c.Spec.ResourceModels) > 0 {
		return clamp(min(room, inModels(c, r.Replica.ResourceRequest, held)))
	}
	for name, request := range r.Replica.ResourceRequest {
		if amount := amountOf(name, request); amount > 0 {
			room = min(room, held.leaves(free(s, name), name)/amount)
		}
	}
	return clamp(room)
}

func clamp(n int64) int32 { return int32(max(0, min(n, math.MaxInt32))) }
