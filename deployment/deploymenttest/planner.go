// SPDX-License-Identifier: Apache-2.0

package deploymenttest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A planner is the controller of the deployment.
type planner struct {
	loop
	cache    *cache
	follower *follower // nil: the truth
	expected machine.Expectations
	unproven bool // since a crash
	last     deployment.Decision
}

// plan makes the controller of the deployment decide once.
func (w *World) plan() {
	p := &w.planner
	name := w.name()
	if w.misses(name, &p.loop) {
		return
	}
	p.due = noTime
	if w.deployment == nil {
		return
	}
	behind := w.look(name, p.follower)
	err := w.planOnce(nil)
	if err == errCrash { //nolint:errorlint // never wrapped
		p.expected, p.unproven = nil, true // the first lists are as old as the cache
	}
	if err != nil || behind {
		p.by(w.now.Add(again))
	}
}

// planOnce decides and acts. It repeats this once if the name of a new set exists.
func (w *World) planOnce(taken *v1alpha1.MachineSet) error {
	in, err := w.observe()
	if err != nil {
		return err
	}
	in.NameTakenBy = taken
	d := deployment.Decide(in, w.model.Policy, w.now)
	if w.model.OnDecision != nil {
		w.model.OnDecision(in, d)
	}
	w.frame.Decided, w.frame.Decision, w.planner.last = true, d, d
	w.planner.by(d.NextCheck)
	md := in.Deployment
	for _, a := range d.Actions {
		if err = w.act(a, &md); err == nil {
			continue
		}
		create, creating := a.(machinist.Create)
		switch {
		case err == errCrash: //nolint:errorlint // never wrapped
			return err
		case creating && apierrors.IsAlreadyExists(err) && taken == nil:
			return w.planOnce(w.sets.get(create.Object.GetName()))
		case creating:
			d.Status, _ = deployment.CreateFailed(md.Status, create.Object.GetName(), err, w.now)
			d.WriteStatus = true
		}
		break
	}
	if apierrors.IsConflict(err) {
		err = nil
		w.planner.by(w.now.Add(again))
	}
	if statusErr := w.record(md, d); err == nil {
		err = statusErr
	}
	return err
}

// observe returns the observation of the deployment, and claims its sets.
func (w *World) observe() (deployment.Observation, error) {
	d, c := w.deployment, w.planner.cache
	w.planner.expected = w.planner.expected.Observe(c.find, true)
	claims := deployment.Claim(d, c.sets.list())
	for _, edit := range append(claims.Adopt, claims.Release...) {
		next := edit.Object.(*v1alpha1.MachineSet) //nolint:forcetypeassert // a deployment claims sets
		err := w.call(d.Name, "update", kindSet, next.Name, func() error {
			_, err := w.sets.write(d.Name, next, metadataAndSpec)
			return err
		})
		if err == errCrash { //nolint:errorlint // never wrapped
			return deployment.Observation{}, err
		}
	}
	in := deployment.Observation{
		Deployment: d, Sets: claims.Owned, Machines: c.machines.list(), Complete: claims.Settled(), Proven: !w.planner.unproven, Released: claims.Released,
		Expectations: w.planner.expected, NoCluster: w.model.NoCluster,
	}
	if !w.model.NoCluster {
		in.Nodes = c.nodes
	}
	return in, nil
}

