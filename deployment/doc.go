// SPDX-License-Identifier: Apache-2.0

// Package deployment decides how a MachineDeployment replaces one generation of
// machines by the next, and how its machine sets share a number of replicas.
//
// [Decide] is a pure function; a controller is the loop around it:
//
//	in := deployment.Observation{Deployment: d, Sets: claimed, Complete: synced}
//	dec := deployment.Decide(in, policy, time.Now())
//	if dec.WriteStatus {
//		// store dec.Status
//	}
//	for _, a := range dec.Actions {
//		switch a := a.(type) {
//		case deployment.Scale: // write a.Apply(set)
//		case deployment.CreateSet: // create a.Set
//			// … and the other actions; an unknown one is an error
//		}
//	}
//	// look again at dec.NextCheck, or when the deployment or a set changes
//
// # What is promised
//
// maxSurge is a hard bound: a machine counts from the moment it is asked for
// until it is gone, so that asking again before a set has reported adds nothing.
// maxUnavailable is a hard bound too: a set that shrinks is assumed to delete
// its available machines first, and a set that has not reported on its present
// spec is assumed to have none. The two exceptions are told at [Decide].
//
// Everything that is not done is a [Hold] with the set that is in the way and
// the inequality with its numbers.
//
// # The maths
//
// What the decisions are made of can be used alone, to predict or to explain:
// [FencePosts], [MaxSurge], [MaxUnavailable], [MinAvailable], [NewSetSize],
// [ScalingEvent], [ScaleTargets], [Proportion], [FindSets], [EqualIgnoreHash],
// [NewSet], [Propagate], [HistoryCleanup], [Status], [RolloutStatus],
// [Complete], [Validate].
//
// # What it does not do
//
// It does not claim sets (see package machineset), does not choose the machines
// that a set deletes, does not touch nodes, and does not read or write anything.
// In-place updates and roll-backs are held as not supported yet.
package deployment
