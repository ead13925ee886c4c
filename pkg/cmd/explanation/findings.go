package explanation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// A judge names what is wrong or pending, in the order of the way from a template to
// its clusters.
type judge struct {
	*Explainer
	*facts
	ranking ranking
	told    []Cluster
	found   []Finding
}

func (j *judge) add(code Code, since *time.Time, next, format string, args ...any) {
	j.found = append(j.found, Finding{Code: code, Message: fmt.Sprintf(format, args...), Since: since, Next: next})
}

func (j *judge) in(cluster string, code Code, since *time.Time, next, format string, args ...any) {
	j.found = append(j.found, Finding{Code: code, Cluster: cluster, Message: fmt.Sprintf(format, args...), Since: since, Next: next})
}

func (j *judge) judge() []Finding {
	j.found = []Finding{}
	if at := j.template.GetDeletionTimestamp(); at != nil {
		held := "nothing holds it back"
		if finalizers := j.template.GetFinalizers(); len(finalizers) > 0 {
			held = "it waits for " + strings.Join(finalizers, ", ")
		}
		j.add(TemplateDeleting, moment(at.Time), j.command("get %s -o yaml", j.self()), "it is being deleted: %s", held)
	}
	if j.skipped() {
		return j.found
	}
	if !j.auto {
		j.judgePolicy()
		j.judgeBinding()
	}
	for i := range j.told {
		j.judgeCluster(&j.told[i])
	}
	return j.found
}

// skipped reports whether the control plane leaves the template alone.
func (j *judge) skipped() bool {
	s := j.subject
	switch {
	case j.binding != nil:
		return false // its settings are not the ones that we take them for
	case j.apis.Has(s.GVK()):
		j.add(KindSkipped, nil, j.command("explain %s", j.kind()), "objects of %s are never propagated", s.APIVersion)
	case names.IsReservedNamespace(j.inNamespace()):
		j.add(NamespaceSkipped, nil, j.elsewhere(), "namespace %s is reserved for the control plane: nothing in it is propagated", j.inNamespace())
	case j.namespaces.Has(j.inNamespace()):
		j.add(NamespaceSkipped, nil, j.elsewhere(), "namespace %s is skipped, as all are whose names match the control plane's --skipped-propagating-namespaces, by default %s", j.inNamespace(), defaultSkipped)
	case j.auto && s.Name == names.DefaultNamespace:
		j.add(NamespaceSkipped, nil, j.command("get %s --operation-scope=all", j.self()), "namespace %s is not propagated: every cluster has its own", s.Name)
	case j.auto && strings.EqualFold(s.Labels[names.SkipAutoPropagationLabel], names.True):
		j.add(NamespaceSkipped, nil, j.command("label %s %s-", j.self(), names.SkipAutoPropagationLabel), "its label %s keeps it from being propagated", names.SkipAutoPropagationLabel)
	case s.Labels[names.ClaimedByLabel] != "":
		j.add(ClaimedElsewhere, nil, j.command("label %s %s-", j.self(), names.ClaimedByLabel), "its label %s says that %s takes care of it, and not policies", names.ClaimedByLabel, s.Labels[names.ClaimedByLabel])
	default:
		return false
	}
	return true
}

// inNamespace returns the namespace that decides whether the template is skipped.
func (j *judge) inNamespace() string {
	if j.auto {
		return j.subject.Name
	}
	return j.subject.Namespace
}

func (j *judge) elsewhere() string {
	if j.auto {
		return j.command("get namespaces")
	}
	return j.command("get %s -o yaml", j.self()) // to make it anew in another namespace
}

