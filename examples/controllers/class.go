// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	machines func(key string) []*v1alpha1.Machine
	latest   *latest[*v1alpha1.MachineClass]
}

func newClasses(cfg *Config, c *caches) *classes {
	api := c.machines.Machine().V1alpha1()
	r := &classes{cfg: cfg, lister: api.MachineClasses().Lister(), latest: newLatest[*v1alpha1.MachineClass]()}
	r.loop = newLoop(cfg, "machineclass", r.pass)
	r.machines = index(api.Machines().Informer(), "class-of-machine", func(m *v1alpha1.Machine) []string { return []string{classKey(m)} })
	on(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) { r.queue.Add(c.Namespace + "/" + c.Name) })
	onDelete(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) { r.latest.forget(c.UID) })
	on(api.Machines().Informer(), func(m *v1alpha1.Machine) { r.queue.Add(classKey(m)) })
	return r
}

func classKey(m *v1alpha1.Machine) string { return m.Namespace + "/" + m.Spec.Class.Name }

func (r *classes) pass(ctx context.Context, key string) (time.Time, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return time.Time{}, fmt.Errorf("class %q: %w", key, err)
	}
	class, err := r.lister.MachineClasses(namespace).Get(name)
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	class, _ = r.latest.of(class)
	d := machine.DecideClass(machine.ClassObservation{Class: class, Machines: r.machines(key), Complete: true}, r.cfg.Clock.Now())
	r.cfg.note(r.kind, key, d.String(), d.Do != nil, nil)
	switch a := d.Do.(type) {
	case nil:
		return d.NextCheck, nil
	case machine.UpdateClass:
		written, err := r.cfg.Machines.MachineV1alpha1().MachineClasses(namespace).Update(ctx, a.Class, metav1.UpdateOptions{})
		if err == nil {
			r.latest.put(written)
		}
		return time.Time{}, ignoreNotFound(err)
	default:
		return time.Time{}, fmt.Errorf("class %s: unknown action %T", key, a)
	}
}

// secrets guards the secrets that classes refer to.
type secrets struct {
	*loop
	cfg     *Config
	get     func(namespace, name string) (*corev1.Secret, error)
	classes func(key string) []*v1alpha1.MachineClass
	latest  *latest[*corev1.Secret]
}

func newSecrets(cfg *Config, c *caches) *secrets {
	core, api := c.control.Core().V1(), c.machines.Machine().V1alpha1()
	r := &secrets{cfg: cfg, get: c.secret(), latest: newLatest[*corev1.Secret]()}
	r.loop = newLoop(cfg, "secret", r.pass)
	r.classes = index(api.MachineClasses().Informer(), "secrets-of-class", secretKeys)
	on(core.Secrets().Informer(), func(s *corev1.Secret) { r.queue.Add(s.Namespace + "/" + s.Name) })
	onDelete(core.Secrets().Informer(), func(s *corev1.Secret) { r.latest.forget(s.UID) })
	on(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) {
		for _, key := range secretKeys(c) {
			r.queue.Add(key)
		}
	})
	return r
}

// secretKeys are the keys of the secrets that a class refers to.
func secretKeys(c *v1alpha1.MachineClass) []string {
	var keys []string
	for _, ref := range machine.SecretRefs(c) {
		keys = append(keys, ref.Namespace+"/"+ref.Name)
	}
	return keys
}

func (r *secrets) pass(ctx context.Context, key string) (time.Time, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return time.Time{}, fmt.Errorf("secret %q: %w", key, err)
	}
	secret, err := r.get(namespace, name)
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	secret, _ = r.latest.of(secret)
	d := machine.DecideSecret(machine.SecretObservation{Secret: secret, Classes: r.classes(key), Complete: true}, r.cfg.Clock.Now())
	r.cfg.note(r.kind, key, d.String(), d.Do != nil, nil)
	switch a := d.Do.(type) {
	case nil:
		return d.NextCheck, nil
	case machine.UpdateSecret:
		written, err := r.cfg.Control.CoreV1().Secrets(namespace).Update(ctx, a.Secret, metav1.UpdateOptions{})
		if err == nil {
			r.latest.put(written)
		}
		return time.Time{}, ignoreNotFound(err)
	default:
		return time.Time{}, fmt.Errorf("secret %s: unknown action %T", key, a)
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
