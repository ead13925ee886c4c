package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	metricsGroupPath   = "/apis/" + metricsv1beta1.GroupName
	metricsVersionPath = metricsGroupPath + "/v1beta1"
	openAPIPath        = "/openapi/v2"
	// metricsWindow is the time over which usage is said to have been measured.
	metricsWindow = 30 * time.Second
)

// resourceMetricsPath is where a node's resource metrics are scraped, as kwok
// has it: the endpoint is one for all nodes.
func resourceMetricsPath(node string) string {
	return "/metrics/nodes/" + node + "/metrics/resource"
}

// A metricsServer tells what nodes and pods use: in metrics.k8s.io/v1beta1, and
// in the text format of a kubelet's resource metrics. It keeps nothing: a
// request reads the pods it is about from the API server's cache.
type metricsServer struct {
	client interface {
		corev1client.PodsGetter
		corev1client.NodesGetter
	}
	model *usageModel
}

// handler serves metrics.k8s.io to the API server's aggregation layer, which
// has authenticated and authorized each request before.
func (m *metricsServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(metricsGroupPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, apiGroup(), nil) })
	mux.HandleFunc(metricsVersionPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, apiResources(), nil) })
	mux.HandleFunc(openAPIPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, openAPI(), nil) })
	mux.HandleFunc(metricsVersionPath+"/nodes", func(w http.ResponseWriter, r *http.Request) {
		list, err := m.nodes(r.Context(), listOptions(r))
		answer(w, list, err)
	})
	mux.HandleFunc(metricsVersionPath+"/nodes/{name}", func(w http.ResponseWriter, r *http.Request) {
		item, err := m.node(r.Context(), r.PathValue("name"))
		answer(w, item, err)
	})
	for _, pods := range []string{"/pods", "/namespaces/{namespace}/pods"} {
		mux.HandleFunc(metricsVersionPath+pods, func(w http.ResponseWriter, r *http.Request) {
			list, err := m.pods(r.Context(), r.PathValue("namespace"), listOptions(r))
			answer(w, list, err)
		})
	}
	mux.HandleFunc(metricsVersionPath+"/namespaces/{namespace}/pods/{name}", func(w http.ResponseWriter, r *http.Request) {
		item, err := m.pod(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
		answer(w, item, err)
	})
	return mux
}

// listOptions takes the selectors of a request over to a list from cache.
func listOptions(r *http.Request) metav1.ListOptions {
	q := r.URL.Query()
	return metav1.ListOptions{LabelSelector: q.Get("labelSelector"), FieldSelector: q.Get("fieldSelector"), ResourceVersion: "0"}
}

// only returns the single item, or that there is none as an API server has it.
func only[T any](items []T, resource, name string, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, apierrors.NewNotFound(metricsv1beta1.Resource(resource), name)
	}
	return &items[0], nil
}

// answer writes an object, or the Status of an error, as JSON.
func answer(w http.ResponseWriter, object any, err error) {
	code := http.StatusOK
	if err != nil {
		status, ok := err.(apierrors.APIStatus)
		if !ok {
			status = apierrors.NewInternalError(err)
		}
		s := status.Status()
		s.APIVersion, s.Kind = "v1", "Status"
		object, code = s, int(s.Code)
	}
	data, err := json.Marshal(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

func apiGroup() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: metricsv1beta1.SchemeGroupVersion.String(), Version: "v1beta1"}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"},
		Name:     metricsv1beta1.GroupName, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

func apiResources() metav1.APIResourceList {
	verbs := metav1.Verbs{"get", "list"}
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: metricsv1beta1.SchemeGroupVersion.String(),
		APIResources: []metav1.APIResource{
			{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs},
			{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
		},
	}
}

// openAPI describes nothing. An API server that found no description at all
// would ask again and again, and log an error each time.
func openAPI() map[string]any {
	return map[string]any{
		"swagger": "2.0",
		"info":    map[string]string{"title": metricsv1beta1.GroupName, "version": "v1beta1"},
		"paths":   map[string]any{},
	}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: kind}
}

