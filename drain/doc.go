// SPDX-License-Identifier: Apache-2.0

// Package drain decides how a Node is emptied of its pods: which of them are
// evicted now, which are left alone, and what the rest waits for.
//
// [Decide] is a function from pods to a [Plan], with one row for each pod. It
// waits for nothing: a wait is a row that says what it is for. [Carry] carries
// out one round of a plan. The loop around them is the caller's, who also knows
// what wakes it up:
//
//	var answers drain.Answers
//	for {
//		now := clock.Now()
//		seen := drain.Observation{Looked: true, Node: node, PodsComplete: true, Pods: pods, Answers: answers}
//		plan := drain.Decide(seen, policy, now)
//		if plan.Done {
//			return
//		}
//		results, err := drain.Carry(ctx, client, plan)
//		answers = answers.After(plan, results, policy, now)
//		… // report err and plan.Holds(); wait for the Node or a pod to change, or for plan.NextCheck
//	}
//
// [Round] does all that in one go, for callers whose pods come from a cache: what
// looks drained is listed again before it is believed.
//
// The zero [Policy] is the safe one: pods keep their own grace, budgets are
// respected for ever, and pods that nobody would bring back, or that would lose
// local data, stay and say so, as kubectl drain does.
//
// A pod is a namespace, a name and a UID. Every request carries the UID, so that
// a successor of the same name is never meant.
//
// The package does not wait for volumes to be detached, does not uncordon, and
// lists nothing itself but in a Round. It does not know
// the disruption budgets either: it asks for evictions, and repeats what the API
// server answers.
package drain
