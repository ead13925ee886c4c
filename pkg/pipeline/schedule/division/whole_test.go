package division

import (
	"testing"

	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
)

func TestIsWhole(t *testing.T) {
	part := workv1alpha2.Component{Name: "a", Replicas: 2}
	cases := map[string]struct {
		reason string
		spec   workv1alpha2.ResourceBindingSpec
		want   bool
	}{
		"None":     {"Replicas are divided.", workv1alpha2.ResourceBindingSpec{Replicas: 2}, false},
		"Two":      {"Components are not: they belong together.", workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{part, part}}, true},
		"One":      {"A component that has no number of replicas beside it cannot be divided.", workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{part}}, true},
		"OneToo":   {"One that has is like any workload.", workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{part}, Replicas: 2}, false},
		"Nothing":  {"What has no replicas has no components.", workv1alpha2.ResourceBindingSpec{}, false},
		"TwoOfOne": {"Several are not divided, whatever number is beside them.", workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{part, part}, Replicas: 4}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsWhole(&tc.spec); got != tc.want {
				t.Errorf("got %t, want %t: %s", got, tc.want, tc.reason)
			}
		})
	}
}