// judgePolicy looks at what comes before the binding (spec: behaviour/03 3.2, 3.3).
func (j *judge) judgePolicy() {
	r, template := j.ranking, j.template
	required := j.binding != nil && len(j.binding.BindingSpec().RequiredBy) > 0
	created := moment(template.GetCreationTimestamp().Time)
	if r.claimed && r.holder == nil && !j.lacks("Policies") {
		j.add(PolicyGone, nil, j.command("status"), "%s %s has claimed it and is not there any more; the control plane is to let go of it", kindOfClaim(r.claim), r.claim)
	}
	if r.holder != nil && j.level(r.holder) == policy.None {
		j.add(PolicyReleased, nil, j.edit(r.holder), "%s %s has claimed it and does not select it any more: %s", kindOfClaim(r.claim), r.claim, cmp.Or(j.missReason(r.holder), "none of its selectors is for this kind"))
	}
	p := r.counts
	if p == nil {
		switch {
		case len(j.found) > 0 && r.claimed: // said above
		case required || j.binding != nil && j.isManaged() || j.lacks("Policies"):
		case j.binding != nil && isOurs(j.binding):
			j.add(Released, nil, j.policies(), "no policy propagates it any more; what clusters have of it stays there as it is")
		case len(r.misses) == 1:
			j.add(NoPolicy, created, j.command("edit %s", referTo(r.misses[0])), "no policy selects it; the only one for its kind, %s %s, does not: %s", r.misses[0].Kind, pathOf(r.misses[0].Namespace, r.misses[0].Name), r.misses[0].Reason)
		case len(r.misses) > 0:
			j.add(NoPolicy, created, j.policies(), "no policy selects it, though %d are for its kind", len(r.misses))
		default:
			j.add(NoPolicy, created, j.policies(), "no policy selects it, and none is for its kind")
		}
		return
	}
	spec, name := p.PropagationSpec(), fmt.Sprintf("%s %s", kindOfPolicy(p), policy.By(p))
	if at := p.GetDeletionTimestamp(); at != nil {
		held := ""
		if finalizers := p.GetFinalizers(); len(finalizers) > 0 {
			held = ", and waits for " + strings.Join(finalizers, ", ")
		}
		j.add(PolicyDeleting, moment(at.Time), j.command("get %s -o yaml", reference(p)), "%s selects it, but is being deleted%s; what clusters have stays until another policy takes over", name, held)
	}
	if missing := j.missingOverrides(p); len(missing) > 0 {
		kind := "overridepolicies"
		if p.GetNamespace() == "" {
			kind = "clusteroverridepolicies"
		}
		j.add(OverridesMissing, created, j.command("get %s%s", kind, in(p.GetNamespace())), "%s waits for the override policies in its dependentOverrides that do not exist: %s", name, strings.Join(missing, ", "))
		return
	}
	if !r.claimed || r.holder != p {
		since := created
		if at := p.GetCreationTimestamp(); created != nil && at.After(*created) {
			since = moment(at.Time)
		}
		if p.GetDeletionTimestamp() == nil {
			j.add(ClaimPending, since, j.command("status"), "%s selects it and has not claimed it yet", name)
		}
		return
	}
	if spec.ActivationPreference == policyv1alpha1.LazyActivation && j.isWaiting(spec) {
		j.add(LazyWaiting, moment(p.GetCreationTimestamp().Time), j.command("annotate --overwrite %s activated-at=%q", j.self(), j.facts.now.UTC().Format(time.RFC3339)),
			"%s is lazy (activationPreference: Lazy): what it says now counts once somebody changes the object", name)
		return
	}
	if j.binding == nil {
		why := ""
		if w := j.warning(names.EventApplyPolicyFailed); w != nil {
			why = ": " + w.Message
		}
		j.add(BindingMissing, created, j.command("describe %s", j.self()), "%s has claimed it, and there is no binding yet%s", name, why)
	}
}

// isWaiting reports whether a lazy policy says something that its binding does not.
func (j *judge) isWaiting(spec *policyv1alpha1.PropagationSpec) bool {
	return j.binding == nil || j.binding.BindingSpec().Placement == nil || !equality.Semantic.DeepEqual(*j.binding.BindingSpec().Placement, spec.Placement)
}

func (j *judge) missingOverrides(p policy.Object) []string {
	there := map[string]bool{}
	what := "OverridePolicies"
	if p.GetNamespace() == "" {
		what = "ClusterOverridePolicies"
		for i := range j.cops {
			there[j.cops[i].Name] = true
		}
	} else {
		for i := range j.ops {
			there[j.ops[i].Name] = true
		}
	}
	if j.lacks(what) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.PropagationSpec().DependentOverrides), func(name string) bool { return there[name] })
}

