// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
)

// Behavior is how a rule wants a pod treated.
type Behavior string

// The behaviors. Their names are those of Cluster API, but for Block and Note.
const (
	// BehaviorDrain evicts the pod, even if the policy would protect it.
	BehaviorDrain Behavior = "Drain"
	// BehaviorWaitCompleted waits until the pod has completed by itself, or for the
	// rule's time.
	BehaviorWaitCompleted Behavior = "WaitCompleted"
	// BehaviorSkip leaves the pod alone and does not wait for it. No escalation
	// changes that.
	BehaviorSkip Behavior = "Skip"
	// BehaviorBlock protects the pod: the drain waits for somebody to change that, or
	// for the rule's time.
	BehaviorBlock Behavior = "Block"
	// BehaviorNote leaves the pod to the next rule. The message becomes part of the
	// row.
	BehaviorNote Behavior = "Note"
)

// Subject is a pod as a rule sees it. It must not be changed.
type Subject struct {
	// Pod that is judged; never nil in a drain.
	Pod *corev1.Pod
	// Namespace of the pod, or nil if it is not known.
	Namespace *corev1.Namespace
}

// Opinion is what a rule says of a pod.
type Opinion struct {
	// Behavior that the rule wants. Any other value than the constants blocks.
	Behavior Behavior
	// Order is the wave of the pod; nil leaves that to the policy.
	Order *int32
	// Reason is the reason of the row; empty means [ReasonRule] or what fits the
	// behavior.
	Reason machinist.Reason
	// Message says why, in words for people.
	Message string
	// Until is when the opinion ends, for a Block or WaitCompleted; zero means when
	// something changes. One that has ended is none.
	Until time.Time
}

// Rule has an opinion on a pod, or none. It must be pure: the same subject and time
// give the same opinion.
//
// Rules judge the pods that a drain would ask to go or wait for. Mirror pods, finished
// ones, those of DaemonSets and those that tolerate the fence are left alone before any
// rule is asked. Of a pod that is on its way out only a Skip counts.
type Rule func(s Subject, now time.Time) (Opinion, bool)

// opinion returns what the first rule with an opinion says of a pod, and what those
// before it noted. Without an opinion its behavior is [BehaviorNote].
func (r *round) opinion(pod *corev1.Pod) (op Opinion, notes string) {
	none := Opinion{Behavior: BehaviorNote}
	if len(r.p.Rules) == 0 {
		return none, ""
	}
	s := Subject{Pod: pod, Namespace: r.namespace(pod.Namespace)}
	for _, rule := range r.p.Rules {
		if rule == nil {
			continue
		}
		op, ok := rule(s, r.now)
		switch {
		case !ok:
		case op.Behavior == BehaviorNote:
			notes = joinMessages(notes, op.Message)
		case op.ended(r.now):
		default:
			return op, notes
		}
	}
	return none, notes
}

// ended says whether an opinion that keeps a pod had its time.
func (o Opinion) ended(now time.Time) bool {
	keeps := o.Behavior != BehaviorDrain && o.Behavior != BehaviorSkip
	return keeps && !o.Until.IsZero() && !o.Until.After(now)
}

// row is that of a pod which a rule wants to stay.
func (o Opinion) row() Row {
	row := Row{Verdict: Block, Reason: cmp.Or(o.Reason, ReasonRule), Message: o.Message, Until: o.Until}
	switch o.Behavior {
	case BehaviorSkip:
		row.Verdict, row.Until = Ignore, time.Time{}
	case BehaviorWaitCompleted:
		row.Verdict, row.Reason = Wait, cmp.Or(o.Reason, ReasonWaitCompleted)
	case BehaviorBlock:
	default:
		row.Message = joinMessages(o.Message, "a rule wants "+string(o.Behavior)+", which is not known")
	}
	return row
}

// joinMessages puts two messages together.
func joinMessages(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	default:
		return a + "; " + b
	}
}
