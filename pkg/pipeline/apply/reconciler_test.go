package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/member"
)

const (
	dispatching = "Dispatching=True Dispatching: Work is being dispatched to member clusters."
	held        = "Dispatching=False SuspendDispatching: Work dispatching is in a suspended state."
	applied     = "Applied=True AppliedSuccessful: Manifest has been successfully applied"

	conflict = "apply ConfigMap default/a to cluster m1: resource(kind=ConfigMap, default/a) already exists in the cluster m1 and the " +
		"work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"
)

func TestReconcile(t *testing.T) {
	type manifests = []*unstructured.Unstructured
	template := with(config("v"), "annotations", "resourcetemplate.karmada.io/uid", "1-2-3")
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, SearchedVersions: []string{"v1"}}
	thing := obj(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"default","name":"a"}}`)
	namespace := obj(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"spec":{}}`)

	type want struct {
		err        string   // part of its text
		calls      []string // to the member
		writes     []string // to the control plane
		conditions []string
		events     []string
		gone       bool // the Work
		waits      bool // is looked at again by itself
		object     *unstructured.Unstructured
	}
	cases := map[string]struct {
		reason   string
		cluster  *clusterv1alpha1.Cluster // nil: none
		work     *workv1alpha1.Work
		there    manifests                              // on the member
		known    manifests                              // in the cache; nil: not synced
		refuses  func(*unstructured.Unstructured) error // an update
		before   func(call string) error
		noKind   error
		noMember error
		starting bool
		want     want
	}{
		"Create": {
			reason:  "What the member lacks is created, with one write of the status.",
			cluster: aCluster(), work: aWork(t, manifests{template}),
			want: want{
				calls: []string{"get ConfigMap default/a", "create ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{applied, dispatching},
				events: []string{
					"Work: Normal WorkDispatching: Work is being dispatched to member clusters.",
					"Work: Normal SyncSucceed: Manifest has been successfully applied",
					"Template: Normal SyncSucceed: Manifest has been successfully applied",
				},
				object: ours(template),
			},
		},
		"CreateClusterScoped": {
			reason:  "A kind without namespace is no special case.",
			cluster: aCluster(), work: aWork(t, manifests{namespace}), known: manifests{},
			want: want{
				calls: []string{"create Namespace a"}, writes: []string{"patch status"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal WorkDispatching: Work is being dispatched to member clusters.", "Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: ours(namespace),
			},
		},
		"Update": {
			reason:  "What is ours is made what the Work says.",
			cluster: aCluster(), work: aWork(t, manifests{config("new")}, wasApplied(0)), there: manifests{ours(config("old"))},
			want: want{
				calls: []string{"get ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{applied, dispatching},
				events:     []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object:     ours(config("new")),
			},
		},
		"Nothing": {
			reason:  "What is as it should be costs nothing but a look into the cache.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1)), there: manifests{ours(config("v"))}, known: manifests{config("v")},
			want: want{conditions: []string{applied, dispatching}, object: ours(config("v"))},
		},
		"DefaultsOfTheMember": {
			reason:  "Fields that the Work does not name are defaults, or somebody else's, once it was applied.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1)),
			there: manifests{ours(withData(config("v"), "other", "x"))}, known: manifests{config("v")},
			want: want{conditions: []string{applied, dispatching}, object: ours(withData(config("v"), "other", "x"))},
		},
		"FieldRemoved": {
			reason:  "Before it was applied, a field that is not in it may have been removed from it.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0)),
			there: manifests{ours(withData(config("v"), "other", "x"))}, known: manifests{config("v")},
			want: want{
				calls: []string{"update ConfigMap default/a"}, writes: []string{"patch status"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"}, object: ours(config("v")),
			},
		},
		"Drift": {
			reason:  "What somebody changed is repaired; the status has nothing new to say.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1)), there: manifests{ours(config("drifted"))}, known: manifests{config("v")},
			want: want{
				calls: []string{"update ConfigMap default/a"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"}, object: ours(config("v")),
			},
		},
		"CannotBeRemoved": {
			reason:  "A field that the member has filled in, and does not let go of any more, stays; the rest is done.",
			cluster: aCluster(), work: aWork(t, manifests{config("new")}, wasApplied(0)), there: manifests{ours(withData(config("old"), "other", "x"))},
			refuses: onlyWith("other"),
			want: want{
				calls: []string{"get ConfigMap default/a", "update ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{applied, dispatching}, events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: ours(withData(config("new"), "other", "x")),
			},
		},
		"NothingButRemoved": {
			reason:  "If nothing else is to be done, nothing is.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0)), there: manifests{ours(withData(config("v"), "other", "x"))},
			refuses: onlyWith("other"),
			want: want{
				calls: []string{"get ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{applied, dispatching}, events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: ours(withData(config("v"), "other", "x")),
			},
		},
		"Invalid": {
			reason:  "What the member takes neither way is told by what it said first.",
			cluster: aCluster(), work: aWork(t, manifests{config("new")}, wasApplied(0)), there: manifests{ours(config("old"))},
			refuses: onlyWith("other"),
			want: want{
				err: "ConfigMap \"a\" is invalid", calls: []string{"get ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{`Applied=False AppliedFailed: Failed to apply all manifests (0/1): apply ConfigMap default/a to cluster m1: ConfigMap "a" is invalid: data: Invalid value: "other": cannot be removed`, dispatching},
				events:     []string{`Work: Warning SyncFailed: apply ConfigMap default/a to cluster m1: ConfigMap "a" is invalid: data: Invalid value: "other": cannot be removed`},
				object:     ours(config("old")),
			},
		},
		"OthersKeysStay": {
			reason:  "Labels and annotations of others are theirs, also last-applied.",
			cluster: aCluster(), work: aWork(t, manifests{config("new")}),
			there: manifests{with(with(ours(config("old")), "labels", "theirs", "1"), "annotations", "kubectl.kubernetes.io/last-applied-configuration", "{}")},
			known: manifests{config("v")},
			want: want{
				calls: []string{"update ConfigMap default/a"}, writes: []string{"patch status"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal WorkDispatching: Work is being dispatched to member clusters.", "Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: with(with(ours(config("new")), "labels", "theirs", "1"), "annotations", "kubectl.kubernetes.io/last-applied-configuration", "{}"),
			},
		},
		"NotOurs": {
			reason:  "What lacks our mark is not touched.",
			cluster: aCluster(), work: aWork(t, manifests{template}), there: manifests{config("theirs")},
			want: want{
				err: conflict, calls: []string{"get ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): " + conflict, dispatching},
				events: []string{
					"Work: Normal WorkDispatching: Work is being dispatched to member clusters.",
					"Work: Warning SyncFailed: " + conflict, "Template: Warning SyncFailed: " + conflict,
				},
				object: config("theirs"),
			},
		},
		"NotOursAnyMore": {
			reason:  "Who takes our mark off has the object; the cache sees a deletion, and creating finds the truth.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1)), there: manifests{config("v")}, known: manifests{},
			want: want{
				err: conflict, calls: []string{"create ConfigMap default/a", "get ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): " + conflict, dispatching},
				events:     []string{"Work: Warning SyncFailed: " + conflict}, object: config("v"),
			},
		},
		"NotOursAnyMoreOverwrite": {
			reason:  "Unless the user of the control plane has the last word: then it is what is there that is changed, and nothing made anew.",
			cluster: aCluster(), work: aWork(t, manifests{with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")}, wasApplied(1)),
			there: manifests{with(config("theirs"), "labels", "theirs", "1")}, known: manifests{},
			want: want{
				calls:      []string{"create ConfigMap default/a", "get ConfigMap default/a", "update ConfigMap default/a"},
				conditions: []string{applied, dispatching}, events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: with(ours(with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")), "labels", "theirs", "1"),
			},
		},
		"Overwrite": {
			reason:  "Unless the user said so.",
			cluster: aCluster(), work: aWork(t, manifests{with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")}, wasApplied(0)),
			there: manifests{config("theirs")},
			want: want{
				calls: []string{"get ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: ours(with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")),
			},
		},
		"OverwriteByWork": {
			reason:  "A Work that a user made says it once, for all its manifests.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0), func(w *workv1alpha1.Work) {
				w.Annotations = map[string]string{"work.karmada.io/conflict-resolution": "overwrite"}
			}),
			there: manifests{config("theirs")},
			want: want{
				calls: []string{"get ConfigMap default/a", "update ConfigMap default/a"}, writes: []string{"patch status"}, conditions: []string{applied, dispatching},
				events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"},
				object: ours(with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")),
			},
		},
		"Abort": {
			reason:  "Abort is the default, spelled out.",
			cluster: aCluster(), work: aWork(t, manifests{with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "abort")}, wasApplied(0)),
			there: manifests{config("theirs")},
			want: want{
				err: conflict, calls: []string{"get ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): " + conflict, dispatching},
				events:     []string{"Work: Warning SyncFailed: " + conflict}, object: config("theirs"),
			},
		},
		"OneOfTwoFails": {
			reason:  "A manifest that fails must not hold back the other one.",
			cluster: aCluster(), work: aWork(t, manifests{namespace, config("v")}, wasApplied(0)),
			before: func(call string) error {
				if call == "create Namespace a" {
					return errBoom
				}
				return nil
			},
			want: want{
				err: "boom", calls: []string{"get Namespace a", "create Namespace a", "get ConfigMap default/a", "create ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (1/2): apply Namespace a to cluster m1: boom", dispatching},
				events:     []string{"Work: Warning SyncFailed: apply Namespace a to cluster m1: boom"},
				object:     ours(config("v")),
			},
		},
		"LacksKind": {
			reason:  "A CRD may come in a moment: nothing is told of that, and nothing failed.",
			cluster: aCluster(), work: aWork(t, manifests{thing, config("v")}, wasApplied(0)),
			want: want{
				waits: true, calls: []string{"get ConfigMap default/a", "create ConfigMap default/a"},
				conditions: []string{applied, dispatching}, object: ours(config("v")),
			},
		},
		"BeingListed": {
			reason:  "After a start one list tells what thousands of requests would: what was applied has time.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1)), there: manifests{ours(config("v"))}, starting: true,
			want: want{waits: true, conditions: []string{applied, dispatching}, object: ours(config("v"))},
		},
		"NewWhileListed": {
			reason:  "What is new has none.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0)), starting: true,
			want: want{
				calls: []string{"get ConfigMap default/a", "create ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{applied, dispatching}, events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"}, object: ours(config("v")),
			},
		},
		"Garbage": {
			reason:  "A manifest that is none is told on the Work.",
			cluster: aCluster(), work: aWork(t, manifests{obj(`{"apiVersion":"v1","kind":"ConfigMap"}`)}, wasApplied(0)),
			want: want{
				err: "it has no metadata.name", writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): read manifest: it has no metadata.name", dispatching},
				events:     []string{"Work: Warning SyncFailed: read manifest: it has no metadata.name"},
			},
		},
		"MemberFails": {
			reason:  "Whatever the member says is in the condition.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0)), known: manifests{},
			before: func(string) error { return errBoom },
			want: want{
				err: "boom", calls: []string{"create ConfigMap default/a"}, writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): apply ConfigMap default/a to cluster m1: boom", dispatching},
				events:     []string{"Work: Warning SyncFailed: apply ConfigMap default/a to cluster m1: boom"},
			},
		},
		"NoCredentials": {
			reason:  "That a member cannot be reached by what we have is told on the Work, too.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(0)), noMember: errBoom,
			want: want{
				err: "boom", writes: []string{"patch status"},
				conditions: []string{"Applied=False AppliedFailed: Failed to apply all manifests (0/1): reach cluster m1: boom", dispatching},
				events:     []string{"Work: Warning SyncFailed: reach cluster m1: boom"},
			},
		},
		"Empty": {
			reason:  "A Work that asks for nothing is done.",
			cluster: aCluster(), work: aWork(t, nil, wasApplied(0)),
			want: want{writes: []string{"patch status"}, conditions: []string{applied, dispatching}, events: []string{"Work: Normal SyncSucceed: Manifest has been successfully applied"}},
		},
		"Suspended": {
			reason:  "What is held back is neither created nor repaired.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, suspended), there: manifests{ours(config("drifted"))},
			want: want{
				writes: []string{"patch status"}, conditions: []string{held},
				events: []string{"Work: Normal WorkDispatching: Work dispatching is in a suspended state."}, object: ours(config("drifted")),
			},
		},
		"SuspendedAgain": {
			reason:  "That it is held back is told once.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, suspended, func(w *workv1alpha1.Work) { markDispatching(w) }),
			want: want{conditions: []string{held}},
		},
		"NotReady": {
			reason:  "A member that is not well is left alone until it is; the Cluster's change brings the Work back.",
			cluster: aCluster(notReady), work: aWork(t, manifests{config("v")}),
			want: want{
				waits: true, writes: []string{"patch status"}, conditions: []string{dispatching},
				events: []string{"Work: Normal WorkDispatching: Work is being dispatched to member clusters."},
			},
		},
		"NoCluster": {
			reason: "The Cluster may come.",
			work:   aWork(t, manifests{config("v")}), want: want{waits: true},
		},
		"PullCluster": {
			reason:  "It has an agent.",
			cluster: aCluster(pull), work: aWork(t, manifests{config("v")}),
		},
		"NoFinalizer": {
			reason:  "A Work that a user made must not go without being withdrawn.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, wasApplied(1), func(w *workv1alpha1.Work) { w.Finalizers = []string{"other"} }),
			there: manifests{ours(config("v"))}, known: manifests{config("v")},
			want: want{writes: []string{"patch"}, conditions: []string{applied, dispatching}, object: ours(config("v"))},
		},

		"Delete": {
			reason:  "What is ours goes with the Work, what depends on it in the background.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{calls: []string{"get ConfigMap default/a", "delete in the background: ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteSuspended": {
			reason:  "Held back or not.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted, suspended), there: manifests{ours(config("v"))},
			want: want{calls: []string{"get ConfigMap default/a", "delete in the background: ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteAbsent": {
			reason:  "What is not there need not go.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted),
			want: want{calls: []string{"get ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteNotOurs": {
			reason:  "Nothing without our mark is removed, not even with overwrite.",
			cluster: aCluster(), work: aWork(t, manifests{with(config("v"), "annotations", "work.karmada.io/conflict-resolution", "overwrite")}, deleted),
			there: manifests{config("theirs")},
			want:  want{calls: []string{"get ConfigMap default/a"}, writes: []string{"patch"}, gone: true, object: config("theirs")},
		},
		"DeleteOfAnotherWork": {
			reason:  "What another Work has taken over is its.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted),
			there: manifests{with(ours(config("v")), "annotations", "work.karmada.io/name", "another")},
			want: want{
				calls: []string{"get ConfigMap default/a"}, writes: []string{"patch"}, gone: true,
				object: with(ours(config("v")), "annotations", "work.karmada.io/name", "another"),
			},
		},
		"DeleteMarkedWithoutWork": {
			reason:  "Earlier versions wrote no annotations.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted),
			there: manifests{with(config("v"), "labels", "karmada.io/managed", "true")},
			want:  want{calls: []string{"get ConfigMap default/a", "delete in the background: ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteFails": {
			reason:  "A Work stays until its objects are withdrawn, all of them.",
			cluster: aCluster(), work: aWork(t, manifests{namespace, config("v")}, deleted), there: manifests{ours(config("v")), ours(namespace)},
			before: func(call string) error {
				if strings.HasPrefix(call, "delete") && strings.Contains(call, "Namespace") {
					return errBoom
				}
				return nil
			},
			want: want{err: "delete Namespace a from cluster m1: boom", calls: []string{
				"get Namespace a", "delete in the background: Namespace a", "get ConfigMap default/a", "delete in the background: ConfigMap default/a",
			}},
		},
		"DeleteKindGone": {
			reason:  "A CRD takes its objects with it.",
			cluster: aCluster(), work: aWork(t, manifests{thing}, deleted), noKind: noKind,
			want: want{writes: []string{"patch"}, gone: true},
		},
		"DeleteKindUnknown": {
			reason:  "That nobody could find out does not mean that there is none.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))}, noKind: errBoom,
			want: want{err: "boom", object: ours(config("v"))},
		},
		"DeleteNotReady": {
			reason:  "The member may come back.",
			cluster: aCluster(notReady), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{waits: true, object: ours(config("v"))},
		},
		"DeleteNotReadyLeaving": {
			reason:  "A dead member must not hold its Cluster for ever.",
			cluster: aCluster(notReady, leaving), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{writes: []string{"patch"}, gone: true, object: ours(config("v"))},
		},
		"DeleteLeaving": {
			reason:  "One that answers is cleaned up.",
			cluster: aCluster(leaving), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{calls: []string{"get ConfigMap default/a", "delete in the background: ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteLeavingOrphan": {
			reason:  "What is to stay stays, also where the Work itself does not say so.",
			cluster: aCluster(leaving, orphaning), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{calls: []string{"get ConfigMap default/a", "patch ConfigMap default/a"}, writes: []string{"patch"}, gone: true, object: config("v")},
		},
		"DeleteStayingOrphan": {
			reason:  "As long as the cluster does not leave, a Work that goes takes its objects along.",
			cluster: aCluster(orphaning), work: aWork(t, manifests{config("v")}, deleted), there: manifests{ours(config("v"))},
			want: want{calls: []string{"get ConfigMap default/a", "delete in the background: ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"DeleteNoCluster": {
			reason: "There is nothing to clean up.",
			work:   aWork(t, manifests{config("v")}, deleted), want: want{writes: []string{"patch"}, gone: true},
		},
		"DeletePullCluster": {
			reason:  "Its agent does that.",
			cluster: aCluster(pull), work: aWork(t, manifests{config("v")}, deleted),
		},
		"Preserve": {
			reason:  "What stays loses our marks, and nothing else: not what drifted, nor what others added.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted, preserved),
			there: manifests{with(with(with(ours(config("drifted")), "labels", "theirs", "1"),
				"labels", "propagationpolicy.karmada.io/permanent-id", "p"), "annotations", "clusterpropagationpolicy.karmada.io/name", "p")},
			want: want{
				calls: []string{"get ConfigMap default/a", "patch ConfigMap default/a"}, writes: []string{"patch"}, gone: true,
				object: with(config("drifted"), "labels", "theirs", "1"),
			},
		},
		"PreserveAbsent": {
			reason:  "What is not there cannot be kept, nor waited for.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted, preserved),
			want: want{calls: []string{"get ConfigMap default/a"}, writes: []string{"patch"}, gone: true},
		},
		"PreserveNotOurs": {
			reason:  "Nothing of others is changed.",
			cluster: aCluster(), work: aWork(t, manifests{config("v")}, deleted, preserved), there: manifests{config("theirs")},
			want: want{calls: []string{"get ConfigMap default/a"}, writes: []string{"patch"}, gone: true, object: config("theirs")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t, tc.there...)
			if tc.known != nil {
				m.know(t, tc.known...)
			}
			m.before, m.refuses, m.noKind, m.starting = tc.before, tc.refuses, tc.noKind, tc.starting
			objects := []client.Object{tc.work.DeepCopy()}
			if tc.cluster != nil {
				objects = append(objects, tc.cluster)
			}
			w := newWorld(t, m, objects...)
			if tc.noMember != nil {
				w.members = func(context.Context, *clusterv1alpha1.Cluster) (Member, error) { return nil, tc.noMember }
			}
			result, err := w.reconcile(t)
			if tc.want.err == "" && err != nil || tc.want.err != "" && (err == nil || !strings.Contains(err.Error(), tc.want.err)) {
				t.Fatalf("%s\nwant an error with %q, got %v", tc.reason, tc.want.err, err)
			}
			if got := result.RequeueAfter > 0; got != tc.want.waits {
				t.Errorf("%s\nlooked at again by itself: %t", tc.reason, got)
			}
			if diff := cmp.Diff(tc.want.calls, m.take()); diff != "" {
				t.Errorf("%s\nrequests to the member (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.writes, w.take()); diff != "" {
				t.Errorf("%s\nwrites to the control plane (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want.events, w.events.take()); diff != "" {
				t.Errorf("%s\nevents (-want +got):\n%s", tc.reason, diff)
			}
			work := w.work(t)
			if (work == nil) != tc.want.gone {
				t.Errorf("%s\nthe Work is gone: %t", tc.reason, work == nil)
			}
			if work != nil {
				if diff := cmp.Diff(tc.want.conditions, conditionsOf(work)); diff != "" {
					t.Errorf("%s\nconditions (-want +got):\n%s", tc.reason, diff)
				}
				if !slices.Contains(work.Finalizers, "karmada.io/execution-controller") {
					t.Errorf("%s\nbut it has no finalizer", tc.reason)
				}
			}
			for _, u := range tc.work.Spec.Workload.Manifests {
				like, err := decode(u)
				if err != nil || like.GetKind() == "Thing" {
					continue
				}
				got := m.get(t, like)
				if tc.want.object == nil || tc.want.object.GetKind() != like.GetKind() {
					if got != nil && tc.want.err == "" {
						t.Errorf("%s\nthe member has %v", tc.reason, got)
					}
					continue
				}
				if got == nil {
					t.Fatalf("%s\nthe member has no %s", tc.reason, describe(like))
				}
				if diff := cmp.Diff(binding.Relevant(tc.want.object), binding.Relevant(got)); diff != "" {
					t.Errorf("%s\non the member (-want +got):\n%s", tc.reason, diff)
				}
			}

			// Once more changes nothing, whatever it was.
			if work == nil || tc.want.err != "" || strings.HasPrefix(name, "Lacks") {
				return
			}
			m.cached = nil
			if _, err := w.reconcile(t); err != nil {
				t.Fatalf("%s\nand once more: %v", tc.reason, err)
			}
			if writes, calls := w.take(), m.take(); len(writes) > 0 || slices.ContainsFunc(calls, func(c string) bool { return !strings.HasPrefix(c, "get ") }) {
				t.Errorf("%s\nbut once more writes %v, %v", tc.reason, writes, calls)
			}
			if got := w.events.take(); got != nil {
				t.Errorf("%s\nbut once more tells %v", tc.reason, got)
			}
		})
	}
}

// onlyWith refuses ConfigMaps that lack a key.
func onlyWith(key string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		if _, ok, err := unstructured.NestedString(u.Object, "data", key); ok || err != nil {
			return err
		}
		return apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), u.GetName(),
			field.ErrorList{field.Invalid(field.NewPath("data"), key, "cannot be removed")})
	}
}

// wasApplied makes a Work one whose given generation was applied.
func wasApplied(generation int64) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		markDispatching(w)
		markApplied(w, 1, 1, nil)
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].LastTransitionTime = metav1.Unix(1, 0)
			if w.Status.Conditions[i].Type == "Applied" {
				w.Status.Conditions[i].ObservedGeneration = generation
			}
		}
	}
}

func withData(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	u = u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, value, "data", key); err != nil {
		panic(err)
	}
	return u
}

func TestFailureRepeatsWithoutWrites(t *testing.T) {
	m := newFakeMember(t, config("theirs"))
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	for i := range 3 {
		if _, err := w.reconcile(t); err == nil {
			t.Fatal("the conflict stays")
		}
		if writes := w.take(); i > 0 && writes != nil {
			t.Errorf("what was told already is not written again: %v", writes)
		}
	}
}

func TestRaces(t *testing.T) {
	cases := map[string]struct {
		reason string
		there  []*unstructured.Unstructured
		known  []*unstructured.Unstructured
		// race happens once, before the first request that begins so.
		at    string
		race  func(*testing.T, *fakeMember)
		calls []string
	}{
		"ChangedMeanwhile": {
			reason: "A conflict is read again, at once.",
			there:  []*unstructured.Unstructured{ours(config("old"))}, known: []*unstructured.Unstructured{config("")},
			at: "update",
			race: func(t *testing.T, m *fakeMember) {
				m.change(t, config(""), func(u *unstructured.Unstructured) { u.SetLabels(merge(u.GetLabels(), "theirs", "1")) })
			},
			calls: []string{"update ConfigMap default/a", "get ConfigMap default/a", "update ConfigMap default/a"},
		},
		"CreatedMeanwhile": {
			reason: "So is what exists after all.",
			at:     "create",
			race: func(t *testing.T, m *fakeMember) {
				if err := m.client.Create(t.Context(), ours(config("v"))); err != nil {
					t.Fatal(err)
				}
			},
			calls: []string{"get ConfigMap default/a", "create ConfigMap default/a", "get ConfigMap default/a"},
		},
		"DeletedMeanwhile": {
			reason: "And what has gone.",
			there:  []*unstructured.Unstructured{ours(config("old"))}, known: []*unstructured.Unstructured{config("")},
			at: "update",
			race: func(t *testing.T, m *fakeMember) {
				if err := m.client.Delete(t.Context(), config("")); err != nil {
					t.Fatal(err)
				}
			},
			calls: []string{"update ConfigMap default/a", "get ConfigMap default/a", "create ConfigMap default/a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t, tc.there...)
			if tc.known != nil {
				m.know(t, tc.known...)
			}
			raced := false
			m.before = func(call string) error {
				if !raced && strings.HasPrefix(call, tc.at) {
					raced = true
					tc.race(t, m)
				}
				return nil
			}
			w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
			if _, err := w.reconcile(t); err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.calls, m.take()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			got := m.get(t, config(""))
			if data, _, _ := unstructured.NestedString(got.Object, "data", "key"); data != "v" {
				t.Errorf("%s\nbut the member has %v", tc.reason, got)
			}
		})
	}
}

func merge(m map[string]string, key, value string) map[string]string {
	m = orEmpty(m)
	m[key] = value
	return m
}

func TestStatusConflict(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	m.before = func(call string) error { // another stage writes what the object does on the member
		if !strings.HasPrefix(call, "create") {
			return nil
		}
		work := w.work(t)
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
		return w.control.Status().Update(t.Context(), work)
	}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	work := w.work(t)
	if len(work.Status.ManifestStatuses) != 1 || !isApplied(work) {
		t.Errorf("the status of others stays, ours is added: %+v", work.Status)
	}
}

func TestStaleCache(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("a")}))
	say := func(data string) {
		work := w.work(t)
		work.Spec = aWork(t, []*unstructured.Unstructured{config(data)}).Spec
		work.Generation++
		if err := w.control.Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	m.know(t, config("")) // and this is what the cache keeps believing
	say("b")
	say("a")
	if data, _, _ := unstructured.NestedString(m.get(t, config("")).Object, "data", "key"); data != "a" {
		t.Errorf("a cache that is older than our own write is not believed; the member has %q", data)
	}
}

func TestDrifted(t *testing.T) {
	versioned := func(u *unstructured.Unstructured, version string) *unstructured.Unstructured {
		u = u.DeepCopy()
		u.SetResourceVersion(version)
		return u
	}
	v5 := versioned(ours(config("v")), "5")
	cases := map[string]struct {
		reason   string
		wrote    string
		cluster  string
		old, new *unstructured.Unstructured
		want     bool
	}{
		"Deleted":            {reason: "What is removed comes back.", old: v5, want: true},
		"DeletedUnmarked":    {reason: "It was not ours.", old: config("v")},
		"DeletedElsewhere":   {reason: "A member cannot speak for another.", cluster: "m2", old: v5},
		"DeletedNamesNoWork": {reason: "Nobody knows whose it was.", old: with(config("v"), "labels", "karmada.io/managed", "true")},
		"AddedByUs":          {reason: "We know.", wrote: "5", new: v5},
		"AddedUnknown":       {reason: "Nothing was applied since the process began: the Work comes by itself.", new: v5},
		"AddedAnother":       {reason: "It changed while nobody watched.", wrote: "4", new: v5, want: true},
		"ChangedByUs":        {reason: "We know.", wrote: "6", old: v5, new: versioned(ours(config("new")), "6")},
		"ChangedUnknown":     {reason: "As when added.", old: v5, new: versioned(ours(config("new")), "6")},
		"Changed":            {reason: "What somebody changed is repaired.", wrote: "5", old: v5, new: versioned(ours(config("new")), "6"), want: true},
		"ChangedStatus":      {reason: "A status says nothing about what we want.", wrote: "5", old: v5, new: versioned(withStatus(ours(config("v"))), "6")},
		"ChangedLabels":      {reason: "The marks were taken off: the old object says whose it is.", wrote: "5", old: v5, new: versioned(config("v"), "6"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{ledger: newLedger(), repairs: newRepairs()}
			e := member.Event{Cluster: "m1", GVR: configMaps, Old: tc.old, New: tc.new}
			if tc.cluster != "" {
				e.Cluster = tc.cluster
			}
			if tc.wrote != "" {
				r.ledger.set(e.Cluster, place{gvr: configMaps, namespace: "default", name: "a"}, entry{version: tc.wrote})
			}
			request, _, got := r.drifted(e)
			if got != tc.want {
				t.Fatalf("%s\ngot %t", tc.reason, got)
			}
			if got && request.String() != "karmada-es-m1/w" {
				t.Errorf("%s\ngot %s", tc.reason, request)
			}
		})
	}
}

func withStatus(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.Object["status"] = map[string]any{"ready": true}
	return u
}

func TestRecreateIsCounted(t *testing.T) {
	m := newFakeMember(t)
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	for range 2 {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
		if err := m.client.Delete(t.Context(), config("")); err != nil {
			t.Fatal(err)
		}
	}
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, series := range f.GetMetric() {
			line := f.GetName()
			for _, l := range series.GetLabel() {
				line += " " + l.GetName() + "=" + l.GetValue()
			}
			got = append(got, fmt.Sprintf("%s: %v", line, series.GetCounter().GetValue()+float64(series.GetHistogram().GetSampleCount())))
		}
	}
	want := []string{
		"create_resource_to_cluster apiversion=v1 kind=ConfigMap member_cluster=m1 recreate=false result=success: 1",
		"create_resource_to_cluster apiversion=v1 kind=ConfigMap member_cluster=m1 recreate=true result=success: 1",
		"work_sync_workload_duration_seconds result=success: 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what comes back is told from what is new (-want +got):\n%s", diff)
	}
	w.forget("m1")
	if families, _ := w.metrics.Gather(); len(families) != 1 {
		t.Error("a cluster that is gone has no series")
	}
}

func TestClusterNotServedForAMoment(t *testing.T) {
	m := newFakeMember(t, ours(config("v")))
	w := newWorld(t, m, aWork(t, []*unstructured.Unstructured{config("v")}, deleted))
	notServed := apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "clusters"}, "m1", "404 page not found", 0, true)
	w.live = &failingReader{err: notServed}
	if _, err := w.reconcile(t); !errors.Is(err, notServed) {
		t.Errorf("an API that is not served does not mean that the Cluster is gone: %v", err)
	}
	if w.work(t) == nil {
		t.Error("and the Work must not go without being withdrawn")
	}
}

type failingReader struct {
	client.Reader
	err error
}

func (r *failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func TestLongMessages(t *testing.T) {
	m := newFakeMember(t)
	m.before = func(string) error { return errors.New(strings.Repeat("ä", 40000)) }
	w := newWorld(t, m, aCluster(), aWork(t, []*unstructured.Unstructured{config("v")}))
	_, _ = w.reconcile(t)
	c := meta.FindStatusCondition(w.work(t).Status.Conditions, "Applied")
	if c == nil || len(c.Message) > 32768 || !strings.HasSuffix(c.Message, "ä...") {
		t.Errorf("the API takes no longer message, nor half a character: %d", len(c.Message))
	}
	for _, e := range w.events.take() {
		if strings.Contains(e, corev1.EventTypeWarning) && len(e) > 1024+100 {
			t.Errorf("the note of an event is at most 1024 bytes long, not %d", len(e))
		}
	}
}

// A Work that the cache still has may be gone, and another one of its name be
// there, of which nothing that is true of the former is.
func TestSuccessorIsLeftAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1alpha1.Work)
	}{
		"Withdrawn": {"Without its finalizer the object would stay on the member when the successor goes.", deleted},
		"Applied":   {"It is not applied yet.", func(*workv1alpha1.Work) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t)
			successor := aWork(t, []*unstructured.Unstructured{config("new")}, func(w *workv1alpha1.Work) { w.UID = "new" })
			w := newWorld(t, m, aCluster(), successor)
			w.refuse = func(patch map[string]any) error {
				if uid, _, _ := unstructured.NestedString(patch, "metadata", "uid"); uid == "old" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Work"}, "w", field.ErrorList{
						field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"),
					})
				}
				return nil
			}
			former := aWork(t, []*unstructured.Unstructured{config("old")}, tc.change, func(w *workv1alpha1.Work) { w.UID, w.ResourceVersion = "old", "1" })
			if _, err := w.Reconcile(t.Context(), former); err != nil {
				t.Fatal(err)
			}
			got := w.work(t)
			if !slices.Equal(got.Finalizers, successor.Finalizers) || len(got.Status.Conditions) != 0 {
				t.Errorf("%s The successor has finalizers %q and conditions %+v", tc.reason, got.Finalizers, got.Status.Conditions)
			}
		})
	}
}
