package interpreter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return u
}

// unchanged fails the test if an object is not what its text says.
func unchanged(t *testing.T, what, text string, now *unstructured.Unstructured) {
	t.Helper()
	if diff := cmp.Diff(parse(t, text).Object, now.Object); diff != "" {
		t.Errorf("the %s was changed (-want +got):\n%s", what, diff)
	}
}

// fails says whether an error is the one that a case wants: "" for none, else
// words of it.
func fails(t *testing.T, reason, want string, err error) bool {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s\nerror %v, want %q", reason, err, want)
	}
	return err != nil
}

// A fakeLayer answers some questions with its own replicas.
type fakeLayer struct {
	Layer
	ops          []configv1alpha1.InterpreterOperation
	replicas     int32
	needs        *workv1alpha2.ReplicaRequirements
	dependencies []configv1alpha1.DependentObjectReference
	err          error
}

func (f fakeLayer) Supports(_ schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	for _, o := range f.ops {
		if o == op {
			return true
		}
	}
	return false
}

func (f fakeLayer) Replicas(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	return f.replicas, f.needs, f.err
}

func (f fakeLayer) Dependencies(context.Context, *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return f.dependencies, f.err
}

func (f fakeLayer) Components(context.Context, *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	return []workv1alpha2.Component{{Name: "c"}}, f.err
}

const (
	opReplica    = configv1alpha1.InterpreterOperationInterpretReplica
	opComponent  = configv1alpha1.InterpreterOperationInterpretComponent
	opRevise     = configv1alpha1.InterpreterOperationReviseReplica
	opRetain     = configv1alpha1.InterpreterOperationRetain
	opAggregate  = configv1alpha1.InterpreterOperationAggregateStatus
	opStatus     = configv1alpha1.InterpreterOperationInterpretStatus
	opHealth     = configv1alpha1.InterpreterOperationInterpretHealth
	opDependency = configv1alpha1.InterpreterOperationInterpretDependency
)

