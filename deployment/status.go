// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// withFreeze returns the stored conditions with the beginning or the end of a freeze of the
// controllers. Each has one Event.
func (c *pass) withFreeze() []v1alpha1.MachineDeploymentCondition {
	const kind = v1alpha1.MachineDeploymentControllerFrozen
	conditions, freeze := c.d.Status.Conditions, c.in.Freeze
	known := rollout.Condition(c.d.Status, kind)
	switch {
	case freeze.Frozen == (known != nil):
		return conditions
	case !freeze.Frozen:
		c.out.Events = append(c.out.Events, machinist.Event{Type: eventNormal, Reason: eventUnfrozen, Message: brief(fmt.Sprintf(
			"The API servers answer again after a freeze since %s; health and creation timeouts begin anew", known.LastTransitionTime.UTC().Format(time.RFC3339)))})
		return rollout.Without(conditions, kind)
	}
	message := brief("Nothing is created, failed, replaced or rolled out until the API servers answer; deletions go on: " + freeze.Message)
	c.out.Events = append(c.out.Events, machinist.Event{Type: eventWarning, Reason: eventFrozen, Message: message})
	return rollout.With(conditions, rollout.NewCondition(kind, v1alpha1.ConditionTrue, v1alpha1.APIServerUnreachable, message, freeze.Since))
}

// Complete reports whether a rollout is complete according to a status: all machines are of the new
// set and available, and their number is that of the replicas. The status must be of the present
// spec. A refused spec or a requested rollback is not complete.
func Complete(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus) bool {
	return rollout.Complete(d, status)
}

// CreateFailed returns the status to store and the Event to report after the creation of a set failed,
// unless the name was taken. Its first argument is the stored status, because the status of the
// decision counts the new set.
func CreateFailed(status v1alpha1.MachineDeploymentStatus, set string, err error, now time.Time) (v1alpha1.MachineDeploymentStatus, machinist.Event) {
	message := fmt.Sprintf("Failed to create new machine set %q: %v", set, err)
	out := status.DeepCopy()
	out.Conditions = rollout.With(out.Conditions, rollout.NewCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionFalse, v1alpha1.MachineSetCreateError, message, now))
	return *out, machinist.Event{Type: eventWarning, Reason: v1alpha1.MachineSetCreateError, Message: message}
}

// counters sets the status without the conditions of a rollout.
func (c *pass) counters() {
	c.out.Status = rollout.Counted(c.d, c.newSet, c.old, c.now)
}
