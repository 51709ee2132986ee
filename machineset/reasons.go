// SPDX-License-Identifier: Apache-2.0

package machineset

import "github.com/machinist-dev/machinist"

// Reasons of actions.
const (
	// ReasonTooFew explains a [Create]: the set has fewer machines than it wants.
	ReasonTooFew machinist.Reason = "TooFewMachines"
	// ReasonTooMany explains a [Delete]: the set has more machines than it wants.
	ReasonTooMany machinist.Reason = "TooManyMachines"
	// ReasonMarked explains a [Delete]: an autoscaler named this machine.
	ReasonMarked machinist.Reason = "MarkedForDeletion"
	// ReasonFailed explains a [Delete]: the machine is Failed, and is replaced.
	ReasonFailed machinist.Reason = "MachineFailed"
	// ReasonPreservationOver explains a [Delete]: the machine is Failed, and the
	// time for which it was preserved is over.
	ReasonPreservationOver machinist.Reason = "PreservationExpired"
	// ReasonSetDeleting explains a [Delete], the removal of the finalizer, and a hold:
	// the set is being deleted, and waits for its machines.
	ReasonSetDeleting machinist.Reason = "MachineSetDeleting"
	// ReasonOutOfSync explains a [Sync].
	ReasonOutOfSync machinist.Reason = "OutOfSync"
	// reasonNoFinalizer explains that the finalizer is put on the set.
	reasonNoFinalizer machinist.Reason = "FinalizerMissing"
)

// Reasons of holds.
const (
	// ReasonInvalid says that the set does not pass [Validate], or that the set or a
	// machine has no UID.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonIncomplete says that the list of machines may not be whole.
	ReasonIncomplete machinist.Reason = "IncompleteView"
	// ReasonFrozen says that the freeze label keeps the set from creating.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonScaleUpDisabled says that a label keeps the set from creating.
	ReasonScaleUpDisabled machinist.Reason = "ScaleUpDisabled"
	// ReasonLimited says that a pass does no more than [Policy.Burst] allows, or that
	// machines which hardly lived or lost their labels are not replaced without a bound.
	ReasonLimited machinist.Reason = "Limited"
	// ReasonNotSeen says that a creation or deletion has not shown up yet. It explains a
	// [Look], too.
	ReasonNotSeen machinist.Reason = "NotSeen"
	// ReasonPreserved says that a Failed machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationAsked says that a Failed machine is about to be preserved.
	ReasonPreservationAsked machinist.Reason = "PreservationPending"
	// ReasonNodeReadyAgain says that the Node of a Failed machine became Ready after the
	// machine failed: the machine controller is about to make it Running.
	ReasonNodeReadyAgain machinist.Reason = "NodeReadyAgain"
	// ReasonNodeUnknown says that the Node of a machine was not looked at.
	ReasonNodeUnknown machinist.Reason = "NodeNotLookedAt"
	// ReasonNotOurs says that another object controls a machine.
	ReasonNotOurs machinist.Reason = "ControlledByAnother"
	// ReasonSettling says that a machine has not been available for minReadySeconds.
	ReasonSettling machinist.Reason = "MinReadySeconds"
)

// ReasonSettled says that there is nothing to do and nothing to wait for.
const ReasonSettled machinist.Reason = "Settled"
