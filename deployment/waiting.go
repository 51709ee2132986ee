// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// waiting holds what a roll-out that changes nothing waits for: the machines of
// the new set that are not available, and every set that has not done yet what it
// was told.
func (c *pass) waiting() {
	if c.newSet != nil {
		c.newMachines(c.account(c.newSet))
	}
	if len(c.out.Holds) > 0 {
		return
	}
	for _, a := range c.accounts {
		switch s := a.set; {
		case a.doomed:
			c.hold(s.Name, ReasonSetDeleting, fmt.Sprintf("%d machines are left", a.replicas))
		case !a.reported:
			c.hold(s.Name, ReasonSetNotReported, notReported(s))
		case a.replicas != int64(s.Spec.Replicas):
			c.hold(s.Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines exist, %d are wanted%s", a.replicas, s.Spec.Replicas, replicaFailure(s)))
		case a.isNew && s.Status.AvailableReplicas < s.Spec.Replicas:
			c.hold(s.Name, ReasonWaitingForMachines, fmt.Sprintf("%d machines are reported available, %d are wanted", s.Status.AvailableReplicas, s.Spec.Replicas))
		}
	}
}

func notReported(s *v1alpha1.MachineSet) string {
	return fmt.Sprintf("generation %d is not reported on yet, the last one was %d", s.Generation, s.Status.ObservedGeneration)
}

// replicaFailure returns what a set says about machines that it could not create
// or delete.
func replicaFailure(s *v1alpha1.MachineSet) string {
	for _, cond := range s.Status.Conditions {
		if cond.Type == v1alpha1.MachineSetReplicaFailure && cond.Status == v1alpha1.ConditionTrue {
			return ": " + brief(cond.Message)
		}
	}
	return ""
}

// maxTold is how many machines of the new set are told one by one.
const maxTold = 5

// newMachines holds the machines of the new set that are not available, those with
// an error first.
func (c *pass) newMachines(a *account) {
	var list []*v1alpha1.Machine
	for _, m := range a.machines {
		if !machineset.Leaving(m) && !c.available(a, m) && !NoCapacityFor(m) { // those are told already
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(x, y *v1alpha1.Machine) int { return cmp.Compare(trouble(y), trouble(x)) })
	for i, m := range list {
		if i == maxTold {
			c.hold(a.set.Name, ReasonNewUnavailable, fmt.Sprintf("%d more machines are not available", len(list)-i))
			return
		}
		c.out.Holds = append(c.out.Holds, machinist.Hold{Subject: m.Name, Reason: ReasonNewUnavailable, Message: condition(m), Until: c.availableAt(a, m)})
	}
}

// availableAt returns when a machine will have been available for long enough,
// zero if that is not certain.
func (c *pass) availableAt(a *account, m *v1alpha1.Machine) time.Time {
	if since, ok := machineset.AvailableSince(m); ok && since.Add(a.settling()).After(c.now) {
		return since.Add(a.settling())
	}
	return time.Time{}
}

// trouble orders machines by how much is wrong with them.
func trouble(m *v1alpha1.Machine) int {
	switch {
	case m.Status.LastOperation.State == v1alpha1.MachineStateFailed:
		return 2
	case machineset.Failed(m):
		return 1
	default:
		return 0
	}
}

// condition tells the phase of a machine and the error of its last operation.
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
		text += ": " + brief(op.Description)
	}
	return text
}

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
