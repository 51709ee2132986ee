// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// expected returns the expectations that the machines do not fulfill yet.
func expected(e machine.Expectations, machines []*v1alpha1.Machine, complete bool) machine.Expectations {
	if len(e) == 0 {
		return nil
	}
	named := make(map[string]*v1alpha1.Machine, len(machines))
	for _, m := range machines {
		if m != nil {
			named[m.Name] = m
		}
	}
	return e.Observe(func(_, name string) metav1.Object { return named[name] }, complete)
}

// NeverJoined has the times at which this process deleted machines of one set that failed before
// their Nodes joined, by UID. Each reduces creations for 10 minutes. It is a value and may be
// stored as JSON. Losing it costs creations that fail.
type NeverJoined map[types.UID]time.Time

// Deleting returns a copy without entries older than 10 minutes. The copy has the machine of the
// deletion if it is replaced because it failed before its Node joined.
func (n NeverJoined) Deleting(d machinist.Delete, at time.Time) NeverJoined {
	next := n.recent(at)
	m, ok := d.Object.(*v1alpha1.Machine)
	replaced := d.Reason == reasonFailed || d.Reason == reasonPreservationOver
	if ok && replaced && m.Status.LastOperation.Type == v1alpha1.MachineOperationCreate {
		next[m.UID] = at
	}
	return next
}

// recent returns a copy with the entries of the last shortLife.
func (n NeverJoined) recent(now time.Time) NeverJoined {
	next := NeverJoined{}
	for uid, at := range n {
		if recorded.Known(at, now) && now.Sub(at) < members.ShortLife {
			next[uid] = at
		}
	}
	return next
}
