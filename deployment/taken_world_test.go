// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// debt is how many machines may be missing because users deleted them: what had
// been decided before that was seen is carried out.
func (l *laws) debt() int64 { return int64(len(l.taken)) }

// tookMachine follows a user who deletes a machine.
func (l *laws) tookMachine(c deploymenttest.Change, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if s := l.setOf(m); c.By == "user" && existed && m.DeletionTimestamp != nil && s != nil && l.available(s, was) {
		l.taken[m.UID] = true
	}
}

// tookSet follows a user who deletes a set, with all its machines.
func (l *laws) tookSet(c deploymenttest.Change, s *v1alpha1.MachineSet) {
	was, existed := c.Before.(*v1alpha1.MachineSet)
	if c.By != "user" || !existed || was.DeletionTimestamp != nil || s.DeletionTimestamp == nil {
		return
	}
	for _, m := range l.r.w.MachinesOf(s) {
		if l.available(s, m) {
			l.taken[m.UID] = true
		}
	}
}

// sawTaken ends the debt when the controller has seen all that users deleted, and
// nothing is left to be carried out of what it had decided before.
func (l *laws) sawTaken(in deployment.Observation) {
	if len(l.taken) == 0 || l.beingCarriedOut() {
		return
	}
	doomed := map[types.UID]bool{}
	for _, s := range in.Sets {
		doomed[s.UID] = s.DeletionTimestamp != nil
	}
	for _, m := range in.Machines {
		if m != nil && l.taken[m.UID] && !machineset.Leaving(m) && !doomed[controllerOf(m)] {
			return
		}
	}
	clear(l.taken)
}

// beingCarriedOut says whether a set has yet to let machines go.
func (l *laws) beingCarriedOut() bool {
	for _, s := range l.sets() {
		machines := l.r.w.MachinesOf(s)
		named := func(m *v1alpha1.Machine) bool { return !machineset.Leaving(m) && namedBefore(s, m) }
		if slices.ContainsFunc(machines, named) ||
			s.DeletionTimestamp == nil && machineset.Count(s, machines, nil, l.r.w.Now()).Present > int(s.Spec.Replicas) {
			return true
		}
	}
	return false
}

func controllerOf(m *v1alpha1.Machine) types.UID {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return owner.UID
	}
	return ""
}
