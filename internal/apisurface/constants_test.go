// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestConstants_Values_AsMCM pins texts in stored objects, controllers of other projects
// and alerts.
func TestConstants_Values_AsMCM(t *testing.T) {
	for text, got := range map[string]string{
		"machine.sapcloud.io":          v1alpha1.GroupName,
		"machine.sapcloud.io/v1alpha1": v1alpha1.SchemeGroupVersion.String(),
		"MachineClass":                 v1alpha1.MachineClassKind,

		// Finalizers.
		"machine.sapcloud.io/machine-controller-manager": v1alpha1.MCMFinalizerName,
		"machine.sapcloud.io/machine-controller":         v1alpha1.MCFinalizerName,
		"node.machine.sapcloud.io/machine-controller":    v1alpha1.NodeFinalizerName,

		// Labels and annotations of machines, sets and deployments.
		"node":                                v1alpha1.NodeLabelKey,
		"name":                                v1alpha1.LabelKeyMachineDeploymentName,
		"force-deletion":                      v1alpha1.LabelKeyForceDeletion,
		"force-drain":                         v1alpha1.LabelKeyForceDrain,
		"freeze":                              v1alpha1.FreezeLabelKey,
		"machinepriority.machine.sapcloud.io": v1alpha1.MachinePriority,
		"machine.sapcloud.io/marked-for-deletion-time":                      v1alpha1.MarkedForDeletionTime,
		"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time": v1alpha1.LastDeploymentReplicaChangeByScalerTime,
		"node.machine.sapcloud.io/trigger-deletion-by-mcm":                  v1alpha1.TriggerDeletionByMCM,
		"node.machine.sapcloud.io/effective-creation-timeout":               v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout,
		"node.machine.sapcloud.io/machine-join-duration":                    v1alpha1.AnnotationKeyMachineJoinDuration,
		"node.machine.sapcloud.io/preserve":                                 v1alpha1.PreserveMachineAnnotationKey,
		"node.machine.sapcloud.io/last-applied-node-preserve-value":         v1alpha1.LastAppliedNodePreserveValueAnnotationKey,
		"node.machine.sapcloud.io/scale-up-disabled":                        v1alpha1.LabelKeyMachineSetScaleUpDisabled,
		"safety.machine.sapcloud.io/unfreeze":                               v1alpha1.UnfreezeAnnotation,
		"machine-template-hash":                                             v1alpha1.DefaultMachineDeploymentUniqueLabelKey,
		"deployment.kubernetes.io/revision":                                 v1alpha1.RevisionAnnotation,
		"deployment.kubernetes.io/revision-history":                         v1alpha1.RevisionHistoryAnnotation,
		"deployment.kubernetes.io/desired-replicas":                         v1alpha1.DesiredReplicasAnnotation,
		"deployment.kubernetes.io/max-replicas":                             v1alpha1.MaxReplicasAnnotation,

		// Values of the preserve annotation.
		"now":            v1alpha1.PreserveMachineAnnotationValueNow,
		"when-failed":    v1alpha1.PreserveMachineAnnotationValueWhenFailed,
		"auto-preserved": v1alpha1.PreserveMachineAnnotationValuePreservedByMCM,
		"false":          v1alpha1.PreserveMachineAnnotationValueFalse,

		// Labels, annotations and taints of nodes.
		"node.gardener.cloud/machine-name":                            v1alpha1.MachineNameLabelKey,
		"node.gardener.cloud/critical-components-not-ready":           v1alpha1.TaintNodeCriticalComponentsNotReady,
		"node.machine.sapcloud.io/preserved":                          v1alpha1.TaintNodePreserved,
		"deployment.machine.sapcloud.io/prefer-no-schedule":           v1alpha1.PreferNoScheduleKey,
		"node.machine.sapcloud.io/last-applied-anno-labels-taints":    v1alpha1.LastAppliedALTAnnotation,
		"node.machine.sapcloud.io/last-applied-virtual-capacity":      v1alpha1.LastAppliedVirtualCapacityAnnotation,
		"node.machine.sapcloud.io/not-managed-by-mcm":                 v1alpha1.NotManagedByMCM,
		"node.machine.sapcloud.io/update-failed-reason":               v1alpha1.AnnotationKeyMachineUpdateFailedReason,
		"node.machine.sapcloud.io/candidate-for-update":               v1alpha1.LabelKeyNodeCandidateForUpdate,
		"node.machine.sapcloud.io/selected-for-update":                v1alpha1.LabelKeyNodeSelectedForUpdate,
		"node.machine.sapcloud.io/update-result":                      v1alpha1.LabelKeyNodeUpdateResult,
		"successful":                                                  v1alpha1.LabelValueNodeUpdateSuccessful,
		"failed":                                                      v1alpha1.LabelValueNodeUpdateFailed,
		"cluster-autoscaler.kubernetes.io/scale-down-disabled":        v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey,
		"cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm": v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey,

		// Conditions of nodes and their reasons.
		"Terminating":           string(v1alpha1.NodeTerminationCondition),
		"Preserved":             string(v1alpha1.NodePreserved),
		"Unhealthy":             v1alpha1.NodeUnhealthy,
		"ScaleDown":             v1alpha1.NodeScaledDown,
		"CandidateForUpdate":    v1alpha1.CandidateForUpdate,
		"SelectedForUpdate":     v1alpha1.SelectedForUpdate,
		"DrainSuccessful":       v1alpha1.DrainSuccessful,
		"ReadyForUpdate":        v1alpha1.ReadyForUpdate,
		"UpdateSuccessful":      v1alpha1.UpdateSuccessful,
		"UpdateFailed":          v1alpha1.UpdateFailed,
		"Preserved by user.":    v1alpha1.PreservedByUser,
		"Preserved by MCM.":     v1alpha1.PreservedByMCM,
		"Preservation stopped.": v1alpha1.PreservationStopped,

		// Phases.
		"Pending":                 string(v1alpha1.MachinePending),
		"Running":                 string(v1alpha1.MachineRunning),
		"Unknown":                 string(v1alpha1.MachineUnknown),
		"CrashLoopBackOff":        string(v1alpha1.MachineCrashLoopBackOff),
		"InPlaceUpdating":         string(v1alpha1.MachineInPlaceUpdating),
		"InPlaceUpdateSuccessful": string(v1alpha1.MachineInPlaceUpdateSuccessful),
		"InPlaceUpdateFailed":     string(v1alpha1.MachineInPlaceUpdateFailed),

		// Operations.
		"Processing":  string(v1alpha1.MachineStateProcessing),
		"Successful":  string(v1alpha1.MachineStateSuccessful),
		"Create":      string(v1alpha1.MachineOperationCreate),
		"Update":      string(v1alpha1.MachineOperationUpdate),
		"DrainNode":   string(v1alpha1.MachineOperationDrainNode),
		"HealthCheck": string(v1alpha1.MachineOperationHealthCheck),
		"Delete":      string(v1alpha1.MachineOperationDelete),

		// Strategies.
		"Recreate":      string(v1alpha1.RecreateMachineDeploymentStrategyType),
		"RollingUpdate": string(v1alpha1.RollingUpdateMachineDeploymentStrategyType),
		"Auto":          string(v1alpha1.OrchestrationTypeAuto),
		"Manual":        string(v1alpha1.OrchestrationTypeManual),

		// Conditions of sets and deployments, their statuses and reasons.
		"Available":                  string(v1alpha1.MachineDeploymentAvailable),
		"Progressing":                string(v1alpha1.MachineDeploymentProgressing),
		"ReplicaFailure":             string(v1alpha1.MachineDeploymentReplicaFailure),
		"Frozen":                     string(v1alpha1.MachineDeploymentFrozen),
		"True":                       string(v1alpha1.ConditionTrue),
		"False":                      string(v1alpha1.ConditionFalse),
		"MinimumReplicasAvailable":   v1alpha1.MinimumReplicasAvailable,
		"MinimumReplicasUnavailable": v1alpha1.MinimumReplicasUnavailable,
		"NewMachineSetCreated":       v1alpha1.NewMachineSetCreated,
		"FoundNewMachineSet":         v1alpha1.FoundNewMachineSet,
		"NewMachineSetAvailable":     v1alpha1.NewMachineSetAvailable,
		"MachineSetUpdated":          v1alpha1.MachineSetUpdated,
		"ProgressDeadlineExceeded":   v1alpha1.ProgressDeadlineExceeded,
		"DeploymentPaused":           v1alpha1.DeploymentPaused,
		"DeploymentResumed":          v1alpha1.DeploymentResumed,

		// Descriptions by which the reference system finds its place in a deletion.
		"Set machine status to termination. Now, getting VM Status": v1alpha1.GetVMStatus,
		"Initiate node drain":                       v1alpha1.InitiateDrain,
		"Delete Volume Attachments":                 v1alpha1.DelVolumesAttachments,
		"Initiate VM deletion":                      v1alpha1.InitiateVMDeletion,
		"Initiate node object deletion":             v1alpha1.InitiateNodeDeletion,
		"Initiate machine object finalizer removal": v1alpha1.InitiateFinalizerRemoval,
	} {
		require.Equal(t, text, got)
	}
}

