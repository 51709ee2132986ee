// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newMachines returns the loops that reconcile machines, and the finalizers of the classes and Secrets that
// they need.
func newMachines(cfg *Config, c *caches, severalVMs func(class types.NamespacedName)) (*machines, error) {
	informers, err := c.reader()
	if err != nil {
		return nil, err
	}
	r := &machines{loop: newLoop(cfg, "machine", nil), classes: newLoop(cfg, "machineclass", nil), secrets: newLoop(cfg, "secret", nil), informers: informers}
	r.executor = &runner.Executor{
		Reader: informers, Requests: client.New(cfg.Machines, cfg.Target), Target: cfg.Target, Driver: cfg.Driver, Policy: cfg.Policy, TokenGroups: cfg.TokenGroups,
		Freeze: cfg.freeze.now, Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock, Random: cfg.Random, Drains: cfg.Drains, Decided: r.decidedMachine, SeveralVMs: severalVMs,
		Report: func(m *v1alpha1.Machine, e machinist.Event) { cfg.event(m, e) },
	}
	if r.failures = newFailureGuard(cfg, c, informers, r.executor); r.failures != nil {
		r.executor.Guard = r.failures
	}
	r.pass = r.withHolds(r.executor.Reconcile)
	r.wakeWithFreeze(informers.Machines, wakeSpread)

	finalizers := &runner.Finalizers{
		Reader: informers, Requests: client.New(cfg.Machines, cfg.Control), Namespace: cfg.Namespace, NoSets: c.noSets, Shard: cfg.Shard, Clock: cfg.Clock,
		Decided: r.decidedFinalizer,
	}
	r.classes.pass, r.secrets.pass = r.classes.withHolds(finalizers.ReconcileClass), r.secrets.withHolds(finalizers.ReconcileSecret)
	return r, errors.Join(informers.OnChange(r.after), informers.OnClassChange(r.classes.after), informers.OnSecretChange(r.secrets.after))
}

// machines has the loops of machines, classes and Secrets.
type machines struct {
	*loop
	classes, secrets *loop
	informers        *runner.Informers
	executor         *runner.Executor
	failures         *failureGuard // nil without a policy
}

func (r *machines) decidedMachine(key types.NamespacedName, m *v1alpha1.Machine, d machine.Decision, err error) {
	switch name := cache.ObjectName(key); {
	case m == nil:
		r.cfg.holds.forget(r.kind, name)
	case err != nil:
		r.cfg.note(Note{Kind: r.kind, Key: name.String(), Text: d.Action.String(), Acts: true, Err: err})
	default:
		n := note{d.String(), d.Reason, d.Holds, d.Action != nil}
		if r.tell(name, n); d.Action == nil { // the holds of a pass are those at its end
			r.reportStuck(m, name, d.Holds, nil)
		}
	}
}

func (r *machines) decidedFinalizer(key types.NamespacedName, o metav1.Object, d machine.Decision) {
	l, name := r.classes, cache.ObjectName(key)
	class, _ := o.(*v1alpha1.MachineClass)
	secret, ofSecret := o.(*corev1.Secret)
	if ofSecret {
		l = r.secrets
	}
	if class == nil && secret == nil {
		l.cfg.holds.forget(l.kind, name)
		return
	}
	l.tell(name, note{d.String(), d.Reason, d.Holds, d.Action != nil})
	l.cfg.holds.set(l.kind, name, l.cfg.Clock.Now(), d.Holds, nil)
}
