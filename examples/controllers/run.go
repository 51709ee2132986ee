// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
)

// Run runs the controllers until the context ends, and returns when everything
// that they started has ended too. It fails if the config is not complete or if
// a cache cannot be filled before the context ends.
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
	loops := []*loop{
		newMachines(&cfg, c).loop,
		newMachineSets(&cfg, c).loop,
		newMachineDeployments(&cfg, c).loop,
		newClasses(&cfg, c).loop,
		newSecrets(&cfg, c).loop,
		newOrphans(&cfg, c).loop,
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	for _, l := range loops {
		running.Go(func() { l.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// caches are what the controllers see of the clusters.
type caches struct {
	machines machineinformers.SharedInformerFactory
	control  informers.SharedInformerFactory
	target   informers.SharedInformerFactory // nil without a target cluster
}

func newCaches(cfg *Config) *caches {
	c := &caches{
		machines: machineinformers.NewSharedInformerFactoryWithOptions(cfg.Machines, 0, machineinformers.WithNamespace(cfg.Namespace)),
		control:  informers.NewSharedInformerFactoryWithOptions(cfg.Control, 0, informers.WithNamespace(cfg.Namespace)),
	}
	if cfg.Target != nil {
		c.target = informers.NewSharedInformerFactory(cfg.Target, 0)
	}
	return c
}

// secret returns what reads a secret from the cache.
func (c *caches) secret() func(namespace, name string) (*corev1.Secret, error) {
	lister := c.control.Core().V1().Secrets().Lister()
	return func(namespace, name string) (*corev1.Secret, error) { return lister.Secrets(namespace).Get(name) }
}

// start starts what the controllers have asked for, and waits until it is
// complete.
func (c *caches) start(ctx context.Context) error {
	c.machines.Start(ctx.Done())
	c.control.Start(ctx.Done())
	synced := true
	if c.target != nil {
		c.target.Start(ctx.Done())
		for _, ok := range c.target.WaitForCacheSync(ctx.Done()) {
			synced = synced && ok
		}
	}
	for _, ok := range c.machines.WaitForCacheSync(ctx.Done()) {
		synced = synced && ok
	}
	for _, ok := range c.control.WaitForCacheSync(ctx.Done()) {
		synced = synced && ok
	}
	if !synced {
		return fmt.Errorf("caches not filled: %w", context.Cause(ctx))
	}
	return nil
}

func (c *caches) shutdown() {
	c.machines.Shutdown()
	c.control.Shutdown()
	if c.target != nil {
		c.target.Shutdown()
	}
}

// onDelete calls f with every object that is gone.
func onDelete[T any](informer cache.SharedIndexInformer, f func(T)) {
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) { // fails only once the informer has stopped
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}})
}

// on calls f with every object that is added, changed or deleted; of a change,
// with the old and the new one.
func on[T any](informer cache.SharedIndexInformer, f func(T)) {
	call := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if t, ok := o.(T); ok {
			f(t)
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
		AddFunc:    call,
		UpdateFunc: func(old, o any) { call(old); call(o) },
		DeleteFunc: call,
	})
}

// index makes objects findable by what keys returns of them. It has to be called
// before the informer starts.
func index[T any](informer cache.SharedIndexInformer, name string, keys func(T) []string) func(key string) []T {
	// It fails only if the informer has started or the name is taken by another index.
	_ = informer.AddIndexers(cache.Indexers{name: func(o any) ([]string, error) {
		if t, ok := o.(T); ok {
			return keys(t), nil
		}
		return nil, nil
	}})
	return func(key string) []T {
		found, err := informer.GetIndexer().ByIndex(name, key)
		if err != nil {
			return nil
		}
		out := make([]T, 0, len(found))
		for _, o := range found {
			if t, ok := o.(T); ok {
				out = append(out, t)
			}
		}
		return out
	}
}
