package bind

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmadactl/karmadactl/pkg/binding"
)

func TestCollect(t *testing.T) {
	cases := map[string]struct {
		reason  string
		there   bool // the template
		binding func(binding.Object)
		failing error // of reads of templates
		want    []string
	}{
		"Gone":     {reason: "With its template a binding goes.", want: []string{"delete ResourceBinding web-deployment"}},
		"There":    {reason: "A cache that has not seen a template yet says nothing.", there: true},
		"Unknown":  {reason: "Not to be told is not to know.", failing: errBoom},
		"Orphaned": {reason: "Who orphans what a template owns wants to keep it.", binding: func(b binding.Object) { b.SetOwnerReferences(nil) }},
		"Another": {reason: "A binding of another object of that name is not ours to judge.", binding: func(b binding.Object) {
			owners := b.GetOwnerReferences()
			owners[0].UID = "another"
			b.SetOwnerReferences(owners)
		}},
		"Going": {reason: "What is being deleted need not be deleted.", binding: func(b binding.Object) {
			b.SetDeletionTimestamp(&metav1.Time{Time: metav1.Unix(1, 0).Time})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := aTemplate()
			b := boundBy(t, aPolicy("p"), template)
			if tc.binding != nil {
				tc.binding(b)
			}
			w := newWorld(t, b)
			if tc.there {
				w = newWorld(t, b, template)
			}
			if tc.failing != nil {
				w.fakes.errs[web.GroupVersionKind] = tc.failing
			}
			if err := w.collect(t.Context(), web); err != nil {
				t.Fatal(err)
			}
			wantWrites(t, w, tc.reason, tc.want...)
		})
	}
}