// nodes lists the usage of simulated nodes.
func (m *metricsServer) nodes(ctx context.Context, o metav1.ListOptions) (metricsv1beta1.NodeMetricsList, error) {
	list := metricsv1beta1.NodeMetricsList{TypeMeta: typeMeta("NodeMetricsList")}
	nodes, err := m.client.Nodes().List(ctx, o)
	if err != nil {
		return list, err
	}
	list.Items, err = m.ofNodes(ctx, nodes.Items)
	return list, err
}

// node returns the usage of one node.
func (m *metricsServer) node(ctx context.Context, name string) (*metricsv1beta1.NodeMetrics, error) {
	node, err := m.client.Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	items, err := m.ofNodes(ctx, []corev1.Node{*node})
	return only(items, "nodes", name, err)
}

// ofNodes sums up what the running pods on each node use.
func (m *metricsServer) ofNodes(ctx context.Context, nodes []corev1.Node) ([]metricsv1beta1.NodeMetrics, error) {
	podOptions := metav1.ListOptions{ResourceVersion: "0"}
	if len(nodes) == 1 {
		podOptions.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", nodes[0].Name).String()
	}
	pods, err := m.client.Pods(metav1.NamespaceAll).List(ctx, podOptions)
	if err != nil {
		return nil, err
	}
	usage := map[string]corev1.ResourceList{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		containers, err := m.containers(ctx, pod)
		if err != nil {
			return nil, err
		}
		if usage[pod.Spec.NodeName] == nil {
			usage[pod.Spec.NodeName] = corev1.ResourceList{}
		}
		for _, c := range containers {
			add(usage[pod.Spec.NodeName], c.Usage)
		}
	}
	items := []metricsv1beta1.NodeMetrics{}
	for _, n := range nodes {
		if n.Annotations[nodeAnnotation] != nodeAnnotationValue {
			continue
		}
		total := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}}
		add(total, usage[n.Name])
		items = append(items, metricsv1beta1.NodeMetrics{
			TypeMeta:   typeMeta("NodeMetrics"),
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, CreationTimestamp: metav1.Now()},
			Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: metricsWindow}, Usage: total,
		})
	}
	return items, nil
}

// pods lists the usage of running pods, in all namespaces when none is given.
func (m *metricsServer) pods(ctx context.Context, namespace string, o metav1.ListOptions) (metricsv1beta1.PodMetricsList, error) {
	list := metricsv1beta1.PodMetricsList{TypeMeta: typeMeta("PodMetricsList")}
	pods, err := m.client.Pods(namespace).List(ctx, o)
	if err != nil {
		return list, err
	}
	list.Items, err = m.ofPods(ctx, pods.Items)
	return list, err
}

// pod returns the usage of one pod.
func (m *metricsServer) pod(ctx context.Context, namespace, name string) (*metricsv1beta1.PodMetrics, error) {
	pod, err := m.client.Pods(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	items, err := m.ofPods(ctx, []corev1.Pod{*pod})
	return only(items, "pods", name, err)
}

// ofPods tells what pods use, without those in which nothing runs.
func (m *metricsServer) ofPods(ctx context.Context, pods []corev1.Pod) ([]metricsv1beta1.PodMetrics, error) {
	items := []metricsv1beta1.PodMetrics{}
	for i := range pods {
		pod := &pods[i]
		containers, err := m.containers(ctx, pod)
		if err != nil {
			return nil, err
		}
		if len(containers) == 0 {
			continue
		}
		items = append(items, metricsv1beta1.PodMetrics{
			TypeMeta:   typeMeta("PodMetrics"),
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, CreationTimestamp: metav1.Now()},
			Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: metricsWindow}, Containers: containers,
		})
	}
	return items, nil
}

