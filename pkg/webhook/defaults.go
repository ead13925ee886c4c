package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	multiclusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/multicluster/v1alpha1"
	policyv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/work/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
)

// gracePeriodSeconds is how long an application that fails stays where it is
// while its replacement starts (spec: behaviour/08 8.2).
const gracePeriodSeconds = 600

// Defaults fill in what is left out. Each method takes the object as it is asked
// for, which it changes, and for an update the object as it was; nil for a
// creation. An error is for the user: the request cannot be allowed.
type Defaults struct {
	// NewID makes a permanent identity, NewSuffix the end of a name that the user
	// leaves to the server. Both are random, except in tests.
	NewID     func() string
	NewSuffix func() string
}

// NewDefaults returns Defaults with random identities.
func NewDefaults() Defaults {
	return Defaults{
		NewID:     func() string { return string(uuid.NewUUID()) },
		NewSuffix: func() string { return rand.String(5) },
	}
}

// PropagationPolicy gives a new policy an identity of its own and the finalizer
// that keeps it until its claims are undone, and fills in its spec. What it
// selects is in its own namespace.
func (d Defaults) PropagationPolicy(was, p *policyv1alpha1.PropagationPolicy) error {
	for i := range p.Spec.ResourceSelectors {
		inNamespace(&p.Spec.ResourceSelectors[i], p.Namespace)
	}
	defaultPropagationSpec(&p.Spec)
	return d.claimant(object(was), p, names.PropagationPolicyIDLabel, names.PropagationPolicyFinalizer)
}

// ClusterPropagationPolicy is PropagationPolicy for the other scope.
func (d Defaults) ClusterPropagationPolicy(was, p *policyv1alpha1.ClusterPropagationPolicy) error {
	defaultPropagationSpec(&p.Spec)
	return d.claimant(object(was), p, names.ClusterPropagationPolicyIDLabel, names.ClusterPropagationPolicyFinalizer)
}

// OverridePolicy says that what a policy selects is in its own namespace.
func (d Defaults) OverridePolicy(_, p *policyv1alpha1.OverridePolicy) error {
	for i := range p.Spec.ResourceSelectors {
		inNamespace(&p.Spec.ResourceSelectors[i], p.Namespace)
	}
	return nil
}

// ResourceBinding gives a binding an identity, if it has none. Its metadata is
// all that is read, which is the same in every version.
func (d Defaults) ResourceBinding(was, b *metav1.PartialObjectMetadata) error {
	return d.identify(object(was), b, names.ResourceBindingIDLabel)
}

// ClusterResourceBinding is ResourceBinding for the other scope.
func (d Defaults) ClusterResourceBinding(was, b *metav1.PartialObjectMetadata) error {
	return d.identify(object(was), b, names.ClusterResourceBindingIDLabel)
}

// MultiClusterService gives a service an identity, if it has none.
func (d Defaults) MultiClusterService(was, s *metav1.PartialObjectMetadata) error {
	return d.identify(object(was), s, names.MultiClusterServiceIDLabel)
}

// Work gives a Work an identity, if it has none, and makes its manifests such as
// our controllers write them: without what means something on one server only,
// and with the marks by which the objects are known on the member. So what a user
// makes by hand is looked after like everything else.
func (d Defaults) Work(was, w *workv1alpha1.Work) error {
	if err := d.identify(object(was), w, names.WorkIDLabel); err != nil {
		return err
	}
	if w.Name == "" && w.GenerateName != "" {
		// The server would do so after this, but the marks have the name.
		w.Name = d.generatedName(w.GenerateName)
	}
	if !w.DeletionTimestamp.IsZero() {
		return nil // it is not applied any more
	}
	var errs []error
	for i, m := range w.Spec.Workload.Manifests {
		u, err := binding.ReadManifest(m)
		if err != nil {
			if !unchanged(was, i, m) { // who changes something else need not mend it
				errs = append(errs, fmt.Errorf("spec.workload.manifests[%d] is no object that can be applied: %w", i, err))
			}
			continue
		}
		raw, err := json.Marshal(binding.Manifest(w, u).Object)
		if err != nil {
			errs = append(errs, fmt.Errorf("write spec.workload.manifests[%d]: %w", i, err))
			continue
		}
		w.Spec.Workload.Manifests[i] = workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
	}
	return errors.Join(errs...)
}

