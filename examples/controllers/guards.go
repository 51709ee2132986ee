// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// guards keeps a finalizer on the objects of a kind while other objects refer to them.
type guards[T object] struct {
	*loop
	mine    func(o T) bool // reports whether the controller acts on o; nil means always
	get     func(key cache.ObjectName) (T, error)
	decide  func(o T, now time.Time) machine.Decision
	write   func(ctx context.Context, do machine.Action) (T, error)
	written *written[T]
}

func newGuards[T object](cfg *Config, kind string, informer cache.SharedIndexInformer) *guards[T] {
	r := &guards[T]{written: newWritten[T](shows[T](informer))}
	r.loop = newLoop(cfg, kind, r.pass)
	on(informer, each(func(o T) { r.add(o) }))
	onDelete(informer, func(o T) { r.written.forget(o.GetUID()) })
	return r
}

// newClasses returns the guards of the classes that machines refer to.
func newClasses(cfg *Config, c *caches) *guards[*v1alpha1.MachineClass] {
	api := c.machines.Machine().V1alpha1()
	r := newGuards[*v1alpha1.MachineClass](cfg, "machineclass", api.MachineClasses().Informer())
	r.mine = func(class *v1alpha1.MachineClass) bool { return cfg.mine(class) }
	r.get = func(key cache.ObjectName) (*v1alpha1.MachineClass, error) {
		return api.MachineClasses().Lister().MachineClasses(key.Namespace).Get(key.Name)
	}
	// guarded reports whether a class has its finalizer. The removal of the finalizer changes the class,
	// which causes a pass.
	guarded := func(key cache.ObjectName) bool {
		class, err := r.get(key)
		return err == nil && slices.Contains(class.Finalizers, v1alpha1.MCMFinalizerName)
	}
	on(api.Machines().Informer(), func(before, after *v1alpha1.Machine) {
		if before != nil && after != nil && before.Spec.Class == after.Spec.Class {
			return
		}
		if after != nil && !guarded(classKey(after)) {
			r.queue.Add(classKey(after)) // the creation of the VM waits for the finalizer
		}
		if before != nil {
			r.queue.AddAfter(classKey(before), time.Second) // one pass for all machines that end in this second
		}
	})
	r.decide = func(class *v1alpha1.MachineClass, now time.Time) machine.Decision {
		return machine.DecideClass(machine.ClassObservation{Class: class, Machines: c.ofClass(cache.MetaObjectToName(class)), Complete: true}, now)
	}
	r.write = func(ctx context.Context, do machine.Action) (*v1alpha1.MachineClass, error) {
		a, ok := do.(machine.UpdateClass)
		if !ok {
			return nil, fmt.Errorf("unknown action %T", do)
		}
		return cfg.Machines.MachineV1alpha1().MachineClasses(a.Class.Namespace).Update(ctx, a.Class, metav1.UpdateOptions{})
	}
	return r
}

// newSecrets returns the guards of the Secrets that classes refer to.
func newSecrets(cfg *Config, c *caches) *guards[*corev1.Secret] {
	classes, read := c.machines.Machine().V1alpha1().MachineClasses().Informer(), c.secret()
	r := newGuards[*corev1.Secret](cfg, "secret", c.control.Core().V1().Secrets().Informer())
	on(classes, each(func(class *v1alpha1.MachineClass) {
		for _, key := range secretKeys(class) {
			r.queue.Add(key)
		}
	}))
	r.get = func(key cache.ObjectName) (*corev1.Secret, error) { return read(key.Namespace, key.Name) }
	r.decide = func(s *corev1.Secret, now time.Time) machine.Decision {
		return machine.DecideSecret(machine.SecretObservation{Secret: s, Classes: c.ofSecret(cache.MetaObjectToName(s)), Complete: true}, now)
	}
	r.write = func(ctx context.Context, do machine.Action) (*corev1.Secret, error) {
		a, ok := do.(machine.UpdateSecret)
		if !ok {
			return nil, fmt.Errorf("unknown action %T", do)
		}
		return cfg.Control.CoreV1().Secrets(a.Secret.Namespace).Update(ctx, a.Secret, metav1.UpdateOptions{})
	}
	return r
}

func (r *guards[T]) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	o, err := r.get(key)
	if err != nil {
		r.cfg.holds.forget(r.kind, key)
		return time.Time{}, ignoreNotFound(err)
	}
	o, _ = r.written.newest(o)
	if r.mine != nil && !r.mine(o) {
		return time.Time{}, nil
	}
	d := r.decide(o, r.cfg.Clock.Now())
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Reason: d.Reason, Holds: d.Holds, Acts: d.Action != nil, Waits: len(d.Holds) > 0})
	r.cfg.holds.set(r.kind, key, r.cfg.Clock.Now(), d.Holds, nil)
	if d.Action == nil {
		return d.NextCheck, nil
	}
	written, err := r.write(ctx, d.Action)
	if err == nil {
		r.written.put(written)
	}
	return time.Time{}, ignoreNotFound(err)
}

// classKey returns the key of the class of a machine.
func classKey(m *v1alpha1.Machine) cache.ObjectName {
	return cache.NewObjectName(m.Namespace, m.Spec.Class.Name)
}

// secretKeys returns the keys of the Secrets that a class refers to.
func secretKeys(c *v1alpha1.MachineClass) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, ref := range machine.SecretRefs(c) {
		keys = append(keys, cache.NewObjectName(ref.Namespace, ref.Name))
	}
	return keys
}
