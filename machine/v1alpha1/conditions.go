// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Condition types that controllers of the group put on Nodes.
const (
	// NodeTerminationCondition is True while the Machine of the Node is being
	// deleted; its reason is [NodeUnhealthy] or [NodeScaledDown].
	NodeTerminationCondition corev1.NodeConditionType = "Terminating"
	// NodeInPlaceUpdate is True during an in-place update; its reason is the step.
	NodeInPlaceUpdate corev1.NodeConditionType = "InPlaceUpdate"
	// NodePreserved is True while the Machine of the Node is preserved.
	NodePreserved corev1.NodeConditionType = "Preserved"
)

// MachineValid is the condition type that stands in the status of a Machine, next
// to the conditions of its Node, as long as something is wrong with what is
// written in the Machine: it is False then, with the reason Invalid, which keeps a
// VM from being made, or PartlyIgnored.
const MachineValid corev1.NodeConditionType = "Valid"

// Reasons of [NodeTerminationCondition].
const (
	// NodeUnhealthy says that the Machine had failed.
	NodeUnhealthy = "Unhealthy"
	// NodeScaledDown says that the Machine was healthy.
	NodeScaledDown = "ScaleDown"
)

// Reasons of [NodeInPlaceUpdate], in the order of the protocol.
const (
	// CandidateForUpdate says that the Node waits to be selected.
	CandidateForUpdate = "CandidateForUpdate"
	// SelectedForUpdate says that the Node is to be drained.
	SelectedForUpdate = "SelectedForUpdate"
	// DrainSuccessful says that the Node is drained.
	DrainSuccessful = "DrainSuccessful"
	// ReadyForUpdate says that the agent on the Node may begin.
	ReadyForUpdate = "ReadyForUpdate"
	// UpdateSuccessful says that the update succeeded.
	UpdateSuccessful = "UpdateSuccessful"
	// UpdateFailed says that the update failed.
	UpdateFailed = "UpdateFailed"
)

// Reasons of [NodePreserved].
const (
	// PreservedByUser says that an annotation asked for it.
	PreservedByUser = "Preserved by user."
	// PreservedByMCM says that the set controller asked for it.
	PreservedByMCM = "Preserved by MCM."
	// PreservationStopped says that the preservation is over.
	PreservationStopped = "Preservation stopped."
)

// Reasons of the conditions of MachineDeployments and MachineSets.
const (
	// MinimumReplicasAvailable says that a deployment has its minimum availability.
	MinimumReplicasAvailable = "MinimumReplicasAvailable"
	// MinimumReplicasUnavailable says that it has not.
	MinimumReplicasUnavailable = "MinimumReplicasUnavailable"
	// NewMachineSetCreated says that the set of a new generation was created.
	NewMachineSetCreated = "NewMachineSetCreated"
	// FoundNewMachineSet says that it existed already.
	FoundNewMachineSet = "FoundNewMachineSet"
	// MachineSetCreateError says that it could not be created.
	MachineSetCreateError = "MachineSetCreateError"
	// MachineSetUpdated says that a roll-out makes progress.
	MachineSetUpdated = "MachineSetUpdated"
	// NewMachineSetAvailable says that a roll-out is complete.
	NewMachineSetAvailable = "NewMachineSetAvailable"
	// ProgressDeadlineExceeded says that a roll-out stands still for too long.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// DeploymentPaused says that roll-outs are paused.
	DeploymentPaused = "DeploymentPaused"
	// DeploymentResumed says that they are no longer paused.
	DeploymentResumed = "DeploymentResumed"
	// FailedCreate says that a set could not create a machine.
	FailedCreate = "FailedCreate"
	// FailedDelete says that a set could not delete a machine.
	FailedDelete = "FailedDelete"
	// OverShootingReplicaCount says that a set has far too many machines.
	OverShootingReplicaCount = "OverShootingReplicaCount"
	// APIServerUnreachable says that an API server does not answer.
	APIServerUnreachable = "APIServerUnreachable"
	// MachineDeploymentStateSync says that a deployment is frozen because one of
	// its sets is.
	MachineDeploymentStateSync = "MachineDeploymentStateSync"
)
