package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func TestTaintByReadiness(t *testing.T) {
	const notReady, unreachable = clusterv1alpha1.TaintNotReady, clusterv1alpha1.TaintUnreachable
	const no = corev1.TaintEffectNoSchedule
	added := metav1.NewTime(epoch)
	fresh := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: no, TimeAdded: &added} }
	mine := taint("example.com/mine", no)
	evict := taint(notReady, corev1.TaintEffectNoExecute)

	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster
		want    []corev1.Taint
		changed bool
	}{
		"NeverReported":     {"Nothing is scheduled to a cluster that nobody has heard of.", member(), []corev1.Taint{fresh(notReady)}, true},
		"NotReady":          {"False means that it was seen to be down.", member(ready(metav1.ConditionFalse)), []corev1.Taint{fresh(notReady)}, true},
		"Unknown":           {"Unknown means that it was not seen at all.", member(ready(metav1.ConditionUnknown)), []corev1.Taint{fresh(unreachable)}, true},
		"Ready":             {"Both go when it is ready.", member(ready(metav1.ConditionTrue), tainted(fresh(notReady), fresh(unreachable))), []corev1.Taint{}, true},
		"FromOneToTheOther": {"The two exclude each other.", member(ready(metav1.ConditionUnknown), tainted(fresh(notReady))), []corev1.Taint{fresh(unreachable)}, true},
		"Nothing":           {"A taint that is there keeps its time, whoever added it.", member(ready(metav1.ConditionFalse), tainted(taint(notReady, no))), []corev1.Taint{taint(notReady, no)}, false},
		"OthersInOrder":     {"Taints of others stay, in order.", member(ready(metav1.ConditionTrue), tainted(mine, fresh(notReady), evict)), []corev1.Taint{mine, evict}, true},
		"OtherEffect":       {"A NoExecute taint with our key is an administrator's.", member(ready(metav1.ConditionTrue), tainted(evict)), []corev1.Taint{evict}, false},
		"AfterOthers":       {"Ours is appended.", member(ready(metav1.ConditionFalse), tainted(mine)), []corev1.Taint{mine, fresh(notReady)}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if changed := taintByReadiness(tc.cluster, added); changed != tc.changed {
				t.Errorf("changed is %v\n%s", changed, tc.reason)
			}
			if diff := cmp.Diff(tc.want, tc.cluster.Spec.Taints); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if taintByReadiness(tc.cluster, metav1.NewTime(epoch.AddDate(1, 0, 0))) {
				t.Error("a second look must find nothing to do")
			}
		})
	}
}

func TestDescribeTaints(t *testing.T) {
	cases := map[string]struct {
		reason string
		taints []corev1.Taint
		want   string
	}{
		"None": {"Scripts wait for this sentence.", nil, "cluster now does not have taints"},
		"Two": {
			"All of them are named, not only what has changed.",
			[]corev1.Taint{taint("a", corev1.TaintEffectNoSchedule), taint("b", corev1.TaintEffectNoExecute)},
			"cluster now has taints([{Key:a,Effect:NoSchedule},{Key:b,Effect:NoExecute}])",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := describeTaints(tc.taints); got != tc.want {
				t.Errorf("got %q, want %q\n%s", got, tc.want, tc.reason)
			}
		})
	}
}