func TestPrecedence(t *testing.T) {
	boom := errors.New("boom")
	replicas := func(n int32) fakeLayer {
		return fakeLayer{ops: []configv1alpha1.InterpreterOperation{opReplica}, replicas: n}
	}
	cases := map[string]struct {
		reason string
		layers []Layer
		want   int32
		err    error
	}{
		"Native":   {reason: "Without any other, what is built in answers.", want: 1},
		"First":    {reason: "The first that knows answers.", layers: []Layer{replicas(2), replicas(3)}, want: 2},
		"Second":   {reason: "One that does not know is passed over.", layers: []Layer{fakeLayer{}, replicas(3)}, want: 3},
		"OtherOp":  {reason: "To know another question is not to know this one.", layers: []Layer{fakeLayer{ops: []configv1alpha1.InterpreterOperation{opHealth}}}, want: 1},
		"HasError": {reason: "What a user has set and fails is not answered by other rules.", layers: []Layer{fakeLayer{ops: []configv1alpha1.InterpreterOperation{opReplica}, err: boom}, replicas(3)}, err: boom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := New(Options{}, tc.layers...).Replicas(t.Context(), parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}}`))
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%d, %v, want %d, %v\n%s", got, err, tc.want, tc.err, tc.reason)
			}
			if err != nil && err.Error() != "InterpretReplica of Pod ns/p: boom" {
				t.Errorf("the error does not say what was asked about what: %v", err)
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	i, ctx := New(Options{}), t.Context()
	thing := parse(t, `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}}`)
	questions := map[configv1alpha1.InterpreterOperation]func() error{
		opReplica:    func() error { _, _, err := i.Replicas(ctx, thing); return err },
		opComponent:  func() error { _, err := i.Components(ctx, thing); return err },
		opRevise:     func() error { _, err := i.Revise(ctx, thing, 1); return err },
		opRetain:     func() error { _, err := i.Retain(ctx, thing, thing); return err },
		opAggregate:  func() error { _, err := i.Aggregate(ctx, thing, nil); return err },
		opHealth:     func() error { _, err := i.Healthy(ctx, thing); return err },
		opDependency: func() error { _, err := i.Dependencies(ctx, thing); return err },
	}
	for op, ask := range questions {
		want := &UnsupportedError{GVK: thing.GroupVersionKind(), Operation: op}
		var got *UnsupportedError
		if err := ask(); !errors.As(err, &got) || *got != *want {
			t.Errorf("%s: %v, want %v", op, err, want)
		}
		if i.Supports(thing.GroupVersionKind(), op) {
			t.Errorf("%s is said to be supported", op)
		}
	}
}

func TestSupports(t *testing.T) {
	all := []configv1alpha1.InterpreterOperation{
		opReplica, opComponent, opRevise, opRetain, opAggregate, opStatus, opHealth, opDependency,
		configv1alpha1.InterpreterOperationPrune, configv1alpha1.InterpreterOperationAll,
	}
	cases := map[string][]configv1alpha1.InterpreterOperation{
		"apps/v1 DaemonSet":                            {opAggregate, opStatus, opHealth, opDependency},
		"apps/v1 Deployment":                           {opReplica, opRevise, opRetain, opAggregate, opStatus, opHealth, opDependency},
		"apps/v1 ReplicaSet":                           {opReplica, opRevise, opAggregate, opStatus, opHealth, opDependency},
		"apps/v1 StatefulSet":                          {opReplica, opRevise, opAggregate, opStatus, opHealth, opDependency},
		"autoscaling/v2 HorizontalPodAutoscaler":       {opAggregate, opStatus},
		"batch/v1 CronJob":                             {opAggregate, opStatus, opDependency},
		"batch/v1 Job":                                 {opReplica, opRevise, opRetain, opAggregate, opStatus, opDependency},
		"multicluster.x-k8s.io/v1alpha1 ServiceImport": {opStatus, opDependency},
		"networking.k8s.io/v1 Ingress":                 {opAggregate, opStatus, opHealth, opDependency},
		"policy/v1 PodDisruptionBudget":                {opAggregate, opStatus, opHealth},
		"v1 PersistentVolume":                          {opRetain, opAggregate, opStatus},
		"v1 PersistentVolumeClaim":                     {opRetain, opAggregate, opStatus, opHealth},
		"v1 Pod":                                       {opReplica, opRetain, opAggregate, opStatus, opHealth, opDependency},
		"v1 Secret":                                    {opRetain, opStatus},
		"v1 Service":                                   {opRetain, opAggregate, opStatus, opHealth},
		"v1 ServiceAccount":                            {opRetain, opStatus},
		"v1 ConfigMap":                                 {opStatus},
		"apps/v1beta1 Deployment":                      {opStatus}, // another version may be another thing
		"example.io/v1 Deployment":                     {opStatus}, // and another group is
	}
	i := New(Options{})
	for kind, want := range cases {
		apiVersion, name, _ := strings.Cut(kind, " ")
		var got []configv1alpha1.InterpreterOperation
		for _, op := range all {
			if i.Supports(schema.FromAPIVersionAndKind(apiVersion, name), op) {
				got = append(got, op)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestComponentsOfALayer(t *testing.T) {
	i := New(Options{}, fakeLayer{ops: []configv1alpha1.InterpreterOperation{opComponent}})
	got, err := i.Components(t.Context(), parse(t, `{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}}`))
	if err != nil || len(got) != 1 || got[0].Name != "c" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNamespaceForQuotas(t *testing.T) {
	cases := map[string]struct {
		reason  string
		options Options
		needs   *workv1alpha2.ReplicaRequirements
		want    *workv1alpha2.ReplicaRequirements
	}{
		"Off":    {"Only estimators of quotas look at it.", Options{}, &workv1alpha2.ReplicaRequirements{}, &workv1alpha2.ReplicaRequirements{}},
		"Filled": {"Whoever answered, quotas are those of the namespace.", Options{ForQuotas: true}, &workv1alpha2.ReplicaRequirements{}, &workv1alpha2.ReplicaRequirements{Namespace: "ns"}},
		"Given":  {"A layer may know better.", Options{ForQuotas: true}, &workv1alpha2.ReplicaRequirements{Namespace: "m"}, &workv1alpha2.ReplicaRequirements{Namespace: "m"}},
		"None":   {"To need nothing is to need no quota.", Options{ForQuotas: true}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := New(tc.options, fakeLayer{ops: []configv1alpha1.InterpreterOperation{opReplica}, needs: tc.needs})
			_, got, err := i.Replicas(t.Context(), parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateDependencies(t *testing.T) {
	cases := map[string]struct {
		reason string
		one    configv1alpha1.DependentObjectReference
		err    string
	}{
		"Name":         {"One object.", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}, ""},
		"Selector":     {"Those with a label.", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, ""},
		"NoAPIVersion": {"A kind alone is none.", configv1alpha1.DependentObjectReference{Kind: "Secret", Name: "s"}, "no apiVersion"},
		"NoKind":       {"A group alone is none.", configv1alpha1.DependentObjectReference{APIVersion: "v1", Name: "s"}, "no kind"},
		"Neither":      {"All objects of a kind are not meant.", configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret"}, "neither name nor labelSelector"},
		"BadSelector": {
			"What cannot be selected cannot be followed.",
			configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}},
			"labelSelector of Secret",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := New(Options{}, fakeLayer{ops: []configv1alpha1.InterpreterOperation{opDependency}, dependencies: []configv1alpha1.DependentObjectReference{
				{APIVersion: "v1", Kind: "Secret", Name: "good"}, tc.one,
			}})
			got, err := i.Dependencies(t.Context(), parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}}`))
			if fails(t, tc.reason, tc.err, err) && got != nil {
				t.Errorf("an error, and %v", got)
			}
		})
	}
}
