// SPDX-License-Identifier: Apache-2.0

package drain

import (
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
	// NodeGone: there is no Node to drain, or never was.
	NodeGone Outcome = "NodeGone"
	// Proceeded: the policy says to go on although pods are left, or volumes that did
	// not come off the Node: a rung of the ladder, the time for volumes, or an
	// unreachable Node, which unmounts nothing.
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
	// Reason says why nothing can be planned, or why there was no drain; it is empty
	// otherwise.
	Reason machinist.Reason
	// Message is why, in words for people.
	Message string
	// Fence is what has to be done to the Node before anything else, or nil.
	Fence *SetFence
	// FencedAt is when the fence was first seen to stand. Zero means that it does not,
	// or that the policy has none.
	FencedAt time.Time
	// Rows are the pods, by namespace, name and UID.
	Rows []Row
	// Volumes are those that are waited for after the pods, and those that are not.
	Volumes []VolumeRow
	// Gates are what else the drain waits for, such as hooks.
	Gates []machinist.Hold
	// NotEvaluated are the sources that nobody asked: what they would say is not
	// known, which is not the same as nothing.
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

// SetFence is the fence to set before anything else.
type SetFence struct {
	// Node is its name, UID that of the Node which is meant; empty means whichever
	// has the name.
	Node string
	UID  types.UID
	// Fence to set.
	Fence nodeops.Fence
	// At is the time of the plan.
	At time.Time
}

// Row is what happens to one pod.
type Row struct {
	// Namespace, Name and UID of the pod. A later pod of the same name is another.
	Namespace, Name string
	UID             types.UID
	// Verdict is what is done.
	Verdict Verdict
	// Reason is why, as a stable word.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Wave of the pod.
	Wave int32
	// Priority of the pod, which orders the requests of a wave; a pod without has 0.
	Priority int32
	// Grace in seconds that a request gives; nil is the pod's own.
	Grace *int64
	// Budgets are those that refuse.
	Budgets []Budget
	// Versions identifies the budgets of a pod, refusing or not, and their versions. The
	// [Result] of a request carries it to the [Answer].
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

// Budget is a disruption budget that refuses, as it was observed.
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
	// only the status of the Node tells of, or that is to be attached elsewhere.
	Attachment string
	// Volume is the name of the PersistentVolume or, for one that is only known from
	// the status of the Node, its unique name there.
	Volume string
	// Verdict is [Wait] or [Ignore].
	Verdict Verdict
	// Reason is why.
	Reason machinist.Reason
	// Message is why, in words for people; it may change.
	Message string
	// Since when this has been the reason, as far as the drain remembers.
	Since time.Time
	// Until is when to look again, or zero for when something changes.
	Until time.Time
}

// Over says whether the drain has ended, however it did.
func (p Decision) Over() bool { return p.Outcome != Draining }
