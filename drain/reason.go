// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"github.com/machinist-dev/machinist"
)

// Action is what is done with a pod.
type Action string

// The actions.
const (
	// Ignore makes no request for the pod and does not wait for it.
	Ignore Action = "ignore"
	// Evict requests the eviction of the pod, which PodDisruptionBudgets may refuse.
	Evict Action = "evict"
	// Delete deletes the pod, whatever PodDisruptionBudgets allow. It has a grace period of at least a
	// second, after which the kubelet confirms the end of the pod, unless [Policy.Grace] is zero.
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

// byStrength are the requests, the weakest first.
var byStrength = [...]Action{Evict, Delete, ForceDelete}

// strength orders the requests. Other actions have 0.
func (v Action) strength() int { return slices.Index(byStrength[:], v) + 1 }

// Reasons of the drain as a whole.
const (
	// ReasonNotObserved means that the Node or its pods were not read, so nothing is decided.
	ReasonNotObserved machinist.Reason = "NotObserved"
	// ReasonUncordoned means that another client uncordoned the Node during the drain.
	//
	// What helps: cordon the Node again.
	ReasonUncordoned machinist.Reason = "Uncordoned"
	// ReasonNotCordoned means that the Node is not cordoned yet.
	ReasonNotCordoned machinist.Reason = "NotCordoned"
	// reasonInvalidPolicy means that [Policy.Validate] refuses the policy, or a [Rule] is invalid.
	//
	// What helps: correct the policy.
	reasonInvalidPolicy machinist.Reason = "InvalidPolicy"
)

// Reasons of pods and volumes without a request.
const (
	// reasonStays means that a controller would recreate the pod on the same Node, or a pod
	// that stays uses the volume.
	reasonStays machinist.Reason = "Stays"
	// reasonGone means that the pod does not run on this Node anymore.
	reasonGone machinist.Reason = "Gone"
	// ReasonAbandoned means that the drain waited for as long as the policy says, and waits no longer.
	ReasonAbandoned machinist.Reason = "Abandoned"
	// ReasonUnmanaged means that no controller would recreate the pod.
	//
	// What helps: delete the pod, or drain with EvictUnmanaged.
	ReasonUnmanaged machinist.Reason = "Unmanaged"
	// ReasonLocalStorage means that the pod would lose the data of an emptyDir volume.
	//
	// What helps: delete the pod, or drain with EvictLocalStorage.
	ReasonLocalStorage machinist.Reason = "LocalStorage"
	// reasonRule means that a rule of the caller, the selector of the policy or a label excludes the pod.
	reasonRule machinist.Reason = "Rule"
	// ReasonWaitCompleted means that a label of the pod says that it has to complete by itself.
	ReasonWaitCompleted machinist.Reason = "WaitCompleted"
	// ReasonDoNotDisrupt means that an annotation of the pod forbids a disruption.
	//
	// What helps: remove the annotation, or wait for its end.
	ReasonDoNotDisrupt machinist.Reason = "DoNotDisrupt"
	// reasonNotEvaluated means that a list which the decision about the pod needs is incomplete.
	reasonNotEvaluated machinist.Reason = "NotEvaluated"
)

// Reasons of requests and of the waits after them. The reason of a deletion is the [Escalation]
// that allows it.
const (
	// ReasonEvict means that the pod may be evicted.
	ReasonEvict machinist.Reason = "Evictable"
	// ReasonTerminating means that the request was accepted, and the pod is terminating.
	//
	// What helps: the kubelet has to stop the pod.
	ReasonTerminating machinist.Reason = "Terminating"
	// ReasonOverdue means that the grace period of the pod is over, and the pod still exists.
	//
	// What helps: the kubelet has to stop the pod, or a controller has to remove its finalizer.
	ReasonOverdue machinist.Reason = "Overdue"
	// reasonWave means that the pod is evicted after the pods of earlier waves.
	reasonWave machinist.Reason = "Wave"
)

// Reasons of PodDisruptionBudgets and of the API server.
const (
	// ReasonBudget means that a PodDisruptionBudget allows no disruption now.
	//
	// What helps: another pod of the PodDisruptionBudget has to become healthy.
	ReasonBudget machinist.Reason = "DisruptionBudget"
	// ReasonBudgetNever means that the spec of a PodDisruptionBudget never allows a disruption.
	//
	// What helps: change the PodDisruptionBudget.
	ReasonBudgetNever machinist.Reason = "BudgetNeverAllows"
	// ReasonBudgets means that several PodDisruptionBudgets select the pod, and the API server
	// refuses every eviction of it.
	//
	// What helps: change the PodDisruptionBudgets.
	ReasonBudgets machinist.Reason = "OverlappingBudgets"
	// reasonForbidden means that the client has no right to evict or delete the pod.
	//
	// What helps: grant the right to create pods/eviction, and to delete pods for escalations.
	reasonForbidden machinist.Reason = "Forbidden"
	// reasonInvalid means that the API server refuses the request as invalid, for example because of a
	// grace period or an admission webhook. The message says why.
	reasonInvalid machinist.Reason = "Invalid"
	// reasonUnavailable means that the API server is overloaded or did not answer.
	reasonUnavailable machinist.Reason = "Unavailable"
	// reasonRefused means that the API server refused the request. The message says why.
	reasonRefused machinist.Reason = "Refused"
)

// Reasons of volumes.
const (
	// reasonInUse means that a pod that will be evicted uses the volume.
	reasonInUse machinist.Reason = "InUse"
	// reasonDetaching means that the volume is attached to the Node.
	//
	// What helps: the attach/detach controller or the CSI driver has to detach it.
	reasonDetaching machinist.Reason = "Detaching"
	// reasonReattaching means that the volume is not attached to another Node yet.
	//
	// What helps: the pod has to be scheduled to another Node.
	reasonReattaching machinist.Reason = "Reattaching"
)
