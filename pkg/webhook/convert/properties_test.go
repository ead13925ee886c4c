package convert

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

// rounds is how many objects each property is tried with.
const rounds = 120

// unchecked is a Converter for contents that no schema would allow.
func unchecked() *Converter { return &Converter{check: func(string, []byte) error { return nil }} }

// arbitrary fills objects with anything that their types can hold, the same for the same seed.
func arbitrary(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).Funcs(
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", Generation: 3}
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
			m.Finalizers = []string{"karmada.io/binding-controller"}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1<<40), resource.DecimalSI)
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<32), 0) },
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = fmt.Appendf(nil, `{"readyReplicas":%d,"of":[{"a":null}]}`, c.Int63())
		},
		// A name that is several times in a list is what nobody should do, and what happens.
		func(t *workv1alpha2.TargetCluster, c randfill.Continue) {
			c.FillNoCustom(t)
			t.Name = fmt.Sprintf("member%d", c.Intn(3))
		},
		func(t *workv1alpha1.TargetCluster, c randfill.Continue) {
			c.FillNoCustom(t)
			t.Name = fmt.Sprintf("member%d", c.Intn(3))
		},
	)
}

// encode writes an object as an API server does.
func encode(t *testing.T, o any, gv schema.GroupVersion, kind string) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = gv.String(), kind
	if data, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	return data
}

// content is an object such that two can be compared: numbers as they are written, no empty annotations or status.
func content(t *testing.T, data []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var c map[string]any
	if err := d.Decode(&c); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if m, ok := c["metadata"].(map[string]any); ok {
		if a, ok := m["annotations"].(map[string]any); ok && len(a) == 0 {
			delete(m, "annotations")
		}
	}
	if status, ok := c["status"].(map[string]any); ok && len(status) == 0 {
		delete(c, "status")
	}
	return c
}

func convert(t *testing.T, c *Converter, data []byte, gv schema.GroupVersion) []byte {
	t.Helper()
	out, err := c.Convert(data, gv.String())
	if err != nil {
		t.Fatalf("convert %s: %v", data, err)
	}
	if got := content(t, out)["apiVersion"]; got != gv.String() {
		t.Fatalf("it says that it is of version %v, want %s", got, gv)
	}
	return out
}

// kinds are both kinds of bindings, whose contents are the same.
func kinds() []string {
	return []string{workv1alpha2.KindResourceBinding, workv1alpha2.KindClusterResourceBinding}
}

func TestNewerRoundTrip(t *testing.T) {
	for seed := range int64(rounds) {
		var b workv1alpha2.ResourceBinding
		arbitrary(seed).Fill(&b)
		for _, kind := range kinds() {
			data := encode(t, b, workv1alpha2.GroupVersion, kind)
			older := convert(t, unchecked(), data, workv1alpha1.GroupVersion)
			var typed workv1alpha1.ResourceBinding
			if err := json.Unmarshal(older, &typed); err != nil {
				t.Fatalf("seed %d: old clients cannot read %s: %v", seed, older, err)
			}
			back := convert(t, unchecked(), older, workv1alpha2.GroupVersion)
			if diff := cmp.Diff(content(t, data), content(t, back)); diff != "" {
				t.Fatalf("seed %d: what is stored was changed by reading and writing it as v1alpha1 (-before +after):\n%s", seed, diff)
			}
		}
	}
}

func TestOlderRoundTrip(t *testing.T) {
	for seed := range int64(rounds) {
		var b workv1alpha1.ResourceBinding
		arbitrary(seed).Fill(&b)
		for _, kind := range kinds() {
			data := encode(t, b, workv1alpha1.GroupVersion, kind)
			newer := convert(t, unchecked(), data, workv1alpha2.GroupVersion)
			var typed workv1alpha2.ResourceBinding
			if err := json.Unmarshal(newer, &typed); err != nil {
				t.Fatalf("seed %d: %s cannot be read: %v", seed, newer, err)
			}
			if typed.Spec.Replicas != b.Spec.Resource.Replicas || len(typed.Spec.Clusters) != len(b.Spec.Clusters) {
				t.Fatalf("seed %d: %s does not say what v1alpha1 says", seed, newer)
			}
			back := convert(t, unchecked(), newer, workv1alpha1.GroupVersion)
			if diff := cmp.Diff(content(t, data), content(t, back)); diff != "" {
				t.Fatalf("seed %d: what was written as v1alpha1 is read otherwise (-before +after):\n%s", seed, diff)
			}
		}
	}
}

