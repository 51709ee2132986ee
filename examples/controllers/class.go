// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// classes guards the classes that machines refer to.
type classes struct {
	*loop
	cfg      *Config
	lister   listers.MachineClassLister
	machines func(key cache.ObjectName) []*v1alpha1.Machine
	latest   *latest[*v1alpha1.MachineClass]
}

func newClasses(cfg *Config, c *caches) *classes {
	api := c.machines.Machine().V1alpha1()
	r := &classes{cfg: cfg, machines: c.ofClass, lister: api.MachineClasses().Lister(), latest: newLatest[*v1alpha1.MachineClass]()}
	r.loop = newLoop(cfg, "machineclass", r.pass)
	on(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) { r.add(c) })
	onDelete(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) { r.latest.forget(c.UID) })
	on(api.Machines().Informer(), func(m *v1alpha1.Machine) { r.queue.Add(classKey(m)) })
	return r
}

// classKey names the class of a machine.
func classKey(m *v1alpha1.Machine) cache.ObjectName {
	return cache.NewObjectName(m.Namespace, m.Spec.Class.Name)
}

func (r *classes) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	class, err := r.lister.MachineClasses(key.Namespace).Get(key.Name)
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	class, _ = r.latest.of(class)
	d := machine.DecideClass(machine.ClassObservation{Class: class, Machines: r.machines(key), Complete: true}, r.cfg.Clock.Now())
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Acts: d.Do != nil, Waits: len(d.Holds) > 0})
	switch a := d.Do.(type) {
	case nil:
		return d.NextCheck, nil
	case machine.UpdateClass:
		written, err := r.cfg.Machines.MachineV1alpha1().MachineClasses(key.Namespace).Update(ctx, a.Class, metav1.UpdateOptions{})
		if err == nil {
			r.latest.put(written)
		}
		return time.Time{}, ignoreNotFound(err)
	default:
		return time.Time{}, fmt.Errorf("class %s: unknown action %T", key, a)
	}
}
