package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
)

func labelled(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

var badLabels = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}

func TestLevelOf(t *testing.T) {
	web := Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
	selector := func(change func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
		r := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
		change(&r)
		return r
	}
	all := selector(func(*policyv1alpha1.ResourceSelector) {})
	byLabel := selector(func(r *policyv1alpha1.ResourceSelector) { r.LabelSelector = labelled("app", "web") })
	byName := selector(func(r *policyv1alpha1.ResourceSelector) { r.Name = "web" })

	tests := map[string]struct {
		reason    string
		selectors []policyv1alpha1.ResourceSelector
		want      Level
	}{
		"NoSelectors": {reason: "A propagation policy without selectors selects nothing.", want: None},
		"Kind":        {reason: "Kind alone is the lowest level.", selectors: []policyv1alpha1.ResourceSelector{all}, want: All},
		"Labels":      {reason: "Labels that match are closer than the kind.", selectors: []policyv1alpha1.ResourceSelector{byLabel}, want: Label},
		"EmptyLabelSelector": {
			reason:    "An empty label selector is one, and matches everything.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.LabelSelector = labelled() })},
			want:      Label,
		},
		"Name": {reason: "The name is closest.", selectors: []policyv1alpha1.ResourceSelector{byName}, want: Name},
		"Closest": {
			reason:    "The closest selector of a policy counts, wherever it stands.",
			selectors: []policyv1alpha1.ResourceSelector{all, byName, byLabel}, want: Name,
		},
		"NameBesideLabels": {
			reason: "With a name the labels are not looked at.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) {
				r.Name, r.LabelSelector = "web", labelled("app", "other")
			})},
			want: Name,
		},
		"OtherNameBesideLabels": {
			reason: "A name that differs is not made up for by labels.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) {
				r.Name, r.LabelSelector = "other", labelled("app", "web")
			})},
			want: None,
		},
		"Namespace": {
			reason:    "A namespace must be the same.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.Namespace = "shop" })},
			want:      All,
		},
		"OtherNamespace": {
			reason:    "A namespace must be the same.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.Namespace = "bank" })},
			want:      None,
		},
		"OtherVersion": {
			reason:    "The version must be the same.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.APIVersion = "apps/v1beta1" })},
			want:      None,
		},
		"OtherKind": {
			reason:    "The kind must be the same, in case too.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.Kind = "deployment" })},
			want:      None,
		},
		"BadLabels": {
			reason:    "What cannot be parsed matches nothing.",
			selectors: []policyv1alpha1.ResourceSelector{selector(func(r *policyv1alpha1.ResourceSelector) { r.LabelSelector = badLabels })},
			want:      None,
		},
		"BadLabelsBesideGood": {
			reason: "One bad selector does not spoil the others.",
			selectors: []policyv1alpha1.ResourceSelector{
				selector(func(r *policyv1alpha1.ResourceSelector) { r.LabelSelector = badLabels }), byLabel,
			},
			want: Label,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := LevelOf(tc.selectors, web); got != tc.want {
				t.Errorf("%s\nLevelOf() = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestOverrideLevel(t *testing.T) {
	s := Subject{APIVersion: "v1", Kind: "Namespace", Name: "shop"}
	if got := OverrideLevel(&policyv1alpha1.OverrideSpec{}, s); got != All {
		t.Errorf("an override policy without selectors selects everything: got level %d, want %d", got, All)
	}
	spec := &policyv1alpha1.OverrideSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace", Name: "shop"}}}
	if got := OverrideLevel(spec, s); got != Name {
		t.Errorf("an override policy selects as a propagation policy does: got level %d, want %d", got, Name)
	}
	spec.ResourceSelectors[0].Kind = "Secret"
	if got := OverrideLevel(spec, s); got != None {
		t.Errorf("selectors that do not match leave the object alone: got level %d, want %d", got, None)
	}
}

func TestSubjectOf(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "labels": map[string]any{"app": "web"}},
	}}
	want := Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
	if diff := cmp.Diff(want, SubjectOf(u)); diff != "" {
		t.Errorf("SubjectOf() differs (-want +got):\n%s", diff)
	}
	if got := SubjectOf(&unstructured.Unstructured{Object: map[string]any{"metadata": "odd"}}); got.Name != "" {
		t.Errorf("an object that makes no sense has no name, got %q", got.Name)
	}
}

func TestPriority(t *testing.T) {
	low := int32(-5)
	if got := Priority(&policyv1alpha1.PropagationSpec{Priority: &low}); got != -5 {
		t.Errorf("Priority() = %d, want -5", got)
	}
	if got := Priority(&policyv1alpha1.PropagationSpec{}); got != 0 {
		t.Errorf("Priority() of a policy without one = %d, want 0", got)
	}
}