// TestOlderUpdate writes, over what an old client has read, anything that it could write.
func TestOlderUpdate(t *testing.T) {
	for seed := range int64(rounds) {
		var b workv1alpha2.ResourceBinding
		arbitrary(seed).Fill(&b)
		stored := encode(t, b, workv1alpha2.GroupVersion, workv1alpha2.KindResourceBinding)

		// As an old client does: read, change, write, with the types of v1alpha1.
		var read workv1alpha1.ResourceBinding
		if err := json.Unmarshal(convert(t, unchecked(), stored, workv1alpha1.GroupVersion), &read); err != nil {
			t.Fatal(err)
		}
		var other workv1alpha1.ResourceBinding
		arbitrary(seed + rounds).Fill(&other)
		change := rand.New(rand.NewPCG(uint64(seed), 0))
		if change.IntN(2) == 0 {
			read.Spec.Clusters = other.Spec.Clusters
		}
		if change.IntN(2) == 0 {
			read.Spec.Resource = other.Spec.Resource
		}
		if change.IntN(2) == 0 {
			read.Status = other.Status
		}
		written := encode(t, read, workv1alpha1.GroupVersion, workv1alpha2.KindResourceBinding)

		var got workv1alpha2.ResourceBinding
		newer := convert(t, unchecked(), written, workv1alpha2.GroupVersion)
		if err := json.Unmarshal(newer, &got); err != nil {
			t.Fatal(err)
		}
		// What v1alpha1 can say is as it was written.
		again := content(t, convert(t, unchecked(), newer, workv1alpha1.GroupVersion))
		want := content(t, written)
		for _, c := range []map[string]any{again, want} {
			if a, ok := c["metadata"].(map[string]any)["annotations"].(map[string]any); ok {
				delete(a, Annotation)
				if len(a) == 0 {
					delete(c["metadata"].(map[string]any), "annotations")
				}
			}
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("seed %d: it is not what the old client wrote (-want +got):\n%s", seed, diff)
		}
		// What it cannot say is as it was.
		was := b
		was.TypeMeta = got.TypeMeta
		was.ObjectMeta.CreationTimestamp = got.CreationTimestamp
		reference := func(r workv1alpha2.ObjectReference) string {
			return strings.Join([]string{r.APIVersion, r.Kind, r.Namespace, r.Name}, " ")
		}
		if reference(got.Spec.Resource) != reference(was.Spec.Resource) {
			if got.Spec.Resource.UID != "" {
				t.Fatalf("seed %d: another template has the UID of the first one", seed)
			}
		} else if got.Spec.Resource.UID != was.Spec.Resource.UID {
			t.Fatalf("seed %d: the template has lost its UID", seed)
		}
		for _, x := range []*workv1alpha2.ResourceBinding{&was, &got} {
			x.Annotations = nil
			x.Spec.Resource, x.Spec.Clusters, x.Spec.Replicas = workv1alpha2.ObjectReference{}, nil, 0
			if r := x.Spec.ReplicaRequirements; r != nil {
				r = r.DeepCopy()
				r.ResourceRequest = nil
				x.Spec.ReplicaRequirements = r
				if r.NodeClaim == nil && r.Namespace == "" && r.PriorityClassName == "" {
					x.Spec.ReplicaRequirements = nil
				}
			}
			x.Status.Conditions, x.Status.AggregatedStatus = nil, nil
		}
		if diff := cmp.Diff(content(t, encode(t, was, workv1alpha2.GroupVersion, "ResourceBinding")), content(t, encode(t, got, workv1alpha2.GroupVersion, "ResourceBinding"))); diff != "" {
			t.Fatalf("seed %d: an update as v1alpha1 has changed what v1alpha1 does not know (-before +after):\n%s", seed, diff)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for seed := range int64(8) {
		var b workv1alpha2.ResourceBinding
		arbitrary(seed).Fill(&b)
		b.APIVersion, b.Kind = workv1alpha2.GroupVersion.String(), workv1alpha2.KindResourceBinding
		data, err := json.Marshal(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{"annotations":{"binding.karmadactl.io/v1alpha2":"{\"clusters\":[{\"index\":-1,\"fields\":{\"name\":1}}]}"}},"spec":{"clusters":[null]}}`))
	f.Add([]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{"annotations":{"binding.karmadactl.io/v1alpha2":"gzip:H4sIAAAAAAAA"}}}`))
	c := New()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, version := range []string{workv1alpha1.GroupVersion.String(), workv1alpha2.GroupVersion.String()} {
			out, err := c.Convert(data, version)
			if err != nil {
				continue
			}
			if !json.Valid(out) {
				t.Fatalf("%s is no JSON", out)
			}
			if _, err := c.Convert(out, version); err != nil {
				t.Fatalf("what is of that version already is refused: %v", err)
			}
		}
	})
}

func BenchmarkReview(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			review := reviewOf(b, n)
			c := New()
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for range b.N {
				if a := c.answer(review); a.Result.Status != metav1.StatusSuccess {
					b.Fatal(a.Result.Message)
				}
			}
			b.ReportMetric(float64(time.Since(begin).Nanoseconds())/float64(b.N*n), "ns/object")
		})
	}
}