// act carries out one action.
func (w *World) act(action machinist.Action, d **v1alpha1.MachineDeployment) error {
	switch a := action.(type) {
	case machinist.Update:
		return w.update(a, d)
	case machinist.Create:
		return w.create(a, (*d).Name)
	case machinist.Delete:
		return w.remove(a, (*d).Name)
	case machinist.Refresh:
		w.refresh(a)
		return nil
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// update writes an object. A written deployment replaces d, because the status is written after
// this.
func (w *World) update(u machinist.Update, d **v1alpha1.MachineDeployment) error {
	by, name := (*d).Name, u.Object.GetName()
	switch o := u.Object.(type) {
	case *v1alpha1.MachineDeployment:
		return w.call(by, "update", kindDeployment, name, func() error {
			next, err := w.deployments.write(by, o, metadataAndSpec)
			if err == nil {
				w.planner.unproven = w.planner.unproven && slices.Contains((*d).Finalizers, v1alpha1.MCMFinalizerName)
				*d = next
			}
			return err
		})
	case *v1alpha1.MachineSet:
		return w.call(by, "update", kindSet, name, func() error { return w.wrote(w.sets.write(by, o, metadataAndSpec)) })
	case *v1alpha1.Machine:
		return w.call(by, "update", kindMachine, name, func() error { return w.wrote(w.machines.write(by, o, metadataAndSpec)) })
	case *corev1.Node:
		return w.call(by, "update", kindNode, name, func() error { return w.wrote(w.nodes.write(by, o, metadataAndSpec)) })
	default:
		return fmt.Errorf("unknown object %T", o)
	}
}

// create creates a set.
func (w *World) create(c machinist.Create, by string) error {
	s, ok := c.Object.(*v1alpha1.MachineSet)
	if !ok {
		return fmt.Errorf("unknown object %T", c.Object)
	}
	return w.call(by, "create", kindSet, s.Name, func() error {
		created, err := w.sets.create(by, s)
		if err == nil { // the cache has to show it
			w.planner.expected = w.planner.expected.Created(created, w.now)
		}
		return err
	})
}

// remove deletes a set.
func (w *World) remove(d machinist.Delete, by string) error {
	s, ok := d.Object.(*v1alpha1.MachineSet)
	if !ok {
		return fmt.Errorf("unknown object %T", d.Object)
	}
	version := ""
	if d.Unchanged {
		version = s.ResourceVersion
	}
	return w.call(by, "delete", kindSet, s.Name, func() error { return ignoreNotFound(w.sets.remove(by, s.Name, s.UID, version)) })
}

// refresh reads an object, or all sets and machines, from the API server.
func (w *World) refresh(r machinist.Refresh) {
	if r.Name == "" {
		w.listAll()
		return
	}
	w.planner.expected = w.planner.expected.Looked(r.Kind, r.Name, w.read(r.Kind, r.Name), w.now)
}

// listAll lists all sets and machines from the API server. There is one deployment.
func (w *World) listAll() {
	p := &w.planner
	p.expected = machine.Listed(p.expected, w.truth.sets.list(), p.cache.sets.list(), w.now)
	p.expected = machine.Listed(p.expected, w.truth.machines.list(), p.cache.machines.list(), w.now)
	p.unproven = false
	p.by(w.now)
}

// read reads an object from the API server. A nil pointer means that it does not exist.
func (w *World) read(k string, name string) metav1.Object {
	switch k {
	case kindSet:
		return w.sets.get(name)
	case kindMachine:
		return w.machines.get(name)
	default:
		return w.nodes.get(name)
	}
}

// wrote records a write that the cache has to show.
func (w *World) wrote(o metav1.Object, err error) error {
	if err == nil {
		w.planner.expected = w.planner.expected.Updated(o, w.now)
	}
	return err
}

// record stores the status of the deployment. A new message of progress alone is stored with the next
// change: no decision depends on it, and a controller waits with it, too.
func (w *World) record(d *v1alpha1.MachineDeployment, decision deployment.Decision) error {
	if !decision.WriteStatus || w.deployment == nil || len(decision.Events) == 0 && rollout.OnlyMessage(d.Status, decision.Status) {
		return nil
	}
	next := *d
	next.Status = decision.Status
	due := w.planner.due
	err := w.call(d.Name, "update status", kindDeployment, d.Name, func() error {
		_, err := w.deployments.write(d.Name, &next, status)
		return err
	})
	if idle(decision) && !w.model.troubled() {
		w.planner.due = due
	}
	if apierrors.IsConflict(err) {
		w.planner.by(w.now.Add(again))
		return nil
	}
	return err
}

// idle reports whether the decision will be the same after its status is stored, so that its own
// status need not wake the controller: it has no action, and no hold until a time, which may depend
// on the status.
func idle(d deployment.Decision) bool {
	return len(d.Actions) == 0 && !slices.ContainsFunc(d.Holds, func(h machinist.Hold) bool { return !h.Until.IsZero() })
}
