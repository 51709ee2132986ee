// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	deploymentrunner "github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	setrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/safety"
	safetyrunner "github.com/machinist-dev/machinist/safety/runner"
)

// newMachines makes the loops of machines, classes and Secrets. severalVMs is called with a class that has an orphan.
func newMachines(cfg *Config, c *caches, severalVMs func(class types.NamespacedName)) error {
	informers, err := machinerunner.NewInformers(c.factories())
	if err != nil {
		return err
	}
	machines, classes, secrets := newLoop(cfg, "machine", nil), newLoop(cfg, "machineclass", nil), newLoop(cfg, "secret", nil)
	executor := &machinerunner.Executor{
		Reader: informers, Requests: client.New(cfg.Machines, cfg.Target), Target: cfg.Target, Driver: cfg.Driver, Policy: cfg.Policy, TokenGroups: cfg.TokenGroups,
		Freeze: cfg.probes.Freeze, Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock, Random: cfg.Random, Drains: cfg.Drains, SeveralVMs: severalVMs, Report: cfg.event,
	}
	executor.Decided = func(key types.NamespacedName, m *v1alpha1.Machine, d machine.Decision, err error) {
		n := note{d.String(), d.Reason, d.Holds, d.Action != nil}
		switch {
		case m == nil:
			machines.forget(key)
		case err != nil:
			cfg.note(Note{Kind: machines.kind, Key: key.String(), Text: d.Action.String(), Acts: true, Err: err})
		case d.Action != nil: // the holds of a pass are those at its end
			machines.tell(key, n)
		default:
			machines.decided(key, m, n, func(h machinist.Hold) time.Time { return d.ReportFrom(m, h, cfg.Clock.Now()) })
		}
	}
	if cfg.Guard != (safety.GuardPolicy{}) {
		executor.Guard = &safetyrunner.Guard{Machines: executor, Policy: cfg.Guard, Began: cfg.Clock.Now(), Report: cfg.event}
	}
	finalizers := &machinerunner.Finalizers{
		Reader: informers, Requests: client.New(cfg.Machines, cfg.Control), Namespace: cfg.Namespace, NoSets: c.noSets, Shard: cfg.Shard, Clock: cfg.Clock,
	}
	finalizers.Decided = func(key types.NamespacedName, o metav1.Object, d machine.Decision) {
		l := classes
		class, _ := o.(*v1alpha1.MachineClass)
		secret, ofSecret := o.(*corev1.Secret)
		if ofSecret {
			l = secrets
		}
		if class == nil && secret == nil {
			l.forget(key)
			return
		}
		l.tell(key, note{d.String(), d.Reason, d.Holds, d.Action != nil})
		l.hold(key, d.Holds, nil)
	}
	machines.pass = machines.withHolds(executor.Reconcile)
	classes.pass, secrets.pass = classes.withHolds(finalizers.ReconcileClass), secrets.withHolds(finalizers.ReconcileSecret)
	machines.wakeWithFreeze(c.machines.Machine().V1alpha1().Machines().Informer(), wakeSpread)
	return errors.Join(informers.OnChange(machines.queue.AddAfter), informers.OnClassChange(classes.queue.AddAfter), informers.OnSecretChange(secrets.queue.AddAfter))
}

// newSets makes the loop of MachineSets.
func newSets(cfg *Config, c *caches) error {
	informers, err := setrunner.NewInformers(c.machines, c.target)
	if err != nil {
		return err
	}
	l := newLoop(cfg, "machineset", nil)
	executor := &setrunner.Executor{
		Reader: informers, Requests: client.New(cfg.SetClient, cfg.Target), Policy: cfg.Sets, Freeze: cfg.probes.Freeze,
		Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock, Random: cfg.Random, Report: cfg.event,
	}
	executor.Decided = follow(l, func(d machineset.Decision) note { return note{d.String(), d.Reason, d.Holds, len(d.Actions) > 0} }, machineset.Decision.ReportFrom)
	l.pass = l.withHolds(executor.Reconcile)
	l.wakeWithFreeze(c.machines.Machine().V1alpha1().MachineSets().Informer(), time.Second)
	return informers.OnChange(l.queue.AddAfter)
}

// newDeployments makes the loop of MachineDeployments.
func newDeployments(cfg *Config, c *caches) error {
	informers, err := deploymentrunner.NewInformers(c.machines, c.target)
	if err != nil {
		return err
	}
	l := newLoop(cfg, "machinedeployment", nil)
	executor := &deploymentrunner.Executor{
		Reader: informers, Requests: client.New(cfg.SetClient, cfg.Target), Policy: cfg.Deployments, Freeze: cfg.probes.Freeze,
		Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock, Report: cfg.event,
	}
	executor.Decided = follow(l, func(d deployment.Decision) note { return note{d.String(), d.Reason, d.Holds, len(d.Actions) > 0} }, deployment.Decision.ReportFrom)
	l.pass = l.withHolds(executor.Reconcile)
	l.wakeWithFreeze(c.machines.Machine().V1alpha1().MachineDeployments().Informer(), time.Second)
	return informers.OnChange(l.queue.AddAfter)
}

// object is a pointer to an API object.
type object interface {
	comparable
	runtime.Object
}

// follow returns the observer of the decisions of a kind.
func follow[O object, D any](l *loop, describe func(D) note, from func(d D, o O, h machinist.Hold, now time.Time) time.Time) func(types.NamespacedName, O, D) {
	return func(key types.NamespacedName, o O, d D) {
		var none O
		if o == none {
			l.forget(key)
			return
		}
		l.decided(key, o, describe(d), func(h machinist.Hold) time.Time { return from(d, o, h, l.cfg.Clock.Now()) })
	}
}
