package aggregated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/server/aggregatedapiserver"
)

const api = "/apis/cluster.karmada.io/v1alpha1/clusters"

func newCluster(name string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:6443"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// create creates a Cluster for the time of a test.
func create(t *testing.T, c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	t.Helper()
	if err := shared.client.Create(t.Context(), c); err != nil {
		t.Fatalf("create cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.client.Delete(context.Background(), newCluster(c.Name))); err != nil {
			t.Errorf("delete cluster: %v", err)
		}
	})
	return c
}

func get(t *testing.T, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := shared.client.Get(t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		t.Fatalf("get cluster: %v", err)
	}
	return c
}

func TestLifecycle(t *testing.T) {
	c := create(t, newCluster("lifecycle", func(c *clusterv1alpha1.Cluster) {
		c.Status.KubernetesVersion = "v1.0.0"
		c.Spec.Zone = "zone-a"
		c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}
	}))
	if c.Generation != 1 || c.Status.KubernetesVersion != "" || len(c.Spec.ResourceModels) != 9 || c.Spec.Taints[0].TimeAdded == nil {
		t.Errorf("a new cluster has generation 1, no status, nine resource models, and a time for its taint, got %+v", c)
	}
	if diff := cmp.Diff([]string{"zone-a"}, c.Spec.Zones); diff != "" || c.Spec.Zone != "" {
		t.Errorf("the zone moves to zones: -want, +got:\n%s", diff)
	}

	c.Labels = map[string]string{"a": "b"}
	c.Status.KubernetesVersion = "v1.0.0"
	if err := shared.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if c.Generation != 1 || c.Status.KubernetesVersion != "" {
		t.Errorf("labels do not raise the generation, and the status is left alone: got generation %d, status %+v", c.Generation, c.Status)
	}
	c.Spec.Provider = "acme"
	if err := shared.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if c.Generation != 2 {
		t.Errorf("a changed spec raises the generation, got %d", c.Generation)
	}

	c.Spec.Provider = "other"
	c.Finalizers = []string{"example.com/hold"}
	c.Status.Conditions = []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if err := shared.client.Status().Update(t.Context(), c); err != nil {
		t.Fatalf("a condition without a reason is no mistake: %v", err)
	}
	c = get(t, c.Name)
	if c.Generation != 2 || c.Spec.Provider != "acme" || len(c.Status.Conditions) != 1 || len(c.Finalizers) != 1 {
		t.Errorf("who writes the status may change status and metadata, not the spec, got %+v", c)
	}

	stale := c.DeepCopy()
	stale.ResourceVersion = "1"
	if err := shared.client.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version is a conflict, got %v", err)
	}
	stale.ResourceVersion = ""
	if err := shared.client.Update(t.Context(), stale); err != nil {
		t.Errorf("an update of whatever is there is allowed, got %v", err)
	}
	if err := shared.client.Update(t.Context(), newCluster("nowhere")); !apierrors.IsNotFound(err) {
		t.Errorf("an update does not create, got %v", err)
	}

	if err := shared.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c = get(t, c.Name)
	if c.DeletionTimestamp == nil {
		t.Fatal("a finalizer holds a cluster back")
	}
	c.Finalizers = nil
	if err := shared.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := shared.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer the cluster goes, got %v", err)
	}
}

func TestPatch(t *testing.T) {
	c := create(t, newCluster("patch", func(c *clusterv1alpha1.Cluster) { c.Spec.Zone = "a" }))
	patches := map[string]struct {
		reason string
		patch  client.Patch
		check  func(*clusterv1alpha1.Cluster) bool
	}{
		"Merge":     {"What kubectl patch --type=merge sends.", client.RawPatch(types.MergePatchType, []byte(`{"spec":{"provider":"merge"}}`)), func(c *clusterv1alpha1.Cluster) bool { return c.Spec.Provider == "merge" }},
		"JSON":      {"What kubectl patch --type=json sends.", client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/region","value":"json"}]`)), func(c *clusterv1alpha1.Cluster) bool { return c.Spec.Region == "json" }},
		"Strategic": {"What kubectl apply and patch send by default.", client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`)), func(c *clusterv1alpha1.Cluster) bool { return len(c.Spec.Taints) == 1 }},
		"Apply":     {"What kubectl apply --server-side sends.", client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"patch"},"spec":{"syncMode":"Push","id":"applied"}}`)), func(c *clusterv1alpha1.Cluster) bool { return c.Spec.ID == "applied" && c.Spec.APIEndpoint != "" }},
	}
	for name, tc := range patches {
		t.Run(name, func(t *testing.T) {
			got := newCluster(c.Name)
			if err := shared.client.Patch(t.Context(), got, tc.patch, client.FieldOwner("test")); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if !tc.check(got) {
				t.Errorf("%s\ngot %+v", tc.reason, got.Spec)
			}
			before := got.ResourceVersion
			if err := shared.client.Patch(t.Context(), got, tc.patch, client.FieldOwner("test")); err != nil {
				t.Fatal(err)
			}
			if got.ResourceVersion != before {
				t.Errorf("the same patch again writes: %s\n%s", name, tc.reason)
			}
		})
	}
}

