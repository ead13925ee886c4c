package cluster

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func testStrategy(models bool) strategy {
	return newStrategy(runtime.NewScheme(), Options{ResourceModels: models, Now: now})
}

func valid(change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member", ResourceVersion: "1", Generation: 3},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func model(grade int32, bounds ...string) clusterv1alpha1.ResourceModel {
	m := clusterv1alpha1.ResourceModel{Grade: grade}
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for i := 0; i < len(bounds); i += 2 {
		m.Ranges = append(m.Ranges, clusterv1alpha1.ResourceModelRange{
			Name: names[i/2], Min: resource.MustParse(bounds[i]), Max: resource.MustParse(bounds[i+1]),
		})
	}
	return m
}

const most = "9223372036854775807"

func TestPrepareForCreate(t *testing.T) {
	c := valid(func(c *clusterv1alpha1.Cluster) {
		c.Status.KubernetesVersion = "v1"
		c.Spec.Zone = "z"
		c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}, {Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	})
	testStrategy(true).PrepareForCreate(context.Background(), c)
	want := valid(func(c *clusterv1alpha1.Cluster) {
		c.Generation = 1
		c.Spec.Zones = []string{"z"}
		c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now()}}, {Key: "a", Effect: corev1.TaintEffectNoSchedule}}
		c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{
			model(0, "0", "1", "0", "4Gi"), model(1, "1", "2", "4Gi", "16Gi"), model(2, "2", "4", "16Gi", "32Gi"),
			model(3, "4", "8", "32Gi", "64Gi"), model(4, "8", "16", "64Gi", "128Gi"), model(5, "16", "32", "128Gi", "256Gi"),
			model(6, "32", "64", "256Gi", "512Gi"), model(7, "64", "128", "512Gi", "1024Gi"), model(8, "128", most, "1024Gi", most),
		}
	})
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if errs := Validate(c); len(errs) > 0 {
		t.Errorf("defaults must be valid: %v", errs)
	}

	c = valid()
	testStrategy(false).PrepareForCreate(context.Background(), c)
	if len(c.Spec.ResourceModels) != 0 {
		t.Error("without the gate nothing is made up")
	}
}

func TestPrepareForUpdate(t *testing.T) {
	before := metav1.NewTime(now().Add(-time.Hour))
	cases := map[string]struct {
		reason         string
		old, new       *clusterv1alpha1.Cluster
		wantGeneration int64
		check          func(*clusterv1alpha1.Cluster) bool
	}{
		"Labels": {
			reason: "Metadata does not raise the generation.",
			old:    valid(), new: valid(func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }), wantGeneration: 3,
		},
		"Spec": {
			reason: "A changed spec does.",
			old:    valid(), new: valid(func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" }), wantGeneration: 4,
		},
		"Status": {
			reason: "The status is not for those who write the Cluster.",
			old:    valid(func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }), new: valid(), wantGeneration: 3,
			check: func(c *clusterv1alpha1.Cluster) bool { return c.Status.KubernetesVersion == "v1" },
		},
		"ZoneAgain": {
			reason: "A manifest with the deprecated zone is merged into what it became.",
			old:    valid(func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"z"} }),
			new:    valid(func(c *clusterv1alpha1.Cluster) { c.Spec.Zone, c.Spec.Zones = "z", []string{"z"} }), wantGeneration: 3,
			check: func(c *clusterv1alpha1.Cluster) bool { return c.Spec.Zone == "" },
		},
		"TaintAgain": {
			reason: "A taint that is there already keeps its time, from which tolerations count.",
			old: valid(func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &before}}
			}),
			new: valid(func(c *clusterv1alpha1.Cluster) {
				c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
			}), wantGeneration: 3,
			check: func(c *clusterv1alpha1.Cluster) bool { return c.Spec.Taints[0].TimeAdded.Equal(&before) },
		},
		"Models": {
			reason: "Models are sorted, and opened at both ends.",
			old:    valid(),
			new: valid(func(c *clusterv1alpha1.Cluster) {
				c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{model(2, "2", "4"), model(1, "1", "2")}
			}), wantGeneration: 4,
			check: func(c *clusterv1alpha1.Cluster) bool {
				return cmp.Equal(c.Spec.ResourceModels, []clusterv1alpha1.ResourceModel{model(1, "0", "2"), model(2, "2", most)})
			},
		},
		"NoModels": {
			reason: "An update without models means none.",
			old:    valid(func(c *clusterv1alpha1.Cluster) { c.Spec.ResourceModels = defaultModels() }), new: valid(), wantGeneration: 4,
			check: func(c *clusterv1alpha1.Cluster) bool { return len(c.Spec.ResourceModels) == 0 },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testStrategy(true).PrepareForUpdate(context.Background(), tc.new, tc.old)
			if tc.new.Generation != tc.wantGeneration {
				t.Errorf("%s\ngeneration %d, want %d", tc.reason, tc.new.Generation, tc.wantGeneration)
			}
			if tc.check != nil && !tc.check(tc.new) {
				t.Errorf("%s\ngot %+v", tc.reason, tc.new)
			}
		})
	}
}

