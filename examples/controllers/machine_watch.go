// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// watch enqueues machines when an object changes that their decisions depend on.
func (r *machineReconciler) watch(c *caches) {
	api := c.machines.Machine().V1alpha1()
	on(api.Machines().Informer(), r.changed)
	on(api.MachineClasses().Informer(), func(before, after *v1alpha1.MachineClass) {
		if machine.Changed(before, after) {
			each(func(class *v1alpha1.MachineClass) { r.addAll(c.ofClass(cache.MetaObjectToName(class))) })(before, after)
		}
	})
	on(c.control.Core().V1().Secrets().Informer(), func(before, after *corev1.Secret) {
		if !machine.Changed(before, after) {
			return
		}
		each(func(s *corev1.Secret) {
			for _, class := range c.ofSecret(cache.MetaObjectToName(s)) {
				r.addAll(c.ofClass(cache.MetaObjectToName(class)))
			}
		})(before, after)
	})
}

// changed enqueues a machine, and the machines that its change may release.
func (r *machineReconciler) changed(before, after *v1alpha1.Machine) {
	if machine.Changed(before, after) {
		each(func(m *v1alpha1.Machine) { r.add(m) })(before, after)
	}
	group, permit := machine.FreesReplacement(before, after)
	if group {
		each(func(m *v1alpha1.Machine) { r.addAll(r.groups.waitingWith(m)) })(before, after)
	}
	if before == nil || after == nil || before.Spec.ProviderID != after.Spec.ProviderID {
		each(func(m *v1alpha1.Machine) {
			for _, id := range providerIDs(m.Spec.ProviderID) {
				r.addAll(r.ofID(id))
			}
		})(before, after)
	}
	if permit {
		m := cmp.Or(after, before)
		r.permits.Release(r.groups.of(m).String(), string(m.UID), r.cfg.Clock.Now())
	}
	if after == nil {
		r.forget(before.UID)
	}
}

// watchTarget enqueues machines when their Node changes, or an object on it.
func (r *machineReconciler) watchTarget(c *caches) {
	core := c.target.Core().V1()
	r.writtenNode = newWritten[*corev1.Node](shows[*corev1.Node](core.Nodes().Informer()))
	r.node, r.nodesSynced = c.node, c.nodesSynced
	// Both fail only for stopped informers.
	r.drains, _ = runner.NewInformers(c.target, drain.SourceBudgets, drain.SourceClaims, drain.SourceAttachments)
	_ = r.drains.OnChange(r.addDrained)
	on(core.Nodes().Informer(), func(before, after *corev1.Node) {
		if machine.Changed(before, after) {
			each(func(n *corev1.Node) { r.addAll(c.machinesOfNode(n)) })(before, after)
		}
	})
	onDelete(core.Nodes().Informer(), func(n *corev1.Node) { r.writtenNode.forget(n.UID) })
	tokens := c.tokens.Core().V1().Secrets().Informer()
	r.writtenToken = newWritten[*corev1.Secret](shows[*corev1.Secret](tokens))
	r.tokensSynced = tokens.HasSynced
	r.tokens = index(tokens, "machine-of-token", func(s *corev1.Secret) []types.UID { return []types.UID{machine.TokenOwner(s)} })
	on(tokens, func(before, after *corev1.Secret) {
		if after == nil {
			r.writtenToken.forget(before.UID)
			return
		}
		if key, err := cache.ParseObjectName(after.Annotations[machine.TokenMachineAnnotation]); err == nil {
			r.queue.Add(key) // a token that the cache shows late may have to be deleted
		}
	})
}

// addAll enqueues each of the machines.
func (r *machineReconciler) addAll(machines []*v1alpha1.Machine) {
	for _, m := range machines {
		r.add(m)
	}
}

// addDrained enqueues the machine whose Node is being drained.
func (r *machineReconciler) addDrained(node string) {
	n, err := r.node(node)
	if err != nil {
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	}
	for _, m := range r.machinesOfNode(n) {
		if machine.Drains(m, n) {
			r.add(m)
		}
	}
}