func TestApplyAgain(t *testing.T) {
	// The deprecated zone and a taint without a time are not stored as they are
	// sent; sending them again must neither fail nor write.
	manifest := `{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"again"},
"spec":{"syncMode":"Pull","zone":"z","taints":[{"key":"k","effect":"NoExecute"}]}}`
	apply := func() *clusterv1alpha1.Cluster {
		c := newCluster("again")
		if err := shared.client.Patch(t.Context(), c, client.RawPatch(types.ApplyPatchType, []byte(manifest)), client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
		if c.Generation != 1 || c.Spec.Zone != "" || len(c.Spec.Zones) != 1 {
			t.Errorf("got generation %d, zone %q, zones %q", c.Generation, c.Spec.Zone, c.Spec.Zones)
		}
		return c
	}
	c := apply()
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.client.Delete(context.Background(), newCluster("again"))); err != nil {
			t.Error(err)
		}
	})
	// As if the first time were long ago: within one second nothing would show.
	// What only changes times is not stored, hence the label.
	before := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	c.Labels = map[string]string{"aged": "yes"}
	for i := range c.ManagedFields {
		c.ManagedFields[i].Time = &before
	}
	if err := shared.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again := apply()
		if again.ResourceVersion != c.ResourceVersion {
			t.Errorf("applying the same again writes:\n%s", cmp.Diff(c.ObjectMeta, again.ObjectMeta))
		}
	}
	i := slices.IndexFunc(c.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "test" })
	if i < 0 || !c.ManagedFields[i].Time.Equal(&before) {
		t.Errorf("the test is void: the time of the first apply was not taken back: %+v", c.ManagedFields)
	}
}

func TestInvalid(t *testing.T) {
	err := shared.client.Create(t.Context(), newCluster(strings.Repeat("x", 49), func(c *clusterv1alpha1.Cluster) {
		c.Spec.SyncMode = "Drag"
		c.Spec.APIEndpoint = "https://user:secret@host"
		c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{}
	}))
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"metadata.name", "no more than 48 characters", "spec.syncMode", "spec.apiEndpoint", "spec.secretRef.name", "spec.secretRef.namespace"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("everything is told at once; %q is missing in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret@") {
		t.Errorf("a password is shown: %v", err)
	}
}

