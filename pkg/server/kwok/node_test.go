package kwok

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func complete(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := valid()
	change(&o)
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestNode(t *testing.T) {
	o := complete(t, func(o *Options) {
		o.Region, o.Zones, o.Labels = "north", []string{"a", "b"}, map[string]string{"team": "x"}
	})
	n := o.node(2)
	wantLabels := map[string]string{
		"kubernetes.io/hostname":        "member1-node-2",
		"kubernetes.io/os":              "linux",
		"kubernetes.io/arch":            "amd64",
		"type":                          "kwok",
		"topology.kubernetes.io/region": "north",
		"topology.kubernetes.io/zone":   "b",
		"team":                          "x",
	}
	if diff := cmp.Diff(wantLabels, n.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantAddresses := []corev1.NodeAddress{{Type: "InternalIP", Address: "127.0.0.1"}, {Type: "Hostname", Address: "member1-node-2"}}
	if diff := cmp.Diff(wantAddresses, n.Status.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Error("The API server must find the kubelet's port.")
	}
	if len(n.Spec.Taints) != 0 || n.Annotations[nodeAnnotation] != nodeAnnotationValue {
		t.Error("A node has no taint, and kwok's mark.")
	}
}

func TestEnsureNodes(t *testing.T) {
	o := complete(t, func(o *Options) { o.Nodes = 2 })
	moved := o.node(1)
	moved.Status.DaemonEndpoints.KubeletEndpoint.Port = 1
	moved.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("4")}
	extra := o.node(7)
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "member1-node-1"}}

	cases := map[string]struct {
		reason  string
		have    []*corev1.Node
		want    []string
		wantErr bool
	}{
		"Fresh":    {reason: "Missing nodes are created.", want: []string{"member1-node-1", "member1-node-2"}},
		"Restart":  {reason: "Nodes that are there are kept, also those beyond the number.", have: []*corev1.Node{moved, extra}, want: []string{"member1-node-1", "member1-node-2", "member1-node-7"}},
		"RealNode": {reason: "A node that somebody else answers for is not taken over.", have: []*corev1.Node{foreign}, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			for _, n := range tc.have {
				if err := client.Tracker().Add(n.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			nodes := client.CoreV1().Nodes()
			err := ensureNodes(context.Background(), nodes, o)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s\nensureNodes(): %v", tc.reason, err)
			}
			if tc.wantErr {
				return
			}
			list, err := nodes.List(context.Background(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range list.Items {
				names = append(names, n.Name)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if port := list.Items[0].Status.DaemonEndpoints.KubeletEndpoint.Port; port != 10250 {
				t.Errorf("%s\nport is %d: after a restart the endpoint may be elsewhere", tc.reason, port)
			}
		})
	}
}

func TestStatusPatch(t *testing.T) {
	o := complete(t, func(*Options) {})
	want := o.node(1).Status
	withGPU := *want.DeepCopy()
	withGPU.Capacity["example.com/gpu"] = resource.MustParse("4")
	withGPU.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	small := *want.DeepCopy()
	small.Capacity["cpu"] = resource.MustParse("1")

	cases := map[string]struct {
		reason string
		have   corev1.NodeStatus
		keys   []string
	}{
		"Same":     {reason: "A restart that changes nothing writes nothing.", have: want},
		"Extended": {reason: "What others added is theirs.", have: withGPU},
		"Capacity": {reason: "The configured capacity wins.", have: small, keys: []string{"allocatable", "capacity"}},
		"Empty":    {reason: "A node made by hand gets all of it.", keys: []string{"addresses", "allocatable", "capacity", "daemonEndpoints", "nodeInfo"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := statusPatch(tc.have, want)
			if len(got) != len(tc.keys) {
				t.Fatalf("%s\npatch: %v, want keys %v", tc.reason, got, tc.keys)
			}
			for _, k := range tc.keys {
				if _, ok := got[k]; !ok {
					t.Errorf("%s\npatch: %v, want key %s", tc.reason, got, k)
				}
			}
		})
	}
}
