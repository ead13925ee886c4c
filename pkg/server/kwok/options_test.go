package kwok

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
)

// valid returns options that pass; cases change what they are about.
func valid() Options {
	return Options{
		Config:         &rest.Config{},
		Nodes:          2,
		NodeNamePrefix: "member1",
		PodCIDR:        "10.11.0.0/16",
		ListenAddress:  "127.0.0.1:10250",
		CertFile:       "tls.crt",
		KeyFile:        "tls.key",
		ServingCAFile:  "ca.crt",
		ClientCAFile:   "client-ca.crt",
	}
}

func TestOptionsComplete(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		want   []string // parts of the error, none for success
	}{
		"Valid": {
			reason: "The minimum that a member gives must do.",
			change: func(*Options) {},
		},
		"NoNodes": {
			reason: "A member may live without simulated nodes of its own.",
			change: func(o *Options) { o.Nodes = 0 },
		},
		"Several": {
			reason: "All mistakes are told at once.",
			change: func(o *Options) { o.Config, o.PodCIDR, o.CertFile = nil, "10.11.0.0", "" },
			want:   []string{"no client configuration", `pod range "10.11.0.0"`, "no serving certificate"},
		},
		"ListenEverywhere": {
			reason: "Nobody but the API server on this host may reach the endpoint.",
			change: func(o *Options) { o.ListenAddress = "0.0.0.0:10250" },
			want:   []string{"not a loopback address"},
		},
		"ListenPort": {
			reason: "Nodes report the port, so it must be known.",
			change: func(o *Options) { o.ListenAddress = "127.0.0.1:0" },
			want:   []string{"port is not between"},
		},
		"Prefix": {
			reason: "The API server would refuse the name later, one node at a time.",
			change: func(o *Options) { o.NodeNamePrefix = "Member_1" },
			want:   []string{"Member_1-node-2"},
		},
		"NodeAddress": {
			reason: "InternalIP must be an IP address.",
			change: func(o *Options) { o.NodeAddress = "localhost" },
			want:   []string{`node address "localhost"`},
		},
		"Capacity": {
			reason: "A node cannot offer less than nothing.",
			change: func(o *Options) { o.Capacity = corev1.ResourceList{"cpu": resource.MustParse("-1")} },
			want:   []string{"capacity of cpu is negative"},
		},
		"ClientCA": {
			reason: "Without an authority every request would be refused.",
			change: func(o *Options) { o.ClientCAFile = "" },
			want:   []string{"authority of the kubelet's clients"},
		},
		"MetricsWithoutCA": {
			reason: "The APIService must name an authority.",
			change: func(o *Options) { o.RequestHeaderCAFile, o.ServingCAFile = "front.crt", "" },
			want:   []string{"metrics.k8s.io needs"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := valid()
			tc.change(&o)
			_, err := o.complete()
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("%s\ncomplete(): %v", tc.reason, err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s\ncomplete(): %v\nwant it to say: %s", tc.reason, err, part)
				}
			}
		})
	}
}

func TestOptionsDefaults(t *testing.T) {
	o := valid()
	o.Capacity = corev1.ResourceList{"cpu": resource.MustParse("2")}
	got, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	if got.NodeAddress != "127.0.0.1" || got.port() != 10250 || got.KubeletVersion != "kwok" {
		t.Errorf("address %q, port %d, version %q", got.NodeAddress, got.port(), got.KubeletVersion)
	}
	want := map[string]string{"cpu": "2", "memory": "32Gi", "pods": "110"}
	have := map[string]string{}
	for n, q := range got.Capacity {
		have[string(n)] = q.String()
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("What is given stays, the rest is filled in (-want +got):\n%s", diff)
	}
	if len(o.Capacity) != 1 {
		t.Error("The caller's map must not change.")
	}
}
