// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A setLoop is the controller of one set.
type setLoop struct {
	loop
	name     string
	uid      types.UID
	expected machine.Expectations
	unjoined machineset.NeverJoined
	unproven bool      // since a crash
	follower *follower // nil: the truth
}

// pass makes the controller of a set decide once.
func (w *World) pass(s *setLoop) {
	if w.misses(s.name, &s.loop) {
		return
	}
	s.due = noTime
	live := w.sets.get(s.name)
	if live == nil || live.UID != s.uid {
		w.setLoops.remove(string(s.uid))
		return
	}
	behind := w.look(s.name, s.follower)
	in, err := w.observeSet(s, live)
	if err == nil {
		d := machineset.Decide(in, w.model.SetPolicy, w.now)
		if w.model.OnSetDecision != nil {
			w.model.OnSetDecision(in, d)
		}
		if len(d.Actions) > 0 {
			w.frame.Sets = append(w.frame.Sets, SetDecision{Name: s.name, Decision: d})
		}
		var failure machineset.Failure
		failure, err = w.actOnSet(s, &in, d.Actions)
		if err == nil {
			err = w.recordSet(s, in, failure)
		}
		s.by(d.NextCheck)
		if failure != (machineset.Failure{}) {
			behind = true // which is tried again soon
		}
	}
	if err == errCrash { //nolint:errorlint // never wrapped
		s.expected, s.unjoined, s.unproven = nil, nil, true // the first lists are as old as the cache
	}
	if err != nil || behind {
		s.by(w.now.Add(again))
	}
}

// observeSet returns the observation of a set, and claims its machines.
func (w *World) observeSet(s *setLoop, live *v1alpha1.MachineSet) (machineset.Observation, error) {
	c := w.truth
	if s.follower != nil {
		c = s.follower.cache
	}
	seen := c.mayBelongTo(s.uid)
	s.expected = s.expected.Observe(c.find, true)
	claims := machineset.Claim(live, seen)
	for _, edit := range append(claims.Adopt, claims.Release...) {
		if err := w.updateMachine(s, edit); err == errCrash { //nolint:errorlint // never wrapped
			return machineset.Observation{}, err
		}
	}
	in := machineset.Observation{
		Set: live, Machines: claims.Owned, Complete: claims.Settled(), Proven: !s.unproven, Released: claims.Released, Expectations: s.expected, NeverJoined: s.unjoined,
	}
	for _, m := range claims.Owned {
		if !members.Failed(m) {
			continue
		}
		if n, known := c.nodes[nodeName(m)]; known || w.model.NoCluster {
			if in.Nodes == nil {
				in.Nodes = map[string]machine.NodeView{}
			}
			in.Nodes[nodeName(m)] = machine.NodeView{NoTarget: w.model.NoCluster, Looked: true, Node: n}
		}
	}
	return in, nil
}

// actOnSet carries out the actions of a decision about a set, until the first error. The Failure
// describes the error of a creation or deletion.
func (w *World) actOnSet(s *setLoop, in *machineset.Observation, actions []machinist.Action) (machineset.Failure, error) {
	var failure machineset.Failure
	for _, action := range actions {
		var err error
		switch a := action.(type) {
		case machinist.Update:
			if _, ok := a.Object.(*v1alpha1.MachineSet); ok {
				err = w.updateSet(s, in, a)
			} else {
				err = ignoreNotFound(w.updateMachine(s, a))
			}
		case machinist.Refresh:
			if a.Name != "" {
				s.expected = s.expected.Looked(v1alpha1.MachineKind, a.Name, w.machines.get(a.Name), w.now)
				continue
			}
			live := slices.DeleteFunc(w.truth.mayBelongTo(s.uid), func(m *v1alpha1.Machine) bool { return m == nil || ownerOf(m) != s.uid })
			s.expected, s.unproven = machine.Listed(s.expected, live, in.Machines, w.now), false
			s.by(w.now)
		case machinist.Delete:
			failure.Delete = w.deleteMachine(s, a)
			err = failure.Delete
		case machinist.Create:
			failure.Create = w.createMachines(s, a)
			err = failure.Create
		default:
			err = fmt.Errorf("unknown action %T", action)
		}
		if err == errCrash || err != nil && failure == (machineset.Failure{}) { //nolint:errorlint // never wrapped
			return failure, err
		}
	}
	return failure, nil
}

