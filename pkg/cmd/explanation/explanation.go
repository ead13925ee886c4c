// Package explanation answers why an object of the control plane is where it is
// in the fleet, and what is in the way of the rest. It reads what there is (reader.go),
// judges it by the code that the control plane itself goes by (policies.go,
// clusters.go), names what is wrong or pending (findings.go), and writes that down
// for people (print.go). It writes nothing to any server.
//
// What only the control plane knows it cannot tell: the flags that its components
// run with, which are taken for the defaults, room that was given away a moment
// ago, and what customizations of interpreters say.
package explanation

import (
	"time"
)

// An Explanation tells how far an object has come on its way to member clusters.
type Explanation struct {
	// Summary says the most important in one line.
	Summary string `json:"summary"`
	// Template is the object in the control plane.
	Template Template `json:"template"`
	// Policies are those that select the object, the one that counts first, and then
	// those that lost against it.
	Policies []Policy `json:"policies,omitempty"`
	// NearMisses are policies that select objects of this kind, but not this one. They
	// are told of when no policy selects it.
	NearMisses []Policy `json:"nearMisses,omitempty"`
	// Binding is where the control plane notes what goes where. Nil: there is none.
	Binding *Binding `json:"binding,omitempty"`
	// Scheduling is what the scheduler would decide now. Nil: it has nothing to do with
	// the object.
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	// Clusters are all clusters, or the one that was asked about, by name.
	Clusters []Cluster `json:"clusters"`
	// Findings are what is wrong or pending, what is furthest up the way first.
	Findings []Finding `json:"findings"`
	// Warnings are the latest warnings that the control plane gave about the object, its
	// binding and its Works, the newest first.
	Warnings []Warning `json:"warnings,omitempty"`
	// Unread is what could not be read, and why: the answer has a gap there.
	Unread []string `json:"unread,omitempty"`
}

// A Template is the object as the control plane has it.
type Template struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// Created and Deleted are when that was asked for.
	Created *time.Time `json:"created,omitempty"`
	Deleted *time.Time `json:"deleted,omitempty"`
}

// A Verdict says what becomes of a policy.
type Verdict string

// The verdicts.
const (
	// Claimed says that the object is propagated by this policy.
	Claimed Verdict = "Claimed"
	// Wins says that this policy is the one to claim the object, and has not done so yet.
	Wins Verdict = "Wins"
	// Loses says that another policy comes first.
	Loses Verdict = "Loses"
	// Misses says that it does not select the object.
	Misses Verdict = "Misses"
)

