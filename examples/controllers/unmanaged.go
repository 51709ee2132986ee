// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// unmanaged marks Nodes that no machine stands for. All Nodes are looked at together, under
// one key.
type unmanaged struct {
	*loop
	cfg      *Config
	nodes    corelisters.NodeLister
	machines listers.MachineLister
	state    safety.UnmanagedState // no two passes run at a time
}

// newUnmanaged needs a target cluster.
func newUnmanaged(cfg *Config, c *caches) *unmanaged {
	nodes, machines := c.target.Core().V1().Nodes(), c.machines.Machine().V1alpha1().Machines()
	r := &unmanaged{cfg: cfg, nodes: nodes.Lister(), machines: machines.Lister()}
	r.loop = newLoop(cfg, "unmanaged", r.pass)
	soon := func() { r.queue.AddAfter(cache.ObjectName{}, gather) }
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

// markChanged reports whether what is decided from has changed on a Node.
func markChanged(before, after *corev1.Node) bool {
	_, was := before.Annotations[v1alpha1.NotManagedByMCM]
	_, is := after.Annotations[v1alpha1.NotManagedByMCM]
	return was != is || before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Labels[v1alpha1.MachineNameLabelKey] != after.Labels[v1alpha1.MachineNameLabelKey]
}

// pass decides about all Nodes. What is not written is decided again.
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
		Nodes: nodes, Machines: machines, Complete: true, // the caches were filled before the first pass
		Frozen: r.cfg.freeze.now().Frozen,
	}
	state, d := safety.StepUnmanaged(r.state, in, safety.UnmanagedPolicy{Timeout: r.cfg.Policy.CreationTimeout}, r.cfg.Clock.Now())
	r.state = state
	r.cfg.holds.set(r.kind, cache.ObjectName{}, r.cfg.Clock.Now(), d.Holds, nil)
	r.cfg.note(Note{Kind: r.kind, Key: fmt.Sprintf("%d nodes", len(nodes)), Text: d.String(), Holds: d.Holds, Acts: len(d.Actions) > 0, Waits: len(d.Holds) > 0})
	for _, w := range d.Actions {
		if writeErr := r.write(ctx, w); writeErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", w, writeErr)) // it keeps no other Node from being written
		}
	}
	return d.NextCheck, err
}

// write carries out one write. A Node that is gone needs none.
func (r *unmanaged) write(ctx context.Context, w safety.NodeWrite) error {
	kind, patch, err := w.Patch()
	if err != nil {
		return err
	}
	_, err = r.cfg.Target.CoreV1().Nodes().Patch(ctx, w.Node.Name, kind, patch, metav1.PatchOptions{})
	return ignoreNotFound(err)
}
