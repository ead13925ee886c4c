package explanation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
)

// defaultSkipped are the namespaces that the control plane skips unless a flag of it
// says otherwise (spec: behaviour/01 1.2).
const defaultSkipped = "kube-.*"

// An Interpreter knows how to set the replicas of a template.
type Interpreter interface {
	Supports(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	Revise(ctx context.Context, obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
}

// An Explainer explains objects of one control plane.
type Explainer struct {
	// Reader reads from the control plane.
	Reader      client.Reader
	Interpreter Interpreter
	// Resource is what the kind of the object is called in URLs, such as deployments.
	Resource string
	// Program is what users type: the commands to go on with begin with it.
	Program string
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

func (e *Explainer) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// Explain tells what has become of a template, as it was read of the control plane: in
// all clusters, or in the one that is named. A cluster that does not exist is an error,
// and so is it when clusters or the binding cannot be read; any other gap is noted.
func (e *Explainer) Explain(ctx context.Context, template *unstructured.Unstructured, cluster string) (*Explanation, error) {
	f, err := e.read(ctx, template, cluster)
	if err != nil {
		return nil, err
	}
	d := f.diagnose()
	r := f.rank()
	x := &Explanation{
		Template: f.tellTemplate(), Policies: r.policies, Binding: f.tellBinding(), Scheduling: scheduling(d),
		Clusters: e.tell(ctx, f, d), Warnings: f.warnings, Unread: f.unread,
	}
	if len(r.policies) == 0 && !f.auto {
		x.NearMisses = r.misses
	}
	j := &judge{Explainer: e, facts: f, ranking: r, told: x.Clusters}
	x.Findings = j.judge()
	x.Summary = x.summarize(cluster, f.lacks("Works"))
	return x, nil
}

func (f *facts) tellTemplate() Template {
	t := Template{
		APIVersion: f.subject.APIVersion, Kind: f.subject.Kind, Namespace: f.subject.Namespace, Name: f.subject.Name,
		Generation: f.template.GetGeneration(), Created: moment(f.template.GetCreationTimestamp().Time),
	}
	if at := f.template.GetDeletionTimestamp(); at != nil {
		t.Deleted = moment(at.Time)
	}
	return t
}

func (f *facts) tellBinding() *Binding {
	b := f.binding
	if b == nil {
		return nil
	}
	spec, status := b.BindingSpec(), b.BindingStatus()
	told := &Binding{Kind: binding.ScopeOf(b).Kind, Namespace: b.GetNamespace(), Name: b.GetName(), Scheduler: spec.SchedulerName, AffinityTerm: status.SchedulerObservedAffinityName}
	if binding.IsWorkload(spec) && len(spec.Components) == 0 {
		told.Replicas = ptr.To(spec.Replicas)
	}
	if at := status.LastScheduledTime; at != nil {
		told.LastScheduled = moment(at.Time)
	}
	if at := b.GetDeletionTimestamp(); at != nil {
		told.Deleted = moment(at.Time)
	}
	for _, by := range spec.RequiredBy {
		told.RequiredBy = append(told.RequiredBy, pathOf(by.Namespace, by.Name))
	}
	for i := range status.Conditions {
		told.Conditions = append(told.Conditions, conditionOf(&status.Conditions[i]))
	}
	return told
}

// summarize says the most important in one line. Blind is who could not read Works.
func (x *Explanation) summarize(cluster string, blind bool) string {
	what := x.Template.Kind + " " + pathOf(x.Template.Namespace, x.Template.Name)
	chosen, applied, healthy := 0, 0, 0
	for _, c := range x.Clusters {
		if !c.Chosen {
			continue
		}
		chosen++
		if c.Work != nil && c.Work.Applied != nil && c.Work.Applied.Status == "True" {
			applied++
			if c.Work.Health == "Healthy" {
				healthy++
			}
		}
	}
	open := ""
	switch n := len(x.Findings); {
	case n == 1:
		open = "; one thing is wrong or pending"
	case n > 1:
		open = fmt.Sprintf("; %d things are wrong or pending", n)
	}
	first := ""
	if len(x.Findings) > 0 {
		first = ": " + x.Findings[0].Message
	}
	switch {
	case chosen == 0 && cluster != "":
		return fmt.Sprintf("%s is not for cluster %s%s", what, cluster, x.whyNot(first))
	case chosen == 0:
		return fmt.Sprintf("%s is for no cluster%s", what, first)
	case blind:
		return fmt.Sprintf("%s is for %s; what has become of it there could not be read", what, clusters(chosen))
	case cluster != "" && applied == 0:
		return fmt.Sprintf("%s is for cluster %s, which does not have it%s", what, cluster, first)
	case cluster != "":
		return fmt.Sprintf("%s is in cluster %s%s", what, cluster, orHealthy(open, healthy == 1))
	case applied == chosen:
		return fmt.Sprintf("%s is in %s%s", what, clusters(chosen), orHealthy(open, healthy == chosen))
	default:
		return fmt.Sprintf("%s is in %d of the %s that it is for%s", what, applied, clusters(chosen), open)
	}
}

// whyNot says why the one cluster that was asked about is not chosen.
func (x *Explanation) whyNot(finding string) string {
	if len(x.Clusters) == 1 && x.Clusters[0].Verdict != "" {
		return ": " + x.Clusters[0].Verdict
	}
	return finding
}

func orHealthy(open string, healthy bool) string {
	if open == "" && healthy {
		return " and healthy there"
	}
	return open
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}
