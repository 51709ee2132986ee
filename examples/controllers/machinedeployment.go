// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newMachineDeployments returns the loop that reconciles MachineDeployments.
func newMachineDeployments(cfg *Config, c *caches) (*loop, error) {
	informers, err := runner.NewInformers(c.machines, c.target)
	if err != nil {
		return nil, err
	}
	l := newLoop(cfg, "machinedeployment", nil)
	executor := &runner.Executor{
		Reader: informers, Requests: client.New(cfg.SetClient, cfg.Target), Policy: cfg.Deployments, Freeze: cfg.freeze.now,
		Shard: cfg.Shard, Parallel: cfg.parallel, Clock: cfg.Clock,
		Report: func(d *v1alpha1.MachineDeployment, e machinist.Event) { cfg.event(d, e) },
	}
	executor.Decided = func(key types.NamespacedName, d *v1alpha1.MachineDeployment, decision deployment.Decision) {
		if d == nil {
			cfg.holds.forget(l.kind, cache.ObjectName(key))
			return
		}
		l.decided(cache.ObjectName(key), d, note{decision.String(), decision.Reason, decision.Holds, len(decision.Actions) > 0}, func(h machinist.Hold) time.Time {
			return decision.HeldSince(d, h, cfg.Clock.Now())
		})
	}
	l.pass = l.withHolds(executor.Reconcile)
	l.wakeWithFreeze(informers.Deployments, time.Second)
	return l, informers.OnChange(l.after)
}
