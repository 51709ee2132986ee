// SPDX-License-Identifier: Apache-2.0

package drain

import "time"

// ForMachine returns the policy by which the reference system drains the Node of a
// machine, in all of its modes: pods that nobody brings back and local data go with
// it; from forceAt on budgets are not asked, pods get a second, and a minute later
// what is left is left; the pods of a Node that does not answer are taken off the API
// at once. Zero means that force is never used.
//
// The one mode that the caller decides is whether the Node answers: it says so in
// [Observation.Reach].
func ForMachine(forceAt time.Time) Policy {
	p := Policy{
		EvictUnmanaged: true, EvictLocalStorage: true, Reassert: true,
		UnreachableLadder: Ladder{{Do: ForceDeletePods}, {After: time.Minute, Do: Proceed}},
	}
	if !forceAt.IsZero() {
		p.Anchor = Anchor{Name: "forceAt", At: forceAt}
		p.Ladder = Ladder{{Do: IgnoreBudgets}, {Do: CapGrace, Grace: time.Second}, {After: time.Minute, Do: Proceed}}
	}
	return p
}
