// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Finalizers.
const (
	// MCMFinalizerName keeps a Machine until its VM and Node are deleted, a MachineClass while a
	// Machine refers to it, and a MachineSet or MachineDeployment until its machines are deleted.
	MCMFinalizerName = "machine.sapcloud.io/machine-controller-manager"
	// MCFinalizerName keeps a Secret while a MachineClass refers to it.
	MCFinalizerName = "machine.sapcloud.io/machine-controller"
	// NodeFinalizerName keeps a Node until its Machine is deleted. Deleting the Node deletes the
	// Machine.
	NodeFinalizerName = "node.machine.sapcloud.io/machine-controller"
)

// Kinds.
const (
	MachineKind    = "Machine"
	MachineSetKind = "MachineSet"
	// MachineClassKind is the only valid kind in spec.class of a Machine.
	MachineClassKind = "MachineClass"
)

// Keys of the Secret of a bootstrap token.
const (
	// TokenOwnerLabel is the label with the UID of its machine. Two machines do not share a token. In MCM
	// the token ID is derived from three letters of the name of the machine.
	TokenOwnerLabel = "machine.sapcloud.io/machine-uid"
	// TokenMachineAnnotation is the annotation with namespace and name of the machine, for people.
	TokenMachineAnnotation = "machine.sapcloud.io/machine"
)

// Labels of Machines.
const (
	// NodeLabelKey is the name of the Node of a Machine.
	NodeLabelKey = "node"
	// LabelKeyMachineDeploymentName is the name of the MachineDeployment of a Machine. Users set it
	// in the template.
	LabelKeyMachineDeploymentName = "name"
	// LabelKeyForceDeletion forces the drain and the deletion of a Machine if its value parses as
	// true.
	LabelKeyForceDeletion = "force-deletion"
	// LabelKeyForceDrain forces drains other than that of a deletion if its value is "True".
	LabelKeyForceDrain = "force-drain"
)

// Annotations of Machines.
const (
	// MachinePriority orders scale-down: the lowest number is deleted first. Without it the
	// priority is [DefaultMachinePriority].
	MachinePriority = "machinepriority.machine.sapcloud.io"
	// MarkedForDeletionTime is when an autoscaler marked the Machine, as RFC 3339.
	MarkedForDeletionTime = "machine.sapcloud.io/marked-for-deletion-time"
	// AnnotationKeyMachineEffectiveCreationTimeout overrides all other creation timeouts. It is a
	// Go duration, and is copied from MachineDeployment to MachineSet to Machine.
	AnnotationKeyMachineEffectiveCreationTimeout = "node.machine.sapcloud.io/effective-creation-timeout"
	// AnnotationKeyMachineJoinDuration is how long the Machine took to join, as a Go duration. MCM
	// writes it, this module does not.
	AnnotationKeyMachineJoinDuration = "node.machine.sapcloud.io/machine-join-duration"
	// PreserveMachineAnnotationKey asks to preserve a Machine. It may be on the Machine or on its
	// Node.
	PreserveMachineAnnotationKey = "node.machine.sapcloud.io/preserve"
	// LastAppliedNodePreserveValueAnnotationKey is the value of [PreserveMachineAnnotationKey] on
	// the Node that was applied last.
	LastAppliedNodePreserveValueAnnotationKey = "node.machine.sapcloud.io/last-applied-node-preserve-value"
)

// DefaultMachinePriority is the priority of a Machine without [MachinePriority].
const DefaultMachinePriority = 3

// Values of [PreserveMachineAnnotationKey].
const (
	// PreserveMachineAnnotationValueNow preserves the Machine now.
	PreserveMachineAnnotationValueNow = "now"
	// PreserveMachineAnnotationValueWhenFailed preserves the Machine when it fails.
	PreserveMachineAnnotationValueWhenFailed = "when-failed"
	// PreserveMachineAnnotationValuePreservedByMCM is written by the controller of the MachineSet
	// when it preserves a Failed Machine.
	PreserveMachineAnnotationValuePreservedByMCM = "auto-preserved"
	// PreserveMachineAnnotationValueFalse ends the preservation.
	PreserveMachineAnnotationValueFalse = "false"
)

// Labels of Nodes.
const (
	// MachineNameLabelKey is the name of the Machine of a Node.
	MachineNameLabelKey = "node.gardener.cloud/machine-name"
	// LabelKeyNodeCandidateForUpdate marks the Nodes that wait for an in-place update.
	LabelKeyNodeCandidateForUpdate = "node.machine.sapcloud.io/candidate-for-update"
	// LabelValueNodeCandidateForReplacement is the value of [LabelKeyNodeCandidateForUpdate] on a
	// Node whose Machine waits to be selected for a replacement, and not for an in-place update.
	// MCM does not have it.
	LabelValueNodeCandidateForReplacement = "replace"
	// LabelKeyNodeSelectedForUpdate marks the Nodes that are being updated in place.
	LabelKeyNodeSelectedForUpdate = "node.machine.sapcloud.io/selected-for-update"
	// LabelKeyNodeUpdateResult is the result of an in-place update. The agent on the Node writes it
	// to the Node, and the controller of the MachineDeployment to the Machine.
	LabelKeyNodeUpdateResult = "node.machine.sapcloud.io/update-result"
	// LabelValueNodeUpdateSuccessful means that the update has succeeded.
	LabelValueNodeUpdateSuccessful = "successful"
	// LabelValueNodeUpdateFailed means that the update has failed.
	LabelValueNodeUpdateFailed = "failed"
)

