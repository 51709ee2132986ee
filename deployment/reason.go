// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/machinist-dev/machinist"
)

// Reasons of decisions and holds.
const (
	// ReasonNothingSeen: there is no deployment to decide about.
	ReasonNothingSeen machinist.Reason = "NothingSeen"
	// ReasonViewIncomplete: the lists of sets and machines are not known to be whole.
	ReasonViewIncomplete machinist.Reason = "ViewIncomplete"
	// ReasonInvalid: the spec is not valid.
	ReasonInvalid machinist.Reason = "InvalidSpec"
	// ReasonSelectsNothing: the selector is empty.
	ReasonSelectsNothing machinist.Reason = "EmptySelector"
	// ReasonAdopting: the finalizer has to be there before anything else.
	ReasonAdopting machinist.Reason = "AddingFinalizer"
	// ReasonWriteNotSeen: the view does not show a write of this process yet.
	ReasonWriteNotSeen machinist.Reason = "WriteNotSeen"
	// ReasonNoCluster: there is no cluster whose Nodes could be updated in place.
	ReasonNoCluster machinist.Reason = "NoCluster"
	// ReasonRollingBack: the template becomes that of an earlier revision.
	ReasonRollingBack machinist.Reason = "RollingBack"
	// ReasonNoRollback: there is nothing to roll back to.
	ReasonNoRollback machinist.Reason = "NoRollback"
	// ReasonNotRemoved: a machine that is named to go does not, or not by its name.
	ReasonNotRemoved machinist.Reason = "NotRemoved"
	// ReasonNoHash: a set does not carry its template hash everywhere yet.
	ReasonNoHash machinist.Reason = "NoTemplateHash"
	// ReasonGate: a [Gate] keeps a machine.
	ReasonGate machinist.Reason = "Gate"
	// ReasonNoCapacity: the provider has no capacity for a machine of the new set.
	ReasonNoCapacity machinist.Reason = "NoCapacity"
	// ReasonNewUnavailable: machines of the new set are not available.
	ReasonNewUnavailable machinist.Reason = "NewMachinesUnavailable"
	// ReasonBurst: a pass writes no more than [Policy.Burst] Nodes and machines.
	ReasonBurst machinist.Reason = "BurstLimit"
	// ReasonNodeUnknown: nobody has looked at the Node of a machine, or it is gone.
	ReasonNodeUnknown machinist.Reason = "NodeUnknown"
	// ReasonUpdating: machines are being updated in place.
	ReasonUpdating machinist.Reason = "UpdatingInPlace"
	// ReasonNotOurs: a set that was given belongs to another object.
	ReasonNotOurs machinist.Reason = "ControlledByAnother"
	// ReasonDeleting: the deployment is being deleted.
	ReasonDeleting machinist.Reason = "Deleting"
	// ReasonDeleted: the deployment is being deleted and no longer holds anything.
	ReasonDeleted machinist.Reason = "Deleted"
	// ReasonPaused: roll-outs are paused.
	ReasonPaused machinist.Reason = "Paused"
	// ReasonFrozen: the deployment is frozen, so no set is created or grows.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonScaling: the replicas changed.
	ReasonScaling machinist.Reason = "Scaling"
	// ReasonNewSet: a set for a new template is created.
	ReasonNewSet machinist.Reason = "CreatingSet"
	// ReasonNameTaken: the name of the new set belongs to something else.
	ReasonNameTaken machinist.Reason = "NameTaken"
	// ReasonRollingOut: machines are being replaced.
	ReasonRollingOut machinist.Reason = "RollingOut"
	// ReasonComplete: all machines are of the new set and available.
	ReasonComplete machinist.Reason = "Complete"
	// ReasonSurgeUsedUp: as many machines exist as may.
	ReasonSurgeUsedUp machinist.Reason = "SurgeUsedUp"
	// ReasonMinimumAvailable: no more machines may become unavailable.
	ReasonMinimumAvailable machinist.Reason = "MinimumAvailable"
	// ReasonSetNotReported: a set has not reported on its present spec.
	ReasonSetNotReported machinist.Reason = "SetNotReported"
	// ReasonReleased: sets that lost their labels and were let go have machines still.
	ReasonReleased machinist.Reason = "SetsReleased"
	// ReasonSetDeleting: a set is being deleted.
	ReasonSetDeleting machinist.Reason = "SetDeleting"
	// ReasonWaitingForMachines: machines have to become available or to go.
	ReasonWaitingForMachines machinist.Reason = "WaitingForMachines"
	// ReasonProgressDeadline: the roll-out stood still for too long.
	ReasonProgressDeadline machinist.Reason = "ProgressDeadlineExceeded"
)
