package bind

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha2"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/policy"

	"github.com/karmadactl/karmadactl/pkg/names"
)

func TestActivate(t *testing.T) {
	f := fingerprint{user: "u", all: "a"}
	made := func(annotation string) binding.Object {
		b := &workv1alpha2.ResourceBinding{}
		if annotation != "" {
			b.Annotations = map[string]string{names.TemplateFingerprintAnnotation: annotation}
		}
		b.Spec.Placement = &policyv1alpha1.Placement{}
		return b
	}
	at := func(seconds int64, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{CreationTimestamp: metav1.Unix(seconds, 0), ResourceVersion: version}
	}
	cases := map[string]struct {
		reason   string
		eager    bool
		now      binding.Object
		template metav1.ObjectMeta // the policy is of second 100 and version 50
		seen     seen
		want     activation
	}{
		"Eager":          {reason: "A policy that is not lazy acts at once.", eager: true, now: made("u-a"), want: everything},
		"Unchanged":      {reason: "Its user did nothing.", now: made("u-x"), want: nothing},
		"UnchangedTouch": {reason: "What a user changed and changed back is no change.", now: made("u-x"), seen: seen{touched: true}, want: nothing},
		"Changed":        {reason: "Its user changed it, whether or not somebody saw that.", now: made("x-a"), want: everything},
		"Unknown":        {reason: "What another control plane has bound stays as the policy was.", now: made(""), want: templateOnly},
		"UnknownTouched": {reason: "Unless its user is seen to change it.", now: made(""), seen: seen{touched: true}, want: everything},
		"Attached": {
			reason: "A binding for the sake of others says nothing of a policy.",
			now:    &workv1alpha2.ResourceBinding{}, template: at(99, "10"), want: nothing,
		},
		"New":          {reason: "A template that is made after its policy is bound at once.", template: at(100, "60"), seen: seen{touched: true}, want: everything},
		"Older":        {reason: "A policy that comes after a template waits for its user.", template: at(99, "60"), want: nothing},
		"Newer":        {reason: "Also when its making was not seen.", template: at(101, "60"), want: everything},
		"NewerClaimed": {reason: "Or was interrupted after the claim.", template: at(101, "60"), seen: seen{claimed: true}, want: everything},
		"Waited":       {reason: "What waited for a policy was there before it.", template: at(100, "60"), seen: seen{waited: true}, want: nothing},
		"SameSecond":   {reason: "Within a second, its version tells.", template: at(100, "60"), want: everything},
		"SameSecondOlder": {
			reason: "Within a second, its version tells.", template: at(100, "40"), want: nothing,
		},
		"SameSecondClaimed": {
			reason: "But not when that is of the claim.", template: at(100, "60"), seen: seen{claimed: true}, want: nothing,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := aPolicy("p", lazy, created(100))
			p.ResourceVersion = "50"
			if tc.eager {
				p.Spec.ActivationPreference = ""
			}
			u := aTemplate(func(u *unstructured.Unstructured) {
				u.SetCreationTimestamp(tc.template.CreationTimestamp)
				u.SetResourceVersion(tc.template.ResourceVersion)
			})
			if got := activate(p, u, tc.now, f, tc.seen); got != tc.want {
				t.Errorf("%s\ngot %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLazy is the story of a lazy policy.
func TestLazy(t *testing.T) {
	p := aPolicy("p", lazy, created(1500))
	w := newWorld(t, p, aTemplate())
	w.done(t, web)
	wantWrites(t, w, "A policy that comes after a template only claims it.", "patch Deployment web")
	w.ledger = newLedger()
	w.done(t, web)
	wantWrites(t, w, "A restart is no change.")

	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(3) })
	w.ledger.touch(web)
	w.done(t, web)
	wantWrites(t, w, "Its user changes the template.", "create ResourceBinding web-deployment")

	to := func(cluster string) func() {
		return func() { p.Spec.Placement.ClusterAffinity.ClusterNames = []string{cluster} }
	}
	w.change(t, p, to("elsewhere"))
	w.index.Set(p.DeepCopy())
	w.done(t, web)
	w.ledger = newLedger()
	w.done(t, web)
	wantWrites(t, w, "A change of the policy waits, through a restart as well.")

	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a.karmada.io/b": "c"}) })
	w.take()
	w.done(t, web)
	wantWrites(t, w, "A mark of a controller is no change of its user.", "patch Deployment web") // the change above took the claim off
	w.changeTemplate(t, web, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["replicas"] = int64(4) })
	w.ledger = newLedger() // nobody has seen it
	w.done(t, web)
	wantWrites(t, w, "Its user changes the template, while nobody looks.", "update ResourceBinding web-deployment")
	if b := w.bound(t, "shop", "web-deployment"); clusterOf(b) != "elsewhere" || b.BindingSpec().Replicas != 4 {
		t.Errorf("the policy as it is now acts: %s, %d replicas", clusterOf(b), b.BindingSpec().Replicas)
	}
}

func TestLazyTemplateOnly(t *testing.T) {
	old := aPolicy("p")
	b := boundBy(t, old, aTemplate(), func(b binding.Object) {
		b.SetAnnotations(map[string]string{"propagationpolicy.karmada.io/name": "p", "propagationpolicy.karmada.io/namespace": "shop"})
		b.BindingSpec().Replicas = 1
	})
	p := aPolicy("p", lazy, func(p policy.Object) {
		p.PropagationSpec().Placement.ClusterAffinity.ClusterNames = []string{"elsewhere"}
	})
	w := newWorld(t, p, b, aTemplate(claimedBy(p)))
	w.done(t, web)
	wantWrites(t, w, "What another control plane has bound.", "update ResourceBinding web-deployment")
	if now := w.bound(t, "shop", "web-deployment"); clusterOf(now) != "p-cluster" || now.BindingSpec().Replicas != 2 {
		t.Errorf("what the template says is brought up to date, the policy stays: %s, %d replicas", clusterOf(now), now.BindingSpec().Replicas)
	}
	w.done(t, web)
	wantWrites(t, w, "Once.")
}
