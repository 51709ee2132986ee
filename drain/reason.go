// SPDX-License-Identifier: Apache-2.0

package drain

import "github.com/machinist-dev/machinist"

// Verdict is what is done with a pod.
type Verdict string

// The verdicts.
const (
	// Ignore leaves the pod alone and does not wait for it.
	Ignore Verdict = "ignore"
	// Evict asks for the pod's eviction, which budgets may refuse.
	Evict Verdict = "evict"
	// Delete deletes the pod with a grace of a second at least. No budget is asked.
	// The kubelet still says when it has stopped, so that it never runs twice.
	Delete Verdict = "delete"
	// ForceDelete takes the pod off the API, whether it runs or not.
	ForceDelete Verdict = "force-delete"
	// Wait does nothing now, and the drain goes on.
	Wait Verdict = "wait"
	// Block does nothing, and the drain cannot end unless the pod, the policy or what
	// is observed changes.
	Block Verdict = "block"
)

// Asks reports whether the verdict is a request to the API server.
func (v Verdict) Asks() bool { return v.strength() > 0 }

// strength orders the requests; what asks for nothing has none.
func (v Verdict) strength() int {
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

// The reasons why a drain as a whole does nothing.
const (
	ReasonNotObserved     machinist.Reason = "NotObserved"     // the Node or its pods are not known
	ReasonNodeGone        machinist.Reason = "NodeGone"        // there is no such Node any more
	ReasonNeverRegistered machinist.Reason = "NeverRegistered" // there never was such a Node
	ReasonUncordoned      machinist.Reason = "Uncordoned"      // somebody took the fence away
	ReasonNotFenced       machinist.Reason = "NotFenced"       // the fence does not stand yet
	ReasonHook            machinist.Reason = "Hook"            // somebody else has something to do first
	ReasonInvalidPolicy   machinist.Reason = "InvalidPolicy"   // the policy contradicts itself
)

// The reasons of what is not touched.
const (
	ReasonNoIdentity    machinist.Reason = "NoIdentity"     // the pod lacks namespace, name or UID
	ReasonElsewhere     machinist.Reason = "OnOtherNode"    // the pod is not on this Node
	ReasonMirror        machinist.Reason = "MirrorPod"      // the kubelet would make it again
	ReasonDaemonSet     machinist.Reason = "DaemonSetPod"   // its DaemonSet would make it again
	ReasonRecurring     machinist.Reason = "Recurring"      // born after the fence, which it tolerates
	ReasonTolerates     machinist.Reason = "ToleratesFence" // it tolerates the taint of the fence
	ReasonFinished      machinist.Reason = "Finished"       // it does not run any more
	ReasonAbandoned     machinist.Reason = "Abandoned"      // it was waited for as long as the policy says
	ReasonGaveUp        machinist.Reason = "GaveUp"         // the drain was given up
	ReasonUnmanaged     machinist.Reason = "Unmanaged"      // no controller would make it again
	ReasonLocalStorage  machinist.Reason = "LocalStorage"   // it would lose data
	ReasonRule          machinist.Reason = "Rule"           // a rule says so
	ReasonWaitCompleted machinist.Reason = "WaitCompleted"  // it is to complete by itself
	ReasonDoNotDisrupt  machinist.Reason = "DoNotDisrupt"   // it asks not to be disturbed
)

// The reasons of requests, and of waits for what they do.
const (
	ReasonEvict       machinist.Reason = "Evictable"       // nothing speaks against it
	ReasonForced      machinist.Reason = "Forced"          // the ladder says so
	ReasonUnreachable machinist.Reason = "NodeUnreachable" // nobody on the Node stops it
	ReasonTerminating machinist.Reason = "Terminating"     // it is on its way out
	ReasonOverdue     machinist.Reason = "Overdue"         // it should have stopped by now
	ReasonWave        machinist.Reason = "Wave"            // an earlier wave is not over
	ReasonVolumeLimit machinist.Reason = "VolumeLimit"     // enough volumes are on their way
)

// The reasons that budgets and the API server give.
const (
	ReasonBudget      machinist.Reason = "DisruptionBudget"     // a budget refuses
	ReasonBudgetNever machinist.Reason = "BudgetNeverAllows"    // a budget refuses for ever, as it is written
	ReasonBudgets     machinist.Reason = "OverlappingBudgets"   // several budgets cover the pod, which the API server refuses
	ReasonThrottled   machinist.Reason = "Throttled"            // too many requests, of anybody
	ReasonGone        machinist.Reason = "Gone"                 // there is no such pod any more
	ReasonConflict    machinist.Reason = "Conflict"             // another pod has its name, or somebody wrote at the same time
	ReasonNamespace   machinist.Reason = "NamespaceTerminating" // the pod will go with its namespace
	ReasonForbidden   machinist.Reason = "Forbidden"            // the client may not do this
	ReasonUnanswered  machinist.Reason = "Unanswered"           // no answer came: it may have been done or not
	ReasonRefused     machinist.Reason = "Refused"              // anything else; the message says what
)

// The reasons of volumes.
const (
	ReasonDetaching    machinist.Reason = "Detaching"    // the volume is attached to the Node
	ReasonInUse        machinist.Reason = "InUse"        // a pod that goes still uses the volume
	ReasonReattaching  machinist.Reason = "Reattaching"  // the volume is not attached elsewhere yet
	ReasonStays        machinist.Reason = "Stays"        // a pod that stays uses the volume
	ReasonTimedOut     machinist.Reason = "TimedOut"     // it was waited for as long as the policy says
	ReasonNotEvaluated machinist.Reason = "NotEvaluated" // a source is missing to tell

	ReasonNotReattached machinist.Reason = "NotReattached" // its pod did not use it elsewhere in time
	ReasonUnschedulable machinist.Reason = "Unschedulable" // the pod that uses it next finds no Node
)
