// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Condition types that controllers of the group put on Nodes.
const (
	// NodeTerminationCondition is True while the Machine of the Node is being deleted. Its reason
	// is [NodeUnhealthy] or [NodeScaledDown].
	NodeTerminationCondition corev1.NodeConditionType = "Terminating"
	// NodeInPlaceUpdate is True during an in-place update. Its reason is the step.
	NodeInPlaceUpdate corev1.NodeConditionType = "InPlaceUpdate"
	// NodePreserved is True while the Machine of the Node is preserved.
	NodePreserved corev1.NodeConditionType = "Preserved"
)

// MachineValid is a condition type in the status of a Machine, next to the conditions of its Node.
// It is False while the object has invalid fields, and missing otherwise. With the reason Invalid
// no VM is created. With the reason PartlyIgnored the invalid fields are ignored.
const MachineValid corev1.NodeConditionType = "Valid"

// MachineVMRequested is a condition type in the status of a Machine whose VM could not be requested
// at once. It is False if no VM was requested, and Unknown if the request was refused for a cause
// that another machine of the class would share. The reason and the message name the cause. It is
// True afterwards, until the Node has joined, and its time is when the creation timeout began.
const MachineVMRequested corev1.NodeConditionType = "VMRequested"

// MachineWaiting is a condition type in the status of a Machine. It is True while the machine waits, with
// the reason of the wait. The message is the reason and the object that is waited for, and the time is when
// the wait began.
const MachineWaiting corev1.NodeConditionType = "Waiting"

// Reasons of [NodeTerminationCondition].
const (
	// NodeUnhealthy means that the Machine had failed.
	NodeUnhealthy = "Unhealthy"
	// NodeScaledDown means that the Machine was healthy.
	NodeScaledDown = "ScaleDown"
)

// Reasons of [NodeInPlaceUpdate], in the order of the protocol.
const (
	// CandidateForUpdate means that the Node waits to be selected.
	CandidateForUpdate = "CandidateForUpdate"
	// SelectedForUpdate means that the Node is being drained.
	SelectedForUpdate = "SelectedForUpdate"
	// DrainSuccessful means that the Node is drained.
	DrainSuccessful = "DrainSuccessful"
	// ReadyForUpdate means that the agent on the Node may begin.
	ReadyForUpdate = "ReadyForUpdate"
	// UpdateSuccessful means that the update has succeeded.
	UpdateSuccessful = "UpdateSuccessful"
	// UpdateFailed means that the update has failed.
	UpdateFailed = "UpdateFailed"
)

// Reasons of [NodePreserved].
const (
	// PreservedByUser means that a user preserved the Machine with an annotation.
	PreservedByUser = "Preserved by user."
	// PreservedByMCM means that the controller of the MachineSet preserved the Machine.
	PreservedByMCM = "Preserved by MCM."
	// PreservationStopped means that the Machine is no longer preserved.
	PreservationStopped = "Preservation stopped."
)

// The first sentences of the message of NodePreserved for the Node of a Failed Machine.
const (
	// PreservedNodeDrainSuccessful means that the Node is drained.
	PreservedNodeDrainSuccessful = "Preserved node drained successfully."
	// PreservedNodeDrainUnsuccessful means that the drain of the Node failed.
	PreservedNodeDrainUnsuccessful = "Preserved node could not be drained."
)

// Reasons of the conditions of MachineDeployments and MachineSets.
const (
	// MinimumReplicasAvailable means that a deployment has its minimum of available machines.
	MinimumReplicasAvailable = "MinimumReplicasAvailable"
	// MinimumReplicasUnavailable means that it has fewer.
	MinimumReplicasUnavailable = "MinimumReplicasUnavailable"
	// NewMachineSetCreated means that the MachineSet of the newest template was created.
	NewMachineSetCreated = "NewMachineSetCreated"
	// FoundNewMachineSet means that it existed already.
	FoundNewMachineSet = "FoundNewMachineSet"
	// MachineSetCreateError means that its creation failed.
	MachineSetCreateError = "MachineSetCreateError"
	// MachineSetUpdated means that a rollout makes progress.
	MachineSetUpdated = "MachineSetUpdated"
	// NewMachineSetAvailable means that a rollout is complete.
	NewMachineSetAvailable = "NewMachineSetAvailable"
	// ProgressDeadlineExceeded means that a rollout made no progress for the progress deadline.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// DeploymentPaused means that rollouts are paused.
	DeploymentPaused = "DeploymentPaused"
	// DeploymentResumed means that rollouts are no longer paused.
	DeploymentResumed = "DeploymentResumed"
	// FailedCreate means that a MachineSet failed to create a machine.
	FailedCreate = "FailedCreate"
	// FailedDelete means that a MachineSet failed to delete a machine.
	FailedDelete = "FailedDelete"
	// OverShootingReplicaCount means that a MachineSet has far more machines than replicas.
	OverShootingReplicaCount = "OverShootingReplicaCount"
	// APIServerUnreachable means that an API server does not answer.
	APIServerUnreachable = "APIServerUnreachable"
	// MachineDeploymentStateSync means that a deployment is frozen because one of its MachineSets
	// is frozen.
	MachineDeploymentStateSync = "MachineDeploymentStateSync"
)
