// Package protect keeps objects with the label
// resourcetemplate.karmada.io/deletion-protected=Always from being deleted
// (spec: behaviour/08 8.3, deletion protection).
//
// Each deletion is a request that admission sees: by name, as one of a collection,
// of a namespace that is emptied, by the garbage collector when an owner is gone.
// The first hook refuses those for protected objects. So a protected dependant
// outlives its owner: the garbage collector keeps trying, and waits for it when the
// owner is deleted in the foreground.
//
// Two deletions would do harm before any request for the protected object, or
// without one, and are refused as long as there is a protected object:
//
//   - of a namespace: it would lose everything else, and could never be used again;
//   - of a CustomResourceDefinition: the API server deletes the objects of its kind
//     without asking admission.
//
// Clusters, whose requests admission of the control plane never sees, are protected
// by the aggregated API server, and so is what is deleted in a member through it.
//
// Not seen is the eviction of a pod, which is no deletion to admission. Nothing
// evicts in a control plane.
package protect
