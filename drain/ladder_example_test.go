// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/drain"
)

// Budgets are asked for an hour, pods are then deleted, and after ten minutes more the
// drain goes on without those that are left.
func ExampleLadder() {
	p := drain.Policy{
		Anchor: drain.Anchor{Name: "deletionTimestamp", At: now},
		Ladder: drain.Ladder{
			{After: time.Hour, Action: drain.IgnoreBudgets},
			{After: time.Hour, Action: drain.CapGrace, Grace: 30 * time.Second},
			{After: 70 * time.Minute, Action: drain.Proceed},
		},
	}
	var state drain.State
	for _, after := range []time.Duration{0, time.Hour, 70 * time.Minute} {
		var plan drain.Decision
		state, plan = drain.Step(state, observed(newPod("web")), p, now.Add(after))
		fmt.Println(plan.Rows[0].Verdict, plan.Outcome, plan.Next)
	}
	// Output:
	// evict  IgnoreBudgets
	// delete  Proceed
	// ignore Proceeded
}

// A pod with a grace of 30 seconds is deleted 30 seconds before the end.
func ExampleTerminateWithin() {
	p := drain.Policy{Anchor: drain.Anchor{At: now}, Ladder: drain.TerminateWithin(10 * time.Minute)}
	row := drain.Decide(observed(newPod("web")), p, now).Rows[0]
	fmt.Println(row.Verdict, "then", row.Next, "in", row.NextAt.Sub(now))
	// Output: evict then IgnoreProtection in 9m30s
}

// Somebody asks for an earlier end.
func ExampleLadder_Tighten() {
	l := drain.ForceAfter(time.Hour, 0).Tighten(drain.ProceedAfter(90 * time.Minute)).Tighten(drain.ForceAfter(time.Minute, 0))
	for _, rung := range l {
		fmt.Println(rung)
	}
	// Output:
	// after 1m0s IgnoreBudgets
	// after 1h30m0s Proceed
}