// containers returns the usage of a pod's running containers.
func (m *metricsServer) containers(ctx context.Context, pod *corev1.Pod) ([]metricsv1beta1.ContainerMetrics, error) {
	var all []metricsv1beta1.ContainerMetrics
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if _, err := running(pod, c.Name); err != nil {
			continue
		}
		usage, err := m.model.container(ctx, pod, c)
		if err != nil {
			return nil, err
		}
		all = append(all, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: usage})
	}
	return all, nil
}

// scrape writes one node's resource metrics. CPU seconds are the present usage
// over the time since the start, and go down like a counter that was reset when
// pods leave the node.
func (m *metricsServer) scrape(w http.ResponseWriter, r *http.Request) {
	pods, err := m.client.Pods(metav1.NamespaceAll).List(r.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", r.PathValue("node")).String(), ResourceVersion: "0",
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("list pods: %v", err), http.StatusInternalServerError)
		return
	}
	text, err := m.exposition(r.Context(), pods.Items, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, text)
}

// exposition renders the metrics of the pods of one node at a time.
func (m *metricsServer) exposition(ctx context.Context, pods []corev1.Pod, now time.Time) (string, error) {
	var starts, cpu, memory, podCPU, podMemory strings.Builder
	var nodeCPU, nodeMemory float64
	for i := range pods {
		pod := &pods[i]
		containers, err := m.containers(ctx, pod)
		if err != nil {
			return "", err
		}
		var cpuOfPod, memoryOfPod float64
		for _, c := range containers {
			_, status, err := findContainer(pod, c.Name)
			if err != nil {
				return "", err
			}
			start := status.State.Running.StartedAt.Time
			seconds := c.Usage.Cpu().AsApproximateFloat64() * max(now.Sub(start).Seconds(), 0)
			bytes := c.Usage.Memory().AsApproximateFloat64()
			labels := fmt.Sprintf("container=%q,namespace=%q,pod=%q", c.Name, pod.Namespace, pod.Name)
			fmt.Fprintf(&starts, "container_start_time_seconds{%s} %d\n", labels, start.Unix())
			fmt.Fprintf(&cpu, "container_cpu_usage_seconds_total{%s} %g\n", labels, seconds)
			fmt.Fprintf(&memory, "container_memory_working_set_bytes{%s} %g\n", labels, bytes)
			cpuOfPod += seconds
			memoryOfPod += bytes
		}
		if len(containers) == 0 {
			continue
		}
		labels := fmt.Sprintf("namespace=%q,pod=%q", pod.Namespace, pod.Name)
		fmt.Fprintf(&podCPU, "pod_cpu_usage_seconds_total{%s} %g\n", labels, cpuOfPod)
		fmt.Fprintf(&podMemory, "pod_memory_working_set_bytes{%s} %g\n", labels, memoryOfPod)
		nodeCPU += cpuOfPod
		nodeMemory += memoryOfPod
	}

	var all strings.Builder
	for _, family := range []struct{ name, kind, samples string }{
		{"container_start_time_seconds", "gauge", starts.String()},
		{"container_cpu_usage_seconds_total", "counter", cpu.String()},
		{"container_memory_working_set_bytes", "gauge", memory.String()},
		{"pod_cpu_usage_seconds_total", "counter", podCPU.String()},
		{"pod_memory_working_set_bytes", "gauge", podMemory.String()},
		{"node_cpu_usage_seconds_total", "counter", fmt.Sprintf("node_cpu_usage_seconds_total %g\n", nodeCPU)},
		{"node_memory_working_set_bytes", "gauge", fmt.Sprintf("node_memory_working_set_bytes %g\n", nodeMemory)},
		{"resource_scrape_error", "gauge", "resource_scrape_error 0\n"},
	} {
		if family.samples != "" {
			fmt.Fprintf(&all, "# TYPE %s %s\n%s", family.name, family.kind, family.samples)
		}
	}
	return all.String(), nil
}
