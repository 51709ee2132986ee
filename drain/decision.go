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

// Outcome is how a drain ended.
type Outcome string

// The outcomes. Only [Drained] means that all pods to evict are gone.
const (
	// Draining means that the drain has not ended.
	Draining Outcome = ""
	// Drained means that the drain waits for no pod and no new one can be scheduled to the Node.
	Drained Outcome = "Drained"
	// NodeGone means that the Node does not exist.
	NodeGone Outcome = "NodeGone"
	// Proceeded means that the policy ended the drain although pods or attached volumes are left:
	// by a rung of the ladder, by a timeout for volumes, or because the Node is unreachable.
	Proceeded Outcome = "Proceeded"
	// GaveUp means that a rung of the ladder ended the drain with [GiveUp].
	GaveUp Outcome = "GaveUp"
)

// Decision is what a drain does now, and what it waits for. The page docs/drain.md has its form in
// JSON.
type Decision struct {
	// Node is the name of the Node.
	Node string `json:"node"`
	// Outcome is how the drain ended, or [Draining].
	Outcome Outcome `json:"outcome,omitempty"`
	// Reason is why nothing could be decided, or NodeGone. Otherwise it is empty.
	Reason machinist.Reason `json:"reason,omitempty"`
	// Message is why, for people. Its text may change.
	Message string `json:"message,omitempty"`
	// Cordon is the cordon to set before any request for a pod. Nil means that it is set, or that
	// there is none.
	Cordon *SetCordon `json:"-"`
	// CordonedAt is when the cordon was first observed. Zero means that it is not set, or that the
	// policy has none.
	CordonedAt time.Time `json:"cordonedAt,omitzero"`
	// Rows are the pods, sorted by namespace, name and UID.
	Rows []Row `json:"pods"`
	// Volumes are the volumes that are attached to the Node or that the drain waits for.
	Volumes []VolumeRow `json:"volumes,omitempty"`
	// Gates are holds of the drain as a whole.
	Gates []machinist.Hold `json:"gates,omitempty"`
	// NotEvaluated are the incomplete lists that the policy needs.
	NotEvaluated []Source `json:"notEvaluated,omitempty"`
	// Rungs are the reached rungs of both ladders.
	Rungs []Rung `json:"-"`
	// Next is the escalation of the next rung.
	Next Escalation `json:"next,omitempty"`
	// NextAt is the time of the next rung.
	NextAt time.Time `json:"nextAt,omitzero"`
	// Ladder has all rungs that apply, reached or not.
	Ladder Ladder `json:"-"`
	// Started is when the drain began.
	Started time.Time `json:"started,omitzero"`
	// GoneSoFar is how many pods are gone since.
	GoneSoFar int `json:"goneSoFar,omitempty"`
	// NextCheck is when to decide again at the latest. Zero means when an observed object changes,
	// or that the drain has ended.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// SetCordon is the cordon to set before any request for a pod.
type SetCordon struct {
	// Node is the name of the Node.
	Node string
	// UID of the Node. Empty means any Node of that name.
	UID types.UID
	// Cordon is the cordon to set.
	Cordon nodeops.Cordon
	// At is the time of the decision.
	At time.Time
}

// Row is the decision about one pod.
type Row struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Name of the pod.
	Name string `json:"name"`
	// UID of the pod.
	UID types.UID `json:"uid"`
	// Action is what is done.
	Action Action `json:"action"`
	// Reason is why, a stable word.
	Reason machinist.Reason `json:"reason"`
	// Message is why, for people. Its text may change.
	Message string `json:"message,omitempty"`
	// Wave is 1 for critical pods, which are evicted after all others, and 0 otherwise.
	Wave int32 `json:"wave,omitempty"`
	// Priority is that of the pod, 0 if it has none. It orders the requests of a wave.
	Priority int32 `json:"priority,omitempty"`
	// Grace is the grace period of a request, in seconds. Nil means that of the pod.
	Grace *int64 `json:"graceSeconds,omitempty"`
	// Budgets are the PodDisruptionBudgets that do not allow the eviction.
	Budgets []Budget `json:"budgets,omitempty"`
	// Versions identifies the PodDisruptionBudgets of the pod and their versions. A [Result]
	// carries it to the response.
	Versions string `json:"-"`
	// Since is when this reason began.
	Since time.Time `json:"since,omitzero"`
	// Until is when to decide again. Zero means when an object changes.
	Until time.Time `json:"until,omitzero"`
	// Next is the next escalation for the pod. Empty means none.
	Next Escalation `json:"next,omitempty"`
	// NextAt is the time of the next escalation.
	NextAt time.Time `json:"nextAt,omitzero"`
}

// Budget is a PodDisruptionBudget that does not allow an eviction, as observed.
type Budget struct {
	// Namespace of the budget.
	Namespace string `json:"namespace"`
	// Name of the budget.
	Name string `json:"name"`
	// Allowed is how many disruptions it allows now.
	Allowed int32 `json:"allowed"`
	// Healthy is how many of its pods are healthy.
	Healthy int32 `json:"healthy"`
	// Desired is how many of its pods have to be healthy.
	Desired int32 `json:"desired"`
	// Expected is how many pods it has.
	Expected int32 `json:"expected"`
}

