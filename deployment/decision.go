// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A Decision is everything that one pass intends: what becomes of every set, the
// writes that this takes, the status, the events, and what is not done and why.
// Carry out the actions in their order up to the first that fails, reporting the
// event of each; store the status in any case; report the events when it is stored, so
// that each is reported once. What was not done is decided anew. Nodes are written last,
// and one that cannot be written is no reason to leave out the next.
type Decision struct {
	// Reason is [ReasonComplete], [ReasonProgressing] or [ReasonStuck] for a rollout, or why
	// there is none, such as [ReasonPaused].
	Reason machinist.Reason
	// Message is why, for people, with the numbers of a rollout. Its text may change.
	Message string
	// Targets are the sizes of all sets that were observed, oldest first, also of
	// those that do not change; see [Decision.Target]. There are none if nothing
	// may be decided about sizes: [Decision.Reason] says why.
	Targets []Target
	// Actions to carry out, in order.
	Actions []Action
	// Status of the deployment, complete. It is to be stored if WriteStatus.
	Status v1alpha1.MachineDeploymentStatus
	// WriteStatus says that Status is to be stored: it differs from what is stored, or
	// the deployment takes over the revision of its new set.
	WriteStatus bool
	// Events to report once Status is stored; those of actions come with them.
	Events []machinist.Event
	// Holds say what is not done, and why.
	Holds []machinist.Hold
	// NextCheck is when to decide again even if nothing changes. It is after the
	// time of the decision; zero if only a change can help.
	NextCheck time.Time
}

// A Target is the size that a set should have, and who goes for it.
type Target struct {
	// Name and UID identify the set.
	Name string
	UID  types.UID
	// From is the size it has, To the one it gets.
	From, To int32
	// Victims are the machines that go, those named by earlier passes and not gone
	// yet included, each with what chose it. Fewer than are too many if not all of
	// them are known.
	Victims []machineset.Victim
	// Message is the inequality behind it; empty if nothing changes.
	Message string
}

// String returns the target in one line.
func (t Target) String() string {
	s := fmt.Sprintf("%s %d -> %d", t.Name, t.From, t.To)
	if len(t.Victims) > 0 {
		names := make([]string, 0, len(t.Victims))
		for _, v := range t.Victims {
			names = append(names, nameOf(v.Machine))
		}
		s += " without " + strings.Join(names, ", ")
	}
	if t.Message != "" {
		s += ": " + t.Message
	}
	return s
}

// ErrNoTarget is returned for a set that a decision says nothing about.
var ErrNoTarget = errors.New("no target for this set")

// Target returns what becomes of a set. A set that the decision does not know is
// an error that wraps [ErrNoTarget]; it is never read as a size of 0.
func (d Decision) Target(set types.UID) (Target, error) {
	for _, t := range d.Targets {
		if t.UID == set {
			return t, nil
		}
	}
	return Target{}, fmt.Errorf("%w: UID %q", ErrNoTarget, set)
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string { return line.Decision(d.Actions, d.Reason, d.Message, d.Holds) }
