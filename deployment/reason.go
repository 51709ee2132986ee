// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"time"
)

// A Reason is a stable CamelCase word: why a decision is what it is, or why
// something is not done.
type Reason string

// Reasons of decisions and holds.
const (
	// ReasonNothingSeen: there is no deployment to decide about.
	ReasonNothingSeen Reason = "NothingSeen"
	// ReasonViewIncomplete: the lists of sets and machines are not known to be whole.
	ReasonViewIncomplete Reason = "ViewIncomplete"
	// ReasonInvalid: the spec is not valid.
	ReasonInvalid Reason = "InvalidSpec"
	// ReasonSelectsNothing: the selector is empty.
	ReasonSelectsNothing Reason = "EmptySelector"
	// ReasonAdopting: the finalizer has to be there before anything else.
	ReasonAdopting Reason = "AddingFinalizer"
	// ReasonWriteNotSeen: the view does not show a write of this process yet.
	ReasonWriteNotSeen Reason = "WriteNotSeen"
	// ReasonNoCluster: there is no cluster whose Nodes could be updated in place.
	ReasonNoCluster Reason = "NoCluster"
	// ReasonRollingBack: the template becomes that of an earlier revision.
	ReasonRollingBack Reason = "RollingBack"
	// ReasonNoRollback: there is nothing to roll back to.
	ReasonNoRollback Reason = "NoRollback"
	// ReasonNotRemoved: a machine that is named to go does not, or not by its name.
	ReasonNotRemoved Reason = "NotRemoved"
	// ReasonNoHash: a set does not carry its template hash everywhere yet.
	ReasonNoHash Reason = "NoTemplateHash"
	// ReasonGate: a [Gate] keeps a machine.
	ReasonGate Reason = "Gate"
	// ReasonNoCapacity: the provider has no capacity for a machine of the new set.
	ReasonNoCapacity Reason = "NoCapacity"
	// ReasonNewUnavailable: machines of the new set are not available.
	ReasonNewUnavailable Reason = "NewMachinesUnavailable"
	// ReasonBurst: a pass writes no more than [Policy.Burst] Nodes and machines.
	ReasonBurst Reason = "BurstLimit"
	// ReasonNodeUnknown: nobody has looked at the Node of a machine, or it is gone.
	ReasonNodeUnknown Reason = "NodeUnknown"
	// ReasonUpdating: machines are being updated in place.
	ReasonUpdating Reason = "UpdatingInPlace"
	// ReasonNotOurs: a set that was given belongs to another object.
	ReasonNotOurs Reason = "ControlledByAnother"
	// ReasonDeleting: the deployment is being deleted.
	ReasonDeleting Reason = "Deleting"
	// ReasonDeleted: the deployment is being deleted and no longer holds anything.
	ReasonDeleted Reason = "Deleted"
	// ReasonPaused: roll-outs are paused.
	ReasonPaused Reason = "Paused"
	// ReasonFrozen: the deployment is frozen, so no set is created or grows.
	ReasonFrozen Reason = "Frozen"
	// ReasonScaling: the replicas changed.
	ReasonScaling Reason = "Scaling"
	// ReasonNewSet: a set for a new template is created.
	ReasonNewSet Reason = "CreatingSet"
	// ReasonNameTaken: the name of the new set belongs to something else.
	ReasonNameTaken Reason = "NameTaken"
	// ReasonRollingOut: machines are being replaced.
	ReasonRollingOut Reason = "RollingOut"
	// ReasonComplete: all machines are of the new set and available.
	ReasonComplete Reason = "Complete"
	// ReasonSurgeUsedUp: as many machines exist as may.
	ReasonSurgeUsedUp Reason = "SurgeUsedUp"
	// ReasonMinimumAvailable: no more machines may become unavailable.
	ReasonMinimumAvailable Reason = "MinimumAvailable"
	// ReasonSetNotReported: a set has not reported on its present spec.
	ReasonSetNotReported Reason = "SetNotReported"
	// ReasonReleased: sets that lost their labels and were let go have machines still.
	ReasonReleased Reason = "SetsReleased"
	// ReasonSetDeleting: a set is being deleted.
	ReasonSetDeleting Reason = "SetDeleting"
	// ReasonWaitingForMachines: machines have to become available or to go.
	ReasonWaitingForMachines Reason = "WaitingForMachines"
	// ReasonProgressDeadline: the roll-out stood still for too long.
	ReasonProgressDeadline Reason = "ProgressDeadlineExceeded"
)

// A Hold says what is not done, and why.
type Hold struct {
	Subject string    // what is in the way: a machine, a Node, a set, or the deployment
	Reason  Reason    // stable
	Message string    // for people, with the numbers; may change
	Until   time.Time // when to look again; zero if a change will tell
}

// String returns the hold in one line.
func (h Hold) String() string {
	s := fmt.Sprintf("hold %s: %s: %s", h.Subject, h.Reason, h.Message)
	if !h.Until.IsZero() {
		s += " (until " + h.Until.UTC().Format(time.RFC3339) + ")"
	}
	return s
}