// TestApplyAgain makes sure that what apply stamps each time is not all that
// changes: the store takes new times back when there is no other difference.
func TestApplyAgain(t *testing.T) {
	first, later := metav1.NewTime(now().Add(-time.Hour)), metav1.NewTime(now())
	managed := func(at metav1.Time, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationApply, APIVersion: clusterv1alpha1.GroupVersion.String(), Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:zone":{},"f:taints":{}}}`), Subresource: subresource,
		}}
	}
	stored := func(subresource string) *clusterv1alpha1.Cluster {
		return valid(func(c *clusterv1alpha1.Cluster) {
			c.TypeMeta = metav1.TypeMeta{Kind: "Cluster", APIVersion: clusterv1alpha1.GroupVersion.String()} // from its stored form
			c.ManagedFields = managed(first, subresource)
			c.Spec.Zones = []string{"z"}
			c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &first}}
			c.Status.KubernetesVersion = "v1"
		})
	}
	applied := func(subresource string, change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := stored(subresource)
		c.TypeMeta = metav1.TypeMeta{}
		c.ManagedFields = managed(later, subresource)
		change(c)
		return c
	}
	cases := map[string]struct {
		reason   string
		strategy rest.RESTUpdateStrategy
		old, new *clusterv1alpha1.Cluster
		want     metav1.Time
	}{
		"Same": {
			reason:   "A manifest in a form that is not the stored one is applied again.",
			strategy: testStrategy(true), old: stored(""),
			new: applied("", func(c *clusterv1alpha1.Cluster) {
				c.Spec.Zone = "z"
				c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
			}),
			want: first,
		},
		"Other": {
			reason:   "Another manifest is applied.",
			strategy: testStrategy(true), old: stored(""),
			new:  applied("", func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" }),
			want: later,
		},
		"StatusSame": {
			reason:   "A status is applied again, with a spec that is not its business.",
			strategy: statusStrategy{testStrategy(true)}, old: stored("status"),
			new:  applied("status", func(c *clusterv1alpha1.Cluster) { c.Spec = clusterv1alpha1.ClusterSpec{} }),
			want: first,
		},
		"StatusOther": {
			reason:   "Another status is applied.",
			strategy: statusStrategy{testStrategy(true)}, old: stored("status"),
			new:  applied("status", func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v2" }),
			want: later,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.strategy.PrepareForUpdate(t.Context(), tc.new, tc.old)
			// What the store does next.
			got, err := fieldmanager.IgnoreManagedFieldsTimestampsTransformer(t.Context(), tc.new, tc.old)
			if err != nil {
				t.Fatal(err)
			}
			c, ok := got.(*clusterv1alpha1.Cluster)
			if !ok {
				t.Fatalf("got %T", got)
			}
			if at := c.ManagedFields[0].Time; !at.Equal(&tc.want) {
				t.Errorf("%s\ntime %v, want %v", tc.reason, at, tc.want)
			}
		})
	}
}

func TestStatusStrategy(t *testing.T) {
	s := statusStrategy{testStrategy(true)}
	c := valid(func(c *clusterv1alpha1.Cluster) {
		c.Labels = map[string]string{"a": "b"}
		c.Spec.APIEndpoint = "https://elsewhere"
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "Maybe"}}
	})
	s.PrepareForUpdate(context.Background(), c, valid())
	if c.Spec.APIEndpoint != "" || c.Labels["a"] != "b" || len(c.Status.Conditions) != 1 || c.Generation != 3 {
		t.Errorf("got %+v", c)
	}
	if errs := s.ValidateUpdate(context.Background(), c, valid()); len(errs) > 0 {
		t.Errorf("no status is refused: %v", errs)
	}
}

