package explanation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/policy"
)

// NewScheme returns the kinds that are read.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return s, nil
}

// NewClient returns a client of a control plane that knows these kinds, without having
// to ask for them.
func NewClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ClusterPropagationPolicy", "ClusterOverridePolicy"} {
		mapper.Add(policyv1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"PropagationPolicy", "OverridePolicy"} {
		mapper.Add(policyv1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.Add(workv1alpha1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace)
	mapper.Add(workv1alpha2.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
	mapper.Add(workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cfg.Host, err)
	}
	return c, nil
}

// RefOf refers to a template, as bindings do.
func RefOf(template *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(), UID: template.GetUID(),
	}
}

// FindBinding returns the binding of a template, nil when it has none. Its name is
// the classic one, or the one beside that (spec: behaviour/01 1.3).
func FindBinding(ctx context.Context, reader client.Reader, ref workv1alpha2.ObjectReference) (binding.Object, error) {
	for _, name := range []string{names.Binding(ref.Kind, ref.Name), names.BindingBeside(binding.GVK(ref).GroupKind(), ref.Name, ref.Namespace)} {
		b := binding.New(ref.Namespace)
		err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: name}, b)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("look for %s %s: %w", binding.ScopeOf(b).Kind, name, err)
		case binding.TemplateKey(b.BindingSpec().Resource) == binding.TemplateKey(ref):
			return b, nil
		}
	}
	return nil, nil
}

// FindWorks returns the Works of a binding, by the cluster that they are for. With a
// cluster only its own are asked for.
func FindWorks(ctx context.Context, reader client.Reader, b binding.Object, cluster string) (map[string]*workv1alpha1.Work, error) {
	id := binding.ID(b)
	if id == "" {
		return nil, nil // it has none before it has that
	}
	options := []client.ListOption{client.MatchingLabels{binding.ScopeOf(b).IDLabel: id}}
	if cluster != "" {
		options = append(options, client.InNamespace(names.ExecutionNamespace(cluster)))
	}
	list := &workv1alpha1.WorkList{}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the Works of %s %s: %w", binding.ScopeOf(b).Kind, b.GetName(), err)
	}
	found := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		w := &list.Items[i]
		at, err := names.ClusterOfExecutionNamespace(w.Namespace)
		if err != nil {
			continue
		}
		if other := found[at]; other == nil || w.DeletionTimestamp.IsZero() && !other.DeletionTimestamp.IsZero() {
			found[at] = w
		}
	}
	return found, nil
}

// facts are what is read of a control plane.
type facts struct {
	template *unstructured.Unstructured
	subject  policy.Subject
	binding  binding.Object // nil: there is none
	works    map[string]*workv1alpha1.Work
	clusters []*clusterv1alpha1.Cluster // all, by name
	// policies are those of both scopes that could select the template.
	policies []policy.Object
	cops     []policyv1alpha1.ClusterOverridePolicy
	ops      []policyv1alpha1.OverridePolicy
	// peers are the bindings of the namespace, when groups count.
	peers    []workv1alpha2.ResourceBinding
	warnings []Warning
	unread   []string
	cluster  string // that is asked about, "" for all
	now      time.Time
	// auto says that the template is a Namespace, which goes to every cluster by itself.
	auto bool
	// What is never propagated, as far as one can know.
	apis       exempt.APIs
	namespaces exempt.Namespaces
	// badOverrides are the override policies that cannot be applied, by cluster.
	badOverrides map[string]*override.Error
}

