// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	"github.com/machinist-dev/machinist/machineset/runner"
)

// newMachineSets returns the loop that reconciles MachineSets.
func newMachineSets(cfg *Config, c *caches) (*loop, error) {
	informers, err := runner.NewInformers(c.machines, c.target)
	if err != nil {
		return nil, err
	}
	l := newLoop(cfg, "machineset", nil)
	executor := &runner.Executor{
		Reader: informers, Requests: client.New(cfg.SetClient, cfg.Target), Policy: cfg.Sets, Freeze: cfg.freeze.now,
		Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock, Random: cfg.Random,
		Report: func(set *v1alpha1.MachineSet, e machinist.Event) { cfg.event(set, e) },
	}
	executor.Decided = func(key types.NamespacedName, set *v1alpha1.MachineSet, d machineset.Decision) {
		if set == nil {
			cfg.holds.forget(l.kind, cache.ObjectName(key))
			return
		}
		l.decided(cache.ObjectName(key), set, note{d.String(), d.Reason, d.Holds, len(d.Actions) > 0}, func(h machinist.Hold) time.Time {
			return d.HeldSince(set, h, cfg.Clock.Now())
		})
	}
	l.pass = l.withHolds(executor.Reconcile)
	l.wakeWithFreeze(informers.Sets, time.Second)
	return l, informers.OnChange(l.after)
}