// judgeBinding looks at the binding and at what the scheduler says of it.
func (j *judge) judgeBinding() {
	b := j.binding
	if b == nil {
		return
	}
	spec := b.BindingSpec()
	if at := b.GetDeletionTimestamp(); at != nil {
		j.add(BindingDeleting, moment(at.Time), j.command("get %s -o yaml", j.bindingRef()), "its binding is being deleted, and waits for %s", strings.Join(b.GetFinalizers(), ", "))
		return
	}
	if s := spec.Suspension; s != nil {
		if ptr.Deref(s.Scheduling, false) {
			j.add(SchedulingSuspended, nil, j.command(`patch %s --type=merge -p '{"spec":{"suspension":{"scheduling":null}}}'`, j.bindingRef()),
				"spec.suspension.scheduling of its binding keeps the scheduler away%s", cmp.Or(j.whereItIs(), ", and it gets no clusters"))
		}
		if ptr.Deref(s.Dispatching, false) {
			j.add(DispatchingSuspended, nil, j.resume(), "dispatching is suspended: clusters keep what they have, and get nothing new")
		} else if s.DispatchingOnClusters != nil {
			for _, c := range s.DispatchingOnClusters.ClusterNames {
				if j.asked(c) {
					j.in(c, DispatchingSuspended, nil, j.resume(), "dispatching to it is suspended: it keeps what it has, and gets nothing new")
				}
			}
		}
		if ptr.Deref(s.Scheduling, false) {
			return
		}
	}
	if spec.Placement != nil && (j.ranking.counts != nil || j.isManaged()) {
		j.judgeScheduling()
	}
}

// resume returns the command that ends a suspension of dispatching.
func (j *judge) resume() string {
	if p := j.ranking.counts; p != nil && p.PropagationSpec().Suspension != nil {
		return j.command(`patch %s --type=merge -p '{"spec":{"suspension":null}}'`, reference(p))
	}
	return j.command(`patch %s --type=merge -p '{"spec":{"suspension":{"dispatching":null,"dispatchingOnClusters":null}}}'`, j.bindingRef())
}

// judgeScheduling reads the condition Scheduled (spec: behaviour/04 4.4).
func (j *judge) judgeScheduling() {
	b, spec := j.binding, j.binding.BindingSpec()
	created := moment(b.GetCreationTimestamp().Time)
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ConditionScheduled)
	if c == nil {
		if scheduler := spec.SchedulerName; scheduler != "" && scheduler != names.DefaultScheduler {
			j.add(OtherScheduler, created, j.editPolicy(), "scheduler %q is to choose its clusters, and has not said anything yet; the control plane's own is %s", scheduler, names.DefaultScheduler)
			return
		}
		j.add(SchedulingPending, created, j.command("status"), "the scheduler has not looked at its binding yet")
		return
	}
	since := moment(c.LastTransitionTime.Time)
	code := map[string]Code{
		workv1alpha2.ReasonNoClusterFit: NoClusterFit, workv1alpha2.ReasonUnschedulable: Unschedulable, workv1alpha2.ReasonQuotaExceeded: QuotaExceeded,
	}[c.Reason]
	switch {
	case c.Status == metav1.ConditionTrue && b.BindingStatus().SchedulerObservedGeneration < b.GetGeneration():
		j.add(SchedulingPending, nil, j.command("status"), "the scheduler has not looked at its binding as it is now (generation %d; it knows %d)", b.GetGeneration(), b.BindingStatus().SchedulerObservedGeneration)
	case c.Status == metav1.ConditionTrue:
	case code == NoClusterFit && len(spec.Clusters) == 0 && j.mostRefusals() == kindPlugin:
		j.add(KindMissing, since, j.nextForRefusals(), "no cluster fits, as those that are meant do not serve %s %s: %s", j.subject.APIVersion, j.subject.Kind, c.Message)
	case code == NoClusterFit && len(spec.Clusters) > 0:
		j.add(KeptInPlace, since, j.nextForRefusals(), "no cluster fits any more, so it stays where it is: %s", c.Message)
	case code == NoClusterFit:
		j.add(NoClusterFit, since, j.nextForRefusals(), "no cluster fits: %s", c.Message)
	case code == Unschedulable:
		j.add(Unschedulable, since, j.command("get clusters -o wide"), "clusters do not have the room for it%s: %s", j.whereItIs(), c.Message)
	case code == QuotaExceeded:
		j.add(QuotaExceeded, since, j.command("get federatedresourcequotas%s -o yaml", in(b.GetNamespace())), "a FederatedResourceQuota forbids it%s: %s", j.whereItIs(), c.Message)
	default:
		j.add(SchedulerError, since, j.command("describe %s", j.bindingRef()), "the scheduler fails and tries again%s: %s", j.whereItIs(), c.Message)
	}
}

