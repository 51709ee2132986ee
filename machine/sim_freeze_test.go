// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// outage is a freeze, in which a user deletes machines by their Nodes. The zero value is none.
type outage struct {
	from, until time.Time
	// requestAt is when the user writes the Nodes. Zero means that it is done.
	requestAt time.Time
	// byAnnotation means that the user sets the annotation instead of deleting the Nodes.
	byAnnotation bool
	// requested are the machines of these Nodes that are not being deleted, with the time of the request.
	requested map[string]time.Time
}

// anyOutage returns the outage of a schedule, which is random.
func anyOutage(seed uint64, begin time.Time) outage {
	rng := rand.New(rand.NewPCG(seed, 34))
	if rng.IntN(3) > 0 {
		return outage{}
	}
	within := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	o := outage{from: begin.Add(within(6 * time.Minute)), byAnnotation: rng.IntN(2) == 0, requested: map[string]time.Time{}}
	o.requestAt = o.from.Add(within(5 * time.Minute))
	o.until = o.requestAt.Add(within(20 * time.Minute))
	return o
}

// freeze returns what the controller knows of the outage.
func (o outage) freeze(now time.Time) machine.Freeze {
	switch {
	case o.from.IsZero() || now.Before(o.from):
		return machine.Freeze{}
	case now.Before(o.until):
		return machine.Freeze{Frozen: true, Since: o.from, Message: "the target API server does not answer"}
	default:
		return machine.Freeze{ClocksFrom: o.until}
	}
}

// frozen lets the user write the Nodes at its time, and checks that the machines are deleted during the
// freeze: within two minutes after the request and the last incident.
func (s *sim) frozen() {
	now, o := s.clock.Now(), &s.outage
	if !o.requestAt.IsZero() && !now.Before(o.requestAt) {
		o.requestAt = time.Time{}
		s.requestDeletions()
	}
	for name, at := range o.requested {
		m := s.machines[name]
		switch {
		case m == nil, !m.DeletionTimestamp.IsZero(), !now.Before(o.until):
			delete(o.requested, name)
		case now.After(latest(at, s.disturbed).Add(2 * time.Minute)):
			s.fault("%s is not deleted in a freeze although its node requests it since %s", name, at)
		}
	}
}

// requestDeletions deletes the machines by their Nodes.
func (s *sim) requestDeletions() {
	for name, m := range s.machines {
		node := s.node(s.nodeOf(m))
		if node == nil || !m.DeletionTimestamp.IsZero() || !slices.Contains(m.Finalizers, v1alpha1.MCMFinalizerName) {
			continue
		}
		if !s.outage.byAnnotation && !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName) {
			continue // nothing keeps such a Node
		}
		if s.outage.byAnnotation {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.TriggerDeletionByMCM, "true")
		} else if node.DeletionTimestamp.IsZero() {
			node.DeletionTimestamp = &metav1.Time{Time: s.now()}
		}
		s.note("a user deletes %s by its node, with the annotation: %t", name, s.outage.byAnnotation)
		s.outage.requested[name] = s.clock.Now()
		s.putNode(node)
	}
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
