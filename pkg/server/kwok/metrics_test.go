package kwok

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestUsage(t *testing.T) {
	model, err := newUsageModel()
	if err != nil {
		t.Fatal(err)
	}
	simulated := complete(t, func(*Options) {}).node(1)
	idle := complete(t, func(*Options) {}).node(2)
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}
	on := func(node, name string, change func(*corev1.Pod)) *corev1.Pod {
		p := runningPod()
		p.Name, p.Spec.NodeName = name, node
		change(p)
		return p
	}
	client := fake.NewClientset(simulated, idle, foreign,
		on(simulated.Name, "a", func(*corev1.Pod) {}),
		on(simulated.Name, "b", func(p *corev1.Pod) { p.Annotations = nil }),
		on(simulated.Name, "c", func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
	)
	m := &metricsServer{client: client.CoreV1(), model: model}

	nodes, err := m.nodes(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range nodes.Items {
		got[n.Name] = n.Usage.Cpu().String() + " " + n.Usage.Memory().String()
	}
	want := map[string]string{simulated.Name: "251m 2Mi", idle.Name: "0 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("A node uses what the running containers on it use; others' nodes are theirs to tell (-want +got):\n%s", diff)
	}

	pods, err := m.pods(context.Background(), "default", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]string{}
	for _, p := range pods.Items {
		for _, c := range p.Containers {
			got[p.Name+"/"+c.Name] = c.Usage.Cpu().String() + " " + c.Usage.Memory().String()
		}
	}
	want = map[string]string{"a/app": "250m 1Mi", "b/app": "1m 1Mi"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Only running containers use something (-want +got):\n%s", diff)
	}
}

func TestExposition(t *testing.T) {
	model, err := newUsageModel()
	if err != nil {
		t.Fatal(err)
	}
	m := &metricsServer{model: model}
	text, err := m.exposition(context.Background(), []corev1.Pod{*runningPod()}, at(100).Time)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`container_cpu_usage_seconds_total{container="app",namespace="default",pod="web-1"} 25`,
		`pod_memory_working_set_bytes{namespace="default",pod="web-1"} 1.048576e+06`,
		`node_cpu_usage_seconds_total 25`,
		`resource_scrape_error 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("250m for 100 s are 25 s of CPU: no line %s in\n%s", line, text)
		}
	}
}
