package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// play plays the embedded stages on an object as kwok's controller does, until
// none matches any more or it is deleted, and returns their names.
func play[T any](t *testing.T, kind string, object *T, meta *metav1.ObjectMeta) (played []string, deleted bool) {
	t.Helper()
	stages, err := loadStages()
	if err != nil {
		t.Fatal(err)
	}
	cycle, err := lifecycle.NewLifecycle(stages[internalversion.StageResourceRef{APIGroup: "v1", Kind: kind}])
	if err != nil {
		t.Fatal(err)
	}
	renderer := gotpl.NewRenderer(gotpl.FuncMap{
		"NodeIP":       func() string { return "127.0.0.1" },
		"NodePort":     func() int { return 10250 },
		"NodeCapacity": func() map[string]string { return map[string]string{"cpu": "8", "memory": "32Gi", "pods": "110"} },
		"NodeIPsWith":  func(string) []string { return []string{"127.0.0.1"} },
		"PodIPsWith":   func(string, bool, string, string, string) ([]string, error) { return []string{"10.1.0.1"}, nil },
	})

	const enough = 8
	for range enough {
		// A heartbeat goes on for ever.
		stage, err := cycle.Match(context.Background(), &lifecycle.Event{Labels: meta.Labels, Annotations: meta.Annotations, Data: object})
		if err != nil {
			t.Fatal(err)
		}
		if stage == nil || stage.Name() == "node-heartbeat" && len(played) > 0 && played[len(played)-1] == stage.Name() {
			return played, deleted
		}
		played = append(played, stage.Name())
		_, err = stage.DoSteps(0, meta.Finalizers, object, renderer,
			func(*internalversion.StageEvent) error { return nil },
			func() error { deleted = true; return nil },
			func(p *lifecycle.Patch) error { return patchInto(object, p) },
			func(*lifecycle.Apply) error { return fmt.Errorf("nothing is applied") },
		)
		if err != nil {
			t.Fatalf("stage %s: %v", stage.Name(), err)
		}
		if deleted {
			return played, deleted
		}
	}
	t.Fatalf("the stages never settle: %v", played)
	return nil, false
}

func patchInto[T any](object *T, p *lifecycle.Patch) error {
	if p.Subresource != "status" {
		return fmt.Errorf("patches %q, not the status", p.Subresource)
	}
	before, err := json.Marshal(object)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, p.Data, object)
	if err != nil {
		return err
	}
	var fresh T
	decoder := json.NewDecoder(strings.NewReader(string(after)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fresh); err != nil {
		return err
	}
	*object = fresh
	return nil
}

// brief is what "kubectl get pods" makes of a pod's status, near enough.
func brief(p *corev1.Pod) string {
	state := func(name string, s corev1.ContainerStatus) string {
		text := "?"
		switch {
		case s.State.Running != nil:
			text = "running"
		case s.State.Waiting != nil:
			text = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			text = fmt.Sprintf("%s(%d)", s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		}
		return fmt.Sprintf("%s=%s,%t", name, text, s.Ready)
	}
	parts := []string{string(p.Status.Phase)}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			parts = append(parts, "Ready="+string(c.Status))
		}
	}
	for _, s := range p.Status.InitContainerStatuses {
		parts = append(parts, state("init:"+s.Name, s))
	}
	for _, s := range p.Status.ContainerStatuses {
		parts = append(parts, state(s.Name, s))
	}
	return strings.Join(parts, " ")
}

func boundPod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid"},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "app", Image: "nginx"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	change(p)
	return p
}

