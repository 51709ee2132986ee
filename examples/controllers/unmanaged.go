// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// unmanaged marks Nodes without a machine. One pass decides about all Nodes.
type unmanaged struct {
	*loop
	cfg      *Config
	nodes    corelisters.NodeLister
	machines listers.MachineLister
	synced   func() bool
	state    safety.UnmanagedState // passes do not run concurrently
}

// markDelay is how long changes of Nodes and machines are collected before the next pass, which looks
// at all of them. Nodes are marked after minutes, and nothing waits for the end of a mark.
const markDelay = 5 * time.Second

// newUnmanaged returns the controller. It needs a target cluster.
func newUnmanaged(cfg *Config, c *caches) *unmanaged {
	nodes, machines := c.target.Core().V1().Nodes(), c.machines.Machine().V1alpha1().Machines()
	r := &unmanaged{cfg: cfg, nodes: nodes.Lister(), machines: machines.Lister(), synced: c.nodesSynced}
	r.loop = newLoop(cfg, "unmanaged", r.pass)
	soon := func() { r.queue.AddAfter(cache.ObjectName{}, markDelay) }
	cfg.freeze.wake = append(cfg.freeze.wake, soon)
	on(nodes.Informer(), func(before, after *corev1.Node) {
		if before == nil || after != nil && markChanged(before, after) {
			soon()
		}
	})
	on(machines.Informer(), func(before, after *v1alpha1.Machine) {
		if before == nil || after == nil || before.Spec.ProviderID != after.Spec.ProviderID ||
			before.Labels[v1alpha1.NodeLabelKey] != after.Labels[v1alpha1.NodeLabelKey] {
			soon()
		}
	})
	return r
}

// markChanged reports whether a Node has changed in what the decision depends on.
func markChanged(before, after *corev1.Node) bool {
	_, was := before.Annotations[v1alpha1.NotManagedByMCM]
	_, is := after.Annotations[v1alpha1.NotManagedByMCM]
	return was != is || before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Labels[v1alpha1.MachineNameLabelKey] != after.Labels[v1alpha1.MachineNameLabelKey] ||
		before.Annotations[v1alpha1.MachineUIDAnnotation] != after.Annotations[v1alpha1.MachineUIDAnnotation]
}

// pass decides about all Nodes. The next pass repeats failed writes.
func (r *unmanaged) pass(ctx context.Context, _ cache.ObjectName) (time.Time, error) {
	nodes, err := r.nodes.List(labels.Everything())
	if err != nil {
		return time.Time{}, err
	}
	machines, err := r.machines.List(labels.Everything())
	if err != nil {
		return time.Time{}, err
	}
	in := safety.UnmanagedObservation{
		Nodes: nodes, Machines: machines, Complete: r.synced(),
		Frozen: r.cfg.freeze.now().Frozen,
	}
	state, d := safety.StepUnmanaged(r.state, in, safety.UnmanagedPolicy{Timeout: r.cfg.Policy.CreationTimeout}, r.cfg.Clock.Now())
	r.state = state
	r.cfg.holds.set(r.kind, cache.ObjectName{}, r.cfg.Clock.Now(), d.Holds, nil)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d nodes", len(nodes)), Text: d.String(), Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	requests := client.New(nil, r.cfg.Target)
	for _, u := range d.Actions {
		if _, writeErr := runners.Update(ctx, requests, u); ignoreNotFound(writeErr) != nil { // a deleted Node needs no write
			err = errors.Join(err, fmt.Errorf("%s: %w", u, writeErr)) // the other Nodes are still written
		}
	}
	return d.NextCheck, err
}
