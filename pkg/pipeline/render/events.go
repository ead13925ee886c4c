package render

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmadactl/karmadactl/pkg/binding"
	"github.com/karmadactl/karmadactl/pkg/names"
	"github.com/karmadactl/karmadactl/pkg/override"
	"github.com/karmadactl/karmadactl/pkg/util/brief"
)

// recordSync tells on the binding and on its template how making the Works went
// (spec: behaviour/02 2.3).
func (r *Reconciler[B]) recordSync(b B, err error) {
	kind, reason := corev1.EventTypeNormal, names.EventSyncWorkSucceed
	message := fmt.Sprintf("Sync work of %s(%s) successful.", binding.ScopeOf(b).Kind, path(b.GetNamespace(), b.GetName()))
	if err != nil {
		kind, reason, message = corev1.EventTypeWarning, names.EventSyncWorkFailed, brief.Note(err.Error())
	}
	r.record.Eventf(b, nil, kind, reason, "SyncWork", "%s", message)
	r.record.Eventf(templateOf(b), nil, kind, reason, "SyncWork", "%s", message)
}

// recordOverridden tells on the template which override policies a Work that was
// written has in it (spec: behaviour/07 7.1).
func (j *job[B]) recordOverridden(cluster string, result override.Result) {
	tell := func(what string) {
		j.record.Eventf(templateOf(j.binding), nil, corev1.EventTypeNormal, names.EventApplyOverridePolicySucceed, "ApplyOverridePolicy",
			"%s for cluster(%s) succeed.", what, cluster)
	}
	for _, a := range result.Cluster {
		tell(applying("", a.PolicyName))
	}
	for _, a := range result.Namespaced {
		tell(applying(j.template.GetNamespace(), a.PolicyName))
	}
}

// recordOverrideFailed tells on the template and on the binding which override
// policy cannot be applied, where in it the trouble is, and where in the object.
func (j *job[B]) recordOverrideFailed(cluster string, err error) {
	message := fmt.Sprintf("Apply override policies for cluster(%s) failed: %v", cluster, err)
	var bad *override.Error
	if errors.As(err, &bad) {
		message = fmt.Sprintf("%s for cluster(%s) failed: %v", applying(bad.Namespace, bad.Name), cluster, err)
	}
	j.record.Eventf(j.binding, nil, corev1.EventTypeWarning, names.EventApplyOverridePolicyFailed, "ApplyOverridePolicy", "%s", brief.Note(message))
	j.record.Eventf(templateOf(j.binding), nil, corev1.EventTypeWarning, names.EventApplyOverridePolicyFailed, "ApplyOverridePolicy", "%s", brief.Note(message))
}

// applying names the application of an override policy; without a namespace it
// is a ClusterOverridePolicy.
func applying(namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("Apply cluster override policy(%s)", name)
	}
	return fmt.Sprintf("Apply override policy(%s)", path(namespace, name))
}

func path(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// templateOf refers to what a binding binds.
func templateOf(b binding.Object) *corev1.ObjectReference {
	ref := b.BindingSpec().Resource
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
}