func TestMatchesCluster(t *testing.T) {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{"tier": "edge"}},
		Spec:       clusterv1alpha1.ClusterSpec{Provider: "Acme Cloud", Zones: []string{"z1", "z2"}},
	}
	fields := func(key string, op corev1.NodeSelectorOperator, values ...string) *policyv1alpha1.ClusterAffinity {
		return &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}},
		}}
	}

	tests := map[string]struct {
		reason   string
		affinity *policyv1alpha1.ClusterAffinity
		want     bool
		err      string // part of the message
	}{
		"Nil":       {reason: "No affinity is every cluster.", want: true},
		"Empty":     {reason: "An empty affinity is every cluster.", affinity: &policyv1alpha1.ClusterAffinity{}, want: true},
		"Named":     {reason: "A name that is listed matches.", affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2", "m1"}}, want: true},
		"NotNamed":  {reason: "Where names are listed, others do not match.", affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}},
		"Excluded":  {reason: "An excluded cluster never matches.", affinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"m1"}}},
		"BothNamed": {reason: "Exclusion wins.", affinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}, ExcludeClusters: []string{"m1"}}},
		"Labels":    {reason: "Labels must match.", affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: labelled("tier", "edge")}, want: true},
		"OtherLabels": {
			reason:   "Labels must match also for a cluster that is named.",
			affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: labelled("tier", "core"), ClusterNames: []string{"m1"}},
		},
		"BadLabels": {
			reason:   "Whoever asks must know that the selector makes no sense.",
			affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: badLabels}, err: "labelSelector: ",
		},
		"BadLabelsElsewhere": {
			reason:   "A cluster that is not named is none of it, whatever the selector.",
			affinity: &policyv1alpha1.ClusterAffinity{LabelSelector: badLabels, ClusterNames: []string{"m2"}},
		},
		"Provider":          {reason: "A value need not be one that a label can have.", affinity: fields("provider", corev1.NodeSelectorOpIn, "Acme Cloud"), want: true},
		"NotProvider":       {reason: "NotIn fails for a value that is listed.", affinity: fields("provider", corev1.NodeSelectorOpNotIn, "Acme Cloud")},
		"AbsentRegionIn":    {reason: "A cluster without a region is in none.", affinity: fields("region", corev1.NodeSelectorOpIn, "eu")},
		"AbsentRegionNotIn": {reason: "A cluster without a region is not in this one.", affinity: fields("region", corev1.NodeSelectorOpNotIn, "eu"), want: true},
		"AbsentRegionMust":  {reason: "An empty region does not exist.", affinity: fields("region", corev1.NodeSelectorOpExists)},
		"AbsentRegionMay":   {reason: "An empty region does not exist.", affinity: fields("region", corev1.NodeSelectorOpDoesNotExist), want: true},
		"AnyZone":           {reason: "One zone of several is enough.", affinity: fields("zone", corev1.NodeSelectorOpIn, "z2", "z9"), want: true},
		"NoZone":            {reason: "None of the zones is listed.", affinity: fields("zone", corev1.NodeSelectorOpIn, "z9")},
		"NotAnyZone":        {reason: "One zone of several is too many.", affinity: fields("zone", corev1.NodeSelectorOpNotIn, "z2")},
		"NotTheseZones":     {reason: "None of the zones is listed.", affinity: fields("zone", corev1.NodeSelectorOpNotIn, "z9"), want: true},
		"ZonesExist":        {reason: "There are zones.", affinity: fields("zone", corev1.NodeSelectorOpExists), want: true},
		"ZonesDoNotExist":   {reason: "There are zones.", affinity: fields("zone", corev1.NodeSelectorOpDoesNotExist)},
		"UnknownField":      {reason: "A field nobody knows is a mistake.", affinity: fields("planet", corev1.NodeSelectorOpIn, "mars"), err: `unsupported key "planet"`},
		"UnknownOperator":   {reason: "Numbers cannot be compared here.", affinity: fields("zone", corev1.NodeSelectorOpGt, "1"), err: `unsupported operator "Gt"`},
		"NoValues":          {reason: "NotIn nothing would silently be every cluster.", affinity: fields("zone", corev1.NodeSelectorOpNotIn), err: "needs values"},
		"EveryExpression": {
			reason: "All expressions must hold.",
			affinity: &policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z1"}},
				{Key: "provider", Operator: corev1.NodeSelectorOpIn, Values: []string{"Other"}},
			}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := MatchesCluster(tc.affinity, c)
			if got != tc.want {
				t.Errorf("%s\nMatchesCluster() = %t, want %t", tc.reason, got, tc.want)
			}
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("%s\nMatchesCluster(): %v", tc.reason, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("%s\nMatchesCluster() error %v, want one with %q", tc.reason, err, tc.err)
			}
		})
	}
}
