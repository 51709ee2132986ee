// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// secrets guards the secrets that classes refer to.
type secrets struct {
	*loop
	cfg     *Config
	get     func(namespace, name string) (*corev1.Secret, error)
	classes func(key cache.ObjectName) []*v1alpha1.MachineClass
	latest  *latest[*corev1.Secret]
}

func newSecrets(cfg *Config, c *caches) *secrets {
	core, api := c.control.Core().V1(), c.machines.Machine().V1alpha1()
	r := &secrets{cfg: cfg, get: c.secret(), latest: newLatest[*corev1.Secret]()}
	r.loop = newLoop(cfg, "secret", r.pass)
	r.classes = index(api.MachineClasses().Informer(), "secrets-of-class", secretKeys)
	on(core.Secrets().Informer(), func(s *corev1.Secret) { r.add(s) })
	onDelete(core.Secrets().Informer(), func(s *corev1.Secret) { r.latest.forget(s.UID) })
	on(api.MachineClasses().Informer(), func(c *v1alpha1.MachineClass) {
		for _, key := range secretKeys(c) {
			r.queue.Add(key)
		}
	})
	return r
}

// secretKeys are the keys of the secrets that a class refers to.
func secretKeys(c *v1alpha1.MachineClass) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, ref := range machine.SecretRefs(c) {
		keys = append(keys, cache.NewObjectName(ref.Namespace, ref.Name))
	}
	return keys
}

func (r *secrets) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	secret, err := r.get(key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, ignoreNotFound(err)
	}
	secret, _ = r.latest.of(secret)
	d := machine.DecideSecret(machine.SecretObservation{Secret: secret, Classes: r.classes(key), Complete: true}, r.cfg.Clock.Now())
	r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Acts: d.Do != nil, Waits: len(d.Holds) > 0})
	switch a := d.Do.(type) {
	case nil:
		return d.NextCheck, nil
	case machine.UpdateSecret:
		written, err := r.cfg.Control.CoreV1().Secrets(key.Namespace).Update(ctx, a.Secret, metav1.UpdateOptions{})
		if err == nil {
			r.latest.put(written)
		}
		return time.Time{}, ignoreNotFound(err)
	default:
		return time.Time{}, fmt.Errorf("secret %s: unknown action %T", key, a)
	}
}

// secretReader reads a secret.
type secretReader func(namespace, name string) (*corev1.Secret, error)

// secretsOf reads the secrets that a class refers to, user data first. Next to an
// error stand those that could be read.
func secretsOf(class *v1alpha1.MachineClass, read secretReader) ([]*corev1.Secret, error) {
	var found []*corev1.Secret
	var missing []error
	for _, ref := range machine.SecretRefs(class) {
		secret, err := read(ref.Namespace, ref.Name)
		if err != nil {
			missing = append(missing, fmt.Errorf("secret %s/%s of class %s: %w", ref.Namespace, ref.Name, class.Name, err))
			continue
		}
		found = append(found, secret)
	}
	return found, errors.Join(missing...)
}

// mergedSecret reads the secrets of a class and merges them into one. Next to an
// error it holds what could be read.
func mergedSecret(class *v1alpha1.MachineClass, read secretReader) (*corev1.Secret, error) {
	found, err := secretsOf(class, read)
	merged := &corev1.Secret{}
	for _, secret := range found {
		merged.Data = machine.MergeSecrets(merged.Data, secret.Data)
	}
	return merged, err
}