// A Policy is a propagation policy.
type Policy struct {
	// Kind is PropagationPolicy or ClusterPropagationPolicy.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// Selects says by what it selects the object: name, labels or kind.
	Selects string  `json:"selects,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Reason says why it loses or misses.
	Reason string `json:"reason,omitempty"`
	// Deleted is when its deletion was asked for.
	Deleted *time.Time `json:"deleted,omitempty"`
}

// A Binding is the ResourceBinding or ClusterResourceBinding of the object.
type Binding struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Replicas are those of the object; nil when it has none that are scheduled.
	Replicas *int32 `json:"replicas,omitempty"`
	// Scheduler is who chooses the clusters.
	Scheduler string `json:"scheduler,omitempty"`
	// LastScheduled is when it did so last.
	LastScheduled *time.Time `json:"lastScheduled,omitempty"`
	// AffinityTerm is the term of the placement that is in use.
	AffinityTerm string `json:"affinityTerm,omitempty"`
	// RequiredBy are the bindings for whose sake the object goes where they are.
	RequiredBy []string `json:"requiredBy,omitempty"`
	// Conditions are its conditions Scheduled and FullyApplied.
	Conditions []Condition `json:"conditions,omitempty"`
	Deleted    *time.Time  `json:"deleted,omitempty"`
}

// A Condition is one of a binding, a Work or a cluster.
type Condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
}

// Scheduling is a decision that was tried and not written.
type Scheduling struct {
	// Cause is why the scheduler has to look at the object now. Empty: it leaves it as
	// it is.
	Cause string `json:"cause,omitempty"`
	// Condition is what it would say of the outcome.
	Condition Condition `json:"condition"`
	// Targets are the clusters that it would choose.
	Targets []Target `json:"targets,omitempty"`
}

// A Target is a cluster, and its share of the replicas.
type Target struct {
	Cluster  string `json:"cluster"`
	Replicas int32  `json:"replicas"`
}

// A Cluster tells what becomes of the object in one member cluster.
type Cluster struct {
	Name string `json:"name"`
	// Chosen says that the object shall be there.
	Chosen bool `json:"chosen"`
	// Verdict is what the scheduler thinks of the cluster, in one line, and Stage how far
	// it came.
	Verdict string `json:"verdict,omitempty"`
	Stage   string `json:"stage,omitempty"`
	// RefusedBy is the filter that refuses the cluster, and RefusedFor why.
	RefusedBy  string `json:"refusedBy,omitempty"`
	RefusedFor string `json:"refusedFor,omitempty"`
	// Score is how much the scheduler likes it; nil when it was not looked at.
	Score *int64 `json:"score,omitempty"`
	// Replicas are those that it has been given.
	Replicas *int32 `json:"replicas,omitempty"`
	// Estimates are how many more replicas it is said to have room for.
	Estimates []Estimate `json:"estimates,omitempty"`
	// Ready is the condition of the cluster itself; nil when it has never said anything.
	Ready *Condition `json:"ready,omitempty"`
	// Leaving says why the object is about to leave the cluster.
	Leaving string `json:"leaving,omitempty"`
	// Overrides are the rules that make the object differ there, in their order.
	Overrides []Override `json:"overrides,omitempty"`
	// OverrideError says which one cannot be applied, and why. Then none is.
	OverrideError string `json:"overrideError,omitempty"`
	// Work is what carries the object there; nil when there is none.
	Work *Work `json:"work,omitempty"`
}

// An Estimate is an answer of an estimator.
type Estimate struct {
	// Replicas is nil when it cannot tell.
	Replicas *int32 `json:"replicas,omitempty"`
	By       string `json:"by"`
}

// An Override is a rule of an override policy that applies.
type Override struct {
	// Kind is OverridePolicy or ClusterOverridePolicy.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Changes are the sorts of overriders in it, as the policy calls them.
	Changes []string `json:"changes"`
}

// A Work is what carries the object to a cluster, and what that says.
type Work struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Generation is that of the template that it carries; 0 when it does not say.
	Generation int64 `json:"templateGeneration,omitempty"`
	Suspended  bool  `json:"suspended,omitempty"`
	// Applied says whether the cluster has it. Nil: nobody has said yet.
	Applied *Condition `json:"applied,omitempty"`
	// Health is that of the object in the cluster: Healthy, Unhealthy or Unknown.
	Health  string     `json:"health,omitempty"`
	Created *time.Time `json:"created,omitempty"`
	Deleted *time.Time `json:"deleted,omitempty"`
}

// A Warning is an event of type Warning.
type Warning struct {
	// About is the kind and name of what it is about.
	About   string     `json:"about"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	Count   int32      `json:"count,omitempty"`
	Last    *time.Time `json:"last,omitempty"`
}

// A Code says what sort of thing was found; scripts can rely on it.
type Code string

