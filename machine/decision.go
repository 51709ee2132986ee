// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

// Decision is the next step for a machine: what to do, what is not done yet, and when to decide
// again.
type Decision struct {
	// Action is the one next effect, or nil. The caller carries it out, observes its result, and
	// decides again at once. Each action may be repeated and may be lost. The actions are
	// [machinist.Update] of the machine or its Node, [machinist.Delete] of these or of a bootstrap
	// token, [machinist.Refresh] of the Node, and the types of this package. Before the deletion of a
	// Node, the caller removes its finalizer with [ReleaseNode].
	Action machinist.Action
	// Reason is why.
	Reason machinist.Reason
	// Message is why, for people. Its text may change.
	Message string
	// Holds are what is not done yet, and why.
	Holds []machinist.Hold
	// NextCheck is when to decide again at the latest. Zero means when an observed object changes.
	// It is not zero for a decision with an action.
	NextCheck time.Time
}

// String returns the decision in one line.
func (d Decision) String() string {
	var actions []machinist.Action
	if d.Action != nil {
		actions = []machinist.Action{d.Action}
	}
	return line.Decision(actions, d.Reason, d.Message, d.Holds)
}

// The reasons of decisions and holds.
const (
	// ReasonNotObserved means that the object, or something that the step depends on, was not read.
	ReasonNotObserved machinist.Reason = "NotObserved"
	// ReasonFrozen means that an API server does not answer: see [Observation.Freeze].
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonNew means that the machine has no finalizer yet.
	ReasonNew machinist.Reason = "New"
	// ReasonInvalid means that fields of the object are invalid.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonClassMissing means that the class does not exist, or was not read.
	ReasonClassMissing machinist.Reason = "ClassMissing"
	// ReasonClassUnusable means that the class or its secrets are invalid, or that its finalizer is
	// missing.
	ReasonClassUnusable machinist.Reason = "ClassUnusable"
	// ReasonLookFirst means that the VM or the Node is read before the next step.
	ReasonLookFirst machinist.Reason = "LookFirst"
	// ReasonNoVM means that there is no VM.
	ReasonNoVM machinist.Reason = "NoVM"
	// ReasonVMKnown means that the identity of the VM is known and is recorded.
	ReasonVMKnown machinist.Reason = "VMKnown"
	// ReasonProviderIDShared means that another machine has the same provider ID, or that this is
	// not known.
	ReasonProviderIDShared machinist.Reason = "ProviderIDShared"
	// ReasonVMUninitialized means that the VM is not initialized.
	ReasonVMUninitialized machinist.Reason = "VMUninitialized"
	// ReasonVMCreated means that the VM exists and its Node has to join.
	ReasonVMCreated machinist.Reason = "VMCreated"
	// ReasonStaleNode means that the Node with the name of the VM is that of another VM.
	ReasonStaleNode machinist.Reason = "StaleNode"
	// ReasonNodeUnproven means that the Node which the machine names is not that of the machine, or
	// that the provider has not confirmed it yet.
	ReasonNodeUnproven machinist.Reason = "NodeUnproven"
	// ReasonToken means that a bootstrap token is needed, or is no longer needed.
	ReasonToken machinist.Reason = "BootstrapToken"
	// ReasonStatusInvalid means that the status of the machine is impossible and is corrected.
	ReasonStatusInvalid machinist.Reason = "StatusInvalid"
	// ReasonPartlyIgnored means that a part of the node template, or the name of the Node, is
	// invalid and is ignored.
	ReasonPartlyIgnored machinist.Reason = "PartlyIgnored"
	// ReasonPreserved means that the machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationStopped means that the machine is no longer preserved.
	ReasonPreservationStopped machinist.Reason = "PreservationStopped"
	// ReasonInPlaceUpdate means that the Node takes part in an in-place update.
	ReasonInPlaceUpdate machinist.Reason = "InPlaceUpdate"
	// ReasonUpdateSucceeded means that the label of the Node says that it is updated.
	ReasonUpdateSucceeded machinist.Reason = "UpdateSucceeded"
	// ReasonUpdateFailed means that the label of the Node says that its update has failed.
	ReasonUpdateFailed machinist.Reason = "UpdateFailed"
	// ReasonUpdateTimeout means that the in-place update took too long.
	ReasonUpdateTimeout machinist.Reason = "UpdateTimeout"
	// ReasonDetaching means that volumes are attached to the Node.
	ReasonDetaching machinist.Reason = "Detaching"
	// ReasonPermit means that a permit to replace the machine is taken or returned.
	ReasonPermit machinist.Reason = "Permit"
	// ReasonVMVanished means that the provider does not find a VM that it had.
	ReasonVMVanished machinist.Reason = "VMVanished"
	// ReasonVMNotSettled means that the provider has no VM, and may not list a new VM yet.
	ReasonVMNotSettled machinist.Reason = "VMNotSettled"
	// ReasonProviderFailed means that a driver call failed and is retried later.
	ReasonProviderFailed machinist.Reason = "ProviderFailed"
	// ReasonCallAbandoned means that a driver call for the machine has not ended although its time is
	// over. No other call is made for the machine until it ends.
	ReasonCallAbandoned machinist.Reason = "CallAbandoned"
	// ReasonCreationTimeout means that the Node of the machine took too long to join.
	ReasonCreationTimeout machinist.Reason = "CreationTimeout"
	// ReasonWaitingForNode means that the Node has not joined yet.
	ReasonWaitingForNode machinist.Reason = "WaitingForNode"
	// ReasonTargetUnreachable means that the API server of the Nodes does not answer.
	ReasonTargetUnreachable machinist.Reason = "TargetUnreachable"
	// ReasonNodeOutOfSync means that the Node differs from the template of the machine.
	ReasonNodeOutOfSync machinist.Reason = "NodeOutOfSync"
	// ReasonNodeReady means that the Node is healthy.
	ReasonNodeReady machinist.Reason = "NodeReady"
	// ReasonNodeUnhealthy means that the Node is unhealthy.
	ReasonNodeUnhealthy machinist.Reason = "NodeUnhealthy"
	// ReasonNodeGone means that the Node does not exist.
	ReasonNodeGone machinist.Reason = "NodeGone"
	// ReasonCriticalComponents means that critical components of the Node are not ready.
	ReasonCriticalComponents machinist.Reason = "CriticalComponentsNotReady"
	// ReasonConditionsChanged means that the conditions of the Node have changed and are copied.
	ReasonConditionsChanged machinist.Reason = "ConditionsChanged"
	// ReasonHealthTimeout means that the machine was unhealthy for too long.
	ReasonHealthTimeout machinist.Reason = "HealthTimeout"
	// ReasonReplacementLimit means that too many machines of the group are being replaced.
	ReasonReplacementLimit machinist.Reason = "ReplacementLimit"
	// ReasonFailed means that the machine waits for its MachineSet to replace it.
	ReasonFailed machinist.Reason = "Failed"
	// ReasonAvailable means that the VM exists, and that there is no target cluster.
	ReasonAvailable machinist.Reason = "Available"
	// ReasonDeleting means that the machine or its Node is being deleted.
	ReasonDeleting machinist.Reason = "Deleting"
	// ReasonDraining means that the Node is being drained.
	ReasonDraining machinist.Reason = "Draining"
	// ReasonDrained means that the drain has ended.
	ReasonDrained machinist.Reason = "Drained"
	// ReasonVMGone means that the VM is deleted.
	ReasonVMGone machinist.Reason = "VMGone"
	// ReasonReleased means that the object is not needed, and its finalizer is removed.
	ReasonReleased machinist.Reason = "Released"
	// ReasonReferenced means that another object refers to the object.
	ReasonReferenced machinist.Reason = "Referenced"
)
