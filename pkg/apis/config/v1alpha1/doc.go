// +kubebuilder:object:generate=true
// +groupName=config.karmada.io

// Package v1alpha1 is version v1alpha1 of the API group config.karmada.io: how
// the control plane learns what a kind of resource means, by scripts or by
// webhooks, and the messages exchanged with such a webhook.
package v1alpha1