func TestProtected(t *testing.T) {
	c := create(t, newCluster("protected", func(c *clusterv1alpha1.Cluster) {
		c.Labels = map[string]string{names.DeletionProtectedLabel: names.DeletionProtectedAlways}
	}))
	if err := shared.client.Delete(t.Context(), c); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), names.DeletionProtectedLabel) {
		t.Errorf("the label protects: got %v", err)
	}
	if err := shared.client.DeleteAllOf(t.Context(), newCluster(""), client.MatchingFields{"metadata.name": c.Name}); !apierrors.IsForbidden(err) {
		t.Errorf("it protects from deleting many, too: got %v", err)
	}
	c.Labels = nil
	if err := shared.client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestSelectAndWatch(t *testing.T) {
	one := create(t, newCluster("select-one"))
	create(t, newCluster("select-two"))
	list := &clusterv1alpha1.ClusterList{}
	if err := shared.client.List(t.Context(), list, client.MatchingFields{"metadata.name": one.Name}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != one.Name {
		t.Errorf("selected %d clusters", len(list.Items))
	}
	err := shared.client.List(t.Context(), list, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.syncMode", "Push")})
	if !apierrors.IsBadRequest(err) {
		t.Errorf("no other field selects: got %v", err)
	}

	w, err := shared.client.Watch(t.Context(), &clusterv1alpha1.ClusterList{},
		client.MatchingFields{"metadata.name": one.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: one.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	one.Spec.Region = "watched"
	if err := shared.client.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-w.ResultChan():
		if c, ok := event.Object.(*clusterv1alpha1.Cluster); event.Type != watch.Modified || !ok || c.Spec.Region != "watched" {
			t.Errorf("got %s %+v", event.Type, event.Object)
		}
	case <-time.After(30 * time.Second):
		t.Error("no event")
	}
}

func TestTable(t *testing.T) {
	create(t, newCluster("table", func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"a", "b"} }))
	table := &metav1.Table{}
	raw(t, api+"/table", "application/json;as=Table;v=v1;g=meta.k8s.io", table)
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", c.Name, c.Priority))
	}
	if diff := cmp.Diff(strings.Fields("Name/0 Version/0 Mode/0 Ready/0 Age/0 Zones/1 Region/1 Provider/1 API-Endpoint/1 Proxy-URL/1"), columns); diff != "" {
		t.Errorf("columns: -want, +got:\n%s", diff)
	}
	cells := table.Rows[0].Cells
	cells[4] = "age"
	want := []any{"table", "<none>", "Push", "Unknown", "age", "a,b", "<none>", "<none>", "https://127.0.0.1:6443", "<none>"}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells: -want, +got:\n%s", diff)
	}
}

