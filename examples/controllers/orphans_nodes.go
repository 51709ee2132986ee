// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/safety"
)

// nodesKey asks the loop to delete the Nodes of VMs that were deleted. No class has an
// empty name.
var nodesKey = cache.ObjectName{Namespace: "nodes"}

const (
	// nodesTime is for how long Nodes of a deleted VM are looked for: its kubelet may join
	// late. A Node that comes later is reported as one without VM and machine.
	nodesTime = 10 * time.Minute
	// nodesAgain is how often they are looked for.
	nodesAgain = 30 * time.Second
)

// goneVM is a VM that was deleted, and when its Nodes are looked for no longer.
type goneVM struct {
	safety.DeleteVM
	until time.Time
}

// deleteNodesOf has the Nodes of a VM deleted that no machine is left to delete.
func (r *orphans) deleteNodesOf(a safety.DeleteVM) {
	if r.nodesOfID == nil {
		return
	}
	r.mu.Lock()
	r.gone[a.ProviderID] = goneVM{a, r.cfg.Clock.Now().Add(nodesTime)}
	r.mu.Unlock()
	r.queue.Add(nodesKey)
}

// doubtful remembers a VM whose deletion returned an error. It may be deleted all the same.
func (r *orphans) doubtful(a safety.DeleteVM) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[a.ProviderID] = a
}

// confirm has the Nodes of VMs deleted whose deletion returned an error, and which a complete
// listing of their class does not show any more.
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

// deleteNodes deletes the Nodes of VMs that were deleted, and returns when to look for them
// again, zero for never.
func (r *orphans) deleteNodes(ctx context.Context) (again time.Time, err error) {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	var vms []goneVM
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
		for _, id := range providerIDs(vm.ProviderID) {
			for _, node := range r.nodesOfID(id) {
				if vm.OwnsNode(node) {
					_, failed := deleteNode(ctx, r.cfg.Target, node)
					err = errors.Join(err, failed)
				}
			}
		}
	}
	return again, err
}
