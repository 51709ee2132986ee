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
	loops := append(newLoops(&cfg, c), probes.loop)
	defer func() {
		for _, l := range loops {
			l.queue.ShutDown()
		}
	}()
	if err := c.start(ctx); err != nil {
		return err
	}
	if cfg.Started != nil {
		cfg.Started(Views{Part: cfg.Part, Shard: cfg.Shard, Objects: c.machines.Machine().V1alpha1(), OfNode: c.ofNode, Held: cfg.holds.list})
	}
	probes.begin(ctx)
	for _, l := range loops {
		running.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// newLoops returns the loops of the controllers, and requests the informers that they need.
func newLoops(cfg *Config, c *caches) []*loop {
	var loops []*loop
	if cfg.Part.machines() {
		machines, orphans := newMachines(cfg, c), newOrphans(cfg, c)
		machines.secondVM = orphans.wake
		loops = append(loops, machines.loop, newClasses(cfg, c).loop, newSecrets(cfg, c).loop, orphans.loop)
		if c.target != nil {
			loops = append(loops, newUnmanaged(cfg, c).loop)
		}
	}
	if cfg.Part.sets() {
		loops = append(loops, newMachineSets(cfg, c).loop, newMachineDeployments(cfg, c).loop, newOvershoots(cfg, c).loop)
	}
	return loops
}
