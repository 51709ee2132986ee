// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// Outcome is what a drain came to.
type Outcome string

// The outcomes. Only [Drained] says that every pod that was to go has gone.
const (
	// Draining is a drain that is not over.
	Draining Outcome = ""
	// Drained: no pod is left to wait for, and none can come.
	Drained Outcome = "Drained"
	// NodeGone: there is no Node to drain.
	NodeGone Outcome = "NodeGone"
	// Proceeded: the policy says to go on although pods are left, or volumes that were not
	// detached: a rung of the ladder, the time for volumes, or an unreachable Node, which
	// unmounts nothing.
	Proceeded Outcome = "Proceeded"
	// GaveUp: a rung of the ladder says to give up.
	GaveUp Outcome = "GaveUp"
)

// Decision is what a drain does now, and what it waits for.
type Decision struct {
	// Node is the name of the Node.
	Node string
	// Outcome of the drain, or [Draining].
	Outcome Outcome
	// Reason says why nothing can be decided, or why there was no drain; it is empty
	// otherwise.
	Reason machinist.Reason
	// Message is why, in words for people.
	Message string
	// Cordon is what has to be done to the Node before anything else, or nil.
	Cordon *SetCordon
	// CordonedAt is when the cordon was first seen to stand. Zero means that it does not,
	// or that the policy has none.
	CordonedAt time.Time
	// Rows are the pods, by namespace, name and UID.
	Rows []Row
	// Volumes are those that are waited for after the pods, and those that are not.
	Volumes []VolumeRow
	// Gates are what holds the drain as a whole.
	Gates []machinist.Hold
	// NotEvaluated are the lists that the drain needs and that are not complete.
	NotEvaluated []Source
	// Rungs are those that have been reached, of both ladders.
	Rungs []Rung
	// Next is the rung that comes next, and NextAt when.
	Next   Escalation
	NextAt time.Time
	// Ladder are all rungs that apply, reached or not.
	Ladder Ladder
	// Started is when the drain began, GoneSoFar how many pods have gone since.
	Started   time.Time
	GoneSoFar int
	// NextCheck is when to decide again at the latest. Zero means when something
	// observed changes, or that the drain is over.
	NextCheck time.Time
}

// SetCordon is the cordon to set before anything else.
type SetCordon struct {
	// Node is its name, UID that of the Node which is meant; empty means any Node of that
	// name.
	Node string
	UID  types.UID
	// Cordon to set.
	Cordon nodeops.Cordon
	// At is the time of the decision.
	At time.Time
}

// Row is what happens to one pod.
type Row struct {
	// Namespace, Name and UID of the pod. A later pod of the same name is another.
	Namespace, Name string
	UID             types.UID
	// Action is what is done.
	Action Action
	// Reason is why, as a stable word.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Wave of the pod: 1 for critical pods, which go after all others, and otherwise 0.
	Wave int32
	// Priority of the pod, which orders the requests of a wave; a pod without has 0.
	Priority int32
	// Grace in seconds that a request gives; nil is the pod's own.
	Grace *int64
	// Budgets are those that refuse.
	Budgets []Budget
	// Versions identifies the budgets of a pod, refusing or not, and their versions. The
	// [Result] of a request carries it to the [Response].
	Versions string
	// Since when this has been the reason, as far as the drain remembers.
	Since time.Time
	// Until is when to look again, or zero for when something changes.
	Until time.Time
	// Next is what the pod escalates to, and NextAt when; empty if nothing is to
	// come.
	Next   Escalation
	NextAt time.Time
}

// Budget is a PodDisruptionBudget that refuses, as it was observed.
type Budget struct {
	// Namespace and Name of the budget.
	Namespace, Name string
	// Allowed is how many disruptions it allows now.
	Allowed int32
	// Healthy, Desired and Expected are its pods: healthy ones, those that must be,
	// and all.
	Healthy, Desired, Expected int32
}

// VolumeRow is what happens to one volume.
type VolumeRow struct {
	// Attachment is the name of the VolumeAttachment; it is empty for a volume that
	// only the status of the Node tells of, or that is to be attached to another Node.
	Attachment string
	// Volume is the name of the PersistentVolume or, for one that is only known from
	// the status of the Node, its unique name there.
	Volume string
	// Action is [Wait] or [Ignore].
	Action Action
	// Reason is why.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Since when this has been the reason, as far as the drain remembers.
	Since time.Time
	// Until is when to look again, or zero for when something changes.
	Until time.Time
}

// Over reports whether the drain has ended, with any outcome.
func (d Decision) Over() bool { return d.Outcome != Draining }

