package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// createParallelism is how many nodes are created at a time.
	createParallelism = 8

	// nodeAnnotation with the value nodeAnnotationValue marks a node as
	// simulated, as kwok's own documentation has it. Other nodes, such as a real
	// kubelet's, are left alone.
	nodeAnnotation      = "kwok.x-k8s.io/node"
	nodeAnnotationValue = "fake"
	nodeSelector        = nodeAnnotation + "=" + nodeAnnotationValue

	// metricsPathAnnotation tells a metrics-server which path to scrape.
	metricsPathAnnotation = "metrics.k8s.io/resource-metrics-path"
)

// node is the i-th node as it is created. Its conditions are left to kwok.
func (o Options) node(i int) *corev1.Node {
	name := o.nodeName(i)
	labels := map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		"type":                 "kwok",
	}
	if o.Region != "" {
		labels[corev1.LabelTopologyRegion] = o.Region
	}
	if len(o.Zones) > 0 {
		labels[corev1.LabelTopologyZone] = o.Zones[(i-1)%len(o.Zones)]
	}
	maps.Copy(labels, o.Labels)

	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: labels,
			Annotations: map[string]string{
				nodeAnnotation:        nodeAnnotationValue,
				metricsPathAnnotation: resourceMetricsPath(name),
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    o.Capacity,
			Allocatable: o.Capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: o.NodeAddress},
				{Type: corev1.NodeHostName, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: o.port()}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            "amd64",
				OperatingSystem:         "linux",
				OSImage:                 "simulated",
				KernelVersion:           "simulated",
				ContainerRuntimeVersion: "kwok://simulated",
				KubeletVersion:          o.KubeletVersion,
			},
		},
	}
}

// ensureNodes creates the nodes that are missing, and brings the status of the
// others to what the options say now: the port may be another than last time.
func ensureNodes(ctx context.Context, nodes corev1client.NodeInterface, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(createParallelism)
	for i := range o.Nodes {
		group.Go(func() error {
			want := o.node(i + 1)
			_, err := nodes.Create(ctx, want, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = refreshNode(ctx, nodes, want)
			}
			if err != nil {
				return fmt.Errorf("create node %s: %w", want.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// refreshNode patches the status of an existing simulated node.
func refreshNode(ctx context.Context, nodes corev1client.NodeInterface, want *corev1.Node) error {
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if have.Annotations[nodeAnnotation] != nodeAnnotationValue {
		return fmt.Errorf("there is a node of this name that is not simulated: delete it, or choose another prefix")
	}
	patch := statusPatch(have.Status, want.Status)
	if patch == nil {
		return nil
	}
	data, err := json.Marshal(map[string]any{"status": patch})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, want.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	return err
}

// statusPatch is the change from have to want, nil when there is none. What
// others added to a node, such as an extended resource, is kept.
func statusPatch(have, want corev1.NodeStatus) map[string]any {
	patch := map[string]any{}
	if !holds(have.Capacity, want.Capacity) || !holds(have.Allocatable, want.Allocatable) {
		patch["capacity"] = want.Capacity
		patch["allocatable"] = want.Allocatable
	}
	if !apiequality.Semantic.DeepEqual(have.Addresses, want.Addresses) {
		patch["addresses"] = want.Addresses
	}
	if have.DaemonEndpoints != want.DaemonEndpoints {
		patch["daemonEndpoints"] = want.DaemonEndpoints
	}
	if have.NodeInfo.KubeletVersion != want.NodeInfo.KubeletVersion {
		patch["nodeInfo"] = map[string]string{"kubeletVersion": want.NodeInfo.KubeletVersion}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// holds reports whether have says the same as want for all that want names.
func holds(have, want corev1.ResourceList) bool {
	for name, q := range want {
		if h, ok := have[name]; !ok || h.Cmp(q) != 0 {
			return false
		}
	}
	return true
}

// isReady reports whether the node's Ready condition is true.
func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