// read finds out all there is to know of a template. What cannot be read is a gap, but
// that there are clusters, and whether there is a binding, must be known.
func (e *Explainer) read(ctx context.Context, template *unstructured.Unstructured, cluster string) (*facts, error) {
	f := &facts{template: template, subject: policy.SubjectOf(template), cluster: cluster, now: e.now(), badOverrides: map[string]*override.Error{}}
	var err error
	if f.namespaces, err = exempt.ParseNamespaces([]string{defaultSkipped}); err != nil {
		return nil, fmt.Errorf("read the default of skipped namespaces: %w", err)
	}
	var (
		lock sync.Mutex
		all  sync.WaitGroup
		errs [2]error
		pps  policyv1alpha1.PropagationPolicyList
		cpps policyv1alpha1.ClusterPropagationPolicyList
		ops  policyv1alpha1.OverridePolicyList
		cops policyv1alpha1.ClusterOverridePolicyList
	)
	gap := func(what string, err error) {
		if err != nil {
			lock.Lock()
			defer lock.Unlock()
			f.unread = append(f.unread, fmt.Sprintf("%s: %s", what, strings.Join(strings.Fields(err.Error()), " ")))
		}
	}
	list := func(what string, into client.ObjectList, in ...client.ListOption) {
		all.Go(func() { gap(what, e.Reader.List(ctx, into, in...)) })
	}
	all.Go(func() { errs[0] = f.readClusters(ctx, e.Reader) })
	all.Go(func() { errs[1] = f.readBinding(ctx, e.Reader, gap) })
	list("ClusterPropagationPolicies", &cpps)
	list("ClusterOverridePolicies", &cops)
	if ns := f.subject.Namespace; ns != "" {
		list("PropagationPolicies", &pps, client.InNamespace(ns))
		list("OverridePolicies", &ops, client.InNamespace(ns))
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range pps.Items {
		f.policies = append(f.policies, &pps.Items[i])
	}
	for i := range cpps.Items {
		f.policies = append(f.policies, &cpps.Items[i])
	}
	f.ops, f.cops = ops.Items, cops.Items
	if f.binding == nil && f.template.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		f.auto = true
		var asked []string
		for _, c := range f.clusters {
			if f.asked(c.Name) {
				asked = append(asked, c.Name)
			}
		}
		f.works, err = FindNamespaceWorks(ctx, e.Reader, f.subject.Name, asked)
		gap("Works", err)
	}
	gap("Events", f.readWarnings(ctx, e.Reader))
	slices.Sort(f.unread)
	return f, nil
}

