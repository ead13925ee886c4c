package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/names"
)

const refusal = "This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected"

// errStored is what happens when somebody gets as far as to what is stored.
var errStored = errors.New("deleting")

// A shelf is a storage of Clusters that can be listed. The first list is for whoever
// looks at them, a second one for whoever deletes them.
type shelf struct {
	storage.Interface
	clusters []clusterv1alpha1.Cluster
	lists    int
	err      error
}

func (s *shelf) GetList(_ context.Context, _ string, o storage.ListOptions, into runtime.Object) error {
	if s.lists++; s.lists > 1 {
		return errStored
	}
	if s.err != nil {
		return s.err
	}
	all, ok := into.(*clusterv1alpha1.ClusterList)
	if !ok {
		return fmt.Errorf("a list of %T", into)
	}
	for i := range s.clusters {
		c := &s.clusters[i]
		if o.Predicate.Label.Matches(labels.Set(c.Labels)) && o.Predicate.Limit == 0 {
			all.Items = append(all.Items, *c)
		}
	}
	return nil
}

func (s *shelf) rest() *REST {
	return &REST{
		Store: &registry.Store{
			NewFunc:                  func() runtime.Object { return &clusterv1alpha1.Cluster{} },
			NewListFunc:              func() runtime.Object { return &clusterv1alpha1.ClusterList{} },
			PredicateFunc:            match,
			DefaultQualifiedResource: groupResource(),
			KeyRootFunc:              func(context.Context) string { return "/clusters" },
			Storage:                  registry.DryRunnableStorage{Storage: s},
		},
		agents: guard(),
	}
}

func labelled(name string, value ...string) clusterv1alpha1.Cluster {
	c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
	for _, v := range value {
		c.Labels[names.DeletionProtectedLabel] = v
	}
	return c
}

func TestDeleteOne(t *testing.T) {
	cases := map[string]struct {
		reason  string
		cluster clusterv1alpha1.Cluster
		refused bool
	}{
		"Protected":  {"The label protects.", labelled("a", "Always"), true},
		"Plain":      {"Others are not protected.", labelled("a"), false},
		"OtherValue": {"One value protects, and no other.", labelled("a", "Sometimes"), false},
		"OtherCase":  {"Not in another case either.", labelled("a", "always"), false},
		"Empty":      {"Nor does an empty one.", labelled("a", ""), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := false
			err := unlessProtected(func(context.Context, runtime.Object) error { asked = true; return nil })(t.Context(), &c.cluster)
			if asked == c.refused {
				t.Errorf("others are asked when it is not protected: %s", c.reason)
			}
			if !c.refused {
				if err != nil {
					t.Errorf("%v: %s", err, c.reason)
				}
				return
			}
			if want := `clusters.cluster.karmada.io "a" is forbidden: ` + refusal; !apierrors.IsForbidden(err) || err.Error() != want {
				t.Errorf("got %v, want %s: %s", err, want, c.reason)
			}
		})
	}
}

func TestDeleteCollection(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason   string
		clusters []clusterv1alpha1.Cluster
		broken   error
		options  *metainternalversion.ListOptions
		want     string // in the error
	}{
		"None": {
			reason:   "Nothing is protected, all may go.",
			clusters: []clusterv1alpha1.Cluster{labelled("a"), labelled("b", "Sometimes")},
			options:  &metainternalversion.ListOptions{}, want: errStored.Error(),
		},
		"Last": {
			reason:   "What comes before the one that is protected stays, too.",
			clusters: []clusterv1alpha1.Cluster{labelled("a"), labelled("b"), labelled("c", "Always")},
			options:  &metainternalversion.ListOptions{}, want: `"c" is forbidden: ` + refusal,
		},
		"NotSelected": {
			reason:   "One that is not meant holds up nothing.",
			clusters: []clusterv1alpha1.Cluster{labelled("a"), labelled("c", "Always")},
			options:  &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"name": "a"})}, want: errStored.Error(),
		},
		"Page": {
			reason:   "All are deleted, whatever the size of a page.",
			clusters: []clusterv1alpha1.Cluster{labelled("a"), labelled("c", "Always")},
			options:  &metainternalversion.ListOptions{Limit: 1}, want: refusal,
		},
		"NoOptions": {
			reason:   "Nothing said is all of them.",
			clusters: []clusterv1alpha1.Cluster{labelled("c", "Always")}, want: refusal,
		},
		"Unknown": {
			reason: "Not to know is not that there is none.",
			broken: errBoom, options: &metainternalversion.ListOptions{}, want: "boom",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &shelf{clusters: c.clusters, err: c.broken}
			_, err := s.rest().DeleteCollection(t.Context(), nil, &metav1.DeleteOptions{}, c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s: %s", err, c.want, c.reason)
			}
			if deleting := c.want == errStored.Error(); deleting != (s.lists > 1) {
				t.Errorf("deleting %v: %s", !deleting, c.reason)
			}
		})
	}
}
