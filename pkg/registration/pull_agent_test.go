package registration

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
)

func TestRegisterPullAsksFirst(t *testing.T) {
	taken := func(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{ObjectMeta: named("", name), Spec: clusterv1alpha1.ClusterSpec{ID: "id-m", SyncMode: mode}}
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1alpha1.Cluster // is there under the name
		refusal error                    // of the server, that sees all Clusters
		taken   bool
	}{
		"OtherName": {
			reason: "The server says so, for an agent cannot list the Clusters.", taken: true,
			refusal: apierrors.NewForbidden(schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}, "m", &TakenError{Identity: Identity{Name: "m", ID: "id-m"}, By: taken("member3", clusterv1alpha1.Pull)}),
		},
		"Push":    {reason: "The control plane reaches it already.", cluster: taken("m", clusterv1alpha1.Push), taken: true},
		"Refused": {reason: "Anything else is no reason to make something either.", refusal: errors.New("no")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var known []client.Object
			if tc.cluster != nil {
				known = append(known, tc.cluster)
			}
			plane, member := newCluster(t, known...), newCluster(t, &corev1.Namespace{ObjectMeta: named("", "kube-system")})
			plane.fail = func(string, client.Object) error { return tc.refusal }
			e := PullEntry(Entry{Identity: Identity{Name: "m", ID: "id-m"}, Namespace: "karmada-cluster"}, []string{ReportCredentials, ReportImpersonator})
			_, err := RegisterPull(t.Context(), Member{API: API{Client: member}}, plane, e)
			if err == nil || IsTaken(err) != tc.taken {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if name == "OtherName" && !strings.Contains(err.Error(), "this cluster is registered as member3") {
				t.Errorf("the other is not named: %v", err)
			}
			if n := member.writes.Load() + plane.writes.Load(); n > 0 {
				t.Errorf("%s\nwrote %d times", tc.reason, n)
			}
		})
	}
}

func TestCheckPullWritesNothing(t *testing.T) {
	plane := newCluster(t)
	e := PullEntry(Entry{Identity: Identity{Name: "m", ID: "id-m"}, Namespace: "karmada-cluster"}, nil)
	if found, err := CheckPull(t.Context(), plane, e); err != nil || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if plane.has(t, &clusterv1alpha1.Cluster{ObjectMeta: named("", "m")}) {
		t.Error("asking makes no Cluster")
	}
}

func TestAgentRightsNames(t *testing.T) {
	got, err := AgentRightsNames("m")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ClusterRole/system:karmada:m:agent", "ClusterRoleBinding/system:karmada:m:agent",
		"Role/karmada-cluster/system:karmada:m:agent-secret", "RoleBinding/karmada-cluster/system:karmada:m:agent-secret",
		"Role/karmada-system/system:karmada:m:agent-lease", "RoleBinding/karmada-system/system:karmada:m:agent-lease",
		"Role/default/system:karmada:m:agent-event", "RoleBinding/default/system:karmada:m:agent-event",
		"Role/karmada-es-m/system:karmada:m:agent-work", "RoleBinding/karmada-es-m/system:karmada:m:agent-work",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
