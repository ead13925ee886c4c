package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/templates"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
)

const nodeLong = `
	Display resource (CPU/memory) usage of nodes of member clusters.`

const nodeExample = `
	# Show metrics for all nodes of all member clusters
	%[1]s top node

	# Show metrics for the nodes of two member clusters, those that use most first
	%[1]s top node --clusters=member1,member2 --sort-by=cpu

	# Show metrics for one node
	%[1]s top node node1 --clusters=member1`

// nodeFlags hold what the user typed.
type nodeFlags struct {
	common
	showCapacity bool
}

func newNodeCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	n := &nodeFlags{common: common{fleet: &fleet.Fleet{Factory: f}, IOStreams: s}}
	cmd := &cobra.Command{
		Use:                   "node [NAME | -l label]",
		Aliases:               []string{"nodes", "no"},
		Short:                 "Display resource (CPU/memory) usage of nodes of member clusters",
		Long:                  templates.LongDesc(nodeLong),
		Example:               templates.Examples(fmt.Sprintf(nodeExample, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     n.completeNames("nodes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			if err := n.complete(cmd, args); err != nil {
				return err
			}
			if n.name != "" && n.selector != "" {
				return errors.New("only one of NAME or --selector can be provided")
			}
			return n.run(cmd.Context())
		},
	}
	err := n.addFlags(cmd, f, "nodes", "")
	cmd.Flags().BoolVar(&n.showCapacity, "show-capacity", false, "Print node resources based on Capacity instead of Allocatable(default) of the nodes.")
	return cmd, errors.Join(err, f.RegisterCompletions(cmd))
}

// A node is one row. Without metrics used is nil.
type node struct {
	name, cluster   string
	used, available corev1.ResourceList
}

func (n *nodeFlags) run(ctx context.Context) error {
	members, err := n.members(ctx)
	if err != nil || len(members) == 0 {
		return err
	}
	answers, errs := each(ctx, &n.common, members, n.ask)
	all := slices.Concat(answers...)
	if err := n.print(all); err != nil {
		return err
	}
	return n.end(ctx, len(all), "", errs)
}

// ask returns the nodes of one member. Those without metrics are among them.
func (n *nodeFlags) ask(ctx context.Context, m *member) ([]node, error) {
	var (
		metrics []metricsv1beta1.NodeMetrics
		nodes   []corev1.Node
	)
	if n.name != "" {
		one, err := m.core.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		used, err := m.metrics.MetricsV1beta1().NodeMetricses().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		nodes, metrics = append(nodes, *one), append(metrics, *used)
	} else {
		used, err := m.metrics.MetricsV1beta1().NodeMetricses().List(ctx, metav1.ListOptions{LabelSelector: n.selector})
		if err != nil {
			return nil, err
		}
		list, err := m.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: n.selector})
		if err != nil {
			return nil, err
		}
		if len(used.Items) == 0 && len(list.Items) > 0 {
			return nil, errors.New("metrics not available yet")
		}
		nodes, metrics = list.Items, used.Items
	}
	used := make(map[string]corev1.ResourceList, len(metrics))
	for _, one := range metrics {
		used[one.Name] = one.Usage
	}
	rows := make([]node, 0, len(nodes))
	for _, one := range nodes {
		available := one.Status.Allocatable
		if n.showCapacity {
			available = one.Status.Capacity
		}
		rows = append(rows, node{name: one.Name, cluster: m.name, used: used[one.Name], available: available})
	}
	return rows, nil
}

func (n *nodeFlags) print(all []node) error {
	if len(all) == 0 {
		return nil
	}
	measured := map[string]corev1.ResourceName{"cpu": corev1.ResourceCPU, "memory": corev1.ResourceMemory}[n.sortBy]
	slices.SortStableFunc(all, func(x, y node) int {
		switch {
		case (x.used == nil) != (y.used == nil): // nothing is known of those: last
			if x.used == nil {
				return 1
			}
			return -1
		case measured != "":
			a, b := x.used[measured], y.used[measured]
			return b.Cmp(a)
		}
		return cmp.Compare(x.name, y.name)
	})
	w := printers.GetNewTabWriter(n.Out)
	if !n.noHeaders {
		row(w, "NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%")
	}
	const unknown = "<unknown>"
	for _, one := range all {
		if one.used == nil {
			row(w, one.name, one.cluster, unknown, unknown, unknown, unknown)
			continue
		}
		row(w, one.name, one.cluster,
			cpu(one.used[corev1.ResourceCPU]), percent(one, corev1.ResourceCPU),
			memory(one.used[corev1.ResourceMemory]), percent(one, corev1.ResourceMemory))
	}
	return w.Flush()
}

// percent returns how much of what a node has is used.
func percent(n node, r corev1.ResourceName) string {
	used, available := n.used[r], n.available[r]
	if available.IsZero() {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", percentOf(used, available))
}

func percentOf(used, available resource.Quantity) int64 {
	return int64(used.AsApproximateFloat64() / available.AsApproximateFloat64() * 100)
}
