// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"github.com/machinist-dev/machinist"
)

// Reasons of holds. Callers distinguish the exported ones.
const (
	// ReasonInvalid means that the set is invalid, or the set or a machine has no UID. A set is
	// invalid if its replicas are negative, if its selector is missing, empty, invalid or does not match
	// the labels of the template, or if the class has another kind than MachineClass or no name. (MCM
	// panics on a missing selector, lets an empty one select everything, reads only the matchLabels, and
	// accepts each kind of class.)
	//
	// What helps: correct the fields that the message names.
	ReasonInvalid machinist.Reason = "Invalid"
	// ReasonPreserved means that a Failed machine is preserved.
	//
	// What helps: remove the preserve annotation, or wait for the end of the preservation.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationAsked means that a Failed machine is about to be preserved.
	ReasonPreservationAsked machinist.Reason = "PreservationPending"

	// reasonIncomplete means that the list of machines may be incomplete.
	reasonIncomplete machinist.Reason = "IncompleteView"
	// reasonFrozen means that the freeze label keeps the set from creating machines.
	//
	// What helps: the set is unfrozen when it has fewer machines than its limit.
	reasonFrozen machinist.Reason = "Frozen"
	// reasonScaleUpDisabled means that a label keeps the set from creating machines.
	//
	// What helps: remove the label.
	reasonScaleUpDisabled machinist.Reason = "ScaleUpDisabled"
	// reasonLimited means that [Policy.Burst] is reached, or too many new machines were
	// deleted early or lost their labels.
	//
	// What helps: the other client that deletes new machines or removes their labels has to stop.
	reasonLimited machinist.Reason = "Limited"
	// reasonNotSeen means that a creation or deletion is not observed yet. It is also the reason of
	// a live read of the machine.
	reasonNotSeen machinist.Reason = "NotSeen"
	// reasonNodeReadyAgain means that the Node of a Failed machine became Ready after the machine
	// failed, and the machine controller is about to make it Running.
	reasonNodeReadyAgain machinist.Reason = "NodeReadyAgain"
	// reasonNodeUnknown means that the Node of a machine was not read.
	reasonNodeUnknown machinist.Reason = "NodeNotLookedAt"
	// reasonNotOurs means that another object controls a machine.
	//
	// What helps: the other owner has to release the machine.
	reasonNotOurs machinist.Reason = "ControlledByAnother"
	// reasonSettling means that a machine has not been available for minReadySeconds.
	reasonSettling machinist.Reason = "MinReadySeconds"
)

// Reasons of actions.
const (
	// reasonTooFew means that there are fewer machines than desired, and machines are created.
	reasonTooFew machinist.Reason = "TooFewMachines"
	// reasonTooMany means that there are more machines than desired, and machines are deleted.
	reasonTooMany machinist.Reason = "TooManyMachines"
	// reasonMarked means that an autoscaler named the machine, and it is deleted.
	reasonMarked machinist.Reason = "MarkedForDeletion"
	// reasonFailed means that the machine is Failed, and it is deleted and replaced.
	reasonFailed machinist.Reason = "MachineFailed"
	// reasonPreservationOver means that the machine is Failed, its preservation has expired, and it
	// is deleted.
	reasonPreservationOver machinist.Reason = "PreservationExpired"
	// reasonSetDeleting means that the set is being deleted: its machines are deleted, then its
	// finalizer is removed.
	reasonSetDeleting machinist.Reason = "MachineSetDeleting"
	// reasonOutOfSync means that a machine differs from the template of the set and is updated.
	reasonOutOfSync machinist.Reason = "OutOfSync"
	// reasonNoFinalizer means that the set has no finalizer yet, and it is added.
	reasonNoFinalizer machinist.Reason = "FinalizerMissing"
	// reasonRetryNow means that a user asks for the next attempt with the annotation
	// machine.sapcloud.io/retry-now, which is passed on to the machines that wait.
	reasonRetryNow machinist.Reason = "RetryNow"
	// reasonSettled means that there is nothing to do and nothing to wait for.
	reasonSettled machinist.Reason = "Settled"
)

// Reasons of Events.
const (
	// eventPutBack means that fields of a machine were changed, which its set has put back.
	//
	// What helps: change the object that the message names.
	eventPutBack machinist.Reason = "FieldsPutBack"
	// eventDeleted means that a machine was deleted.
	eventDeleted machinist.Reason = "SuccessfulDelete"
	// eventNotDeleted means that the API server did not delete a machine.
	eventNotDeleted machinist.Reason = "FailedDelete"
	// eventCreated means that a machine was created.
	eventCreated machinist.Reason = "SuccessfulCreate"
	// eventNotCreated means that the API server did not create a machine.
	eventNotCreated machinist.Reason = "FailedCreate"
)
