// Package features holds the feature gates that every component with a
// --feature-gates flag accepts (spec: cli/components.md 11).
//
// A gate is a value, made by New and handed to who asks it; a process that
// holds several components gives the same one to all of them.
package features

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// The gates of our own. Those of the logging library are added to them.
const (
	// Failover starts the taint manager, which evicts from tainted clusters.
	Failover featuregate.Feature = "Failover"
	// GracefulEviction keeps a workload where it is until its replacement is
	// healthy.
	GracefulEviction featuregate.Feature = "GracefulEviction"
	// PropagateDeps propagates what a template refers to along with it.
	PropagateDeps featuregate.Feature = "PropagateDeps"
	// CustomizedClusterResourceModeling counts nodes of a cluster by grades.
	CustomizedClusterResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"
	// PropagationPolicyPreemption lets a policy take a template from another.
	PropagationPolicyPreemption featuregate.Feature = "PropagationPolicyPreemption"
	// MultiClusterService makes services reachable across clusters.
	MultiClusterService featuregate.Feature = "MultiClusterService"
	// ResourceQuotaEstimate lets estimators look at quotas of members.
	ResourceQuotaEstimate featuregate.Feature = "ResourceQuotaEstimate"
	// StatefulFailoverInjection carries state over to where a workload moves.
	StatefulFailoverInjection featuregate.Feature = "StatefulFailoverInjection"
	// PriorityBasedScheduling schedules bindings by their priority.
	PriorityBasedScheduling featuregate.Feature = "PriorityBasedScheduling"
	// FederatedQuotaEnforcement refuses what exceeds a federated quota.
	FederatedQuotaEnforcement featuregate.Feature = "FederatedQuotaEnforcement"
	// MultiplePodTemplatesScheduling schedules workloads of several components.
	MultiplePodTemplatesScheduling featuregate.Feature = "MultiplePodTemplatesScheduling"
	// ControllerPriorityQueue works off changes before what an informer lists
	// at its start.
	ControllerPriorityQueue featuregate.Feature = "ControllerPriorityQueue"
	// WorkloadAffinity places workloads by where others are.
	WorkloadAffinity featuregate.Feature = "WorkloadAffinity"
	// SchedulingOvercommitProtection counts what was scheduled a moment ago.
	SchedulingOvercommitProtection featuregate.Feature = "SchedulingOvercommitProtection"
)

// New returns a gate that knows every feature, each with its default. AllAlpha
// and AllBeta set all features of their stage that are not set by name.
func New() (featuregate.MutableVersionedFeatureGate, error) {
	gate := featuregate.NewFeatureGate()
	if err := gate.AddVersioned(specs()); err != nil {
		return nil, fmt.Errorf("add feature gates: %w", err)
	}
	if err := logsapi.AddFeatureGates(gate); err != nil {
		return nil, fmt.Errorf("add feature gates of logging: %w", err)
	}
	return gate, nil
}

// Unread returns, sorted, those of the given features that are known and that
// nothing reads yet: setting them has no effect in this version.
func Unread(set map[string]bool) []string {
	known, read := specs(), readBy()
	var unread []string
	for name := range set {
		_, ours := known[featuregate.Feature(name)]
		if ours && !slices.Contains(read, featuregate.Feature(name)) {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	return unread
}

// readBy lists the features that something in this module reads; whoever makes
// a part that reads one adds it here.
func readBy() []featuregate.Feature {
	return []featuregate.Feature{
		ControllerPriorityQueue,
		CustomizedClusterResourceModeling,
		MultiplePodTemplatesScheduling,
		PriorityBasedScheduling,
		PropagateDeps,
		PropagationPolicyPreemption,
		ResourceQuotaEstimate,
		SchedulingOvercommitProtection,
		StatefulFailoverInjection,
		WorkloadAffinity,
	}
}

// specs is the table. Versions are those of the first release that had a gate
// in that stage; the library compares them with the version of Kubernetes it
// was built for, which is beyond all of them.
func specs() map[featuregate.Feature]featuregate.VersionedSpecs {
	alpha := func(since string) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Version: version.MustParse(since), PreRelease: featuregate.Alpha}
	}
	beta := func(since string, on bool) featuregate.FeatureSpec {
		return featuregate.FeatureSpec{Version: version.MustParse(since), PreRelease: featuregate.Beta, Default: on}
	}
	const first = "1.0"
	return map[featuregate.Feature]featuregate.VersionedSpecs{
		Failover:                          {beta(first, false)},
		GracefulEviction:                  {beta(first, true)},
		PropagateDeps:                     {beta(first, true)},
		CustomizedClusterResourceModeling: {beta(first, true)},
		PropagationPolicyPreemption:       {alpha(first)},
		MultiClusterService:               {alpha(first)},
		ResourceQuotaEstimate:             {alpha(first)},
		StatefulFailoverInjection:         {alpha("1.12")},
		PriorityBasedScheduling:           {alpha("1.13"), beta("1.19", true)},
		FederatedQuotaEnforcement:         {alpha("1.14")},
		MultiplePodTemplatesScheduling:    {alpha("1.15")},
		ControllerPriorityQueue:           {alpha("1.15"), beta("1.17", true)},
		WorkloadAffinity:                  {alpha("1.17")},
		// On here: taking the same room twice is what users lose pods by.
		SchedulingOvercommitProtection: {{Version: version.MustParse("1.18"), PreRelease: featuregate.Alpha, Default: true}},
	}
}
