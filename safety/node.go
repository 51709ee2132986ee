// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// reportNodes holds each Node without a machine and without a listed VM. It needs usable
// listings of all classes, and skips Nodes of other providers.
func (s *step) reportNodes() {
	if !s.Nodes.Complete || s.stale(s.Nodes.AsOf) || len(s.found) == 0 || len(s.found) < len(s.Listings) {
		return
	}
	first := s.found[0].asOf
	for _, f := range s.found {
		if f.asOf.Before(first) {
			first = f.asOf
		}
	}
	var index *nodeops.Index
	for _, node := range s.Nodes.Items {
		if !s.unlisted(node, first) {
			continue
		}
		if index == nil {
			index = indexOf(s.Machines.Items)
		}
		if index.Match(node).Reason == nodeops.NoMatch {
			s.hold("node/"+node.Name, NodeWithoutVM, fmt.Sprintf("provider ID %s is in no machine and in none of %d listings; delete the Node if its VM does not exist",
				node.Spec.ProviderID, len(s.found)), s.now.Add(s.policy.Period))
		}
	}
}

// unlisted reports whether a Node is older than the listings and has a provider ID that no
// machine and no listed VM has.
func (s *step) unlisted(node *corev1.Node, listings time.Time) bool {
	if node == nil || !node.CreationTimestamp.Time.Before(listings) {
		return false
	}
	id := s.owners.keys.of(node.Spec.ProviderID)
	if id == "" {
		return false
	}
	if _, owned := s.owners.byID[id]; owned {
		return false
	}
	if _, named := s.owners.byName[node.Labels[v1alpha1.MachineNameLabelKey]]; named {
		return false
	}
	vms := s.listedVMs()
	return vms.schemes[schemeOf(node.Spec.ProviderID)] && !vms.ids[id]
}
