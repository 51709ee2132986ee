// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
)

// Reasons of decisions and holds that callers tell from others.
const (
	// ReasonInvalid means that the spec is not valid.
	//
	// What helps: correct the fields that the message names.
	ReasonInvalid machinist.Reason = "InvalidSpec"
	// ReasonSelectsNothing means that the selector is empty.
	//
	// What helps: set a selector.
	ReasonSelectsNothing machinist.Reason = "EmptySelector"
	// ReasonPaused means that rollouts are paused.
	//
	// What helps: set spec.paused to false.
	ReasonPaused machinist.Reason = "Paused"
	// ReasonFrozen means that the deployment or a set is frozen, so it does not grow.
	//
	// What helps: the freeze ends by itself when its cause is over; the condition of the message names it.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonComplete means that all machines are of the new set and available.
	ReasonComplete machinist.Reason = "Complete"
	// ReasonStuck means that the rollout has made no progress within its progress deadline.
	//
	// What helps: the first hold says what the rollout waits for.
	ReasonStuck machinist.Reason = "Stuck"
	// ReasonNewUnavailable means that machines of the new set are not available.
	//
	// What helps: the last operation of the named machine is in the message.
	ReasonNewUnavailable machinist.Reason = "NewMachinesUnavailable"
)

// Other reasons of decisions and holds.
const (
	// reasonViewIncomplete means that the lists of sets and machines may be incomplete.
	reasonViewIncomplete machinist.Reason = "ViewIncomplete"
	// reasonWriteNotSeen means that the cache does not show a write of this process yet.
	reasonWriteNotSeen machinist.Reason = "WriteNotSeen"
	// reasonDeleting means that the deployment is being deleted.
	reasonDeleting machinist.Reason = "Deleting"
	// reasonRollingBack means that the template becomes that of an earlier revision.
	reasonRollingBack machinist.Reason = "RollingBack"
	// reasonScaling means that spec.replicas changed.
	reasonScaling machinist.Reason = "Scaling"
	// reasonNewSet means that a set for a new template is created.
	reasonNewSet machinist.Reason = "CreatingSet"
	// reasonNameTaken means that another object has the name of the new set.
	//
	// What helps: delete the other object; otherwise the next attempt takes another name.
	reasonNameTaken machinist.Reason = "NameTaken"
	// reasonProgressing means that machines are being replaced, within the progress deadline.
	reasonProgressing machinist.Reason = "Progressing"
	// reasonGate means that one of [Policy.Gates] keeps a machine.
	//
	// What helps: the program that has the gate decides.
	reasonGate machinist.Reason = "Gate"
	// reasonNoCapacity means that the provider has no capacity for a machine of the new set.
	//
	// What helps: more quota or another machine type; the creation is tried again by itself.
	reasonNoCapacity machinist.Reason = "NoCapacity"
	// reasonUpdating means that machines are being updated in place.
	reasonUpdating machinist.Reason = "UpdatingInPlace"
	// reasonSurgeUsedUp means that the maximum of machines exists.
	//
	// What helps: as many machines exist as replicas and maxSurge allow: a machine has to be deleted first.
	reasonSurgeUsedUp machinist.Reason = "SurgeUsedUp"
	// reasonMinimumAvailable means that no more machines may become unavailable.
	//
	// What helps: a new machine has to become available first.
	reasonMinimumAvailable machinist.Reason = "MinimumAvailable"
	// reasonSetNotReported means that the status of a set is not of its present spec.
	//
	// What helps: the controller of machine sets has to observe the last change.
	reasonSetNotReported machinist.Reason = "SetNotReported"
	// reasonWaitingForMachines means that machines have to become available or to be deleted.
	reasonWaitingForMachines machinist.Reason = "WaitingForMachines"
	// reasonProgressDeadline means that the rollout is stuck: it has made no progress within its deadline.
	//
	// What helps: the other holds say what the rollout waits for.
	reasonProgressDeadline machinist.Reason = "ProgressDeadlineExceeded"
)

// Reasons of single objects.
const (
	// reasonAdopting means that the finalizer is added before anything else is written.
	reasonAdopting machinist.Reason = "AddingFinalizer"
	// reasonDeleted means that all sets are deleted, and the finalizer is removed.
	reasonDeleted machinist.Reason = "Deleted"
	// reasonNoCluster means that machines join no cluster, so no Node can be updated in place.
	//
	// What helps: set the strategy RollingUpdate.
	reasonNoCluster machinist.Reason = "NoCluster"
	// reasonNoRollback means that the requested revision cannot be rolled back to.
	reasonNoRollback machinist.Reason = "NoRollback"
	// reasonNotRemoved means that a machine that is named for deletion is not deleted.
	reasonNotRemoved machinist.Reason = "NotRemoved"
	// reasonBurst means that one decision writes no more objects. The next one follows.
	reasonBurst machinist.Reason = "BurstLimit"
	// reasonNodeUnknown means that the Node of a machine was not read.
	reasonNodeUnknown machinist.Reason = "NodeUnknown"
	// reasonNotSelected means that the Node of a machine lacks the label that selects it for an update.
	//
	// What helps: set the label node.machine.sapcloud.io/selected-for-update=true.
	reasonNotSelected machinist.Reason = "NotSelected"
	// reasonNotOurs means that another object controls a set.
	reasonNotOurs machinist.Reason = "ControlledByAnother"
	// reasonReleased means that the deployment has released sets with its labels.
	reasonReleased machinist.Reason = "SetsReleased"
	// reasonSetDeleting means that a set is being deleted.
	reasonSetDeleting machinist.Reason = "SetDeleting"
)

// Types of events.
const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

// Reasons of events.
const (
	// eventScaled means that the replicas of a set were changed.
	eventScaled machinist.Reason = "ScalingMachineSet"
	// eventSelectsAll means that the selector is empty, which would select all machines.
	eventSelectsAll machinist.Reason = "SelectingAll"
	// eventRolledBack means that the template was set to that of an earlier revision.
	eventRolledBack machinist.Reason = "DeploymentRollback"
	// eventRevisionNotFound means that no set has the requested revision.
	eventRevisionNotFound machinist.Reason = "DeploymentRollbackRevisionNotFound"
	// eventTemplateUnchanged means that the requested revision has the present template.
	eventTemplateUnchanged machinist.Reason = "DeploymentRollbackTemplateUnchanged"
	// eventFrozen means that the controllers are frozen because API servers do not answer.
	eventFrozen machinist.Reason = "ControllerFrozen"
	// eventStuck means that a rollout has made no progress within its progress deadline. The hold says what it waits for.
	eventStuck machinist.Reason = "ProgressDeadlineExceeded"
	// eventUnstuck means that a stuck rollout makes progress again.
	eventUnstuck machinist.Reason = "ProgressResumed"
	// eventUnfrozen means that the API servers answer again.
	eventUnfrozen machinist.Reason = "ControllerUnfrozen"
)

// plural returns the form of a text for a number of objects. Both forms contain one %d.
func plural(n int64, one, many string) string {
	if n == 1 {
		return fmt.Sprintf(one, n)
	}
	return fmt.Sprintf(many, n)
}

// machines returns a number of machines as text.
func machines(n int64) string { return plural(n, "%d machine", "%d machines") }

// replicas returns a number of replicas as text.
func replicas(n int64) string { return plural(n, "%d replica", "%d replicas") }

// brief cuts a text to a length that fits into a line.
func brief(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	return line.Beginning(text, most) + " ..."
}
