// SPDX-License-Identifier: Apache-2.0

package drain

// Verdict is what is done with a pod.
type Verdict string

// The verdicts.
const (
	// Ignore leaves the pod alone and does not wait for it.
	Ignore Verdict = "ignore"
	// Evict asks for the pod's eviction with its own grace, which budgets may
	// refuse.
	Evict Verdict = "evict"
	// Delete gives the pod a second to stop. No budget is asked. The kubelet still
	// says when it has stopped, so that it never runs twice.
	Delete Verdict = "delete"
	// ForceDelete takes the pod off the API, whether it runs or not.
	ForceDelete Verdict = "force-delete"
	// Wait does nothing now, and the drain goes on.
	Wait Verdict = "wait"
	// Block does nothing, and the drain cannot end unless the pod or the policy
	// changes.
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

// The reasons of what is not touched.
const (
	ReasonNotObserved  Reason = "NotObserved"  // the Node or its pods are not known
	ReasonNoIdentity   Reason = "NoIdentity"   // the pod lacks namespace, name or UID
	ReasonElsewhere    Reason = "OnOtherNode"  // the pod is not on this Node
	ReasonMirror       Reason = "MirrorPod"    // the kubelet would make it again
	ReasonDaemonSet    Reason = "DaemonSetPod" // its DaemonSet would make it again
	ReasonFinished     Reason = "Finished"     // it does not run any more
	ReasonAbandoned    Reason = "Abandoned"    // it was told to stop at once and did not, for a minute
	ReasonUnmanaged    Reason = "Unmanaged"    // no controller would make it again
	ReasonLocalStorage Reason = "LocalStorage" // it would lose data
)

// The reasons of requests, and of waits for what they do.
const (
	ReasonEvict       Reason = "Evictable"       // nothing speaks against it
	ReasonForced      Reason = "Forced"          // the time of force has come
	ReasonUnreachable Reason = "NodeUnreachable" // nobody on the Node stops it
	ReasonTerminating Reason = "Terminating"     // it is on its way out
	ReasonOverdue     Reason = "Overdue"         // it should have stopped by now
)

// The reasons that the API server gave.
const (
	ReasonBudget    Reason = "DisruptionBudget"     // a budget refuses
	ReasonThrottled Reason = "Throttled"            // too many requests, of anybody
	ReasonGone      Reason = "Gone"                 // there is no such pod any more
	ReasonConflict  Reason = "Conflict"             // another pod has its name, or somebody wrote at the same time
	ReasonNamespace Reason = "NamespaceTerminating" // the pod will go with its namespace
	ReasonForbidden Reason = "Forbidden"            // the client may not do this
	ReasonRefused   Reason = "Refused"              // anything else; the message says what
)
