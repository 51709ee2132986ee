// SPDX-License-Identifier: Apache-2.0

package members

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Recovering has the Failed machines whose Nodes are Ready again, by UID. It is a value: methods return
// a changed copy. Without it a machine may be replaced that would have recovered.
type Recovering map[types.UID]recovery

// recovery is when the Node of a Failed machine became Ready again, and when that was first read. After
// an outage, these times may be far apart.
type recovery struct{ since, read time.Time }

// Read records that the Node of a machine has been Ready again since a time, read now. It returns when
// that was first read. Without a time since, it records nothing and returns zero.
func (r Recovering) Read(m *v1alpha1.Machine, since, now time.Time) (Recovering, time.Time) {
	first := r[m.UID]
	switch {
	case since.IsZero():
		return r, time.Time{}
	case first.since.Equal(since):
		return r, first.read
	}
	next := maps.Clone(r)
	if next == nil {
		next = Recovering{}
	}
	next[m.UID] = recovery{since, now}
	return next, now
}

// Among returns those of the given machines.
func (r Recovering) Among(machines []*v1alpha1.Machine) Recovering {
	var next Recovering
	for _, m := range machines {
		if first, ok := r[m.UID]; ok {
			if next == nil {
				next = Recovering{}
			}
			next[m.UID] = first
		}
	}
	return next
}