func TestPodStages(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	now := metav1.Now()
	deleted := func(grace int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace }
	}
	job := []metav1.OwnerReference{{Kind: "Job", Name: "j"}}
	containersReady := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	notReady := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady"}

	cases := map[string]struct {
		reason  string
		change  func(*corev1.Pod)
		played  []string
		want    string
		deleted bool
	}{
		"Plain": {
			reason: "A bound pod is ready in one write.",
			change: func(*corev1.Pod) {},
			played: []string{"pod-ready"},
			want:   "Running Ready=True app=running,true",
		},
		"Init": {
			reason: "Init containers have completed; a sidecar runs.",
			change: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x"}, {Name: "s", Image: "y", RestartPolicy: &always}}
			},
			played: []string{"pod-ready"},
			want:   "Running Ready=True init:i=Completed(0),true init:s=running,true app=running,true",
		},
		"OddImage": {
			reason: "Whatever a user calls an image must not break the template.",
			change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "a\"b: {{c}}\n#d" },
			played: []string{"pod-ready"},
			want:   "Running Ready=True app=running,true",
		},
		"Fake": {
			reason: "An image that starts with fake/ never becomes ready; its neighbour runs; it is told once.",
			change: func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "bad", Image: "fake/x:1"})
			},
			played: []string{"pod-image-pull-backoff"},
			want:   "Pending Ready=False app=running,true bad=ImagePullBackOff,false",
		},
		"FakeElsewhere": {
			reason: "Only a name that starts with fake/ is fake.",
			change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example.com/fake/x" },
			played: []string{"pod-ready"},
			want:   "Running Ready=True app=running,true",
		},
		"FakeInit": {
			reason: "A stuck init container holds up all that come after it.",
			change: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "a", Image: "x"}, {Name: "b", Image: "fake/y"}, {Name: "c", Image: "fake/z"}}
				p.Spec.Containers[0].Image = "fake/w"
			},
			played: []string{"pod-image-pull-backoff"},
			want:   "Pending Ready=False init:a=Completed(0),true init:b=ImagePullBackOff,false init:c=PodInitializing,false app=PodInitializing,false",
		},
		"FakeCorrected": {
			reason: "Once the image is set to a real one the pod becomes ready.",
			change: func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Image: "fake/x", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			},
			played: []string{"pod-ready"},
			want:   "Running Ready=True app=running,true",
		},
		"Job": {
			reason: "The pod of a Job succeeds.",
			change: func(p *corev1.Pod) { p.OwnerReferences = job },
			played: []string{"pod-ready", "pod-complete"},
			want:   "Succeeded Ready=False app=Completed(0),false",
		},
		"FakeJob": {
			reason: "A Job whose image cannot be pulled never completes.",
			change: func(p *corev1.Pod) { p.OwnerReferences, p.Spec.Containers[0].Image = job, "fake/x" },
			played: []string{"pod-image-pull-backoff"},
			want:   "Pending Ready=False app=ImagePullBackOff,false",
		},
		"Deleted": {
			reason:  "A pod that is to go is deleted at once.",
			change:  deleted(30),
			played:  []string{"pod-delete"},
			want:    "Pending",
			deleted: true,
		},
		"FakeDeleted": {
			reason:  "Also one that never ran.",
			change:  func(p *corev1.Pod) { deleted(30)(p); p.Spec.Containers[0].Image = "fake/x" },
			played:  []string{"pod-delete"},
			want:    "Pending",
			deleted: true,
		},
		"DeletedWithFinalizer": {
			reason:  "The Job controller lets a pod go when it has seen it end.",
			change:  func(p *corev1.Pod) { deleted(30)(p); p.Finalizers = []string{"batch.kubernetes.io/job-tracking"} },
			played:  []string{"pod-terminate", "pod-delete"},
			want:    "Failed Ready=False app=Error(143),false",
			deleted: true,
		},
		"WaitsForFinalizer": {
			reason: "After that there is nothing to do but wait.",
			change: func(p *corev1.Pod) {
				deleted(0)(p)
				p.Finalizers, p.Status.Phase = []string{"batch.kubernetes.io/job-tracking"}, corev1.PodFailed
			},
			want: "Failed",
		},
		"NodeIsBack": {
			reason: "What the node controller says of a pod whose node is silent is not true any more.",
			change: func(p *corev1.Pod) {
				p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{containersReady, notReady}
			},
			played: []string{"pod-ready-again"},
			want:   "Running Ready=True",
		},
		"GateOpen": {
			reason: "Also with gates, when they are open.",
			change: func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{containersReady, notReady, {Type: "gate", Status: corev1.ConditionTrue}}
			},
			played: []string{"pod-ready-again"},
			want:   "Running Ready=True",
		},
		"GateClosed": {
			reason: "Whoever keeps a gate says when the pod is ready.",
			change: func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{containersReady, notReady, {Type: "gate", Status: corev1.ConditionFalse}}
			},
			want: "Running Ready=False",
		},
		"DeletedHalf": {
			reason:  "A deletion that an API server did not finish is asked for again.",
			change:  deleted(0),
			played:  []string{"pod-delete-again"},
			want:    "Pending",
			deleted: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := boundPod(tc.change)
			played, deleted := play(t, "Pod", p, &p.ObjectMeta)
			if diff := cmp.Diff(tc.played, played); diff != "" {
				t.Errorf("%s\nstages (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
				t.Errorf("%s\nstatus (-want +got):\n%s", tc.reason, diff)
			}
			if deleted != tc.deleted {
				t.Errorf("%s\ndeleted is %t", tc.reason, deleted)
			}
		})
	}
}

func TestNodeStages(t *testing.T) {
	cases := map[string]struct {
		reason string
		node   corev1.Node
		played []string
		cpu    string
	}{
		"Bare": {
			reason: "A node made by hand gets what it lacks.",
			node:   corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			played: []string{"node-ready", "node-heartbeat"},
			cpu:    "8",
		},
		"Unknown": {
			reason: "A node that was given up comes back, with the capacity it had.",
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": *quantity("3")}, Capacity: corev1.ResourceList{"cpu": *quantity("3")},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}},
			}},
			played: []string{"node-ready", "node-heartbeat"},
			cpu:    "3",
		},
		"Ready": {
			reason: "A ready node only repeats its status now and then.",
			node: corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": *quantity("3")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			}},
			played: []string{"node-heartbeat"},
			cpu:    "3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := tc.node.DeepCopy()
			played, _ := play(t, "Node", n, &n.ObjectMeta)
			if diff := cmp.Diff(tc.played, played); diff != "" {
				t.Errorf("%s\nstages (-want +got):\n%s", tc.reason, diff)
			}
			if !isReady(n) || n.Status.Allocatable.Cpu().String() != tc.cpu {
				t.Errorf("%s\nready %t, allocatable %v", tc.reason, isReady(n), n.Status.Allocatable)
			}
			if tc.played[0] == "node-ready" && n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
				t.Errorf("%s\nno kubelet port", tc.reason)
			}
		})
	}
}

func TestDecodeStages(t *testing.T) {
	if _, err := decodeStages([]byte("kind: Stage\nspec:\n  selecter: {}\n")); err == nil {
		t.Error("A misspelt field would leave a stage that matches nothing, or everything.")
	}
}