// whereItIs adds what becomes of a template meanwhile.
func (j *judge) whereItIs() string {
	if len(j.binding.BindingSpec().Clusters) > 0 {
		return ", and it stays where it is"
	}
	return ""
}

// Filters that refuse clusters for what can be mended there.
const (
	kindPlugin  = "APIEnablement"
	taintPlugin = "TaintToleration"
)

// mostRefusals returns the filter that refuses most clusters. What users did not mean by
// their placement is no obstacle, unless it is all there is.
func (j *judge) mostRefusals() string {
	counts := map[string]int{}
	for _, c := range j.told {
		if c.RefusedBy != "" {
			counts[c.RefusedBy]++
		}
	}
	most := ""
	for _, plugin := range slices.Sorted(maps.Keys(counts)) {
		if most == "" || most == affinityPlugin || plugin != affinityPlugin && counts[plugin] > counts[most] {
			most = plugin
		}
	}
	return most
}

// nextForRefusals returns the command that helps against what refuses most clusters.
func (j *judge) nextForRefusals() string {
	most := j.mostRefusals()
	for _, c := range j.told {
		if c.RefusedBy == most && most != "" {
			return j.nextForRefusal(&c)
		}
	}
	return j.command("get clusters")
}

// nextForRefusal returns the command that helps against the filter that refuses a
// cluster.
func (j *judge) nextForRefusal(c *Cluster) string {
	switch c.RefusedBy {
	case taintPlugin:
		return j.command("get cluster %s -o yaml", c.Name)
	case kindPlugin:
		return j.nextForKind(c.Name)
	default:
		return j.editPolicy()
	}
}

// nextForKind returns the command that leads on when a cluster lacks the kind.
func (j *judge) nextForKind(cluster string) string {
	if group := j.subject.GVK().Group; isCustom(group) && j.Resource != "" {
		return j.command("why crd/%s.%s --cluster=%s", j.Resource, group, cluster)
	}
	return j.command("api-resources --operation-scope=members -C %s", cluster)
}

// judgeCluster looks at what a cluster is to have and has.
func (j *judge) judgeCluster(c *Cluster) {
	at := j.find(c.Name)
	switch {
	case !c.Chosen && c.Work != nil && c.Work.Deleted != nil:
		j.in(c.Name, WorkDeleting, c.Work.Deleted, j.describeWork(c), "it is leaving this cluster (%s); its Work is being deleted", cmp.Or(c.Leaving, "it is not chosen any more"))
		return
	case c.Leaving != "":
		j.in(c.Name, Evicting, j.evictedAt(c.Name), j.command("get %s -o yaml", j.bindingRef()), "it is leaving this cluster: %s", c.Leaving)
	}
	if !c.Chosen {
		if c.RefusedBy != "" && j.cluster != "" && len(j.found) == 0 {
			j.in(c.Name, Refused, nil, j.nextForRefusal(c), "%s", c.Verdict)
		}
		return
	}
	switch {
	case at == nil:
		j.in(c.Name, ClusterGone, nil, j.command("get clusters"), "this cluster is chosen, and does not exist")
		return
	case at.DeletionTimestamp != nil:
		j.in(c.Name, ClusterLeaving, moment(at.DeletionTimestamp.Time), j.command("get cluster %s", c.Name), "this cluster is leaving the control plane")
	case c.Ready == nil:
		j.in(c.Name, ClusterNotReady, moment(at.CreationTimestamp.Time), j.command("get cluster %s -o yaml", c.Name), "this cluster has not said anything yet")
	case c.Ready.Status != string(metav1.ConditionTrue):
		j.in(c.Name, ClusterNotReady, c.Ready.Since, j.command("get cluster %s -o yaml", c.Name), "this cluster is not ready (%s): %s", c.Ready.Reason, c.Ready.Message)
	}
	if c.OverrideError != "" {
		var since *time.Time
		if w := j.warning(names.EventApplyOverridePolicyFailed); w != nil {
			since = w.Last
		}
		keeps := ""
		if c.Work != nil {
			keeps = "; the cluster keeps what it has"
		}
		j.in(c.Name, OverrideFailed, since, j.editOverride(c.Name), "an override policy cannot be applied, so nothing is sent%s: %s", keeps, c.OverrideError)
		if c.Work == nil {
			return
		}
	}
	j.judgeWork(c)
}

