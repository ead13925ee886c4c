package kwok

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podWithIP(uid, ip string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if ip != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	return p
}

func TestPodIPs(t *testing.T) {
	type step struct{ uid, want string } // want "" is an error
	cases := map[string]struct {
		reason string
		cidr   string
		first  []corev1.Pod // what there is at the start
		later  []corev1.Pod // and when the range was gone through
		steps  []step
	}{
		"Sequence": {
			reason: "The network's own address is not a pod's; asking again for a pod gives the same.",
			cidr:   "10.1.0.0/24",
			steps:  []step{{"a", "10.1.0.1"}, {"b", "10.1.0.2"}, {"a", "10.1.0.1"}},
		},
		"Restart": {
			reason: "Addresses of pods that run already are not given away again.",
			cidr:   "10.1.0.0/24",
			first:  []corev1.Pod{podWithIP("x", "10.1.0.5"), podWithIP("y", "10.9.0.1"), podWithIP("z", "")},
			steps:  []step{{"a", "10.1.0.6"}, {"x", "10.1.0.5"}},
		},
		"Wrap": {
			reason: "At the range's end the addresses of pods that are gone come back; pods without an address yet keep theirs.",
			cidr:   "10.1.0.0/30",
			later:  []corev1.Pod{podWithIP("b", "")},
			steps:  []step{{"a", "10.1.0.1"}, {"b", "10.1.0.2"}, {"c", "10.1.0.1"}},
		},
		"Full": {
			reason: "A range that is used up is an error, not a duplicate.",
			cidr:   "10.1.0.0/30",
			later:  []corev1.Pod{podWithIP("a", "10.1.0.1"), podWithIP("b", "10.1.0.2")},
			steps:  []step{{"a", "10.1.0.1"}, {"b", "10.1.0.2"}, {"c", ""}},
		},
		"IPv6": {
			reason: "Dual-stack nodes have a range of each family.",
			cidr:   "fd00::/64",
			steps:  []step{{"a", "fd00::1"}},
		},
		"NoCIDR": {
			reason: "A node's range may be anything that the API server took.",
			cidr:   "nonsense",
			steps:  []step{{"a", ""}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			ips := newPodIPs(func() ([]corev1.Pod, error) {
				asked++
				if asked == 1 {
					return tc.first, nil
				}
				return tc.later, nil
			})
			for _, s := range tc.steps {
				got, err := ips.get(tc.cidr, types.UID(s.uid))
				if got != s.want || (err != nil) != (s.want == "") {
					t.Fatalf("%s\nget(%s) = %q, %v, want %q", tc.reason, s.uid, got, err, s.want)
				}
			}
		})
	}
}

func TestPodIPsListFails(t *testing.T) {
	boom := errors.New("boom")
	ips := newPodIPs(func() ([]corev1.Pod, error) { return nil, boom })
	if _, err := ips.get("10.1.0.0/24", "a"); !errors.Is(err, boom) {
		t.Errorf("Not to know which addresses are taken must not hand one out: %v", err)
	}
}
