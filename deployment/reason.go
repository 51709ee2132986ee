// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/machinist-dev/machinist"
)

// Reasons of decisions and holds.
const (
	// ReasonViewIncomplete: the lists of sets and machines may be incomplete.
	ReasonViewIncomplete machinist.Reason = "ViewIncomplete"
	// ReasonInvalid: the spec is not valid.
	ReasonInvalid machinist.Reason = "InvalidSpec"
	// ReasonSelectsNothing: the selector is empty.
	ReasonSelectsNothing machinist.Reason = "EmptySelector"
	// ReasonWriteNotSeen: the view does not show a write of this process yet.
	ReasonWriteNotSeen machinist.Reason = "WriteNotSeen"
	// ReasonDeleting: the deployment is being deleted.
	ReasonDeleting machinist.Reason = "Deleting"
	// ReasonPaused: rollouts are paused.
	ReasonPaused machinist.Reason = "Paused"
	// ReasonFrozen: the deployment or a set is frozen, so it does not grow.
	ReasonFrozen machinist.Reason = "Frozen"
	// ReasonRollingBack: the template becomes that of an earlier revision.
	ReasonRollingBack machinist.Reason = "RollingBack"
	// ReasonScaling: the replicas changed.
	ReasonScaling machinist.Reason = "Scaling"
	// ReasonNewSet: a set for a new template is created.
	ReasonNewSet machinist.Reason = "CreatingSet"
	// ReasonNameTaken: another object has the name of the new set.
	ReasonNameTaken machinist.Reason = "NameTaken"
	// ReasonProgressing: machines are being replaced, within the progress deadline.
	ReasonProgressing machinist.Reason = "Progressing"
	// ReasonStuck: the rollout has made no progress within its progress deadline.
	ReasonStuck machinist.Reason = "Stuck"
	// ReasonComplete: all machines are of the new set and available.
	ReasonComplete machinist.Reason = "Complete"
	// ReasonGate: a [Gate] keeps a machine.
	ReasonGate machinist.Reason = "Gate"
	// ReasonNoCapacity: the provider has no capacity for a machine of the new set.
	ReasonNoCapacity machinist.Reason = "NoCapacity"
	// ReasonNewUnavailable: machines of the new set are not available.
	ReasonNewUnavailable machinist.Reason = "NewMachinesUnavailable"
	// ReasonUpdating: machines are being updated in place.
	ReasonUpdating machinist.Reason = "UpdatingInPlace"
	// ReasonSurgeUsedUp: as many machines exist as may.
	ReasonSurgeUsedUp machinist.Reason = "SurgeUsedUp"
	// ReasonMinimumAvailable: no more machines may become unavailable.
	ReasonMinimumAvailable machinist.Reason = "MinimumAvailable"
	// ReasonSetNotReported: a set has not reported on its present spec.
	ReasonSetNotReported machinist.Reason = "SetNotReported"
	// ReasonWaitingForMachines: machines have to become available or to go.
	ReasonWaitingForMachines machinist.Reason = "WaitingForMachines"
	// ReasonProgressDeadline: the rollout stood still for too long.
	ReasonProgressDeadline machinist.Reason = "ProgressDeadlineExceeded"
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

// brief cuts a text off at a length that fits into a line.
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
