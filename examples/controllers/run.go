// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"sync"

	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
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
		if c.wait != nil {
			c.wait()
		}
	}()
	probes := newProbes(&cfg)
	err := newLoops(&cfg, c) //nolint:contextcheck // an event of an informer has no context
	defer func() {
		for _, l := range cfg.loops {
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
		cfg.Started(Views{Part: cfg.Part, Shard: cfg.Shard, Objects: c.machines.Machine().V1alpha1(), MachinesOfNode: c.ofNode, Held: cfg.holds.list})
	}
	probes.queue.Add(probesKey)
	probes.next(ctx) // before the first decision
	for _, l := range cfg.loops {
		running.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// newLoops makes the loops of the controllers, and requests the informers that they need.
func newLoops(cfg *Config, c *caches) error {
	concerns, err := newConcerns(cfg, c)
	if err != nil {
		return err
	}
	c.wait = concerns.executor.Wait
	c.ofNode = func(ctx context.Context, node string) ([]*v1alpha1.Machine, error) {
		return objects.List[*v1alpha1.Machine](ctx, concerns.informers, runners.ByNode, node)
	}
	if cfg.Part.machines() {
		err = newMachines(cfg, c, concerns.wake)
	}
	if cfg.Part.sets() {
		err = errors.Join(err, newSets(cfg, c), newDeployments(cfg, c))
	}
	return err
}
