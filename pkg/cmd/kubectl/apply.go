package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/exempt"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// propagation says which clusters apply propagates to
// (spec: cli/commands.md 7.1). The zero value is none.
type propagation struct {
	all      bool
	clusters []string
}

func (p *propagation) wanted() bool { return p.all || len(p.clusters) > 0 }

// apply returns kubectl's command with policies for what it applies.
func (s Set) apply(f cmdutil.Factory) *cobra.Command {
	flags, to := apply.NewApplyFlags(s.Streams), &propagation{}
	cmd := apply.NewCmdApply(s.Program, f, s.Streams)
	cmd.ResetFlags()
	flags.AddFlags(cmd)
	cmd.Flags().BoolVar(&to.all, "all-clusters", false, "If present, propagates a group of resources to all member clusters.")
	cmd.Flags().StringSliceVarP(&to.clusters, "cluster", "C", nil, "If present, propagates a group of resources to specified clusters.")
	cmd.Run = func(cmd *cobra.Command, args []string) {
		cmdutil.CheckErr(to.check(cmd.Context(), &fleet.Fleet{Factory: s.Factory}))
		o, err := flags.ToOptions(f, cmd, s.Program, args)
		cmdutil.CheckErr(err)
		cmdutil.CheckErr(o.Validate())
		if to.wanted() {
			objects, problem := o.GetObjects()
			if len(objects) == 0 {
				cmdutil.CheckErr(problem)
			}
			objects, err := s.withPolicies(objects, to, f.NewBuilder)
			cmdutil.CheckErr(err)
			o.SetObjects(objects)
			// What of the input is no object does not hold back the rest.
			cmdutil.CheckErr(utilerrors.Flatten(utilerrors.NewAggregate([]error{problem, o.Run()})))
			return
		}
		cmdutil.CheckErr(o.Run())
	}
	return cmd
}

// check finds clusters that do not exist, before anything is applied.
func (p *propagation) check(ctx context.Context, f *fleet.Fleet) error {
	switch {
	case p.all && len(p.clusters) > 0:
		return errors.New("--all-clusters and --cluster cannot be used together")
	case len(p.clusters) == 0:
		return nil
	}
	_, missing, err := f.Find(ctx, p.clusters)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range missing {
		errs = append(errs, fmt.Errorf("cluster %s does not exist", name))
	}
	return errors.Join(errs...)
}

// withPolicies puts a policy behind each object that can be propagated. What
// never is gets none: a policy for a policy would select nothing.
func (s Set) withPolicies(objects []*resource.Info, to *propagation, newBuilder func() *resource.Builder) ([]*resource.Info, error) {
	var (
		texts bytes.Buffer
		has   = make([]bool, len(objects))
	)
	for i, o := range objects {
		namespace := ""
		if o.Namespaced() {
			namespace = o.Namespace
		}
		switch {
		case (exempt.APIs{}).Has(o.Object.GetObjectKind().GroupVersionKind()):
			continue
		case (exempt.Namespaces{}).Has(namespace):
			_, _ = fmt.Fprintf(s.Streams.ErrOut, "note: %s gets no policy: what is in namespace %s is never propagated\n", o.ObjectName(), namespace)
			continue
		}
		text, err := json.Marshal(policyFor(o, namespace, to))
		if err != nil {
			return nil, fmt.Errorf("make a policy for %s: %w", o.ObjectName(), err)
		}
		texts.Write(text)
		texts.WriteByte('\n')
		has[i] = true
	}
	if texts.Len() == 0 {
		return objects, nil
	}
	policies, err := newBuilder().Unstructured().ContinueOnError().Stream(&texts, "policies").Flatten().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("make policies: %w", err)
	}
	all := make([]*resource.Info, 0, len(objects)+len(policies))
	for i, o := range objects {
		all = append(all, o)
		if has[i] {
			all, policies = append(all, policies[0]), policies[1:]
		}
	}
	return all, nil
}

// policyFor returns the policy of one object, whose name promote would choose
// too (spec: cli/commands.md 2.4).
func policyFor(o *resource.Info, namespace string, to *propagation) any {
	gvk := o.Object.GetObjectKind().GroupVersionKind()
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: namespace, Name: o.Name}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: to.clusters}},
	}
	metadata := metav1.ObjectMeta{Name: names.GeneratedPolicy(gvk, o.Name, namespace), Namespace: namespace}
	if o.Mapping.Scope.Name() == meta.RESTScopeNameRoot {
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metadata, Spec: spec}
		p.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy"))
		return p
	}
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metadata, Spec: spec}
	p.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	return p
}
