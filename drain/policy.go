// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// DefaultMachineDrainTimeout is how long the reference system drains the Node of
// a machine before it uses force.
const DefaultMachineDrainTimeout = 2 * time.Hour

// Policy says what a drain may do. The zero Policy is the safe one.
type Policy struct {
	// ForceAt is when budgets are no longer asked and pods get a second to stop,
	// those on their way out, too. A pod that has not gone a minute later is left
	// to its Node. A time in the past is now; zero means never.
	ForceAt time.Time
	// NodeUnreachable says that the kubelet of the Node does not answer and nothing
	// runs there that must not run twice: pods are taken off the API at once,
	// before ForceAt, too. Budgets do not protect what does not run.
	NodeUnreachable bool
	// EvictUnmanaged evicts pods that no controller would create again. Without it
	// they stay, whatever the time.
	EvictUnmanaged bool
	// EvictLocalStorage evicts pods that lose the data of their emptyDir volumes.
	// Without it they stay, whatever the time.
	EvictLocalStorage bool
	// KeepSchedulable leaves the Node as it is: something else, such as a taint,
	// keeps new pods away. The drain does not wait for a cordon then.
	KeepSchedulable bool
	// RetryEvery is the pause before a request is repeated. Zero or less means
	// 5 seconds.
	RetryEvery time.Duration
}

const (
	defaultRetryEvery = 5 * time.Second
	// longestRetryAfter bounds what the API server can ask for, so that no answer
	// puts force off for long.
	longestRetryAfter = time.Minute
	// patience is how long after its end a pod is waited for under force.
	patience = time.Minute
)

func (p Policy) retryEvery() time.Duration {
	if p.RetryEvery > 0 {
		return p.RetryEvery
	}
	return defaultRetryEvery
}

// forced says whether the time of force has come.
func (p Policy) forced(now time.Time) bool {
	return p.NodeUnreachable || !p.ForceAt.IsZero() && !now.Before(p.ForceAt)
}