// VolumeRow is the decision about one volume.
type VolumeRow struct {
	// Attachment is the name of the VolumeAttachment. It is empty for a volume that only the status
	// of the Node shows, or that has to be attached to another Node.
	Attachment string `json:"attachment,omitempty"`
	// Volume is the name of the PersistentVolume, or the unique name in the status of the Node.
	Volume string `json:"volume,omitempty"`
	// Action is [Wait] or [Ignore].
	Action Action `json:"action"`
	// Reason is why.
	Reason machinist.Reason `json:"reason"`
	// Message is why, for people. Its text may change.
	Message string `json:"message,omitempty"`
	// Since is when this reason began.
	Since time.Time `json:"since,omitzero"`
	// Until is when to decide again. Zero means when an object changes.
	Until time.Time `json:"until,omitzero"`
}

// Over reports whether the drain has ended, with any outcome.
func (d Decision) Over() bool { return d.Outcome != Draining }

// Requests returns the rows with a request, in the order in which to make the requests: by wave,
// lower priority, namespace, name and UID.
func (d Decision) Requests() []Row {
	var rows []Row
	for i := range d.Rows {
		if d.Rows[i].Action.IsRequest() {
			rows = append(rows, d.Rows[i])
		}
	}
	slices.SortStableFunc(rows, requestOrder)
	return rows
}

// requestOrder compares rows in the order of their requests.
func requestOrder(a, b Row) int {
	if c := cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Priority, b.Priority)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// Holds returns everything that the drain waits for, including pods for which a request is made
// now: first the Node, then pods, then volumes.
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

// Feasible reports whether the drain can end with what is known now. It returns false with
// obstacles, an invalid policy or an uncordoned Node, after the drain gave up, and if nothing could
// be decided. True is no guarantee: lists that are not evaluated may have obstacles.
func (d Decision) Feasible() bool {
	closed := func(g machinist.Hold) bool { return g.Reason == reasonInvalidPolicy || g.Reason == ReasonUncordoned }
	return d.Reason != ReasonNotObserved && d.Outcome != GaveUp && !slices.ContainsFunc(d.Gates, closed) && len(d.Obstacles()) == 0
}

// Obstacles returns the rows of the pods for which neither waiting nor a rung of the ladder helps:
// the pod, a PodDisruptionBudget, a permission or the policy has to change. If the drain gave up,
// it returns all pods that are left.
func (d Decision) Obstacles() []Row {
	var stuck []Row
	for i := range d.Rows {
		if d.stuck(&d.Rows[i]) {
			stuck = append(stuck, d.Rows[i])
		}
	}
	return stuck
}

// Refusals returns why the policy, an uncordoned Node, or a request that the API server refuses for good
// keeps the drain from ending. It is empty if the drain may begin. PodDisruptionBudgets and lists that are
// not evaluated do not count.
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
		if row.Action == Block && row.Reason != reasonNotEvaluated || row.refused() {
			refusals = append(refusals, row.hold())
		}
	}
	return refusals
}

// stuck reports whether neither waiting nor the ladder helps a pod.
func (d Decision) stuck(row *Row) bool {
	switch {
	case row.Action != Wait && row.Action != Block:
		return false
	case d.Outcome == GaveUp:
		return true
	case row.Action == Block && !row.Until.IsZero(): // the protection expires
		return false
	case row.Action == Wait && row.Reason != ReasonBudgetNever && row.Reason != ReasonBudgets && !row.refused():
		return false
	}
	return !slices.ContainsFunc(d.Ladder, func(rung Rung) bool { return rung.removes(row.Reason) })
}

// refused reports whether the API server refuses the request for good.
func (r *Row) refused() bool { return r.Reason == reasonForbidden || r.Reason == reasonInvalid }

// gone reports whether the pod does not run on the Node anymore.
func (r *Row) gone() bool { return r.Action == Ignore && r.Reason == reasonGone }

// pod returns the namespace and the name of the pod.
func (r *Row) pod() string { return r.Namespace + "/" + r.Name }

func (r *Row) subject() string { return "pod/" + r.pod() }

// hold returns the row as a hold.
func (r *Row) hold() machinist.Hold {
	return machinist.Hold{Subject: r.subject(), Reason: r.Reason, Message: r.Message, Since: r.Since, Until: r.Until}
}

// wait turns a request into a wait.
func (r *Row) wait(reason machinist.Reason, message string, until time.Time) {
	r.Action, r.Reason, r.Message, r.Grace, r.Until = Wait, reason, message, nil, until
}

func (v *VolumeRow) subject() string {
	if v.Attachment != "" {
		return "volumeattachment/" + v.Attachment
	}
	return "volume/" + v.Volume
}