func TestConstants_TwoPlaces_Equal(t *testing.T) {
	require.EqualValues(t, "Available", v1alpha1.MachineAvailable)
	require.EqualValues(t, "Terminating", v1alpha1.MachineTerminating)
	require.EqualValues(t, "Failed", v1alpha1.MachineFailed)
	require.EqualValues(t, "Failed", v1alpha1.MachineStateFailed)
	require.EqualValues(t, "Unknown", v1alpha1.ConditionUnknown)
	require.EqualValues(t, "InPlaceUpdate", v1alpha1.NodeInPlaceUpdate)
	require.EqualValues(t, "InPlaceUpdate", v1alpha1.MachineOperationInPlaceUpdate)
	require.EqualValues(t, "InPlaceUpdate", v1alpha1.InPlaceUpdateMachineDeploymentStrategyType)
	require.EqualValues(t, "ReplicaFailure", v1alpha1.MachineSetReplicaFailure)
	require.EqualValues(t, "Frozen", v1alpha1.MachineSetFrozen)
}

func TestConstants_RetryPeriods_AsMCM(t *testing.T) {
	require.Equal(t, 200*time.Millisecond, time.Duration(v1alpha1.ConflictRetry))
	require.Equal(t, 5*time.Second, time.Duration(v1alpha1.ShortRetry))
	require.Equal(t, 3*time.Minute, time.Duration(v1alpha1.MediumRetry))
	require.Equal(t, 10*time.Minute, time.Duration(v1alpha1.LongRetry))
	require.Equal(t, 3, v1alpha1.DefaultMachinePriority)
}
