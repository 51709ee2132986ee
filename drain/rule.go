// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Behavior is how a rule wants a pod treated.
type Behavior string

// The behaviors. Their names are those of Cluster API, but for Block.
const (
	// BehaviorDrain evicts the pod, even if the policy would protect it.
	BehaviorDrain Behavior = "Drain"
	// BehaviorWaitCompleted waits until the pod has completed by itself.
	BehaviorWaitCompleted Behavior = "WaitCompleted"
	// BehaviorSkip leaves the pod alone and does not wait for it.
	BehaviorSkip Behavior = "Skip"
	// BehaviorBlock protects the pod: the drain waits for somebody to change that, or
	// for the rule's time.
	BehaviorBlock Behavior = "Block"
)

// Subject is a pod as a rule sees it. It must not be changed.
type Subject struct {
	// Pod that is judged; never nil.
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
	Reason Reason
	// Message says why, in words for people.
	Message string
	// Until is when the opinion ends, for a Block; zero means when something changes.
	Until time.Time
}

// Rule has an opinion on a pod, or none. It must be pure: the same subject and time
// give the same opinion.
type Rule func(s Subject, now time.Time) (Opinion, bool)
