// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Decision is what to do for one deployment: the size of each set, the writes, the status, the
// Events, and what it waits for.
//
// Carry out the actions in their order, up to the first that fails, and report the Event of each.
// Store the status in any case. Report the Events once the status is stored, so that each is
// reported once. The next decision repeats what was not done.
type Decision struct {
	// Reason is [ReasonComplete], Progressing or Stuck for a rollout. Otherwise it says why there is
	// no rollout, such as [ReasonPaused].
	Reason machinist.Reason
	// Message is why, for people, with the numbers of a rollout. Its text may change.
	Message string
	// Targets are the sizes of all observed sets, oldest first, including those that do not change:
	// see [Decision.Target]. There are none if the reason does not allow a decision about sizes.
	Targets []Target
	// Actions are the requests, in the order in which to carry them out. No two of them write the
	// same object:
	//   - [machinist.Update] of the deployment, a set, a machine or a Node, all with the resource
	//     version as a precondition. Nodes are last; if one fails, continue with the next.
	//   - [machinist.Create] of the set for a new template. If its name is taken, decide again with
	//     the existing set in [Observation.NameTakenBy]. After any other failure, store and report the
	//     result of [CreateFailed].
	//   - [machinist.Delete] of a set.
	//   - [machinist.Refresh] of one object: give the result to [machine.Expectations.Looked].
	//   - [machinist.Refresh] of the MachineSets without a name: list the sets of the deployment and
	//     their machines. Give both to [machine.Listed], set [Observation].Proven for the rest of the
	//     process, and decide again.
	Actions []machinist.Action
	// Status is the complete status of the deployment. Store it if WriteStatus is true.
	Status v1alpha1.MachineDeploymentStatus
	// WriteStatus means that Status has to be stored: it differs from the stored one, or the
	// deployment gets the revision of its new set.
	WriteStatus bool
	// Events are reported once Status is stored. Actions have Events of their own.
	Events []machinist.Event
	// Holds are what is not done, and why.
	Holds []machinist.Hold
	// NextCheck is when to decide again, after the time of the decision. Zero means when an object
	// changes.
	NextCheck time.Time
}

// Target is the size of a set, and the machines that it deletes for that size.
type Target struct {
	// Name and UID identify the set.
	Name string
	UID  types.UID
	// From is the present size, and To the new one.
	From, To int32
	// Victims are the machines that the set deletes, including those that earlier decisions named.
	// They are fewer than the difference if not all machines are known.
	Victims []machineset.Victim
	// Message is why, as an inequality. It is empty if the size does not change.
	Message string
}

// String returns the target in one line.
func (t Target) String() string {
	s := fmt.Sprintf("%s %d -> %d", t.Name, t.From, t.To)
	if len(t.Victims) > 0 {
		names := make([]string, 0, len(t.Victims))
		for _, v := range t.Victims {
			names = append(names, v.Machine.Name)
		}
		s += " without " + strings.Join(names, ", ")
	}
	if t.Message != "" {
		s += ": " + t.Message
	}
	return s
}

// Target returns the target of a set. It returns an error for a set that the decision does not know;
// such a set does not have the size 0.
func (d Decision) Target(set types.UID) (Target, error) {
	for _, t := range d.Targets {
		if t.UID == set {
			return t, nil
		}
	}
	return Target{}, fmt.Errorf("no target for the set with UID %q", set)
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string { return line.Decision(d.Actions, d.Reason, d.Message, d.Holds) }
