package tree

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// A Node is an object, and what follows from it.
type Node struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// State says how it is, in a few words.
	State string `json:"state,omitempty"`
	// Ready says whether that is as it should be; nil when there is nothing to tell.
	Ready *bool `json:"ready,omitempty"`
	// Problem is why nothing is known of what is below.
	Problem  string  `json:"problem,omitempty"`
	Children []*Node `json:"children,omitempty"`
}

func (n *Node) is(ready bool, format string, args ...any) *Node {
	n.State, n.Ready = fmt.Sprintf(format, args...), &ready
	return n
}

// label is how a node is called in the drawing, below a parent in a namespace.
func (n *Node) label(namespace string) string {
	name := n.Name
	if n.Namespace != "" && n.Namespace != namespace {
		name = n.Namespace + "/" + n.Name
	}
	return strings.TrimSpace(n.Kind + " " + name)
}

// ofObject returns the node of an object as a server has it.
func ofObject(o *unstructured.Unstructured) *Node {
	n := &Node{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
	if o.GetDeletionTimestamp() != nil {
		return n.is(false, "being deleted")
	}
	switch (schema.GroupKind{Group: o.GroupVersionKind().Group, Kind: o.GetKind()}) {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}:
		return replicasOf(n, o)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		ready, wanted := number(o, 0, "status", "numberReady"), number(o, 0, "status", "desiredNumberScheduled")
		return n.is(ready >= wanted && isObserved(o), "%d/%d ready", ready, wanted)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return jobOf(n, o)
	case schema.GroupKind{Kind: "Pod"}:
		return podOf(n, o)
	}
	return conditionsOf(n, o)
}

func replicasOf(n *Node, o *unstructured.Unstructured) *Node {
	ready, wanted := number(o, 0, "status", "readyReplicas"), number(o, 1, "spec", "replicas")
	n.is(ready >= wanted && isObserved(o), "%d/%d ready", ready, wanted)
	if !isObserved(o) {
		n.State += ", its controller has not seen the latest change"
	} else if updated, told, err := unstructured.NestedInt64(o.Object, "status", "updatedReplicas"); err == nil && told && updated < wanted {
		n.is(false, "%s, %d updated", n.State, updated)
	}
	return n
}

func jobOf(n *Node, o *unstructured.Unstructured) *Node {
	done, wanted, failed := number(o, 0, "status", "succeeded"), number(o, 1, "spec", "completions"), number(o, 0, "status", "failed")
	n.is(done >= wanted, "%d/%d completed", done, wanted)
	if active := number(o, 0, "status", "active"); active > 0 {
		n.is(true, "%s, %d running", n.State, active)
	}
	if c := condition(o, "Failed"); c["status"] == "True" {
		return n.is(false, "failed: %v", cmp.Or(fmt.Sprint(c["reason"]), "nobody says why"))
	}
	if failed > 0 {
		n.State += fmt.Sprintf(", %d failed", failed)
	}
	return n
}

// podOf tells of a pod what kubectl's table does: its phase, or what keeps a container
// from running.
func podOf(n *Node, o *unstructured.Unstructured) *Node {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase") // "" is told below
	if reason, _, _ := unstructured.NestedString(o.Object, "status", "reason"); reason != "" {
		phase = reason
	}
	ready, restarts := 0, int64(0)
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	statuses, _, _ := unstructured.NestedSlice(o.Object, "status", "containerStatuses")
	for _, s := range statuses {
		status, _ := s.(map[string]any)
		if status["ready"] == true {
			ready++
		}
		if r, ok := status["restartCount"].(int64); ok {
			restarts += r
		}
		for _, state := range []string{"waiting", "terminated"} {
			if reason, _, _ := unstructured.NestedString(status, "state", state, "reason"); reason != "" && reason != "Completed" {
				phase = reason
			}
		}
	}
	if phase == "Pending" {
		if c := condition(o, "PodScheduled"); c["status"] == "False" {
			phase = fmt.Sprint(c["reason"])
		}
	}
	isReady := condition(o, "Ready")["status"] == "True"
	n.is(isReady || phase == "Succeeded", "%s, %d/%d ready", cmp.Or(phase, "Unknown"), ready, len(containers))
	if restarts > 0 {
		n.State += fmt.Sprintf(", %d restarts", restarts)
	}
	return n
}

