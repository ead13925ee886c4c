package clusterstatus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

// serving returns what was found out: "apps/v1=deployments:Deployment,…".
func serving(texts ...string) served {
	s := served{resources: map[schema.GroupVersion][]apiResource{}, failed: map[schema.GroupVersion]error{}, unknown: map[root]error{}}
	for _, text := range texts {
		name, resources, _ := strings.Cut(text, "=")
		list := &metav1.APIResourceList{}
		for _, r := range strings.Split(resources, ",") {
			plural, kind, ok := strings.Cut(r, ":")
			if ok {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: kind})
			}
		}
		s.resources[gv(name)] = resourcesOf(list)
	}
	return s
}

func gv(text string) schema.GroupVersion {
	v, err := schema.ParseGroupVersion(text)
	if err != nil {
		panic(err)
	}
	return v
}

func (s served) fails(gvs ...string) served {
	for _, v := range gvs {
		s.failed[gv(v)] = errBoom
	}
	return s
}

func (s served) without(roots ...root) served {
	for _, r := range roots {
		s.unknown[r] = errBoom
	}
	return s
}

func wholly() served { return serving("v1=pods:Pod") }
func partly() served { return wholly().fails("metrics.k8s.io/v1beta1") }

// describe writes a list as serving reads it.
func describe(list []clusterv1alpha1.APIEnablement) []string {
	var texts []string
	for _, e := range list {
		var resources []string
		for _, r := range e.Resources {
			resources = append(resources, r.Name+":"+r.Kind)
		}
		texts = append(texts, e.GroupVersion+"="+strings.Join(resources, ","))
	}
	return texts
}

func TestEnablements(t *testing.T) {
	before := enablements(serving("v1=pods:Pod", "apps/v1=deployments:Deployment", "metrics.k8s.io/v1beta1=nodes:NodeMetrics"), nil)
	cases := map[string]struct {
		reason string
		served served
		want   []string
	}{
		"Sorted": {
			"Groups and resources are sorted, sub-resources left out.",
			serving("v1=pods:Pod,pods/log:Pod,nodes:Node", "apps/v1=deployments:Deployment,deployments/scale:Scale", "apps/v1beta1="),
			[]string{"apps/v1=deployments:Deployment", "apps/v1beta1=", "v1=nodes:Node,pods:Pod"},
		},
		"Gone": {
			"What a whole answer does not have is gone.",
			serving("v1=pods:Pod"), []string{"v1=pods:Pod"},
		},
		"Failed": {
			"A group that does not answer keeps what it had.",
			serving("v1=pods:Pod", "apps/v1=deployments:Deployment").fails("metrics.k8s.io/v1beta1"),
			[]string{"apps/v1=deployments:Deployment", "metrics.k8s.io/v1beta1=nodes:NodeMetrics", "v1=pods:Pod"},
		},
		"FailedAndGone": {
			"Only that one: another that is gone meanwhile is gone.",
			serving("v1=pods:Pod").fails("metrics.k8s.io/v1beta1"),
			[]string{"metrics.k8s.io/v1beta1=nodes:NodeMetrics", "v1=pods:Pod"},
		},
		"FailedAndNew": {
			"A group that was never seen to answer has nothing to keep.",
			serving("v1=pods:Pod").fails("custom.metrics.k8s.io/v1"), []string{"v1=pods:Pod"},
		},
		"AllGroupsUnknown": {
			"The core group alone answers: of the others nothing is known, so they stay.",
			serving("v1=pods:Pod,nodes:Node").without(groupsRoot),
			[]string{"apps/v1=deployments:Deployment", "metrics.k8s.io/v1beta1=nodes:NodeMetrics", "v1=nodes:Node,pods:Pod"},
		},
		"CoreUnknown": {
			"And the other way round.",
			serving("apps/v1=deployments:Deployment").without(coreRoot),
			[]string{"apps/v1=deployments:Deployment", "v1=pods:Pod"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, describe(enablements(tc.served, before))); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