func (j *judge) judgeWork(c *Cluster) {
	w := c.Work
	switch {
	case w == nil:
		if !j.lacks("Works") {
			next := j.command("status")
			if j.binding != nil {
				next = j.command("describe %s", j.bindingRef())
			}
			j.in(c.Name, WorkMissing, nil, next, "there is no Work for it yet%s", j.because(names.EventSyncWorkFailed))
		}
		return
	case w.Deleted != nil:
		j.in(c.Name, WorkDeleting, w.Deleted, j.describeWork(c), "its Work is being deleted, and is made anew when it is gone")
		return
	case w.Generation != 0 && w.Generation < j.template.GetGeneration() && c.OverrideError == "":
		j.in(c.Name, WorkOutdated, nil, j.command("describe %s", j.bindingRef()), "its Work carries generation %d of the object, which is at %d%s", w.Generation, j.template.GetGeneration(), j.because(names.EventSyncWorkFailed))
	}
	switch {
	case w.Suspended:
		if !slices.ContainsFunc(j.found, func(f Finding) bool {
			return f.Code == DispatchingSuspended && (f.Cluster == "" || f.Cluster == c.Name)
		}) {
			j.in(c.Name, DispatchingSuspended, nil, j.describeWork(c), "its Work is suspended: the cluster keeps what it has, and gets nothing new")
		}
	case w.Applied == nil:
		j.in(c.Name, ApplyPending, w.Created, j.describeWork(c), "nobody has said yet whether the cluster has taken it")
	case w.Applied.Status == string(metav1.ConditionUnknown):
		j.in(c.Name, ApplyPending, nil, j.describeWork(c), "nobody has said yet whether the cluster has taken the latest change")
	case w.Applied.Status == string(metav1.ConditionFalse):
		j.judgeRefusal(c)
	case w.Health == string(workv1alpha1.ResourceUnhealthy):
		j.in(c.Name, Unhealthy, nil, j.command("tree %s --cluster=%s", j.self(), c.Name), "the cluster has it, and it is not healthy there")
	}
}

// judgeRefusal reads why a cluster did not take the template. The texts are those of
// the stage that applies Works, and of client-go.
func (j *judge) judgeRefusal(c *Cluster) {
	message, since := c.Work.Applied.Message, c.Work.Applied.Since
	switch {
	case strings.Contains(message, "no matches for kind"), strings.Contains(message, "could not find the requested resource"):
		j.in(c.Name, KindMissing, since, j.nextForKind(c.Name), "the cluster does not serve %s %s: %s", j.subject.APIVersion, j.subject.Kind, message)
	case strings.Contains(message, "already exists in the cluster") && strings.Contains(message, names.ConflictResolutionAnnotation):
		j.in(c.Name, Conflict, since, j.overwrite(), "the cluster has one of its own, which is left alone: %s", message)
	default:
		j.in(c.Name, NotApplied, since, j.describeWork(c), "the cluster does not take it: %s", message)
	}
}

// overwrite returns the command that lets the control plane take over what clusters have.
func (j *judge) overwrite() string {
	if p := j.ranking.counts; p != nil {
		return j.command(`patch %s --type=merge -p '{"spec":{"conflictResolution":"Overwrite"}}'`, reference(p))
	}
	return j.command("annotate %s %s=%s", j.self(), names.ConflictResolutionAnnotation, names.ConflictOverwrite)
}