// raw asks for a path as the administrator.
func raw(t *testing.T, path, accept string, into any) {
	t.Helper()
	body, err := do(t.Context(), shared.config, "https://"+strings.TrimPrefix(shared.config.Host, "https://")+path, accept)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func do(ctx context.Context, config *rest.Config, url, accept string) ([]byte, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

func TestProtobufIsAnsweredWithJSON(t *testing.T) {
	create(t, newCluster("protobuf"))
	c := &clusterv1alpha1.Cluster{}
	raw(t, api+"/protobuf", "application/vnd.kubernetes.protobuf,application/json", c)
	if c.Name != "protobuf" {
		t.Errorf("got %+v", c)
	}
}

func TestDiscovery(t *testing.T) {
	resources := &metav1.APIResourceList{}
	raw(t, "/apis/cluster.karmada.io/v1alpha1", "application/json", resources)
	got := map[string]string{}
	for _, r := range resources.APIResources {
		got[r.Name] = fmt.Sprintf("%s %s %t %v %v", r.Kind, r.SingularName, r.Namespaced, r.ShortNames, r.Categories)
		if strings.Contains(r.Name, "/") {
			got[r.Name] = fmt.Sprintf("%s %v", r.Kind, r.Verbs)
		}
	}
	want := map[string]string{
		"clusters":        "Cluster cluster false [] []",
		"clusters/proxy":  "Cluster [create delete get patch update]",
		"clusters/status": "Cluster [get patch update]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources: -want, +got:\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	// The API server gathers schemas of others now and then.
	eventually(t, "clusters can be explained", func(context.Context) error {
		for field, want := range map[string]string{
			"cluster":                                    "A Cluster is a member cluster",
			"cluster.spec.apiEndpoint":                   "URL of the cluster's API server",
			"cluster.spec.taints.effect":                 "NoSchedule",
			"cluster.status.resourceSummary.allocatable": "offer to pods",
		} {
			text, err := shared.karmadactl("explain", field)
			if err != nil {
				return err
			}
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				return fmt.Errorf("explain %s does not say %q:\n%s", field, want, text)
			}
		}
		return nil
	})
	var v2 struct {
		Definitions map[string]struct {
			GVKs []map[string]string `json:"x-kubernetes-group-version-kind"`
		}
	}
	eventually(t, "OpenAPI v2 has clusters, of the version that is served alone", func(ctx context.Context) error {
		body, err := do(ctx, shared.config, shared.config.Host+"/openapi/v2", "application/json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(body, &v2); err != nil {
			return err
		}
		got := v2.Definitions["com.github.karmadactl.karmadactl.pkg.apis.cluster.v1alpha1.Cluster"].GVKs
		want := []map[string]string{{"group": "cluster.karmada.io", "version": "v1alpha1", "kind": "Cluster"}}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestStoredForm(t *testing.T) {
	create(t, newCluster("stored"))
	pki := filepath.Join(filepath.Dir(shared.kubeconfig), "pki")
	cert, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{shared.etcd()},
		TLS:       &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool(t, filepath.Join(pki, "etcd-ca.crt"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	answer, err := etcd.Get(t.Context(), "/registry/cluster.karmada.io/clusters/stored")
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Kvs) != 1 {
		t.Fatal("the cluster is not where others look for it")
	}
	var stored unstructured.Unstructured
	if err := json.Unmarshal(answer.Kvs[0].Value, &stored.Object); err != nil {
		t.Fatalf("the stored form is JSON: %v", err)
	}
	if got := stored.GetAPIVersion() + " " + stored.GetKind(); got != "cluster.karmada.io/v1alpha1 Cluster" {
		t.Errorf("stored as %s", got)
	}
}

func TestAccess(t *testing.T) {
	direct := fmt.Sprintf("https://localhost:%d", shared.port)
	admin := rest.CopyConfig(shared.config)
	admin.CAData, admin.CAFile = shared.caBundle, ""
	anonymous := rest.AnonymousClientConfig(admin)
	stranger := rest.CopyConfig(shared.config)
	stranger.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	cases := map[string]struct {
		reason string
		config *rest.Config
		url    string
		want   string
	}{
		"AdminDirectly":     {"A client certificate of the control plane is known here, too.", admin, direct + api, ""},
		"AnonymousDirectly": {"Nobody reads clusters without saying who they are.", anonymous, direct + api, "403"},
		"Health":            {"Health is for everybody.", anonymous, direct + "/readyz", ""},
		"Livez":             {"Health is for everybody.", anonymous, direct + "/livez", ""},
		"Healthz":           {"Health is for everybody.", anonymous, direct + "/healthz", ""},
		"Metrics":           {"Metrics are for who may read them.", admin, direct + "/metrics", ""},
		"AnonymousMetrics":  {"Metrics are for who may read them.", anonymous, direct + "/metrics", "403"},
		"Stranger":          {"RBAC of the control plane decides.", stranger, shared.config.Host + api, "403"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := do(t.Context(), tc.config, tc.url, "*/*")
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\nwant %s, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestStop(t *testing.T) {
	port := freePort()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	// Priority and fairness on, although the tests' other server has it off.
	go func() {
		done <- aggregatedapiserver.Run(ctx, shared.flags(port, "--enable-priority-and-fairness=true"))
	}()
	admin := rest.CopyConfig(shared.config)
	admin.CAData, admin.CAFile = shared.caBundle, ""
	eventually(t, "another server is ready", func(ctx context.Context) error {
		_, err := do(ctx, admin, fmt.Sprintf("https://localhost:%d/readyz", port), "*/*")
		return err
	})
	joinItself(t, "stopping")
	direct := rest.CopyConfig(admin)
	direct.Host = fmt.Sprintf("https://localhost:%d%s/stopping/proxy", port, api)
	var lasting *http.Response
	eventually(t, "the other server passes watches on", func(context.Context) error {
		lasting = send(t, direct, http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=true", "")
		if lasting.StatusCode != http.StatusOK {
			return errors.New(lasting.Status)
		}
		return nil
	})
	cancel()
	if _, err := io.Copy(io.Discard, lasting.Body); err != nil {
		t.Errorf("a watch of a member ends well when the server stops: %v", err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("a graceful stop is no error: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server does not stop")
	}
}

func TestBadFlags(t *testing.T) {
	err := aggregatedapiserver.Run(t.Context(), []string{"--secure-port=-1", "--feature-gates=Nonsense=true", "--kube-api-burst=-1"})
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{"--etcd-servers", "--secure-port", "Nonsense", "--kube-api-burst"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("everything is told at once; %q is missing in: %v", want, err)
		}
	}
}

func pool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	certs, err := certutil.NewPool(file)
	if err != nil {
		t.Fatal(err)
	}
	return certs
}