func TestValidate(t *testing.T) {
	spec := func(change func(*clusterv1alpha1.ClusterSpec)) *clusterv1alpha1.Cluster {
		return valid(func(c *clusterv1alpha1.Cluster) { change(&c.Spec) })
	}
	named := func(name string) *clusterv1alpha1.Cluster {
		return valid(func(c *clusterv1alpha1.Cluster) { c.Name = name })
	}
	endpoint := func(text string) *clusterv1alpha1.Cluster {
		return spec(func(s *clusterv1alpha1.ClusterSpec) { s.APIEndpoint = text })
	}
	proxy := func(text string) *clusterv1alpha1.Cluster {
		return spec(func(s *clusterv1alpha1.ClusterSpec) { s.ProxyURL = text })
	}
	taints := func(taints ...corev1.Taint) *clusterv1alpha1.Cluster {
		return spec(func(s *clusterv1alpha1.ClusterSpec) { s.Taints = taints })
	}
	models := func(models ...clusterv1alpha1.ResourceModel) *clusterv1alpha1.Cluster {
		return spec(func(s *clusterv1alpha1.ClusterSpec) { s.ResourceModels = models })
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		want    []string // nothing: valid
	}{
		"Minimal":         {"Only the mode is required.", valid(), nil},
		"LongestName":     {"48 characters are allowed.", named(strings.Repeat("x", 48)), nil},
		"TooLongName":     {"49 are not.", named(strings.Repeat("x", 49)), []string{"metadata.name: Invalid", "must be no more than 48 characters"}},
		"EmptyName":       {"A cluster has a name.", named(""), []string{"metadata.name: Required", "must be not empty"}},
		"DottedName":      {"A label, not a domain.", named("a.b"), []string{"metadata.name: Invalid"}},
		"NoMode":          {"The mode has no default.", spec(func(s *clusterv1alpha1.ClusterSpec) { s.SyncMode = "" }), []string{"spec.syncMode: Required"}},
		"OtherMode":       {"There are two modes.", spec(func(s *clusterv1alpha1.ClusterSpec) { s.SyncMode = "push" }), []string{"spec.syncMode: Unsupported", `"Pull", "Push"`}},
		"Endpoint":        {"A path is allowed.", endpoint("https://host:6443/k8s/clusters/c-1"), nil},
		"EndpointHost":    {"An address alone is no URL.", endpoint("localhost:6443"), []string{"spec.apiEndpoint: Invalid", "https://"}},
		"EndpointNoHost":  {"A URL without a host leads nowhere.", endpoint("https://:6443"), []string{"host must be specified"}},
		"EndpointUser":    {"Credentials belong in a Secret, and are not shown.", endpoint("https://u:hunter2@host"), []string{"user information", "u:xxxxx@host"}},
		"EndpointQuery":   {"Requests have queries of their own.", endpoint("https://host?a=b#c"), []string{"query", "fragment"}},
		"EndpointGarbage": {"What cannot be parsed is not shown when it may hold a password.", endpoint("https://u:hunter2@ho st"), []string{"malformed URL"}},
		"Proxy":           {"All three schemes.", proxy("socks5://proxy:1080"), nil},
		"ProxyScheme":     {"No other scheme.", proxy("ftp://proxy"), []string{`unsupported scheme "ftp", must be http, https, or socks5`}},
		"SecretRef": {"A reference has two parts.", spec(func(s *clusterv1alpha1.ClusterSpec) {
			s.SecretRef = &clusterv1alpha1.LocalSecretReference{Name: "n"}
			s.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "n"}
		}), []string{"spec.secretRef.namespace: Required", "spec.impersonatorSecretRef.name: Required"}},
		"Places": {"Label values, which policies select by.", spec(func(s *clusterv1alpha1.ClusterSpec) {
			s.Provider, s.Region, s.Zones = "a b", "-", []string{"ok", "!"}
		}), []string{"spec.provider", "spec.region", "spec.zones[1]"}},
		"ZoneAndZones": {"Which one counts?", spec(func(s *clusterv1alpha1.ClusterSpec) { s.Zone, s.Zones = "a", []string{"b"} }), []string{"spec.zone: Invalid"}},
		"Taints": {"Key, value, effect, and no two of a kind.", taints(
			corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "a", Value: "v", Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: "b c", Value: "!", Effect: "Never"}, corev1.Taint{}),
			[]string{"spec.taints[1]: Duplicate", "spec.taints[2].key", "spec.taints[2].value", "spec.taints[2].effect: Unsupported", "spec.taints[3].key: Required", "spec.taints[3].effect: Required"}},
		"Models":          {"Contiguous.", models(model(0, "0", "1"), model(1, "1", most)), nil},
		"ModelGap":        {"Nodes between models would be lost.", models(model(0, "0", "1"), model(1, "2", most)), []string{"spec.resourceModels[1].ranges[0].min", "Model intervals for resources must be contiguous and non-overlapping"}},
		"ModelGrades":     {"A grade identifies a model.", models(model(1, "0", "1"), model(1, "1", most)), []string{"spec.resourceModels[1].grade: Duplicate"}},
		"ModelEnds":       {"Every node is in a model.", models(model(0, "1", "2")), []string{"ranges[0].min", "ranges[0].max"}},
		"ModelBackwards":  {"No node is in such a model.", models(model(0, "0", "0"), model(1, "0", most)), []string{"spec.resourceModels[0].ranges[0].max", "greater than min"}},
		"ModelResources":  {"Models are compared range by range.", models(model(0, "0", "1", "0", "1"), model(1, "1", most)), []string{"spec.resourceModels[1].ranges: Invalid"}},
		"ModelNoRanges":   {"Nothing to compare is nothing wrong.", models(model(0), model(1)), nil},
		"EverythingWrong": {"Everything is told at once.", valid(func(c *clusterv1alpha1.Cluster) { c.Name = "A"; c.Spec = clusterv1alpha1.ClusterSpec{ProxyURL: "x"} }), []string{"metadata.name", "spec.syncMode", "spec.proxyURL"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := Validate(tc.cluster)
			if len(tc.want) == 0 && len(errs) > 0 {
				t.Errorf("%s\n%v", tc.reason, errs)
			}
			text := ""
			for _, err := range errs {
				text += err.Error() + "\n"
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\nwant %q in:\n%s", tc.reason, want, text)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s\na password is shown:\n%s", tc.reason, text)
			}
		})
	}
}