// unchanged says whether a manifest is as it was.
func unchanged(was *workv1alpha1.Work, i int, m workv1alpha1.Manifest) bool {
	return was != nil && i < len(was.Spec.Workload.Manifests) && bytes.Equal(was.Spec.Workload.Manifests[i].Raw, m.Raw)
}

// generatedName is a name with that beginning, as the API server makes them.
func (d Defaults) generatedName(beginning string) string {
	const longest = 63
	suffix := d.NewSuffix()
	return beginning[:min(len(beginning), longest-len(suffix))] + suffix
}

// claimant gives a policy what its claims on templates need: an identity, by
// which they are known, and a finalizer, so that they are undone before it goes.
// A policy from before there was this webhook gets both when it is next written,
// and so does one that an update leaves without both, as replacing it from a file
// does. To take the finalizer alone off is a user's decision.
func (d Defaults) claimant(was, p client.Object, label, finalizer string) error {
	if was == nil {
		// What another policy was made from must not share its claims.
		setLabel(p, label, d.NewID())
		controllerutil.AddFinalizer(p, finalizer)
		return nil
	}
	forgotten := p.GetLabels()[label] == "" && controllerutil.ContainsFinalizer(was, finalizer)
	if (was.GetLabels()[label] == "" || forgotten) && p.GetDeletionTimestamp().IsZero() {
		controllerutil.AddFinalizer(p, finalizer)
	}
	return d.identify(was, p, label)
}

// identify makes sure that an object has an identity, and always the same one:
// what is claimed under it would be nobody's otherwise. One that an update leaves
// out is put back, as replacing an object from a file does; a different one is an
// error, unless the object is being deleted, which nothing may hold up.
func (d Defaults) identify(was, o client.Object, label string) error {
	has := o.GetLabels()[label]
	had := ""
	if was != nil {
		had = was.GetLabels()[label]
	}
	deleted := !o.GetDeletionTimestamp().IsZero()
	switch {
	case had != "" && (has == "" || deleted):
		setLabel(o, label, had)
	case had != "" && has != had:
		return fmt.Errorf("the label %s cannot be changed, from %q to %q: it is the identity by which others know this object; leave it out, or as it is", label, had, has)
	case has == "" && !deleted:
		setLabel(o, label, d.NewID())
	}
	return nil
}

// defaultPropagationSpec fills in what both scopes of policy have in common.
func defaultPropagationSpec(s *policyv1alpha1.PropagationSpec) {
	for i := range s.Placement.SpreadConstraints {
		c := &s.Placement.SpreadConstraints[i]
		if c.SpreadByField == "" && c.SpreadByLabel == "" {
			c.SpreadByField = policyv1alpha1.SpreadByFieldCluster
		}
		if c.MinGroups == 0 {
			c.MinGroups = 1
		}
	}
	for _, r := range s.ResourceSelectors {
		// An imported service is of no use without the endpoints that belong to it.
		if r.APIVersion == multiclusterv1alpha1.GroupVersion.String() && r.Kind == "ServiceImport" {
			s.PropagateDeps = true
		}
	}
	if r := s.Placement.ReplicaScheduling; r != nil &&
		r.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided && r.ReplicaDivisionPreference == "" {
		r.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
	}
	if f := s.Failover; f != nil && f.Application != nil &&
		f.Application.PurgeMode == policyv1alpha1.PurgeModeGracefully && f.Application.GracePeriodSeconds == nil {
		f.Application.GracePeriodSeconds = new(int32(gracePeriodSeconds))
	}
}

func inNamespace(r *policyv1alpha1.ResourceSelector, namespace string) {
	if r.Namespace == "" {
		r.Namespace = namespace
	}
}

func setLabel(o client.Object, key, value string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

// object is o, or a nil interface when o is a nil pointer.
func object[T any, P interface {
	*T
	client.Object
}](o P) client.Object {
	if o == nil {
		return nil
	}
	return o
}
