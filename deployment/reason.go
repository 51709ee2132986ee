// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/machinist-dev/machinist"
)

// Reasons of decisions and holds that callers tell from others.
const (
	// ReasonInvalid means that the spec is not valid.
	ReasonInvalid machinist.Reason = "InvalidSpec"
	// ReasonSelectsNothing means that the selector is empty.
	ReasonSelectsNothing machinist.Reason = "EmptySelector"
	// ReasonPaused means that rollouts are paused.
	ReasonPaused machinist.Reason = "Paused"
	// ReasonFrozen means that the deployment or a set is frozen, so it does not grow.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonComplete means that all machines are of the new set and available.
	ReasonComplete machinist.Reason = "Complete"
	// ReasonNewUnavailable means that machines of the new set are not available.
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
	reasonNameTaken machinist.Reason = "NameTaken"
	// reasonProgressing means that machines are being replaced, within the progress deadline.
	reasonProgressing machinist.Reason = "Progressing"
	// reasonStuck means that the rollout has made no progress within its progress deadline.
	reasonStuck machinist.Reason = "Stuck"
	// reasonGate means that a [Gate] keeps a machine.
	reasonGate machinist.Reason = "Gate"
	// reasonNoCapacity means that the provider has no capacity for a machine of the new set.
	reasonNoCapacity machinist.Reason = "NoCapacity"
	// reasonUpdating means that machines are being updated in place.
	reasonUpdating machinist.Reason = "UpdatingInPlace"
	// reasonSurgeUsedUp means that the maximum of machines exists.
	reasonSurgeUsedUp machinist.Reason = "SurgeUsedUp"
	// reasonMinimumAvailable means that no more machines may become unavailable.
	reasonMinimumAvailable machinist.Reason = "MinimumAvailable"
	// reasonSetNotReported means that the status of a set is not of its present spec.
	reasonSetNotReported machinist.Reason = "SetNotReported"
	// reasonWaitingForMachines means that machines have to become available or to be deleted.
	reasonWaitingForMachines machinist.Reason = "WaitingForMachines"
	// reasonProgressDeadline is the hold of a rollout that is stuck.
	reasonProgressDeadline machinist.Reason = "ProgressDeadlineExceeded"
)

// Reasons that only their messages explain.
const (
	reasonAdopting    machinist.Reason = "AddingFinalizer"
	reasonDeleted     machinist.Reason = "Deleted"
	reasonNoCluster   machinist.Reason = "NoCluster"
	reasonNoRollback  machinist.Reason = "NoRollback"
	reasonNotRemoved  machinist.Reason = "NotRemoved"
	reasonBurst       machinist.Reason = "BurstLimit"
	reasonNodeUnknown machinist.Reason = "NodeUnknown"
	reasonNotOurs     machinist.Reason = "ControlledByAnother"
	reasonReleased    machinist.Reason = "SetsReleased"
	reasonSetDeleting machinist.Reason = "SetDeleting"
)

// Types of events.
const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

// Reasons of events.
const (
	eventScaled            machinist.Reason = "ScalingMachineSet"
	eventSelectsAll        machinist.Reason = "SelectingAll"
	eventRolledBack        machinist.Reason = "DeploymentRollback"
	eventRevisionNotFound  machinist.Reason = "DeploymentRollbackRevisionNotFound"
	eventTemplateUnchanged machinist.Reason = "DeploymentRollbackTemplateUnchanged"
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
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}