// updateSet writes metadata and spec of a set. The status is written after this.
func (w *World) updateSet(s *setLoop, in *machineset.Observation, a machinist.Update) error {
	next := a.Object.(*v1alpha1.MachineSet) //nolint:forcetypeassert // the caller has found it
	return w.call(s.name, "update", kindSet, next.Name, func() error {
		written, err := w.sets.write(s.name, next, metadataAndSpec)
		if err == nil {
			in.Set, s.unproven = written, false
		}
		return err
	})
}

// updateMachine writes metadata and spec of a machine.
func (w *World) updateMachine(s *setLoop, a machinist.Update) error {
	next := a.Object.(*v1alpha1.Machine) //nolint:forcetypeassert // the other updates of a set are of machines
	return w.call(s.name, "update", kindMachine, next.Name, func() error {
		_, err := w.machines.write(s.name, next, metadataAndSpec)
		return err
	})
}

func (w *World) deleteMachine(s *setLoop, a machinist.Delete) error {
	m := a.Object.(*v1alpha1.Machine) //nolint:forcetypeassert // a set deletes machines
	s.expected, s.unjoined = s.expected.Deleting(v1alpha1.MachineKind, m.Name, m.UID, w.now), s.unjoined.Deleting(a, w.now)
	version := ""
	if a.Unchanged {
		version = m.ResourceVersion
	}
	err := w.call(s.name, "delete", kindMachine, m.Name, func() error { return w.machines.remove(s.name, m.Name, m.UID, version) })
	if err = w.settle(s, m.Name, ignoreNotFound(err)); a.Unchanged && apierrors.IsConflict(err) {
		s.by(w.now.Add(again)) // the machine has changed
		return nil
	}
	return err
}

// createMachines creates machines in batches of doubling size, until the first batch with an error.
func (w *World) createMachines(s *setLoop, a machinist.Create) error {
	for _, batch := range members.Batches(a.Count) {
		var failed error
		for range batch {
			if err := w.createMachine(s, a); err != nil {
				failed = err
			}
			if failed == errCrash { //nolint:errorlint // never wrapped
				return failed
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

func (w *World) createMachine(s *setLoop, a machinist.Create) error {
	w.names++
	m, err := machineset.NewMachine(a, fmt.Sprintf("%05d", w.names))
	if err != nil {
		return err
	}
	name := m.Name
	s.expected = s.expected.Creating(v1alpha1.MachineKind, name, w.now)
	err = w.call(s.name, "create", kindMachine, name, func() error {
		_, err := w.machines.create(s.name, m)
		return err
	})
	return w.settle(s, name, err)
}

// settle records the result of a request in the expectations.
func (w *World) settle(s *setLoop, name string, err error) error {
	next, look := s.expected.Failed(v1alpha1.MachineKind, name, err)
	if err == errCrash { //nolint:errorlint // never wrapped
		return err
	}
	if s.expected = next; look {
		s.expected = s.expected.Looked(v1alpha1.MachineKind, name, w.machines.get(name), w.now)
	}
	return err
}

// recordSet writes the status of a set, if it has changed.
func (w *World) recordSet(s *setLoop, in machineset.Observation, failure machineset.Failure) error {
	next, changed := machineset.Status(in, failure, w.now)
	if w.sets.get(s.name) == nil || !changed {
		return nil
	}
	set := *in.Set
	set.Status = next
	due := s.due
	err := w.call(s.name, "update status", kindSet, s.name, func() error {
		_, err := w.sets.write(s.name, &set, status)
		return err
	})
	s.due = due // its own status does not wake a controller
	return err
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
