package top

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/metricsutil"
	"k8s.io/kubectl/pkg/util/templates"
	metricsapi "k8s.io/metrics/pkg/apis/metrics"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmadactl/karmadactl/pkg/cmd/factory"
	"github.com/karmadactl/karmadactl/pkg/cmd/fleet"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const podLong = `
	Display resource (CPU/memory) usage of pods in member clusters.

	Due to the metrics pipeline delay, they may be unavailable for a few minutes since pod creation.`

const podExample = `
	# Show metrics for all pods in the default namespace of all member clusters
	%[1]s top pod

	# Show metrics for all pods in all namespaces of two member clusters
	%[1]s top pod -A -C member1,member2

	# Show metrics for a pod and its containers
	%[1]s top pod web-0 --containers -C member1

	# Show metrics for the pods with label app=web, those that use most first, and their sum
	%[1]s top pod -l app=web --sort-by=memory --sum`

// metricsDelay is how long a pod may be without metrics.
const metricsDelay = 2 * time.Minute

// podFlags hold what the user typed.
type podFlags struct {
	common
	allNamespaces, containers, sum bool
	fieldSelector                  string
	namespace                      string
}

func newPodCmd(f *factory.Factory, s genericiooptions.IOStreams, program string) (*cobra.Command, error) {
	p := &podFlags{common: common{fleet: &fleet.Fleet{Factory: f}, IOStreams: s}}
	cmd := &cobra.Command{
		Use:                   "pod [NAME | -l label]",
		Aliases:               []string{"pods", "po"},
		Short:                 "Display resource (CPU/memory) usage of pods of member clusters",
		Long:                  templates.LongDesc(podLong),
		Example:               templates.Examples(fmt.Sprintf(podExample, program)),
		SilenceUsage:          true,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     p.completeNames("pods"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Within(cmd.Context())
			if err := p.complete(cmd, f, args); err != nil {
				return err
			}
			return p.run(cmd.Context())
		},
	}
	err := p.addFlags(cmd, f, "pods", "C")
	fs := cmd.Flags()
	fs.BoolVarP(&p.allNamespaces, "all-namespaces", "A", false, "If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	fs.BoolVar(&p.containers, "containers", false, "If present, print usage of containers within a pod.")
	fs.StringVar(&p.fieldSelector, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	fs.BoolVar(&p.sum, "sum", false, "Print the sum of the resource usage")
	f.AddNamespaceFlag(fs)
	return cmd, errors.Join(err, f.RegisterCompletions(cmd))
}

func (p *podFlags) complete(cmd *cobra.Command, f *factory.Factory, args []string) error {
	if err := p.common.complete(cmd, args); err != nil {
		return err
	}
	switch {
	case p.name != "" && (p.selector != "" || p.fieldSelector != ""):
		return errors.New("only one of NAME or selector can be provided")
	case p.name != "" && p.allNamespaces:
		return errors.New("a pod cannot be retrieved by name across all namespaces")
	}
	if _, err := fields.ParseSelector(p.fieldSelector); err != nil {
		return fmt.Errorf("--field-selector=%s: %w", p.fieldSelector, err)
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if !p.allNamespaces {
		p.namespace = namespace
	}
	return nil
}

func (p *podFlags) run(ctx context.Context) error {
	members, err := p.members(ctx)
	if err != nil || len(members) == 0 {
		return err
	}
	answers, errs := each(ctx, &p.common, members, p.ask)
	var all []metricsapi.PodMetrics
	for _, a := range answers {
		all = append(all, a...)
	}
	if err := p.print(all); err != nil {
		return err
	}
	return p.end(ctx, len(all), p.namespace, errs)
}

// ask returns the metrics of one member's pods.
func (p *podFlags) ask(ctx context.Context, m *member) ([]metricsapi.PodMetrics, error) {
	api := m.metrics.MetricsV1beta1().PodMetricses(p.namespace)
	var items []metricsv1beta1.PodMetrics
	if p.name != "" {
		one, err := api.Get(ctx, p.name, metav1.GetOptions{})
		if err != nil {
			return nil, p.explain(ctx, m, err)
		}
		items = append(items, *one)
	} else {
		list, err := api.List(ctx, metav1.ListOptions{LabelSelector: p.selector})
		if err != nil {
			return nil, err
		}
		items = list.Items
	}
	var found []metricsapi.PodMetrics
	for i := range items {
		var one metricsapi.PodMetrics
		if err := metricsv1beta1.Convert_v1beta1_PodMetrics_To_metrics_PodMetrics(&items[i], &one, nil); err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		metav1.SetMetaDataAnnotation(&one.ObjectMeta, names.QueryFromClusterAnnotation, m.name)
		found = append(found, one)
	}
	if len(found) > 0 && p.fieldSelector == "" {
		return found, nil
	}
	return p.filter(ctx, m, found)
}

// filter keeps the pods that the field selector chooses: metrics know no fields.
// Pods without any metrics are an error.
func (p *podFlags) filter(ctx context.Context, m *member, found []metricsapi.PodMetrics) ([]metricsapi.PodMetrics, error) {
	pods, err := m.core.CoreV1().Pods(p.namespace).List(ctx, metav1.ListOptions{LabelSelector: p.selector, FieldSelector: p.fieldSelector})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0 && len(pods.Items) > 0:
		return nil, noMetrics(pods.Items)
	}
	chosen := make(map[string]bool, len(pods.Items))
	for _, pod := range pods.Items {
		chosen[pod.Namespace+"/"+pod.Name] = true
	}
	kept := found[:0]
	for _, one := range found {
		if chosen[one.Namespace+"/"+one.Name] {
			kept = append(kept, one)
		}
	}
	return kept, nil
}

// explain tells a pod that has no metrics yet from one that does not exist.
func (p *podFlags) explain(ctx context.Context, m *member, err error) error {
	if isUnserved(err) {
		return err
	}
	pod, podErr := m.core.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if podErr != nil {
		return podErr
	}
	return noMetrics([]corev1.Pod{*pod})
}

func noMetrics(pods []corev1.Pod) error {
	for _, pod := range pods {
		if age := time.Since(pod.CreationTimestamp.Time); age > metricsDelay {
			return fmt.Errorf("Metrics not available for pod %s/%s, age: %s", pod.Namespace, pod.Name, age.Round(time.Second))
		}
	}
	return errors.New("metrics not available yet")
}

// print shows a row for each pod, or for each of its containers.
func (p *podFlags) print(all []metricsapi.PodMetrics) error {
	if len(all) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(p.Out)
	header := []string{"NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"}
	if p.containers {
		header = append([]string{"POD"}, header...)
	}
	if p.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if !p.noHeaders {
		row(w, header...)
	}
	measured := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	sort.Stable(metricsutil.NewPodMetricsSorter(all, p.allNamespaces, p.sortBy, measured))
	total := corev1.ResourceList{}
	for _, one := range all {
		var cells []string
		if p.allNamespaces {
			cells = append(cells, one.Namespace)
		}
		cluster, used := one.Annotations[names.QueryFromClusterAnnotation], corev1.ResourceList{}
		if p.containers {
			cells = append(cells, one.Name)
			sort.Stable(metricsutil.NewContainerMetricsSorter(one.Containers, p.sortBy))
		}
		for _, c := range one.Containers {
			add(used, c.Usage)
			if p.containers {
				row(w, append(cells[:len(cells):len(cells)], append([]string{c.Name, cluster}, usage(c.Usage)...)...)...)
			}
		}
		add(total, used)
		if !p.containers {
			row(w, append(cells, append([]string{one.Name, cluster}, usage(used)...)...)...)
		}
	}
	if p.sum {
		blank := make([]string, len(header)-2)
		row(w, append(blank, "________", "________")...)
		row(w, append(blank, usage(total)...)...)
	}
	return w.Flush()
}

func add(to, from corev1.ResourceList) {
	for name, q := range from {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

// usage returns the cells of what is used.
func usage(used corev1.ResourceList) []string {
	return []string{cpu(used[corev1.ResourceCPU]), memory(used[corev1.ResourceMemory])}
}

func cpu(q resource.Quantity) string    { return fmt.Sprintf("%dm", q.MilliValue()) }
func memory(q resource.Quantity) string { return fmt.Sprintf("%dMi", q.Value()/(1024*1024)) }
