// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/safety"
)

// nodesKey is the key of the pass that deletes the Nodes of deleted VMs. No class has an empty
// name.
var nodesKey = cache.ObjectName{Namespace: "nodes"}

const (
	// nodesTime is how long Nodes of a deleted VM are deleted, because its kubelet may join late. A
	// Node that joins later is reported as a Node without VM and machine.
	nodesTime = 10 * time.Minute
	// nodesAgain is the interval of these deletions.
	nodesAgain = 30 * time.Second
)

// deletedVM is a deleted VM, and the time until which its Nodes are deleted.
type deletedVM struct {
	safety.DeleteVM
	until time.Time
}

// deleteNodesOf requests the deletion of the Nodes of an orphan VM, which no machine deletes.
func (r *orphans) deleteNodesOf(a safety.DeleteVM) {
	if r.cfg.Target == nil {
		return
	}
	r.mu.Lock()
	r.gone[a.ProviderID] = deletedVM{a, r.cfg.Clock.Now().Add(nodesTime)}
	r.mu.Unlock()
	r.queue.Add(nodesKey)
}

// deletionFailed records a VM whose deletion returned an error. The VM may be deleted nevertheless.
func (r *orphans) deletionFailed(a safety.DeleteVM) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[a.ProviderID] = a
}

// confirm requests the deletion of the Nodes of VMs with a failed deletion that a complete listing
// of their class no longer contains.
func (r *orphans) confirm(listings []safety.Listing) {
	r.mu.Lock()
	var gone []safety.DeleteVM
	for id, a := range r.failed {
		for _, l := range listings {
			if l.Class.Namespace == a.Namespace && l.Class.Name == a.Class && l.VMs.Complete &&
				!slices.ContainsFunc(l.VMs.Items, func(vm safety.VM) bool { return vm.ProviderID == id }) {
				gone = append(gone, a)
				delete(r.failed, id)
			}
		}
	}
	r.mu.Unlock()
	for _, a := range gone {
		r.deleteNodesOf(a)
	}
}

// deleteNodes deletes the Nodes of deleted VMs. It returns the time of the next attempt. Zero means
// none.
func (r *orphans) deleteNodes(ctx context.Context) (again time.Time, err error) {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	var vms []deletedVM
	for id, vm := range r.gone {
		if vms = append(vms, vm); now.After(vm.until) {
			delete(r.gone, id)
		}
	}
	if len(r.gone) > 0 {
		again = now.Add(nodesAgain)
	}
	r.mu.Unlock()
	for _, vm := range vms {
		nodes, failed := r.reader.NodesWithID(ctx, nodeops.NormalizeProviderID(vm.ProviderID))
		err = errors.Join(err, failed)
		for _, node := range nodes {
			if vm.OwnsNode(node) {
				_, failed := runners.DeleteNode(ctx, client.New(nil, r.cfg.Target), node)
				err = errors.Join(err, failed)
			}
		}
	}
	return again, err
}