// The codes, in the order of the way.
const (
	// TemplateDeleting: the object is being deleted.
	TemplateDeleting Code = "TemplateDeleting"
	// NamespaceSkipped: nothing in this namespace is propagated.
	NamespaceSkipped Code = "NamespaceSkipped"
	// KindSkipped: nothing of this kind is propagated.
	KindSkipped Code = "KindSkipped"
	// ClaimedElsewhere: a controller has taken the object for itself.
	ClaimedElsewhere Code = "ClaimedElsewhere"
	// NoPolicy: no policy selects the object.
	NoPolicy Code = "NoPolicy"
	// PolicyDeleting: the policy that counts is being deleted.
	PolicyDeleting Code = "PolicyDeleting"
	// PolicyGone: the policy that claimed the object is not there any more.
	PolicyGone Code = "PolicyGone"
	// PolicyReleased: the policy that claimed the object does not select it any more.
	PolicyReleased Code = "PolicyReleased"
	// ClaimPending: a policy selects the object and has not claimed it yet.
	ClaimPending Code = "ClaimPending"
	// OverridesMissing: the policy waits for override policies that it names.
	OverridesMissing Code = "OverridesMissing"
	// LazyWaiting: the policy waits for somebody to change the object.
	LazyWaiting Code = "LazyWaiting"
	// BindingMissing: there is no binding yet.
	BindingMissing Code = "BindingMissing"
	// BindingDeleting: the binding is being deleted.
	BindingDeleting Code = "BindingDeleting"
	// Released: nobody propagates the object any more; what clusters have stays there.
	Released Code = "Released"
	// SchedulingSuspended: the scheduler is told to stay away from it.
	SchedulingSuspended Code = "SchedulingSuspended"
	// OtherScheduler: another scheduler is to choose the clusters, and has not.
	OtherScheduler Code = "OtherScheduler"
	// NoClusterFit: no cluster may be used.
	NoClusterFit Code = "NoClusterFit"
	// KeptInPlace: no cluster may be used, and the object stays where it is.
	KeptInPlace Code = "KeptInPlace"
	// Unschedulable: clusters lack room.
	Unschedulable Code = "Unschedulable"
	// QuotaExceeded: a FederatedResourceQuota forbids it.
	QuotaExceeded Code = "QuotaExceeded"
	// SchedulerError: the scheduler failed.
	SchedulerError Code = "SchedulerError"
	// SchedulingPending: the scheduler has not looked at it as it is.
	SchedulingPending Code = "SchedulingPending"
	// Refused: the scheduler refuses the one cluster that is asked about.
	Refused Code = "Refused"
	// DispatchingSuspended: Works are not sent to clusters.
	DispatchingSuspended Code = "DispatchingSuspended"
	// ClusterGone: a cluster that was chosen does not exist any more.
	ClusterGone Code = "ClusterGone"
	// ClusterLeaving: a cluster that was chosen is being deleted.
	ClusterLeaving Code = "ClusterLeaving"
	// ClusterNotReady: a cluster that was chosen does not answer, or is not healthy.
	ClusterNotReady Code = "ClusterNotReady"
	// Evicting: the object is leaving a cluster.
	Evicting Code = "Evicting"
	// OverrideFailed: an override policy cannot be applied.
	OverrideFailed Code = "OverrideFailed"
	// WorkMissing: there is no Work for a cluster that was chosen.
	WorkMissing Code = "WorkMissing"
	// WorkOutdated: the Work carries an earlier state of the object.
	WorkOutdated Code = "WorkOutdated"
	// WorkDeleting: a Work is being deleted.
	WorkDeleting Code = "WorkDeleting"
	// ApplyPending: the cluster has not said whether it has what the Work carries.
	ApplyPending Code = "ApplyPending"
	// KindMissing: the cluster, or every cluster that is meant, does not know the kind of
	// the object.
	KindMissing Code = "KindMissing"
	// Conflict: the cluster has an object of that name that is not the control plane's.
	Conflict Code = "Conflict"
	// NotApplied: the cluster does not take the object.
	NotApplied Code = "NotApplied"
	// Unhealthy: the object does not work in the cluster.
	Unhealthy Code = "Unhealthy"
)

// A Finding is something that is wrong or pending.
type Finding struct {
	Code Code `json:"code"`
	// Cluster is where; empty when it is about the object as a whole.
	Cluster string `json:"cluster,omitempty"`
	// Message says what, and why.
	Message string `json:"message"`
	// Since is when it began, if that is known.
	Since *time.Time `json:"since,omitempty"`
	// Next is the command to type next.
	Next string `json:"next,omitempty"`
}
