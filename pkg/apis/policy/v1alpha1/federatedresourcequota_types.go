package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=federatedresourcequotas,scope=Namespaced,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="OVERALL",type="string",JSONPath=".status.overall"
// +kubebuilder:printcolumn:name="OVERALL_USED",type="string",JSONPath=".status.overallUsed"

// A FederatedResourceQuota limits what the workloads of its namespace may use in
// all clusters together, and optionally in each.
type FederatedResourceQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what may be used.
	Spec FederatedResourceQuotaSpec `json:"spec"`

	// Status says what is used.
	// +optional
	Status FederatedResourceQuotaStatus `json:"status,omitzero"`
}

// +kubebuilder:object:root=true

// A FederatedResourceQuotaList is a list of FederatedResourceQuotas.
type FederatedResourceQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the quotas.
	Items []FederatedResourceQuota `json:"items"`
}

// FederatedResourceQuotaSpec says what may be used.
type FederatedResourceQuotaSpec struct {
	// Overall is the limit for all clusters together, by resource. Resources that
	// are not named are not limited.
	Overall corev1.ResourceList `json:"overall"`

	// StaticAssignments fix the share of single clusters. Each becomes a
	// ResourceQuota there; clusters that are not named get none. Their sum is not
	// larger than Overall.
	// +optional
	StaticAssignments []StaticClusterAssignment `json:"staticAssignments,omitempty"`
}

// A StaticClusterAssignment is the share of one cluster.
type StaticClusterAssignment struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`

	// Hard is the limit there, by resource. Only resources of Overall may be named.
	Hard corev1.ResourceList `json:"hard"`
}

// FederatedResourceQuotaStatus says what is used.
type FederatedResourceQuotaStatus struct {
	// Overall is the limit that the figures below were computed against.
	// +optional
	Overall corev1.ResourceList `json:"overall,omitempty"`

	// OverallUsed is what all clusters use together. Limited resources of which
	// nothing is used are left out.
	// +optional
	OverallUsed corev1.ResourceList `json:"overallUsed,omitempty"`

	// AggregatedStatus is the use in each cluster that has a share, by its name.
	// +optional
	AggregatedStatus []ClusterQuotaStatus `json:"aggregatedStatus,omitempty"`
}

// A ClusterQuotaStatus is the use in one cluster.
type ClusterQuotaStatus struct {
	// ClusterName is the cluster.
	ClusterName string `json:"clusterName"`

	// ResourceQuotaStatus is what the ResourceQuota there reports.
	corev1.ResourceQuotaStatus `json:",inline"`
}