func TestStandardizeModelsOfDifferentShape(t *testing.T) {
	models := []clusterv1alpha1.ResourceModel{model(1), model(0, "1", "2")}
	standardizeModels(models) // what is wrong with them is for Validate to say
	if !models[0].Ranges[0].Min.IsZero() || models[0].Ranges[0].Max.CmpInt64(math.MaxInt64) == 0 {
		t.Errorf("got %+v", models)
	}
}

func TestTable(t *testing.T) {
	c := valid(func(c *clusterv1alpha1.Cluster) {
		c.CreationTimestamp = metav1.NewTime(now().Add(-90 * time.Minute))
		c.Spec.Zones, c.Spec.Region, c.Spec.Provider = []string{"a", "b"}, "r", "p"
		c.Spec.APIEndpoint, c.Spec.ProxyURL = "https://e", "http://x"
		c.Status.KubernetesVersion = "v1.37.2"
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	})
	list := &clusterv1alpha1.ClusterList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}, Items: []clusterv1alpha1.Cluster{*c, *valid()}}
	got, err := table{now: now}.ConvertToTable(context.Background(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]any{
		{"member", "v1.37.2", "Push", "True", "90m", "a,b", "r", "p", "https://e", "http://x"},
		{"member", "<none>", "Push", "Unknown", "<unknown>", "<none>", "<none>", "<none>", "<none>", "<none>"},
	}
	for i, row := range got.Rows {
		if diff := cmp.Diff(want[i], row.Cells); diff != "" {
			t.Errorf("row %d: -want, +got:\n%s", i, diff)
		}
	}
	if got.ResourceVersion != "9" || got.Continue != "more" || got.ColumnDefinitions != nil {
		t.Errorf("got %+v", got)
	}
}
