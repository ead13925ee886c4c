package controllermanager

import (
	"strings"
	"testing"

	"github.com/karmadactl/karmadactl/pkg/server/role/roletest"
)

func TestControllerTable(t *testing.T) {
	// A transcription of spec: cli/components.md 1.
	const known = "agentcsrapproving, applicationFailover, binding, bindingStatus, cluster, clusterStatus, clustertaintpolicy, cronFederatedHorizontalPodAutoscaler, deploymentReplicasSyncer, endpointSlice, endpointsliceCollect, endpointsliceDispatch, execution, federatedHorizontalPodAutoscaler, federatedResourceQuotaEnforcement, federatedResourceQuotaStatus, federatedResourceQuotaSync, gracefulEviction, hpaScaleTargetMarker, multiclusterservice, namespace, remedy, serviceExport, serviceImport, unifiedAuth, workStatus, workloadRebalancer"
	roletest.ControllerTable(t, controllers(), strings.Split(known, ", "), []string{"deploymentReplicasSyncer", "hpaScaleTargetMarker"})
}
