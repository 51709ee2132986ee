// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waiting holds the unavailable machines of the new set. Without such machines it holds the sets
// that have not reached their sizes.
func (c *pass) waiting() {
	if c.newSet != nil {
		c.newMachines(c.ledger.of(c.newSet))
	}
	if len(c.out.Holds) > 0 {
		return
	}
	for _, a := range c.ledger.accounts {
		switch s := a.set; {
		case a.deleting:
			c.hold("machineset/"+s.Name, reasonSetDeleting, plural(a.replicas, "%d machine is left", "%d machines are left"))
		case !a.reported:
			c.hold("machineset/"+s.Name, reasonSetNotReported, notReported(s))
		case a.replicas != int64(s.Spec.Replicas):
			c.hold("machineset/"+s.Name, reasonWaitingForMachines, fmt.Sprintf("%s, %d wanted%s", machines(a.replicas), s.Spec.Replicas, replicaFailure(s)))
		case a.isNew && s.Status.AvailableReplicas < s.Spec.Replicas:
			c.hold("machineset/"+s.Name, reasonWaitingForMachines, fmt.Sprintf("%s reported available, %d wanted", machines(int64(s.Status.AvailableReplicas)), s.Spec.Replicas))
		}
	}
}

// replicaFailure returns the message of the condition ReplicaFailure of a set.
func replicaFailure(s *v1alpha1.MachineSet) string {
	if c := rollout.FailureOf(s); c != nil && c.Status == v1alpha1.ConditionTrue {
		return ": " + brief(c.Message)
	}
	return ""
}

// maxNewMachines is the maximum number of holds about machines of the new set.
const maxNewMachines = 5

// newMachines holds the unavailable machines of the new set, those with an error first.
func (c *pass) newMachines(a *account) {
	var list []*v1alpha1.Machine
	for _, m := range a.machines {
		if !members.Leaving(m) && !a.isAvailable(m) && !lacksCapacity(m) { // withoutCapacity holds the others
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(x, y *v1alpha1.Machine) int { return cmp.Compare(trouble(y), trouble(x)) })
	for i, m := range list {
		if i == maxNewMachines {
			c.hold("machineset/"+a.set.Name, ReasonNewUnavailable, plural(int64(len(list)-i), "%d more machine is not available", "%d more machines are not available"))
			return
		}
		_, at := members.NextAvailable([]*v1alpha1.Machine{m}, a.minReady, c.now) // zero if not known
		c.holdUntil(at, "machine/"+m.Name, ReasonNewUnavailable, condition(m))
	}
}

// trouble returns 2 for a machine whose last operation failed, 1 for another failed machine, and 0
// otherwise.
func trouble(m *v1alpha1.Machine) int {
	switch {
	case m.Status.LastOperation.State == v1alpha1.MachineStateFailed:
		return 2
	case members.Failed(m):
		return 1
	default:
		return 0
	}
}

// condition returns the phase of a machine and the error of its last operation.
func condition(m *v1alpha1.Machine) string {
	phase, op := string(m.Status.CurrentStatus.Phase), m.Status.LastOperation
	if phase == "" {
		phase = "not processed yet"
	}
	if op.State != v1alpha1.MachineStateFailed {
		return phase
	}
	text := fmt.Sprintf("%s, %s failed", phase, cmp.Or(string(op.Type), "the last operation"))
	if op.ErrorCode != "" {
		text += " with " + op.ErrorCode
	}
	if op.Description != "" {
		text += ": " + brief(facts.WithoutDetails(op.Description))
	}
	return text
}
