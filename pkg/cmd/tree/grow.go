package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/cmd/explanation"
	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

// A Gardener finds out what follows from objects of a control plane.
type Gardener struct {
	// Reader reads from the control plane.
	Reader client.Reader
	// Mapper knows where kinds are served.
	Mapper meta.RESTMapper
	// Member returns the way to a member cluster that exists.
	Member func(ctx context.Context, cluster string) (dynamic.Interface, error)
	// Patience is how long a member may take for its whole answer; 0 is for ever.
	Patience time.Duration
	// Program is what users type.
	Program string
}

// Grow returns the tree of a template, with all clusters or only the one that is named,
// and which members have not answered; they are in the tree, with a problem.
func (g *Gardener) Grow(ctx context.Context, template *unstructured.Unstructured, cluster string) (*Node, fleet.Errors, error) {
	root := ofObject(template)
	list := &clusterv1alpha1.ClusterList{}
	if err := g.Reader.List(ctx, list); err != nil {
		return nil, nil, err // says what the server said
	}
	clusters := make(map[string]*clusterv1alpha1.Cluster, len(list.Items))
	for i := range list.Items {
		clusters[list.Items[i].Name] = &list.Items[i]
	}
	if cluster != "" && clusters[cluster] == nil {
		return nil, nil, fmt.Errorf("clusters don't exist: %s", cluster) // the words of get (spec: cli/commands.md 5.1)
	}
	parent := root
	works, targets := map[string]*workv1alpha1.Work{}, map[string]*workv1alpha2.TargetCluster{}
	b, err := explanation.FindBinding(ctx, g.Reader, explanation.RefOf(template))
	switch {
	case err != nil:
		return nil, nil, err
	case b != nil:
		parent = ofBinding(b)
		root.Children = []*Node{parent}
		if works, err = explanation.FindWorks(ctx, g.Reader, b, cluster); err != nil {
			return nil, nil, err
		}
		for _, t := range binding.Targets(b.BindingSpec()) {
			targets[t.Name] = &t
		}
	case template.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		asked := slices.Sorted(maps.Keys(clusters))
		if cluster != "" {
			asked = []string{cluster}
		}
		if works, err = explanation.FindNamespaceWorks(ctx, g.Reader, template.GetName(), asked); err != nil {
			return nil, nil, err
		}
		for name := range works {
			targets[name] = &workv1alpha2.TargetCluster{Name: name}
		}
	default:
		root.Problem = fmt.Sprintf("it has no binding, so it is in no cluster: %q tells why", g.Program+" why "+explanation.Refer(template))
		return root, nil, nil
	}

	all := map[string]bool{}
	for name := range works {
		all[name] = true
	}
	for name := range targets {
		all[name] = true
	}
	var asked []string
	branches := map[string]*Node{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if cluster != "" && name != cluster {
			continue
		}
		branch := ofCluster(name, clusters[name], targets[name])
		parent.Children = append(parent.Children, branch)
		w := works[name]
		if w == nil {
			branch.Problem = "there is no Work for it"
			continue
		}
		work := ofWork(w)
		branch.Children = []*Node{work}
		if clusters[name] != nil {
			asked = append(asked, name)
			branches[name] = work
		}
	}
	errs := fleet.Each(ctx, asked, func(ctx context.Context, name string) error { return g.member(ctx, name, works[name], branches[name]) })
	for _, e := range errs {
		branches[e.Cluster].Problem = "not known: " + e.Error()
	}
	return root, errs, nil
}

// member adds below the node of a Work what the member has of it.
func (g *Gardener) member(ctx context.Context, name string, w *workv1alpha1.Work, below *Node) error {
	if g.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.Patience, &factory.Silence{Cluster: name, After: g.Patience})
		defer cancel()
	}
	items, err := itemsOf(w)
	if err != nil {
		return err
	}
	c, err := g.Member(ctx, name)
	if err != nil {
		return err
	}
	m := &member{client: c, mapper: g.Mapper}
	for _, i := range items {
		n, err := m.grow(ctx, i)
		if n != nil {
			below.Children = append(below.Children, n)
		}
		if err != nil {
			var silent *factory.Silence
			if errors.As(context.Cause(ctx), &silent) {
				err = silent // rather than that a deadline was exceeded
			}
			return err
		}
	}
	return nil
}

func fromUnstructured(from map[string]any, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from, to)
}
