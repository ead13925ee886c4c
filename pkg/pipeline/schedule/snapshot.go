package schedule

import (
	"time"

	clusterv1alpha1 "github.com/karmadactl/karmadactl/pkg/apis/cluster/v1alpha1"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/estimate"
	"github.com/karmadactl/karmadactl/pkg/pipeline/schedule/filter"
)

// A Snapshot is all that a decision depends on, beside the binding. Nothing in it
// is changed, and nothing but it is read.
type Snapshot struct {
	// Clusters are all there are.
	Clusters []*clusterv1alpha1.Cluster
	// Reserved is, by cluster, what was placed there and does not show in the
	// cluster's status yet.
	Reserved map[string]*estimate.Reserved
	// Answers are, by cluster, those of estimators other than the general one,
	// which is always asked. The smallest counts; what is reserved is taken off
	// those that have not counted it.
	Answers map[string][]estimate.Answer
	// Silent is why estimators gave no answer, by their names. Only a diagnosis
	// tells of it.
	Silent map[string]error
	// SummarizedAt is, by cluster, when its status was last brought up to date,
	// where that is known. Only a diagnosis tells of it.
	SummarizedAt map[string]time.Time
	// Others is where the others are of the groups that the binding is in. Nil:
	// it is in none, or groups do not count.
	Others filter.Others
}