// RequestOrder orders rows as their requests are made: by wave, then the lower priority
// first, then by namespace, name and UID.
func RequestOrder(a, b Row) int {
	if c := cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Priority, b.Priority)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// Holds returns everything that the drain waits for, also what something is done
// about now: what concerns the Node first, then pods, then volumes.
func (d Decision) Holds() []machinist.Hold {
	var holds []machinist.Hold
	if d.Reason == ReasonNotObserved || d.Cordon != nil && d.Outcome == Draining {
		hold := nodeHold(d.Node, cmp.Or(d.Reason, ReasonNotCordoned), d.Message)
		hold.Until = d.NextCheck
		holds = append(holds, hold)
	}
	holds = append(holds, d.Gates...)
	for i := range d.Rows {
		if d.Rows[i].Action != Ignore {
			holds = append(holds, d.Rows[i].hold())
		}
	}
	for _, v := range d.Volumes {
		if v.Action != Ignore {
			holds = append(holds, machinist.Hold{Subject: v.subject(), Reason: v.Reason, Message: v.Message, Since: v.Since, Until: v.Until})
		}
	}
	return holds
}

// Feasible reports whether the drain can come to its end with what is known now. It is false if
// there are obstacles, if the policy contradicts itself, if the cordon was taken away, if the
// drain was given up, or if nothing could be decided. True is no promise: what is not evaluated
// may still refuse.
func (d Decision) Feasible() bool {
	closed := func(g machinist.Hold) bool { return g.Reason == ReasonInvalidPolicy || g.Reason == ReasonUncordoned }
	return d.Reason != ReasonNotObserved && d.Outcome != GaveUp && !slices.ContainsFunc(d.Gates, closed) && len(d.Obstacles()) == 0
}

// Obstacles returns the rows of the pods that no waiting helps and no rung of the
// ladder removes, in order. The pod, a budget, a permission or the policy has to be changed.
// When the drain was given up it returns all pods that are left.
func (d Decision) Obstacles() []Row {
	var stuck []Row
	for i := range d.Rows {
		if d.stuck(&d.Rows[i]) {
			stuck = append(stuck, d.Rows[i])
		}
	}
	return stuck
}

// Refusals returns why the caller's policy, or a cordon that was taken away, keeps the drain
// from its end. It is empty if the drain may begin. What belongs to others, such as a budget,
// or is not evaluated, does not count.
func (d Decision) Refusals() []machinist.Hold {
	if d.Over() {
		return nil
	}
	var refusals []machinist.Hold
	for _, g := range d.Gates {
		if g.Reason == ReasonUncordoned {
			refusals = append(refusals, g)
		}
	}
	for _, row := range d.Obstacles() {
		if row.Action == Block && row.Reason != ReasonNotEvaluated {
			refusals = append(refusals, row.hold())
		}
	}
	return refusals
}

// stuck reports whether neither time nor the ladder helps a pod.
func (d Decision) stuck(row *Row) bool {
	switch {
	case row.Action != Wait && row.Action != Block:
		return false
	case d.Outcome == GaveUp:
		return true
	case row.Action == Block && !row.Until.IsZero(): // it ends by itself
		return false
	case row.Action == Wait && row.Reason != ReasonBudgetNever && row.Reason != ReasonBudgets && row.Reason != ReasonForbidden:
		return false
	}
	return !slices.ContainsFunc(d.Ladder, func(rung Rung) bool { return rung.removes(row.Reason) })
}

// gone reports whether the pod does not run on the Node any more.
func (r *Row) gone() bool { return r.Action == Ignore && r.Reason == ReasonGone }

// pod returns the name of the pod with its namespace.
func (r *Row) pod() string { return r.Namespace + "/" + r.Name }

func (r *Row) subject() string { return subjectOf("pod", r.pod()) }

// hold returns what is waited for.
func (r *Row) hold() machinist.Hold {
	return machinist.Hold{Subject: r.subject(), Reason: r.Reason, Message: r.Message, Since: r.Since, Until: r.Until}
}

// wait makes a row wait that was to be a request.
func (r *Row) wait(reason machinist.Reason, message string, until time.Time) {
	r.Action, r.Reason, r.Message, r.Grace, r.Until = Wait, reason, message, nil, until
}

func (v *VolumeRow) subject() string {
	if v.Attachment != "" {
		return subjectOf("volumeattachment", v.Attachment)
	}
	return subjectOf("volume", v.Volume)
}

// left reports whether the drain ends although the volume is attached to the Node and was
// to be waited for.
func (v *VolumeRow) left() bool { return v.Action == Ignore && v.Reason == ReasonAbandoned }