// conditionsOf tells of any object what its conditions do, by the names that are usual.
func conditionsOf(n *Node, o *unstructured.Unstructured) *Node {
	for _, name := range []string{"Ready", "Available", "Established", "Healthy", "Complete"} {
		if c := condition(o, name); c != nil {
			good := c["status"] == "True"
			if good {
				return n.is(true, "%s", strings.ToLower(name))
			}
			reason, _ := c["reason"].(string)
			return n.is(false, "not %s%s", strings.ToLower(name), after(": ", reason))
		}
	}
	if phase, _, err := unstructured.NestedString(o.Object, "status", "phase"); err == nil {
		n.State = phase
	}
	return n
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// condition returns a condition of an object, nil for none.
func condition(o *unstructured.Unstructured, name string) map[string]any {
	all, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == name {
			return c
		}
	}
	return nil
}

// number returns a number of an object, or what it is when it is not there.
func number(o *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	n, found, err := unstructured.NestedInt64(o.Object, path...)
	if err != nil || !found {
		return otherwise
	}
	return n
}

// isObserved reports whether its controller has seen an object as it is.
func isObserved(o *unstructured.Unstructured) bool {
	seen, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return err != nil || !found || seen >= o.GetGeneration()
}

func ofBinding(b binding.Object) *Node {
	n := &Node{Kind: binding.ScopeOf(b).Kind, Namespace: b.GetNamespace(), Name: b.GetName()}
	if b.GetDeletionTimestamp() != nil {
		return n.is(false, "being deleted")
	}
	var parts []string
	ready := true
	for _, c := range []struct{ name, yes, no string }{
		{workv1alpha2.ConditionScheduled, "scheduled", "not scheduled"}, {workv1alpha2.ConditionFullyApplied, "fully applied", "not fully applied"},
	} {
		switch is := meta.FindStatusCondition(b.BindingStatus().Conditions, c.name); {
		case is == nil:
			if b.BindingSpec().Placement != nil || c.name != workv1alpha2.ConditionScheduled {
				parts, ready = append(parts, c.no+" yet"), false
			}
		case is.Status == metav1.ConditionTrue:
			parts = append(parts, c.yes)
		default:
			parts, ready = append(parts, fmt.Sprintf("%s (%s)", c.no, is.Reason)), false
		}
	}
	return n.is(ready, "%s", strings.Join(parts, ", "))
}

func ofCluster(name string, c *clusterv1alpha1.Cluster, target *workv1alpha2.TargetCluster) *Node {
	n := &Node{Kind: "Cluster", Name: name}
	ready, parts := true, []string{}
	switch {
	case c == nil:
		return n.is(false, "does not exist")
	case c.DeletionTimestamp != nil:
		parts, ready = append(parts, "leaving the control plane"), false
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ConditionReady) {
		parts, ready = append(parts, "not ready"), false
	}
	switch {
	case target == nil:
		parts = append(parts, "not chosen any more")
	case target.Replicas == 1:
		parts = append(parts, "1 replica")
	case target.Replicas > 0:
		parts = append(parts, fmt.Sprintf("%d replicas", target.Replicas))
	}
	return n.is(ready, "%s", strings.Join(parts, ", "))
}

func ofWork(w *workv1alpha1.Work) *Node {
	n := &Node{Kind: "Work", Namespace: w.Namespace, Name: w.Name}
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.ConditionApplied)
	switch {
	case w.DeletionTimestamp != nil:
		return n.is(false, "being deleted")
	case w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching:
		return n.is(false, "suspended")
	case c == nil:
		return n.is(false, "not applied yet")
	case c.Status != metav1.ConditionTrue:
		return n.is(false, "not applied: %s", strings.Join(strings.Fields(c.Message), " "))
	}
	return n.is(true, "applied")
}

// An item is an object that a Work carries.
type item struct {
	schema.GroupVersionKind
	namespace, name string
}

// itemsOf returns what a Work carries.
func itemsOf(w *workv1alpha1.Work) ([]item, error) {
	var items []item
	for i, m := range w.Spec.Workload.Manifests {
		var head struct {
			metav1.TypeMeta `json:",inline"`
			Metadata        struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(m.Raw, &head); err != nil {
			return nil, fmt.Errorf("read manifest %d of Work %s/%s: %w", i, w.Namespace, w.Name, err)
		}
		items = append(items, item{schema.FromAPIVersionAndKind(head.APIVersion, head.Kind), head.Metadata.Namespace, head.Metadata.Name})
	}
	return items, nil
}

func isManaged(o *unstructured.Unstructured) bool {
	return o.GetLabels()[names.ManagedLabel] == names.True
}

func sortNodes(all []*Node) {
	slices.SortFunc(all, func(a, b *Node) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
}