// Annotations of Nodes.
const (
	// LastAppliedALTAnnotation is the node template that was applied last, as JSON. It is the base
	// of the next three-way merge.
	LastAppliedALTAnnotation = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	// LastAppliedVirtualCapacityAnnotation is the virtual capacity that was applied last, as JSON.
	LastAppliedVirtualCapacityAnnotation = "node.machine.sapcloud.io/last-applied-virtual-capacity"
	// MachineUIDAnnotation is the UID of the Machine of a Node. It is written after the provider has
	// named the VM of the Machine. MCM does not have it.
	MachineUIDAnnotation = "node.machine.sapcloud.io/machine-uid"
	// NotManagedByMCM marks Nodes without a Machine.
	NotManagedByMCM = "node.machine.sapcloud.io/not-managed-by-mcm"
	// AnnotationKeyMachineUpdateFailedReason is why an in-place update failed.
	AnnotationKeyMachineUpdateFailedReason = "node.machine.sapcloud.io/update-failed-reason"
	// ClusterAutoscalerScaleDownDisabledAnnotationKey keeps the autoscaler from removing a Node.
	ClusterAutoscalerScaleDownDisabledAnnotationKey = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey means that a controller of this group
	// wrote [ClusterAutoscalerScaleDownDisabledAnnotationKey] and may remove it.
	ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
)

// Taints of Nodes.
const (
	// TaintNodeCriticalComponentsNotReady keeps a Machine in phase Pending. Its effect is
	// NoSchedule.
	TaintNodeCriticalComponentsNotReady = "node.gardener.cloud/critical-components-not-ready"
	// TaintNodePreserved is on the Node of a preserved Failed Machine. Its effect is NoSchedule.
	TaintNodePreserved = "node.machine.sapcloud.io/preserved"
	// PreferNoScheduleKey is the taint of the Nodes of old MachineSets, with the value "True" and
	// the effect PreferNoSchedule. It is also an annotation of the MachineSets whose Nodes have the
	// taint.
	PreferNoScheduleKey = "deployment.machine.sapcloud.io/prefer-no-schedule"
)

// Labels and annotations of MachineSets and MachineDeployments. Those that
// begin with deployment.kubernetes.io are those of MachineSets.
const (
	// DefaultMachineDeploymentUniqueLabelKey distinguishes the machines of the MachineSets of one
	// deployment.
	DefaultMachineDeploymentUniqueLabelKey = "machine-template-hash"
	// RevisionAnnotation is the revision of a MachineSet and of its deployment.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation is the list of former revisions of a MachineSet.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation is the replicas of the deployment when the MachineSet was last
	// scaled.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation is these replicas plus the surge.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
	// TriggerDeletionByMCM on a MachineDeployment is the list of Machines that an autoscaler asks
	// to delete: name~RFC3339, separated by commas. With the value "true" on a Node it deletes the
	// Machine of the Node.
	TriggerDeletionByMCM = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	// LastDeploymentReplicaChangeByScalerTime is when an autoscaler last changed
	// the replicas of a MachineDeployment, as RFC 3339.
	LastDeploymentReplicaChangeByScalerTime = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
	// LabelKeyMachineSetScaleUpDisabled on a MachineSet keeps it from creating machines.
	LabelKeyMachineSetScaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"
	// ShardLabelKey names the shard of a Machine, MachineSet, MachineDeployment, MachineClass or Node.
	// The controllers of a shard act on its objects only, and read all. An object without the label is
	// in the shard without a name.
	ShardLabelKey = "machinist.dev/shard"
	// FreezeLabelKey on a MachineSet, with the value "True", keeps it from creating machines.
	FreezeLabelKey = "freeze"
	// RetryNowAnnotation, with any value, on a Machine, MachineSet or MachineDeployment ends its pause
	// before the next attempt; the controllers remove it when they acted on it.
	RetryNowAnnotation = "machine.sapcloud.io/retry-now"
	// UnfreezeAnnotation on a MachineSet or MachineDeployment ends its freeze, with any value.
	UnfreezeAnnotation = "safety.machine.sapcloud.io/unfreeze"
	// ReplaceUntilAnnotation on a MachineDeployment, or on a MachineSet without a deployment,
	// permits the replacement of its machines although many failed at once. The value is the end in
	// RFC 3339, at most 24 hours ahead.
	ReplaceUntilAnnotation = "safety.machine.sapcloud.io/replace-until"
)
