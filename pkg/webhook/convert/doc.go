// Package convert translates bindings between work.karmada.io/v1alpha1, which old clients speak, and v1alpha2, which is
// stored (spec: behaviour/08 8.1, api/README.md).
//
// No conversion loses anything. What v1alpha1 has no field for travels in an annotation of the v1alpha1 object, so that
// whoever reads, changes and writes one keeps the placement and everything else. What v1alpha1 has a field for counts as
// that field says, so that a change made there wins.
//
// Nothing of ours reads v1alpha1, and what is stored is never converted for those who read v1alpha2: the control plane
// does not need this webhook. Objects are handled as the JSON that they are, field by field, without being taken apart
// further than the two versions differ: fields that this version of ours does not know survive, and numbers stay as they
// are written.
package convert
