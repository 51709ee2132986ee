// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

// Decision is the next step: what to do, why the rest is not done, and when to
// ask again.
type Decision struct {
	// Action is the one next effect, or nil. The caller carries it out, observes its
	// result, and asks again at once. Every effect may be repeated and may be
	// lost; what has to be remembered is written before what depends on it.
	Action Action
	// Reason is why, as a stable word.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Holds are what is not done yet, and what stands in the way.
	Holds []machinist.Hold
	// NextCheck is when to ask again at the latest. Zero means that only a change
	// of something observed can help. It is never zero next to an action.
	NextCheck time.Time
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string {
	var actions []Action
	if d.Action != nil {
		actions = []Action{d.Action}
	}
	return line.Decision(actions, d.Reason, d.Message, d.Holds)
}

// The reasons of decisions and holds.
const (
	// ReasonNotObserved: nothing, or not enough, is known of the subject.
	ReasonNotObserved machinist.Reason = "NotObserved"
	// ReasonFrozen: the API servers were out of reach; see [Observation.Freeze].
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonNew: the machine is not guarded, and has to be before anything is done
	// for it.
	ReasonNew machinist.Reason = "New"
	// ReasonInvalid: the object cannot be acted upon as it is written.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonClassMissing: the class does not exist, or was not read.
	ReasonClassMissing machinist.Reason = "ClassMissing"
	// ReasonClassUnusable: the class or its secrets cannot be used, or its finalizer is missing.
	ReasonClassUnusable machinist.Reason = "ClassUnusable"
	// ReasonLookFirst: a VM may exist already.
	ReasonLookFirst machinist.Reason = "LookFirst"
	// ReasonNoVM: there is no VM, and that one is wanted is recorded first.
	ReasonNoVM machinist.Reason = "NoVM"
	// ReasonVMKnown: the VM's identity is written down.
	ReasonVMKnown machinist.Reason = "VMKnown"
	// ReasonProviderIDShared: another machine records the same provider ID, or that is
	// not known.
	ReasonProviderIDShared machinist.Reason = "ProviderIDShared"
	// ReasonVMUninitialized: the VM has to be initialized.
	ReasonVMUninitialized machinist.Reason = "VMUninitialized"
	// ReasonVMCreated: the VM exists; now it has to join.
	ReasonVMCreated machinist.Reason = "VMCreated"
	// ReasonStaleNode: the Node that the VM is to become belongs to another.
	ReasonStaleNode machinist.Reason = "StaleNode"
	// ReasonToken: a bootstrap token is needed, or no longer.
	ReasonToken machinist.Reason = "BootstrapToken"
	// ReasonStatusInvalid: what the status of the machine says cannot be true, and is
	// corrected.
	ReasonStatusInvalid machinist.Reason = "StatusInvalid"
	// ReasonPartlyIgnored: a part of the node template, or the name of the Node, cannot
	// be written, and is left out.
	ReasonPartlyIgnored machinist.Reason = "PartlyIgnored"
	// ReasonPreserved: the machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationStopped: the machine is no longer preserved.
	ReasonPreservationStopped machinist.Reason = "PreservationStopped"
	// ReasonInPlaceUpdate: the Node is on its way through an update in place.
	ReasonInPlaceUpdate machinist.Reason = "InPlaceUpdate"
	// ReasonUpdateSucceeded: the Node says that it is updated.
	ReasonUpdateSucceeded machinist.Reason = "UpdateSucceeded"
	// ReasonUpdateFailed: the Node says that it could not be updated.
	ReasonUpdateFailed machinist.Reason = "UpdateFailed"
	// ReasonUpdateTimeout: the update in place took too long.
	ReasonUpdateTimeout machinist.Reason = "UpdateTimeout"
	// ReasonDetaching: volumes are still attached to the Node.
	ReasonDetaching machinist.Reason = "Detaching"
	// ReasonPermit: the right to replace a machine is taken, or given back.
	ReasonPermit machinist.Reason = "Permit"
	// ReasonVMVanished: a VM that was known is no longer found.
	ReasonVMVanished machinist.Reason = "VMVanished"
	// ReasonVMNotSettled: the provider says that there is no VM, too early to be
	// believed.
	ReasonVMNotSettled machinist.Reason = "VMNotSettled"
	// ReasonProviderFailed: a driver call failed and is tried again later.
	ReasonProviderFailed machinist.Reason = "ProviderFailed"
	// ReasonCreationTimeout: the machine took too long to join.
	ReasonCreationTimeout machinist.Reason = "CreationTimeout"
	// ReasonWaitingForNode: the Node has not joined yet.
	ReasonWaitingForNode machinist.Reason = "WaitingForNode"
	// ReasonTargetUnreachable: the API server of the Nodes does not answer.
	ReasonTargetUnreachable machinist.Reason = "TargetUnreachable"
	// ReasonNodeOutOfSync: the Node lacks what the machine wants it to have.
	ReasonNodeOutOfSync machinist.Reason = "NodeOutOfSync"
	// ReasonNodeReady: the Node is healthy.
	ReasonNodeReady machinist.Reason = "NodeReady"
	// ReasonNodeUnhealthy: the Node is not healthy.
	ReasonNodeUnhealthy machinist.Reason = "NodeUnhealthy"
	// ReasonNodeGone: the Node does not exist any more.
	ReasonNodeGone machinist.Reason = "NodeGone"
	// ReasonCriticalComponents: components that the Node needs are not ready.
	ReasonCriticalComponents machinist.Reason = "CriticalComponentsNotReady"
	// ReasonConditionsChanged: the conditions of the Node are copied.
	ReasonConditionsChanged machinist.Reason = "ConditionsChanged"
	// ReasonHealthTimeout: the machine was unhealthy for too long.
	ReasonHealthTimeout machinist.Reason = "HealthTimeout"
	// ReasonReplacementLimit: other machines are being replaced.
	ReasonReplacementLimit machinist.Reason = "ReplacementLimit"
	// ReasonFailed: the machine waits for its owner to replace it.
	ReasonFailed machinist.Reason = "Failed"
	// ReasonAvailable: the VM exists and there is no cluster to join.
	ReasonAvailable machinist.Reason = "Available"
	// ReasonDeleting: the machine or its Node is being deleted.
	ReasonDeleting machinist.Reason = "Deleting"
	// ReasonDraining: the Node is being drained.
	ReasonDraining machinist.Reason = "Draining"
	// ReasonDrained: nothing is left to drain.
	ReasonDrained machinist.Reason = "Drained"
	// ReasonVMGone: the VM is deleted.
	ReasonVMGone machinist.Reason = "VMGone"
	// ReasonReleased: the finalizer is removed, as nothing needs the object.
	ReasonReleased machinist.Reason = "Released"
	// ReasonReferenced: something refers to the object.
	ReasonReferenced machinist.Reason = "Referenced"
)
