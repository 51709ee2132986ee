// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizers.
const (
	// MCMFinalizerName guards Machines, MachineClasses, MachineSets and
	// MachineDeployments until what they stand for is gone.
	MCMFinalizerName = "machine.sapcloud.io/machine-controller-manager"
	// MCFinalizerName guards Secrets that a MachineClass refers to.
	MCFinalizerName = "machine.sapcloud.io/machine-controller"
	// NodeFinalizerName guards Nodes, so that deleting a Node deletes its Machine.
	NodeFinalizerName = "node.machine.sapcloud.io/machine-controller"
)

// MachineClassKind is the kind that spec.class has to name.
const MachineClassKind = "MachineClass"

// Labels of Machines.
const (
	// NodeLabelKey names the Node of a Machine.
	NodeLabelKey = "node"
	// LabelKeyMachineDeploymentName names the MachineDeployment of a Machine; the
	// users of MachineDeployments put it into the template.
	LabelKeyMachineDeploymentName = "name"
	// LabelKeyForceDeletion, if its value parses as true, forces the drain and
	// the deletion of a Machine.
	LabelKeyForceDeletion = "force-deletion"
	// LabelKeyForceDrain, if its value is "True", forces drains other than that
	// of a deletion.
	LabelKeyForceDrain = "force-drain"
)

// Annotations of Machines.
const (
	// MachinePriority orders scale-down: lower goes first. Absent means
	// [DefaultMachinePriority].
	MachinePriority = "machinepriority.machine.sapcloud.io"
	// MarkedForDeletionTime is when an autoscaler marked the Machine, as RFC 3339.
	MarkedForDeletionTime = "machine.sapcloud.io/marked-for-deletion-time"
	// EffectiveCreationTimeout overrides every other creation timeout, as a Go
	// duration. It is copied from MachineDeployment to MachineSet to Machine.
	EffectiveCreationTimeout = "node.machine.sapcloud.io/effective-creation-timeout"
	// MachineJoinDuration is how long the Machine took to join, as a Go duration.
	MachineJoinDuration = "node.machine.sapcloud.io/machine-join-duration"
	// PreserveMachineAnnotationKey asks to preserve a Machine; it may stand on
	// the Machine or on its Node.
	PreserveMachineAnnotationKey = "node.machine.sapcloud.io/preserve"
	// LastAppliedNodePreserveValueAnnotationKey is the last value of
	// [PreserveMachineAnnotationKey] on the Node that was acted on.
	LastAppliedNodePreserveValueAnnotationKey = "node.machine.sapcloud.io/last-applied-node-preserve-value"
)

// DefaultMachinePriority is the priority of a Machine that has none.
const DefaultMachinePriority = 3

// Values of [PreserveMachineAnnotationKey].
const (
	// PreserveMachineAnnotationValueNow preserves at once.
	PreserveMachineAnnotationValueNow = "now"
	// PreserveMachineAnnotationValueWhenFailed preserves when the Machine fails.
	PreserveMachineAnnotationValueWhenFailed = "when-failed"
	// PreserveMachineAnnotationValuePreservedByMCM is written by the set
	// controller when it preserves a Failed Machine by itself.
	PreserveMachineAnnotationValuePreservedByMCM = "auto-preserved"
	// PreserveMachineAnnotationValueFalse stops a preservation.
	PreserveMachineAnnotationValueFalse = "false"
)

// Labels of Nodes.
const (
	// MachineNameLabelKey on a Node names its Machine.
	MachineNameLabelKey = "node.gardener.cloud/machine-name"
	// LabelKeyNodeCandidateForUpdate marks Nodes that an in-place update waits for.
	LabelKeyNodeCandidateForUpdate = "node.machine.sapcloud.io/candidate-for-update"
	// LabelValueNodeCandidateForReplacement is the value of
	// [LabelKeyNodeCandidateForUpdate] on a Node whose Machine waits to be selected
	// for a replacement, not for an update in place. The reference system does not
	// have it.
	LabelValueNodeCandidateForReplacement = "replace"
	// LabelKeyNodeSelectedForUpdate marks Nodes that are being updated in place.
	LabelKeyNodeSelectedForUpdate = "node.machine.sapcloud.io/selected-for-update"
	// LabelKeyNodeUpdateResult is the result of an in-place update, written by
	// the agent on the Node, and by the deployment controller on the Machine.
	LabelKeyNodeUpdateResult = "node.machine.sapcloud.io/update-result"
	// LabelValueNodeUpdateSuccessful is the result of an update that succeeded.
	LabelValueNodeUpdateSuccessful = "successful"
	// LabelValueNodeUpdateFailed is the result of an update that failed.
	LabelValueNodeUpdateFailed = "failed"
)

