package fleet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// TestProxy checks that a member can be worked with through the control plane as if one talked to it, by push and by
// pull alike.
func TestProxy(t *testing.T) {
	for cluster, member := range map[string]string{pushCluster: pushMember, pullCluster: pullMember} {
		t.Run(cluster, func(t *testing.T) {
			c := proxied(t, cluster)
			client := clientFor(t, c)

			// Impersonation needs rights that unifiedAuth has to bring to the member first.
			eventually(t, "the administrator may look at nodes of the member", func() error {
				nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
				if err != nil {
					return err
				}
				if len(nodes.Items) != memberNodes || !strings.HasPrefix(nodes.Items[0].Name, member) {
					return fmt.Errorf("got %d nodes, want %d of %s", len(nodes.Items), memberNodes, member)
				}
				return nil
			})

			watch, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=proxied"})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "proxied"}, Data: map[string]string{"k": "v"}}
			if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			select {
			case event := <-watch.ResultChan():
				if got, ok := event.Object.(*corev1.ConfigMap); !ok || got.Data["k"] != "v" {
					t.Errorf("the watch says %v, want the ConfigMap", event)
				}
			case <-t.Context().Done():
				t.Fatal("the watch through the proxy says nothing")
			}
			if err := client.CoreV1().ConfigMaps("default").Delete(t.Context(), "proxied", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}

			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "shell"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
			}
			if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the pod runs", func() error {
				p, err := client.CoreV1().Pods("default").Get(t.Context(), "shell", metav1.GetOptions{})
				if err != nil {
					return err
				}
				if p.Status.Phase != corev1.PodRunning {
					return fmt.Errorf("it is %s", p.Status.Phase)
				}
				return nil
			})
			logs, err := client.CoreV1().Pods("default").GetLogs("shell", &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil {
				t.Errorf("logs through the proxy: %v", err)
			}
			if !strings.Contains(string(logs), "busybox") {
				t.Errorf("logs through the proxy are %q, want those of the pod", logs)
			}
			for name, execute := range map[string]func(*rest.Config, *rest.Request) (remotecommand.Executor, error){
				"SPDY": func(c *rest.Config, r *rest.Request) (remotecommand.Executor, error) {
					return remotecommand.NewSPDYExecutor(c, "POST", r.URL())
				},
				"WebSocket": func(c *rest.Config, r *rest.Request) (remotecommand.Executor, error) {
					return remotecommand.NewWebSocketExecutor(c, "GET", r.URL().String())
				},
			} {
				t.Run(name, func(t *testing.T) {
					request := client.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("shell").SubResource("exec").
						VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"echo", "through", "the", "proxy"}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
					executor, err := execute(c, request)
					if err != nil {
						t.Fatal(err)
					}
					var out, errOut bytes.Buffer
					if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
						t.Fatalf("exec through the proxy: %v\n%s", err, errOut.String())
					}
					if got := strings.TrimSpace(out.String()); got != "through the proxy" {
						t.Errorf("exec printed %q", got)
					}
				})
			}
			if err := client.CoreV1().Pods("default").Delete(t.Context(), "shell", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
