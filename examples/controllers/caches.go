// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// caches are what the controllers see of the clusters.
type caches struct {
	machines machineinformers.SharedInformerFactory
	control  informers.SharedInformerFactory
	target   informers.SharedInformerFactory // nil without a target cluster

	ofClass func(key cache.ObjectName) []*v1alpha1.Machine // machines that refer to a class
}

func newCaches(cfg *Config) *caches {
	c := &caches{
		machines: machineinformers.NewSharedInformerFactoryWithOptions(cfg.Machines, cfg.Resync, machineinformers.WithNamespace(cfg.Namespace)),
		control:  informers.NewSharedInformerFactoryWithOptions(cfg.Control, cfg.Resync, informers.WithNamespace(cfg.Namespace)),
	}
	if cfg.Target != nil {
		c.target = informers.NewSharedInformerFactory(cfg.Target, cfg.Resync)
	}
	c.ofClass = index(c.machines.Machine().V1alpha1().Machines().Informer(), "class-of-machine",
		func(m *v1alpha1.Machine) []cache.ObjectName { return []cache.ObjectName{classKey(m)} })
	return c
}

// secret returns what reads a secret from the cache.
func (c *caches) secret() secretReader {
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
