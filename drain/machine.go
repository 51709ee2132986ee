// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// notReadyForLong is how long a Node may be out of reach before waiting for it to stop
// pods makes no sense; it is that of the reference system.
const notReadyForLong = 5 * time.Minute

// ForMachine returns the policy by which the reference system drains the Node of a
// machine, in all of its modes. All pods are asked to go at once, critical ones too, and pods
// without a controller and local data go with it. From forceAt on budgets are not asked,
// pods get a second, and a minute later what is left is left. The pods of a Node that has
// not answered for five minutes are taken off the API, and a minute later what is left is
// left. Zero means that force is never used.
//
// Whether the Node answers, and since when it does not, is said by [Observation.Reachability].
func ForMachine(forceAt time.Time) Policy {
	p := Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true, Waves: AllAtOnce,
		UnreachableLadder: Ladder{
			{After: notReadyForLong, Action: ForceDeletePods}, {After: notReadyForLong + time.Minute, Action: Proceed},
		},
	}
	if !forceAt.IsZero() {
		p.Anchor = Anchor{Name: "forceAt", At: forceAt}
		p.Ladder = Ladder{{Action: IgnoreBudgets}, {Action: CapGrace, Grace: time.Second}, {After: time.Minute, Action: Proceed}}
	}
	return p
}
