// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// onlyItsOwn: no set deletes a machine that has moved to another, or one in place of
// a machine that has left it. A set that a user deletes, or has made smaller, takes
// what it sees.
func (l *laws) onlyItsOwn(c deploymenttest.Change, s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if s == nil || !existed || was.DeletionTimestamp != nil || m.DeletionTimestamp == nil {
		return
	}
	by := l.setNamed(c.By)
	switch {
	case by == nil || by.DeletionTimestamp != nil || l.r.kind.resizes:
		return
	case by != s:
		l.r.failf("%s deletes %s, which is of %s", by.Name, m.Name, s.Name)
	case l.harmed(), l.r.kind.deletes, l.demanded[m.Name], machineset.Failed(was):
		return // others take some as well, or they are replaced
	}
	if n := machineset.Count(s, l.r.w.MachinesOf(s), nil, l.r.w.Now()); n.Present < n.Desired {
		l.r.failf("%s deletes %s, and is left with %d machines of %d", s.Name, m.Name, n.Present, n.Desired)
	}
}

// setNamed is a set of the deployment, nil if there is none of that name.
func (l *laws) setNamed(name string) *v1alpha1.MachineSet {
	for _, s := range l.sets() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// harmed says whether what is there is not of the making of controllers alone: what
// they had decided before they saw it is no break of a law.
func (l *laws) harmed() bool { return l.r.kind.fragile || l.r.kind.resizes }