// Annotations of Nodes.
const (
	// LastAppliedALTAnnotation holds the node template that was last applied, as
	// JSON: the base of the next three-way merge.
	LastAppliedALTAnnotation = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	// LastAppliedVirtualCapacityAnnotation holds the virtual capacity that was
	// last applied, as JSON.
	LastAppliedVirtualCapacityAnnotation = "node.machine.sapcloud.io/last-applied-virtual-capacity"
	// NotManagedByMCM marks Nodes that no Machine stands for.
	NotManagedByMCM = "node.machine.sapcloud.io/not-managed-by-mcm"
	// AnnotationKeyMachineUpdateFailedReason says why an in-place update failed.
	AnnotationKeyMachineUpdateFailedReason = "node.machine.sapcloud.io/update-failed-reason"
	// ClusterAutoscalerScaleDownDisabledAnnotationKey keeps the autoscaler from
	// removing a Node.
	ClusterAutoscalerScaleDownDisabledAnnotationKey = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey says that a controller
	// of this group wrote the former, and may take it back.
	ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
)

// Taints of Nodes.
const (
	// TaintNodeCriticalComponentsNotReady keeps a Pending Machine from Running.
	// Its effect is NoSchedule.
	TaintNodeCriticalComponentsNotReady = "node.gardener.cloud/critical-components-not-ready"
	// TaintNodePreserved is on the Node of a preserved Failed Machine. Its effect
	// is NoSchedule.
	TaintNodePreserved = "node.machine.sapcloud.io/preserved"
	// PreferNoScheduleKey is the taint of the Nodes of old sets, with the value
	// "True" and the effect PreferNoSchedule, and the annotation of an old set
	// whose Nodes have it.
	PreferNoScheduleKey = "deployment.machine.sapcloud.io/prefer-no-schedule"
)

// Labels and annotations of MachineSets and MachineDeployments. Those that
// begin with deployment.kubernetes.io stand on MachineSets.
const (
	// DefaultMachineDeploymentUniqueLabelKey tells the machines of the sets of
	// one deployment apart.
	DefaultMachineDeploymentUniqueLabelKey = "machine-template-hash"
	// RevisionAnnotation is the revision of a set, and of its deployment.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation lists the former revisions of a set.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation is the size of the deployment when the set was
	// last sized.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation is that size plus the surge.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
	// TriggerDeletionByMCM on a MachineDeployment lists the Machines that an
	// autoscaler wants gone: name~RFC3339, separated by commas. With the value "true"
	// on a Node it deletes the Machine of the Node.
	TriggerDeletionByMCM = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	// LastDeploymentReplicaChangeByScalerTime is when an autoscaler last changed
	// the replicas of a MachineDeployment, as RFC 3339.
	LastDeploymentReplicaChangeByScalerTime = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
	// LabelKeyMachineSetScaleUpDisabled on a set keeps it from creating machines.
	LabelKeyMachineSetScaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"
	// FreezeLabelKey on a set, with the value "True", keeps it from creating
	// machines.
	FreezeLabelKey = "freeze"
	// UnfreezeAnnotation asks to unfreeze a set or a deployment, with any value.
	UnfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"
	// ReplaceUntilAnnotation on a MachineDeployment, or on a MachineSet without one, has
	// its machines replaced although many failed at once, until the time that it tells
	// as RFC 3339, at most 24 hours ahead.
	ReplaceUntilAnnotation = "safety.machine.sapcloud.io/replace-until"
)
