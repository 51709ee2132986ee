// SPDX-License-Identifier: Apache-2.0

// Package deployment decides how a MachineDeployment replaces one generation of
// machines by the next, and how its machine sets share a number of replicas.
//
// [Decide] is a pure function: it sees everything once, and returns everything that
// one pass intends. A controller is the loop around it:
//
//	claims := machineset.Claim(machineset.OwnerDeployment(live), deployment.ClaimSelector(live), cached)
//	// write claims.Adopt and claims.Release
//	in := deployment.Observation{
//		Deployment: live, Sets: claims.Owned, Released: claims.Released, Machines: machines,
//		Nodes: nodes, Complete: synced && claims.Settled(),
//	}
//	expected = expected.Observe(cached, synced)
//	in.Expectations = expected
//	dec := deployment.Decide(in, policy, time.Now())
//	for _, a := range dec.Actions {
//		switch a := a.(type) {
//		case deployment.WriteSet: // update a.Set
//		case deployment.CreateSet: // create a.Set
//			// … and the other actions; an unknown one is an error
//		}
//		expected = expected.Updated(written, time.Now()) // or Created
//	}
//	if dec.WriteStatus {
//		// store dec.Status
//	}
//	// look again at dec.NextCheck, or when something changes
//
// [Decision.Targets] has a size for every set, and who goes for it. A set without
// one is an error, never a size of 0.
//
// # Who goes
//
// Whenever a set shrinks, the machines that go are chosen here and named in the
// write that shrinks it (see [machineset.NameVictims]): those that the user
// named, then those that are not available, then the others by [Policy.Order].
// So machines that are of no use go first, and are the ones that really go; the
// order of the set itself, by which priorities come before health, decides only
// among machines that could not be named. Names stay until their machines are gone. In
// an update in place, a set first grows by the machines that have moved to it. If there
// are too many then, it shrinks once they are acknowledged.
//
// A preserved machine that is not available is kept for a user to look at: it
// does not count as available, is no candidate for the first places, and goes with
// the last of its set, or when nothing else is left that could.
//
// A [Gate] is asked about each machine that is replaced or updated. One that it
// keeps stays, others go instead, and if there are none the set shrinks less.
//
// # What is promised
//
// maxSurge is a hard bound: a machine counts from the moment it is asked for
// until it is gone, so that asking again before a set has reported adds nothing.
// maxUnavailable is a hard bound too: what remains available is counted machine by
// machine, as it will be when all have gone that are known to go, of what was seen
// and what was reported the smaller number counts, and of a set that has not
// reported on its present spec nothing does. [Decide] lists the exceptions.
//
// A roll-out whose new machines do not become available stops when the bounds are
// used up, and names them with their last errors. Old machines that are broken
// never hold it up. What happens when the provider has no capacity for a new
// machine is up to [Policy.FreeCapacity].
//
// Everything that is not done is a [machinist.Hold] with the object that is in the way and
// the inequality with its numbers.
//
// # The maths
//
// What the decisions are made of can be used alone, to predict or to explain:
// [BoundsOf], [ScalingOf], [FindSets], [EqualIgnoreHash], [NewSetAnnotations],
// [LastRevision], [RolloutStatus], [Complete], [Validate].
//
// # What it does not do
//
// It does not claim sets and machines (see package machineset), does not drain or
// update Nodes, and does not read or write anything.
package deployment
