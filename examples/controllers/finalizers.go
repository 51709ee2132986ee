// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// finalizers keeps a finalizer on the objects of a kind while other objects refer to them. The
// first lists of a process may lack such objects, so that it lists them from the API server before
// a finalizer is removed.
type finalizers[T object] struct {
	*loop
	mine    func(o T) bool // reports whether the controller acts on o; nil means always
	get     func(key cache.ObjectName) (T, error)
	decide  func(ctx context.Context, o T, live bool) (machine.Decision, error)
	written *written[T]
}

func newFinalizers[T object](cfg *Config, kind string, informer cache.SharedIndexInformer) *finalizers[T] {
	r := &finalizers[T]{written: newWritten[T](shows[T](informer))}
	r.loop = newLoop(cfg, kind, r.pass)
	on(informer, each(func(o T) { r.add(o) }))
	onDelete(informer, func(o T) { r.written.forget(o.GetUID()) })
	return r
}

// newClasses returns the finalizers of the classes that machines, sets and deployments need.
func newClasses(cfg *Config, c *caches) *finalizers[*v1alpha1.MachineClass] {
	api := c.machines.Machine().V1alpha1()
	r := newFinalizers[*v1alpha1.MachineClass](cfg, "machineclass", api.MachineClasses().Informer())
	r.mine = func(class *v1alpha1.MachineClass) bool { return cfg.mine(class) }
	r.get = func(key cache.ObjectName) (*v1alpha1.MachineClass, error) {
		return api.MachineClasses().Lister().MachineClasses(key.Namespace).Get(key.Name)
	}
	informers := []cache.SharedIndexInformer{api.Machines().Informer()}
	if c.part != MachinesAlone {
		informers = append(informers, api.MachineSets().Informer(), api.MachineDeployments().Informer())
	}
	var users []func(key cache.ObjectName) []metav1.Object
	for _, informer := range informers {
		users = append(users, index(informer, "class-needed", classNeeded))
		on(informer, func(before, after metav1.Object) {
			was, is := classNeeded(before), classNeeded(after)
			if slices.Equal(was, is) {
				return
			}
			for _, key := range is { // the removal of the finalizer changes the class, which causes a pass
				if class, err := r.get(key); err == nil && !slices.Contains(class.Finalizers, v1alpha1.MCMFinalizerName) {
					r.queue.Add(key) // the creation of the VM waits for the finalizer
				}
			}
			for _, key := range was {
				r.queue.AddAfter(key, time.Second) // one pass for all machines that end in this second
			}
		})
	}
	r.decide = func(ctx context.Context, class *v1alpha1.MachineClass, live bool) (machine.Decision, error) {
		in := machine.ClassObservation{Class: class, Complete: live}
		if live {
			var err error
			if in.Users, err = liveUsers(ctx, cfg.Machines, class.Namespace, c.part); err != nil {
				return machine.Decision{}, err
			}
		} else {
			for _, of := range users {
				in.Users = append(in.Users, of(cache.MetaObjectToName(class))...)
			}
		}
		return machine.DecideClass(in, cfg.Clock.Now()), nil
	}
	return r
}

// liveUsers returns the objects of a namespace that may need a class, from the API server.
func liveUsers(ctx context.Context, api versioned.Interface, namespace string, part Part) (users []metav1.Object, err error) {
	add := func(list runtime.Object, err error) error {
		if err != nil {
			return err
		}
		return meta.EachListItem(list, func(o runtime.Object) error {
			user, err := meta.Accessor(o)
			users = append(users, user)
			return err
		})
	}
	of, all := api.MachineV1alpha1(), metav1.ListOptions{}
	err = add(of.Machines(namespace).List(ctx, all))
	if part == MachinesAlone {
		return users, err
	}
	return users, errors.Join(err, add(of.MachineSets(namespace).List(ctx, all)), add(of.MachineDeployments(namespace).List(ctx, all)))
}

// newSecrets returns the finalizers of the Secrets that classes refer to.
func newSecrets(cfg *Config, c *caches) *finalizers[*corev1.Secret] {
	classes, read := c.machines.Machine().V1alpha1().MachineClasses().Informer(), c.secret()
	r := newFinalizers[*corev1.Secret](cfg, "secret", c.control.Core().V1().Secrets().Informer())
	on(classes, each(func(class *v1alpha1.MachineClass) {
		for _, key := range secretKeys(class) {
			r.queue.Add(key)
		}
	}))
	r.get = func(key cache.ObjectName) (*corev1.Secret, error) { return read(key.Namespace, key.Name) }
	r.decide = func(ctx context.Context, s *corev1.Secret, live bool) (machine.Decision, error) {
		in := machine.SecretObservation{Secret: s, Classes: c.ofSecret(cache.MetaObjectToName(s)), Complete: live}
		if live {
			list, err := cfg.Machines.MachineV1alpha1().MachineClasses(cfg.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return machine.Decision{}, err
			}
			in.Classes = pointers(list.Items)
		}
		return machine.DecideSecret(in, cfg.Clock.Now()), nil
	}
	return r
}

func (r *finalizers[T]) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	o, err := r.get(key)
	if err != nil {
		r.cfg.holds.forget(r.kind, key)
		return time.Time{}, ignoreNotFound(err)
	}
	o, _ = r.written.newest(o)
	if r.mine != nil && !r.mine(o) {
		return time.Time{}, nil
	}
	d, err := r.decide(ctx, o, false)
	if err == nil && d.Reason == machine.ReasonNotObserved { // the finalizer is removed only after a live list
		d, err = r.decide(ctx, o, true)
	}
	if err != nil {
		return time.Time{}, err
	}
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Reason: d.Reason, Holds: d.Holds, Acts: d.Action != nil, Waits: len(d.Holds) > 0})
	r.cfg.holds.set(r.kind, key, r.cfg.Clock.Now(), d.Holds, nil)
	if d.Action == nil {
		return d.NextCheck, nil
	}
	u, ok := d.Action.(machinist.Update)
	if !ok {
		return time.Time{}, fmt.Errorf("unknown action %T", d.Action)
	}
	written, err := clients{machines: r.cfg.Machines, core: r.cfg.Control}.update(ctx, u)
	if o, ok := written.(T); ok && err == nil {
		r.written.put(o)
	}
	return time.Time{}, ignoreNotFound(err)
}

// classNeeded returns the key of the class that a machine, set or deployment needs. It is empty
// without an object.
func classNeeded(o metav1.Object) []cache.ObjectName {
	if name, needed := machine.ClassNeeded(o); needed {
		return []cache.ObjectName{cache.NewObjectName(o.GetNamespace(), name)}
	}
	return nil
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
