// Package rebalancer asks the scheduler to divide the replicas of workloads anew,
// as WorkloadRebalancers say (spec: behaviour/10 10.6).
//
// It writes spec.rescheduleTriggeredAt of the workloads' bindings; what follows is
// the scheduler's. Each workload is asked for once: what has a result in the status
// keeps it. When there is no binding the result is that it failed; any other error
// is tried again, and holds up no other workload.
package rebalancer
