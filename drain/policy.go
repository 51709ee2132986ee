// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

// DefaultMachineDrainTimeout is how long the reference system drains the Node of
// a machine before it uses force.
const DefaultMachineDrainTimeout = 2 * time.Hour

// Policy says what a drain may do. The zero Policy is the safe one: the Node is
// cordoned, pods are evicted with their own grace, budgets are respected for ever,
// and pods that nobody would bring back, or that would lose local data, stay.
type Policy struct {
	// Anchor is what the rungs of Ladder are counted from.
	Anchor Anchor
	// Ladder is how the drain escalates. Empty means never.
	Ladder Ladder
	// UnreachableLadder is how it escalates in addition while the Node is
	// unreachable or off, counted from [NodeReachability.Since]. Empty means not at all.
	UnreachableLadder Ladder

	// Fence is what keeps new pods off the Node. The zero Fence cordons it for
	// nobody in particular.
	Fence nodeops.Fence
	// KeepSchedulable leaves the Node as it is: something else, such as a taint,
	// keeps new pods away. The drain does not wait for a fence then.
	KeepSchedulable bool
	// Reassert fences the Node again if somebody takes the fence away during the
	// drain. Without it the drain stops there and says so; a claim of the owner that an
	// earlier drain has left, without its marks, looks like that from the beginning.
	Reassert bool

	// MaxGrace is the longest grace of a pod. Zero or less means its own, less than
	// a second a second.
	MaxGrace time.Duration
	// EvictUnmanaged evicts pods that no controller would create again. Without it
	// they stay.
	EvictUnmanaged bool
	// EvictLocalStorage evicts pods that lose the data of their emptyDir volumes.
	// Without it they stay.
	EvictLocalStorage bool
	// EvictDaemonSets evicts, after all others, the pods of DaemonSets that do not
	// tolerate the fence, and so do not come back. Without it they are left alone.
	// Kubernetes has all of them tolerate a cordon: it takes a fence with a taint.
	EvictDaemonSets bool
	// Rules say how pods are treated that the rest of the policy would evict or
	// protect. The first one that has an opinion rules.
	Rules []Rule
	// Waves puts pods in an order: those of a later wave are asked to go when all of
	// the earlier ones have gone. Nil means [CriticalLast]. What a rule says of the
	// order counts more, and pods of DaemonSets go in the [LastWave].
	Waves func(pod *corev1.Pod) int32
	// WaveTimeout is how long a wave holds the next one. Zero or less means until it
	// is over.
	WaveTimeout time.Duration
	// SkipTerminatingAfter stops waiting for a pod so long after it was to stop.
	// Zero or less means that it is waited for until it has gone.
	SkipTerminatingAfter time.Duration

	// Volumes says what is waited for after the pods.
	Volumes VolumePolicy

	// RetryEvery is the pause before a request is repeated for the first time; it
	// doubles with each repetition, up to four times as long. Zero or less means 5
	// seconds.
	RetryEvery time.Duration
}

// VolumePolicy says what is waited for once the pods have gone. The zero
// VolumePolicy waits for nothing.
type VolumePolicy struct {
	// Wait for the volumes of the pods that go to be detached from the Node.
	Wait bool
	// DetachTimeout is how long a volume may take for that once nothing on the Node
	// uses it. Zero or less means any time.
	DetachTimeout time.Duration
	// Reattach waits in addition until the volumes of pods that went are attached
	// elsewhere.
	Reattach bool
	// ReattachTimeout is how long that may take after the volume was detached. Zero or
	// less means any time.
	ReattachTimeout time.Duration
	// Skip says which volumes are not waited for. Nil is none.
	Skip VolumeRule
	// AtOnce is how many pods with attached volumes may be on their way at a time: told
	// to go, or gone with a volume that is still waited for. Zero or less means all.
	// A ladder that ignores budgets ignores it, too.
	AtOnce int
}

const (
	defaultRetryEvery = 5 * time.Second
	// longestRetryAfter bounds what the API server can ask for, so that no answer
	// puts force off for long.
	longestRetryAfter = time.Minute
	// lookAgain is when to look again at what only a change of something observed
	// can move, in case the change was missed.
	lookAgain = time.Minute
	// shortestGrace is the least grace of a pod that may be running: the kubelet
	// then still says when it has stopped.
	shortestGrace = time.Second
)

func (p Policy) retryEvery() time.Duration {
	if p.RetryEvery > 0 {
		return p.RetryEvery
	}
	return defaultRetryEvery
}
