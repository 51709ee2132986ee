// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	machineinformers "github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// caches are the informer caches of the clusters. A factory starts only those informers that a
// controller has requested.
type caches struct {
	machines machineinformers.SharedInformerFactory
	control  informers.SharedInformerFactory // nil without the controllers of machines
	target   informers.SharedInformerFactory // nil without a target cluster
	tokens   informers.SharedInformerFactory // only the bootstrap tokens of machines; nil without target or control

	noSets bool // the cluster serves no sets and deployments

	wait   func()                                                              // waits for what passes have begun; nil without loops
	ofNode func(ctx context.Context, node string) ([]*v1alpha1.Machine, error) // the machines whose label names a Node
}

func newCaches(cfg *Config) *caches {
	c := &caches{
		noSets: cfg.Part == MachinesAlone,
		machines: machineinformers.NewSharedInformerFactoryWithOptions(cfg.Machines, cfg.Resync,
			machineinformers.WithNamespace(cfg.Namespace), machineinformers.WithTransform(runner.Trim)),
	}
	if cfg.Target != nil {
		c.target = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithTransform(runner.Trim))
	}
	if cfg.Part.machines() {
		c.control = informers.NewSharedInformerFactoryWithOptions(cfg.Control, cfg.Resync,
			informers.WithNamespace(cfg.Namespace), informers.WithTransform(runner.Trim))
	}
	if cfg.Part.machines() && cfg.Target != nil {
		c.tokens = informers.NewSharedInformerFactoryWithOptions(cfg.Target, cfg.Resync, informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(runner.Trim),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.TokenOwnerLabel }))
	}
	return c
}

// factories returns the factories for the runners.
func (c *caches) factories() runner.Factories {
	return runner.Factories{Machines: c.machines, NoSets: c.noSets, Control: c.control, Target: c.target, Tokens: c.tokens}
}

// targetWait is how long the first passes wait for the target cluster. Machines can be deleted while
// it does not answer.
const targetWait = 30 * time.Second

// start starts the requested informers and waits until they are synced. It waits for those of the
// target cluster at most targetWait.
func (c *caches) start(ctx context.Context) error {
	c.machines.Start(ctx.Done())
	for _, f := range c.ofClusters() {
		f.Start(ctx.Done())
	}
	synced := allSynced(c.machines.WaitForCacheSync(ctx.Done()))
	if c.control != nil {
		synced = allSynced(c.control.WaitForCacheSync(ctx.Done())) && synced
	}
	if !synced {
		return fmt.Errorf("caches not synced: %w", context.Cause(ctx))
	}
	soon, cancel := context.WithTimeout(ctx, targetWait)
	defer cancel()
	for _, f := range c.ofClusters() {
		f.WaitForCacheSync(soon.Done())
	}
	return ctx.Err()
}

// allSynced reports whether all informers of a factory are synced.
func allSynced(informers map[reflect.Type]bool) bool {
	return !slices.Contains(slices.Collect(maps.Values(informers)), false)
}

// ofClusters returns the factories of the built-in kinds.
func (c *caches) ofClusters() []informers.SharedInformerFactory {
	var all []informers.SharedInformerFactory
	for _, f := range []informers.SharedInformerFactory{c.control, c.target, c.tokens} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

func (c *caches) shutdown() {
	c.machines.Shutdown()
	for _, f := range c.ofClusters() {
		f.Shutdown()
	}
}
