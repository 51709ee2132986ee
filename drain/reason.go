// SPDX-License-Identifier: Apache-2.0

package drain

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

// Reason is a stable CamelCase word for a verdict.
type Reason string

// The reasons why a drain as a whole does nothing.
const (
	ReasonNotObserved     Reason = "NotObserved"     // the Node or its pods are not known
	ReasonSkipped         Reason = "Skipped"         // the policy says so
	ReasonNodeGone        Reason = "NodeGone"        // there is no such Node any more
	ReasonNeverRegistered Reason = "NeverRegistered" // there never was such a Node
	ReasonUncordoned      Reason = "Uncordoned"      // somebody took the fence away
	ReasonNotFenced       Reason = "NotFenced"       // the fence does not stand yet
	ReasonHook            Reason = "Hook"            // somebody else has something to do first
	ReasonInvalidPolicy   Reason = "InvalidPolicy"   // the policy contradicts itself
)

// The reasons of what is not touched.
const (
	ReasonNoIdentity    Reason = "NoIdentity"     // the pod lacks namespace, name or UID
	ReasonElsewhere     Reason = "OnOtherNode"    // the pod is not on this Node
	ReasonMirror        Reason = "MirrorPod"      // the kubelet would make it again
	ReasonDaemonSet     Reason = "DaemonSetPod"   // its DaemonSet would make it again
	ReasonRecurring     Reason = "Recurring"      // born after the fence, which it tolerates
	ReasonTolerates     Reason = "ToleratesFence" // it tolerates the taint of the fence
	ReasonFinished      Reason = "Finished"       // it does not run any more
	ReasonAbandoned     Reason = "Abandoned"      // it was waited for as long as the policy says
	ReasonGaveUp        Reason = "GaveUp"         // the drain was given up
	ReasonUnmanaged     Reason = "Unmanaged"      // no controller would make it again
	ReasonLocalStorage  Reason = "LocalStorage"   // it would lose data
	ReasonRule          Reason = "Rule"           // a rule says so
	ReasonWaitCompleted Reason = "WaitCompleted"  // it is to complete by itself
	ReasonDoNotDisrupt  Reason = "DoNotDisrupt"   // it asks not to be disturbed
)

// The reasons of requests, and of waits for what they do.
const (
	ReasonEvict       Reason = "Evictable"       // nothing speaks against it
	ReasonForced      Reason = "Forced"          // the ladder says so
	ReasonUnreachable Reason = "NodeUnreachable" // nobody on the Node stops it
	ReasonTerminating Reason = "Terminating"     // it is on its way out
	ReasonOverdue     Reason = "Overdue"         // it should have stopped by now
	ReasonWave        Reason = "Wave"            // an earlier wave is not over
	ReasonVolumeLimit Reason = "VolumeLimit"     // enough volumes are on their way
)

// The reasons that budgets and the API server give.
const (
	ReasonBudget      Reason = "DisruptionBudget"     // a budget refuses
	ReasonBudgetNever Reason = "BudgetNeverAllows"    // a budget refuses for ever, as it is written
	ReasonBudgets     Reason = "OverlappingBudgets"   // several budgets cover the pod, which the API server refuses
	ReasonThrottled   Reason = "Throttled"            // too many requests, of anybody
	ReasonGone        Reason = "Gone"                 // there is no such pod any more
	ReasonConflict    Reason = "Conflict"             // another pod has its name, or somebody wrote at the same time
	ReasonNamespace   Reason = "NamespaceTerminating" // the pod will go with its namespace
	ReasonForbidden   Reason = "Forbidden"            // the client may not do this
	ReasonUnanswered  Reason = "Unanswered"           // no answer came: it may have been done or not
	ReasonRefused     Reason = "Refused"              // anything else; the message says what
)

// The reasons of volumes.
const (
	ReasonDetaching    Reason = "Detaching"    // the volume is attached to the Node
	ReasonInUse        Reason = "InUse"        // a pod that goes still uses the volume
	ReasonReattaching  Reason = "Reattaching"  // the volume is not attached elsewhere yet
	ReasonStays        Reason = "Stays"        // a pod that stays uses the volume
	ReasonTimedOut     Reason = "TimedOut"     // it was waited for as long as the policy says
	ReasonNotEvaluated Reason = "NotEvaluated" // a source is missing to tell

	ReasonNotReattached Reason = "NotReattached" // its pod did not use it elsewhere in time
	ReasonUnschedulable Reason = "Unschedulable" // the pod that uses it next finds no Node
)
