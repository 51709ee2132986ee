// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"github.com/machinist-dev/machinist"
)

// Reasons of holds. Callers distinguish the exported ones.
const (
	// ReasonInvalid means that [Validate] refuses the set, or that the set or a machine has no UID.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonPreserved means that a Failed machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationAsked means that a Failed machine is about to be preserved.
	ReasonPreservationAsked machinist.Reason = "PreservationPending"

	// reasonIncomplete means that the list of machines may be incomplete.
	reasonIncomplete machinist.Reason = "IncompleteView"
	// reasonFrozen means that the freeze label keeps the set from creating machines.
	reasonFrozen machinist.Reason = "Frozen"
	// reasonScaleUpDisabled means that a label keeps the set from creating machines.
	reasonScaleUpDisabled machinist.Reason = "ScaleUpDisabled"
	// reasonLimited means that [Policy.Burst] is reached, or that too many new machines were
	// deleted early or lost their labels.
	reasonLimited machinist.Reason = "Limited"
	// reasonNotSeen means that a creation or deletion is not observed yet. It is also the reason of
	// a live read of the machine.
	reasonNotSeen machinist.Reason = "NotSeen"
	// reasonNodeReadyAgain means that the Node of a Failed machine became Ready after the machine
	// failed, and that the machine controller is about to make it Running.
	reasonNodeReadyAgain machinist.Reason = "NodeReadyAgain"
	// reasonNodeUnknown means that the Node of a machine was not read.
	reasonNodeUnknown machinist.Reason = "NodeNotLookedAt"
	// reasonNotOurs means that another object controls a machine.
	reasonNotOurs machinist.Reason = "ControlledByAnother"
	// reasonSettling means that a machine has not been available for minReadySeconds.
	reasonSettling machinist.Reason = "MinReadySeconds"
)

// Reasons of actions.
const (
	// reasonTooFew is the reason of a creation: there are fewer machines than desired.
	reasonTooFew machinist.Reason = "TooFewMachines"
	// reasonTooMany is the reason of a deletion: there are more machines than desired.
	reasonTooMany machinist.Reason = "TooManyMachines"
	// reasonMarked is the reason of a deletion: an autoscaler named the machine.
	reasonMarked machinist.Reason = "MarkedForDeletion"
	// reasonFailed is the reason of a deletion: the machine is Failed and is replaced.
	reasonFailed machinist.Reason = "MachineFailed"
	// reasonPreservationOver is the reason of a deletion: the machine is Failed, and its
	// preservation has expired.
	reasonPreservationOver machinist.Reason = "PreservationExpired"
	// reasonSetDeleting is the reason of a deletion, of a removed finalizer and of a hold: the set
	// is being deleted.
	reasonSetDeleting machinist.Reason = "MachineSetDeleting"
	// reasonOutOfSync is the reason of an update of a machine to the template.
	reasonOutOfSync machinist.Reason = "OutOfSync"
	// reasonNoFinalizer is the reason of an added finalizer.
	reasonNoFinalizer machinist.Reason = "FinalizerMissing"
	// reasonSettled means that there is nothing to do and nothing to wait for.
	reasonSettled machinist.Reason = "Settled"
)
