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
	// ReasonSetDeleting explains a [Delete]: the set is being deleted.
	ReasonSetDeleting machinist.Reason = "MachineSetDeleting"
	// ReasonTemplateChanged explains a [Sync].
	ReasonTemplateChanged machinist.Reason = "TemplateChanged"
	// ReasonAutoPreserve explains a [Sync]: the set preserves Failed machines of
	// its own accord, or no longer does.
	ReasonAutoPreserve machinist.Reason = "AutoPreservation"
	// ReasonNotSeen explains a [Look]: an effect has not shown up in time.
	ReasonNotSeen machinist.Reason = "NotSeenInTime"
	// ReasonNoFinalizer explains an [AddFinalizer].
	ReasonNoFinalizer machinist.Reason = "FinalizerMissing"
	// ReasonNoMachineLeft explains a [RemoveFinalizer].
	ReasonNoMachineLeft machinist.Reason = "NoMachineLeft"
)

// Reasons of holds.
const (
	// ReasonNoSet says that there was no set to decide about.
	ReasonNoSet machinist.Reason = "NoMachineSet"
	// ReasonInvalid says that the set does not pass [Validate].
	ReasonInvalid machinist.Reason = "InvalidMachineSet"
	// ReasonIncomplete says that the list of machines may not be whole.
	ReasonIncomplete machinist.Reason = "IncompleteView"
	// ReasonFrozen says that the freeze label keeps the set from creating.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonScaleUpDisabled says that a label keeps the set from creating.
	ReasonScaleUpDisabled machinist.Reason = "ScaleUpDisabled"
	// ReasonShortLived says that enough machines are on their way out already that
	// hardly lived.
	ReasonShortLived machinist.Reason = "MachinesDoNotLive"
	// ReasonBurst says that a pass does no more than [Policy.Burst] allows.
	ReasonBurst machinist.Reason = "BurstLimit"
	// ReasonInFlight says that something asked for has not shown up yet.
	ReasonInFlight machinist.Reason = "InFlight"
	// ReasonPreserved says that a Failed machine is preserved.
	ReasonPreserved machinist.Reason = "Preserved"
	// ReasonPreservationAsked says that a Failed machine is about to be preserved.
	ReasonPreservationAsked machinist.Reason = "PreservationPending"
	// ReasonNodeReadyAgain says that the Node of a Failed machine became Ready after the
	// machine failed: the machine controller is about to make it Running.
	ReasonNodeReadyAgain machinist.Reason = "NodeReadyAgain"
	// ReasonNodeUnknown says that nobody has looked at the Node of a machine.
	ReasonNodeUnknown machinist.Reason = "NodeNotLookedAt"
	// ReasonNoIdentity says that a machine has no UID: a deletion of it could
	// hit another one of the same name.
	ReasonNoIdentity machinist.Reason = "NoIdentity"
	// ReasonNotOurs says that another object controls a machine.
	ReasonNotOurs machinist.Reason = "ControlledByAnother"
	// ReasonReleased says that machines which lost their labels still exist, and are
	// not replaced without a bound.
	ReasonReleased machinist.Reason = "ReleasedMachines"
	// ReasonSettling says that a machine has not been available for minReadySeconds.
	ReasonSettling machinist.Reason = "MinReadySeconds"
	// ReasonWaitingForMachines says that a deleted set waits for its machines.
	ReasonWaitingForMachines machinist.Reason = "WaitingForMachines"
)

// Reasons of decisions that neither act nor hold.
const (
	// ReasonSettled says that the set has what it wants.
	ReasonSettled machinist.Reason = "Settled"
	// ReasonGone says that this controller has nothing left to do for a set that
	// is being deleted.
	ReasonGone machinist.Reason = "Gone"
)
