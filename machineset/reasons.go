// SPDX-License-Identifier: Apache-2.0

package machineset

import "github.com/machinist-dev/machinist"

// Reasons of actions.
const (
	// ReasonTooFew is the reason of a creation: there are fewer machines than desired.
	ReasonTooFew machinist.Reason = "TooFewMachines"
	// ReasonTooMany is the reason of a deletion: there are more machines than desired.
	ReasonTooMany machinist.Reason = "TooManyMachines"
	// ReasonMarked is the reason of a deletion: an autoscaler named the machine.
	ReasonMarked machinist.Reason = "MarkedForDeletion"
	// ReasonFailed is the reason of a deletion: the machine is Failed and is replaced.
	ReasonFailed machinist.Reason = "MachineFailed"
	// ReasonPreservationOver is the reason of a deletion: the machine is Failed, and its
	// preservation has expired.
	ReasonPreservationOver machinist.Reason = "PreservationExpired"
	// ReasonSetDeleting is the reason of a deletion, of a removed finalizer and of a hold: the set
	// is being deleted.
	ReasonSetDeleting machinist.Reason = "MachineSetDeleting"
	// ReasonOutOfSync is the reason of an update of a machine to the template.
	ReasonOutOfSync machinist.Reason = "OutOfSync"
	// reasonNoFinalizer is the reason of an added finalizer.
	reasonNoFinalizer machinist.Reason = "FinalizerMissing"
)

// Reasons of holds.
const (
	// ReasonInvalid means that [Validate] refuses the set, or that the set or a machine has no UID.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonIncomplete means that the list of machines may be incomplete.
	ReasonIncomplete machinist.Reason = "IncompleteView"
	// ReasonFrozen means that the freeze label keeps the set from creating machines.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonScaleUpDisabled means that a label keeps the set from creating machines.
	ReasonScaleUpDisabled machinist.Reason = "ScaleUpDisabled"
	// ReasonLimited means that [Policy.Burst] is reached, or that too many new machines were
	// deleted early or lost their labels.
	ReasonLimited machinist.Reason = "Limited"
	// ReasonNotSeen means that a creation or deletion is not observed yet. It is also the reason of
	// a live read of the machine.
	ReasonNotSeen machinist.Reason = "NotSeen"
	// ReasonPreserved means that a Failed machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationAsked means that a Failed machine is about to be preserved.
	ReasonPreservationAsked machinist.Reason = "PreservationPending"
	// ReasonNodeReadyAgain means that the Node of a Failed machine became Ready after the machine
	// failed, and that the machine controller is about to make it Running.
	ReasonNodeReadyAgain machinist.Reason = "NodeReadyAgain"
	// ReasonNodeUnknown means that the Node of a machine was not read.
	ReasonNodeUnknown machinist.Reason = "NodeNotLookedAt"
	// ReasonNotOurs means that another object controls a machine.
	ReasonNotOurs machinist.Reason = "ControlledByAnother"
	// ReasonSettling means that a machine has not been available for minReadySeconds.
	ReasonSettling machinist.Reason = "MinReadySeconds"
)

// ReasonSettled means that there is nothing to do and nothing to wait for.
const ReasonSettled machinist.Reason = "Settled"
