// SPDX-License-Identifier: Apache-2.0

package main

import "math/rand/v2"

// fault is a kind of fault.
type fault string

// The kinds of faults.
const (
	managerKilled   fault = "manager killed"
	apiServerKilled fault = "API server killed"
	etcdKilled      fault = "etcd killed"
	nodeKilled      fault = "Node killed"
	nodeFrozen      fault = "Node frozen and resumed"
)

// faults returns all kinds in the order of the table.
func faults() []fault {
	return []fault{managerKilled, apiServerKilled, etcdKilled, nodeKilled, nodeFrozen}
}

// wanted returns how often each fault is injected.
func wanted() map[fault]int {
	return map[fault]int{managerKilled: 100, apiServerKilled: 10, etcdKilled: 5, nodeKilled: 10, nodeFrozen: 10}
}

// step is a fault and what happens before it.
type step struct {
	fault fault
	// changes of machine objects and VMs happen before the fault.
	changes int
	// pick selects a Node.
	pick uint64
	// resumeAfter is the number of later steps after which a frozen Node is resumed.
	resumeAfter int
}

// beforeNodes is the number of steps before the first fault of a Node. A drain waits for minutes for a
// kubelet that does not answer, so that later rollouts are slow.
const beforeNodes = 70

// schedule returns the steps of a seed.
func schedule(seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // not for secrets
	var steps, ofNodes []step
	for _, f := range faults() {
		for range wanted()[f] {
			s := step{fault: f, changes: 1 + random.IntN(20), pick: random.Uint64(), resumeAfter: 1 + random.IntN(15)}
			if f == nodeKilled || f == nodeFrozen {
				ofNodes = append(ofNodes, s)
			} else {
				steps = append(steps, s)
			}
		}
	}
	shuffle := func(steps []step) {
		random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	shuffle(steps)
	steps = append(steps, ofNodes...)
	shuffle(steps[beforeNodes:])
	return steps
}
