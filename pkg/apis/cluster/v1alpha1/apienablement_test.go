package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAPIEnablement(t *testing.T) {
	apps := []APIEnablement{
		{GroupVersion: "apps/v1", Resources: []APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []APIResource{{Name: "pods", Kind: "Pod"}}},
	}
	complete := func(s metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: ConditionCompleteAPIEnablements, Status: s}}
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

	cases := map[string]struct {
		reason string
		status ClusterStatus
		gvk    schema.GroupVersionKind
		want   APIEnablementStatus
	}{
		"Listed": {
			reason: "What the cluster was seen to serve is enabled, however incomplete the rest is.",
			status: ClusterStatus{APIEnablements: apps},
			gvk:    deployment,
			want:   APIEnabled,
		},
		"CoreGroup": {
			reason: "The core group has no name; its group and version are just the version.",
			status: ClusterStatus{APIEnablements: apps},
			gvk:    schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
			want:   APIEnabled,
		},
		"OtherVersion": {
			reason: "A kind that is served in another version only is not served in this one.",
			status: ClusterStatus{APIEnablements: apps, Conditions: complete(metav1.ConditionTrue)},
			gvk:    schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"},
			want:   APIDisabled,
		},
		"ResourceNameIsNoKind": {
			reason: "The kind is compared, never the name of the resource.",
			status: ClusterStatus{APIEnablements: apps, Conditions: complete(metav1.ConditionTrue)},
			gvk:    schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployments"},
			want:   APIDisabled,
		},
		"NotListedAndPartial": {
			reason: "With a partial list nobody can say that the cluster does not serve something.",
			status: ClusterStatus{APIEnablements: apps, Conditions: complete(metav1.ConditionFalse)},
			gvk:    schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
			want:   APIUnknown,
		},
		"NeverSeen": {
			reason: "A cluster nobody has looked at yet is unknown, not disabled.",
			gvk:    deployment,
			want:   APIUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Status: tc.status}
			if got := c.APIEnablement(tc.gvk); got != tc.want {
				t.Errorf("\n%s\nAPIEnablement(%s) = %s, want %s", tc.reason, tc.gvk, got, tc.want)
			}
		})
	}
}