func (j *judge) evictedAt(cluster string) *time.Time {
	for _, t := range j.binding.BindingSpec().GracefulEvictionTasks {
		if t.FromCluster == cluster && t.CreationTimestamp != nil {
			return moment(t.CreationTimestamp.Time)
		}
	}
	return nil
}

// warning returns the latest warning for a reason, nil if there is none.
func (j *judge) warning(reason string) *Warning {
	i := slices.IndexFunc(j.warnings, func(w Warning) bool { return w.Reason == reason })
	if i < 0 {
		return nil
	}
	return &j.warnings[i]
}

func (j *judge) because(reason string) string {
	if w := j.warning(reason); w != nil {
		return ": " + w.Message
	}
	return ""
}

// lacks reports whether something of that name could not be read: that it is not known
// is not that it is not there.
func (f *facts) lacks(what string) bool {
	return slices.ContainsFunc(f.unread, func(gap string) bool {
		name, _, _ := strings.Cut(gap, ":")
		return name == what || what == "Policies" && strings.HasSuffix(name, "PropagationPolicies")
	})
}

func (f *facts) asked(cluster string) bool { return f.cluster == "" || f.cluster == cluster }

// isManaged reports whether something other than policies takes care of the binding.
func (f *facts) isManaged() bool { return f.binding.GetLabels()[names.BindingManagedByLabel] != "" }

// isOurs reports whether a policy made a binding, rather than a dependency.
func isOurs(b binding.Object) bool { return b.BindingSpec().Placement != nil }

// command writes a command as the user types it.
func (e *Explainer) command(format string, args ...any) string {
	return e.Program + " " + fmt.Sprintf(format, args...)
}

// Refer writes how a command names an object, such as deployment/web -n shop.
func Refer(o *unstructured.Unstructured) string {
	return kindIn(o.GroupVersionKind()) + "/" + o.GetName() + in(o.GetNamespace())
}

// kind is how a command names the kind of the template.
func (f *facts) kind() string { return kindIn(f.subject.GVK()) }

func kindIn(gvk schema.GroupVersionKind) string {
	if isCustom(gvk.Group) {
		return strings.ToLower(gvk.Kind) + "." + gvk.Group
	}
	return strings.ToLower(gvk.Kind)
}

// isCustom reports whether a group is not one of Kubernetes' own.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// self is how a command names the template.
func (f *facts) self() string { return Refer(f.template) }

func in(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

func (f *facts) bindingRef() string {
	return strings.ToLower(binding.ScopeOf(f.binding).Kind) + "/" + f.binding.GetName() + in(f.binding.GetNamespace())
}

func reference(p policy.Object) string {
	return strings.ToLower(kindOfPolicy(p)) + "/" + p.GetName() + in(p.GetNamespace())
}

func referTo(p Policy) string { return strings.ToLower(p.Kind) + "/" + p.Name + in(p.Namespace) }

func kindOfClaim(c policy.Claim) string {
	if c.Namespace != "" {
		return "PropagationPolicy"
	}
	return "ClusterPropagationPolicy"
}

func (j *judge) edit(p policy.Object) string { return j.command("edit %s", reference(p)) }

// editPolicy returns the command that changes the placement.
func (j *judge) editPolicy() string {
	if p := j.ranking.counts; p != nil {
		return j.edit(p)
	}
	return j.command("edit %s", j.bindingRef())
}

// policies returns the command that lists the policies that could select the template.
func (j *judge) policies() string {
	if ns := j.subject.Namespace; ns != "" {
		return j.command("get propagationpolicies,clusterpropagationpolicies -n %s", ns)
	}
	return j.command("get clusterpropagationpolicies")
}

func (j *judge) describeWork(c *Cluster) string {
	return j.command("describe work/%s -n %s", c.Work.Name, c.Work.Namespace)
}

// editOverride returns the command that changes the override policy that fails.
func (j *judge) editOverride(cluster string) string {
	if bad := j.badOverrides[cluster]; bad != nil {
		return j.command("edit %s", overrideRef(bad))
	}
	return j.command("get overridepolicies,clusteroverridepolicies%s", in(j.subject.Namespace))
}

func overrideRef(bad *override.Error) string {
	return strings.ToLower(bad.Kind) + "/" + bad.Name + in(bad.Namespace)
}
