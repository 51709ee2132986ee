// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
)

// Run runs the controllers until the context ends, and returns after all its goroutines have ended.
// It returns an error if the Config is incomplete, or if the context ends before the caches are
// synced.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	c := newCaches(&cfg)
	defer func() {
		cancel()
		running.Wait()
		c.shutdown()
	}()
	probes := newFreezes(&cfg)
	ofNode := c.ofNode()            //nolint:contextcheck // reads a cache
	loops, err := newLoops(&cfg, c) //nolint:contextcheck // an event of an informer has no context
	loops = append(loops, probes.loop)
	defer func() {
		for _, l := range loops {
			l.queue.ShutDown()
		}
	}()
	if err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	if cfg.Started != nil {
		cfg.Started(Views{Part: cfg.Part, Shard: cfg.Shard, Objects: c.machines.Machine().V1alpha1(), OfNode: ofNode, Held: cfg.holds.list})
	}
	probes.begin(ctx)
	for _, l := range loops {
		running.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// newLoops returns the loops of the controllers, and requests the informers that they need.
func newLoops(cfg *Config, c *caches) ([]*loop, error) {
	var loops []*loop
	if cfg.Part.machines() {
		orphans, err := newOrphans(cfg, c)
		if err != nil {
			return nil, err
		}
		machines, err := newMachines(cfg, c, orphans.wake)
		if err != nil {
			return nil, err
		}
		loops = append(loops, machines.loop, machines.classes, machines.secrets, orphans.loop)
		if c.target != nil {
			loops = append(loops, newUnmanaged(cfg, c).loop)
		}
	}
	if !cfg.Part.sets() {
		return loops, nil
	}
	sets, err := newMachineSets(cfg, c)
	if err != nil {
		return loops, err
	}
	deployments, err := newMachineDeployments(cfg, c)
	if err != nil {
		return loops, err
	}
	return append(loops, sets, deployments, newOvershoots(cfg, c).loop), nil
}
