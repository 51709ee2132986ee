// SPDX-License-Identifier: Apache-2.0

package machineset

// A Reason is a stable CamelCase word for why something is done, or is not
// done. Reasons are meant for condition reasons, metric labels and tests.
type Reason string

// Reasons of actions.
const (
	// ReasonTooFew explains a [Create]: the set has fewer machines than it wants.
	ReasonTooFew Reason = "TooFewMachines"
	// ReasonTooMany explains a [Delete]: the set has more machines than it wants.
	ReasonTooMany Reason = "TooManyMachines"
	// ReasonMarked explains a [Delete]: an autoscaler named this machine.
	ReasonMarked Reason = "MarkedForDeletion"
	// ReasonFailed explains a [Delete]: the machine is Failed, and is replaced.
	ReasonFailed Reason = "MachineFailed"
	// ReasonPreservationOver explains a [Delete]: the machine is Failed, and the
	// time for which it was preserved is over.
	ReasonPreservationOver Reason = "PreservationExpired"
	// ReasonSetDeleting explains a [Delete]: the set is being deleted.
	ReasonSetDeleting Reason = "MachineSetDeleting"
	// ReasonTemplateChanged explains a [Sync].
	ReasonTemplateChanged Reason = "TemplateChanged"
	// ReasonAutoPreserve explains a [Sync]: the set preserves Failed machines of
	// its own accord, or no longer does.
	ReasonAutoPreserve Reason = "AutoPreservation"
	// ReasonNotSeen explains a [Look]: an effect has not shown up in time.
	ReasonNotSeen Reason = "NotSeenInTime"
	// ReasonNoFinalizer explains an [AddFinalizer].
	ReasonNoFinalizer Reason = "FinalizerMissing"
	// ReasonNoMachineLeft explains a [RemoveFinalizer].
	ReasonNoMachineLeft Reason = "NoMachineLeft"
)

// Reasons of holds.
const (
	// ReasonNoSet says that there was no set to decide about.
	ReasonNoSet Reason = "NoMachineSet"
	// ReasonInvalid says that the set does not pass [Validate].
	ReasonInvalid Reason = "InvalidMachineSet"
	// ReasonIncomplete says that the list of machines may not be whole.
	ReasonIncomplete Reason = "IncompleteView"
	// ReasonFrozen says that the freeze label keeps the set from creating.
	ReasonFrozen Reason = "Frozen"
	// ReasonScaleUpDisabled says that a label keeps the set from creating.
	ReasonScaleUpDisabled Reason = "ScaleUpDisabled"
	// ReasonShortLived says that enough machines are on their way out already that
	// hardly lived.
	ReasonShortLived Reason = "MachinesDoNotLive"
	// ReasonBurst says that a pass does no more than [Policy.Burst] allows.
	ReasonBurst Reason = "BurstLimit"
	// ReasonInFlight says that something asked for has not shown up yet.
	ReasonInFlight Reason = "InFlight"
	// ReasonPreserved says that a Failed machine is preserved.
	ReasonPreserved Reason = "Preserved"
	// ReasonPreservationAsked says that a Failed machine is about to be preserved.
	ReasonPreservationAsked Reason = "PreservationPending"
	// ReasonNodeReadyAgain says that the Node of a Failed machine became Ready after the
	// machine failed: the machine controller is about to make it Running.
	ReasonNodeReadyAgain Reason = "NodeReadyAgain"
	// ReasonNodeUnknown says that nobody has looked at the Node of a machine.
	ReasonNodeUnknown Reason = "NodeNotLookedAt"
	// ReasonNoIdentity says that a machine has no UID: a deletion of it could
	// hit another one of the same name.
	ReasonNoIdentity Reason = "NoIdentity"
	// ReasonNotOurs says that another object controls a machine.
	ReasonNotOurs Reason = "ControlledByAnother"
	// ReasonReleased says that machines which lost their labels still exist, and are
	// not replaced without a bound.
	ReasonReleased Reason = "ReleasedMachines"
	// ReasonSettling says that a machine has not been available for minReadySeconds.
	ReasonSettling Reason = "MinReadySeconds"
	// ReasonWaitingForMachines says that a deleted set waits for its machines.
	ReasonWaitingForMachines Reason = "WaitingForMachines"
)

// Reasons of decisions that neither act nor hold.
const (
	// ReasonSettled says that the set has what it wants.
	ReasonSettled Reason = "Settled"
	// ReasonGone says that this controller has nothing left to do for a set that
	// is being deleted.
	ReasonGone Reason = "Gone"
)