func (f *facts) readClusters(ctx context.Context, reader client.Reader) error {
	list := &clusterv1alpha1.ClusterList{}
	if err := reader.List(ctx, list); err != nil {
		return err // says what the server said
	}
	for i := range list.Items {
		f.clusters = append(f.clusters, &list.Items[i])
	}
	slices.SortFunc(f.clusters, func(a, b *clusterv1alpha1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	if f.cluster != "" && f.find(f.cluster) == nil {
		return fmt.Errorf("clusters don't exist: %s", f.cluster) // the words of get (spec: cli/commands.md 5.1)
	}
	return nil
}

// find returns a cluster, nil when it does not exist.
func (f *facts) find(name string) *clusterv1alpha1.Cluster {
	i, found := slices.BinarySearchFunc(f.clusters, name, func(c *clusterv1alpha1.Cluster, name string) int { return cmp.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return f.clusters[i]
}

func (f *facts) readBinding(ctx context.Context, reader client.Reader, gap func(string, error)) error {
	b, err := FindBinding(ctx, reader, RefOf(f.template))
	if err != nil || b == nil {
		return err
	}
	f.binding = b
	f.works, err = FindWorks(ctx, reader, b, f.cluster)
	gap("Works", err)
	if b.BindingSpec().WorkloadAffinityGroups != nil && b.GetNamespace() != "" {
		peers := &workv1alpha2.ResourceBindingList{}
		gap("ResourceBindings", reader.List(ctx, peers, client.InNamespace(b.GetNamespace())))
		f.peers = peers.Items
	}
	return nil
}

// FindNamespaceWorks returns the Works by which a Namespace goes to every cluster, by
// the clusters that they are for (spec: behaviour/02 2.7).
func FindNamespaceWorks(ctx context.Context, reader client.Reader, namespace string, clusters []string) (map[string]*workv1alpha1.Work, error) {
	const kind, atOnce = "Namespace", 20
	slots, errs, works := make(chan struct{}, atOnce), make([]error, len(clusters)), make([]*workv1alpha1.Work, len(clusters))
	var all sync.WaitGroup
	for i, c := range clusters {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			w := &workv1alpha1.Work{}
			key := client.ObjectKey{Namespace: names.ExecutionNamespace(c), Name: names.Work(kind, namespace, "")}
			if errs[i] = client.IgnoreNotFound(reader.Get(ctx, key, w)); errs[i] == nil && w.Name != "" {
				works[i] = w
			}
		})
	}
	all.Wait()
	found := map[string]*workv1alpha1.Work{}
	for i, w := range works {
		if w != nil {
			found[clusters[i]] = w
		}
	}
	return found, errors.Join(errs...)
}

const (
	// eventsOf is how many events of one object are looked at: kept for an hour, few
	// objects have more.
	eventsOf = 50
	// mostWarnings is how many are told.
	mostWarnings = 5
	// mostAsked is of how many objects events are asked for: in a large fleet the Works
	// of one object are many, and say the same.
	mostAsked = 8
)

// readWarnings reads the warnings that the control plane gave about the template, its
// binding, and its Works that something is wrong with.
func (f *facts) readWarnings(ctx context.Context, reader client.Reader) error {
	type about struct {
		namespace, what string
		uid             types.UID
	}
	asked := []about{{f.template.GetNamespace(), f.template.GetKind() + " " + f.template.GetName(), f.template.GetUID()}}
	if b := f.binding; b != nil {
		asked = append(asked, about{b.GetNamespace(), binding.ScopeOf(b).Kind + " " + b.GetName(), b.GetUID()})
	}
	for _, c := range f.clusters {
		if w := f.works[c.Name]; w != nil && !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.ConditionApplied) && len(asked) < mostAsked {
			asked = append(asked, about{w.Namespace, fmt.Sprintf("Work %s/%s", w.Namespace, w.Name), w.UID})
		}
	}
	found, errs := make([][]Warning, len(asked)), make([]error, len(asked))
	var all sync.WaitGroup
	for i, a := range asked {
		if a.uid == "" {
			continue
		}
		all.Go(func() {
			list := &corev1.EventList{}
			namespace := cmp.Or(a.namespace, corev1.NamespaceDefault) // where events go about what is in none
			errs[i] = reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(a.uid)}, client.Limit(eventsOf))
			found[i] = warningsOf(list.Items, a.what)
		})
	}
	all.Wait()
	f.warnings = slices.Concat(found...)
	slices.SortStableFunc(f.warnings, func(a, b Warning) int { return timeOf(b.Last).Compare(timeOf(a.Last)) })
	// One thing is often said of the template, its binding and its Work.
	said := map[string]bool{}
	f.warnings = slices.DeleteFunc(f.warnings, func(w Warning) bool {
		key := w.Reason + " " + w.Message
		again := said[key]
		said[key] = true
		return again
	})
	f.warnings = f.warnings[:min(len(f.warnings), mostWarnings)]
	for _, err := range errs {
		if err != nil {
			return err // the others are for the same reason, as a rule
		}
	}
	return nil
}

func warningsOf(events []corev1.Event, about string) []Warning {
	var found []Warning
	for _, e := range events {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		last, count := e.LastTimestamp.Time, e.Count
		if e.Series != nil {
			last, count = e.Series.LastObservedTime.Time, e.Series.Count
		}
		for _, t := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time} {
			if last.IsZero() {
				last = t
			}
		}
		found = append(found, Warning{About: about, Reason: e.Reason, Message: e.Message, Count: count, Last: moment(last)})
	}
	return found
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// moment returns a time as an Explanation has it.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
