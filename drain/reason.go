// SPDX-License-Identifier: Apache-2.0

package drain

import "github.com/machinist-dev/machinist"

// Action is what is done with a pod.
type Action string

// The actions.
const (
	// Ignore makes no request for the pod and does not wait for it.
	Ignore Action = "ignore"
	// Evict requests the eviction of the pod, which PodDisruptionBudgets may refuse.
	Evict Action = "evict"
	// Delete deletes the pod with a grace period of at least a second, whatever
	// PodDisruptionBudgets allow. The kubelet confirms the end of the pod.
	Delete Action = "delete"
	// ForceDelete deletes the pod from the API without confirmation of the kubelet.
	ForceDelete Action = "force-delete"
	// Wait makes no request now.
	Wait Action = "wait"
	// Block makes no request, and the drain cannot end unless the pod, the policy or the
	// observation changes.
	Block Action = "block"
)

// IsRequest reports whether the action is a request to the API server.
func (v Action) IsRequest() bool { return v.strength() > 0 }

// strength orders the requests. Other actions have 0.
func (v Action) strength() int {
	switch v {
	case Evict:
		return 1
	case Delete:
		return 2
	case ForceDelete:
		return 3
	default:
		return 0
	}
}

// The reasons that concern the drain as a whole.
const (
	ReasonNotObserved   machinist.Reason = "NotObserved"   // the Node or its pods are not known
	ReasonUncordoned    machinist.Reason = "Uncordoned"    // the cordon was taken away
	ReasonNotCordoned   machinist.Reason = "NotCordoned"   // the cordon does not stand yet
	ReasonInvalidPolicy machinist.Reason = "InvalidPolicy" // the policy contradicts itself
)

// The reasons of pods and volumes that are not touched.
const (
	ReasonStays         machinist.Reason = "Stays"         // the pod would come back to the Node, or a pod that stays uses the volume
	ReasonGone          machinist.Reason = "Gone"          // the pod does not run on this Node any more
	ReasonAbandoned     machinist.Reason = "Abandoned"     // it was waited for as long as the policy says
	ReasonUnmanaged     machinist.Reason = "Unmanaged"     // no controller would create the pod again
	ReasonLocalStorage  machinist.Reason = "LocalStorage"  // the pod would lose data
	ReasonRule          machinist.Reason = "Rule"          // the selector or a label says so
	ReasonWaitCompleted machinist.Reason = "WaitCompleted" // the pod is to complete by itself
	ReasonDoNotDisrupt  machinist.Reason = "DoNotDisrupt"  // the pod asks not to be disrupted
	ReasonNotEvaluated  machinist.Reason = "NotEvaluated"  // a list is missing to tell
)

// The reasons of requests, and of waits for what they do. The reason of a deletion is the
// [Escalation] that allows it.
const (
	ReasonEvict       machinist.Reason = "Evictable"   // nothing speaks against it
	ReasonTerminating machinist.Reason = "Terminating" // the request was accepted
	ReasonOverdue     machinist.Reason = "Overdue"     // the pod should have stopped by now
	ReasonWave        machinist.Reason = "Wave"        // other pods go first
)

// The reasons that budgets and the API server give.
const (
	ReasonBudget      machinist.Reason = "DisruptionBudget"   // a budget refuses
	ReasonBudgetNever machinist.Reason = "BudgetNeverAllows"  // a budget refuses for ever, as it is written
	ReasonBudgets     machinist.Reason = "OverlappingBudgets" // several budgets cover the pod, which the API server refuses
	ReasonForbidden   machinist.Reason = "Forbidden"          // the client may not do this
	ReasonUnavailable machinist.Reason = "Unavailable"        // the API server is busy, or did not answer
	ReasonRefused     machinist.Reason = "Refused"            // anything else; the message says what
)

// The reasons of volumes.
const (
	ReasonInUse       machinist.Reason = "InUse"       // a pod that goes uses the volume
	ReasonDetaching   machinist.Reason = "Detaching"   // the volume is attached to the Node
	ReasonReattaching machinist.Reason = "Reattaching" // the volume is not attached to another Node yet
)
