// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// reportNodes holds each Node without a machine whose VM no class has listed since the Node was
// first found so. It skips Nodes of other providers.
func (s *step) reportNodes() {
	if len(s.found) == 0 {
		return
	}
	for _, f := range s.found {
		if class := f.class.String(); f.asOf.After(s.next.Listed[class]) {
			s.next.Listed[class] = f.asOf
		}
	}
	maps.DeleteFunc(s.next.Nodes, func(id string, _ time.Time) bool { return !s.unlisted(id) })
	if !s.Nodes.Complete || s.stale(s.Nodes.AsOf) {
		return
	}
	before := s.next.Nodes
	s.next.Nodes = map[string]time.Time{}
	var index *nodeops.Index
	for _, node := range s.Nodes.Items {
		if node == nil || !s.unlisted(node.Spec.ProviderID) {
			continue
		}
		if _, named := s.owners.byName[node.Labels[v1alpha1.MachineNameLabelKey]]; named {
			continue
		}
		id := nodeops.NormalizeProviderID(node.Spec.ProviderID)
		first := s.firstMissing(before[id], node.CreationTimestamp.Time)
		if first.IsZero() {
			continue
		}
		s.next.Nodes[id] = machinist.Earliest(s.next.Nodes[id], first) // two Nodes may have one ID
		if !s.allListedSince(first) || !s.listedVMs().schemes[schemeOf(id)] {
			continue
		}
		if index == nil {
			index = indexOf(s.Machines.Items)
		}
		if len(index.Match(node).Names) == 0 {
			s.hold("node/"+node.Name, nodeWithoutVM, fmt.Sprintf("provider ID %s is in no machine and in none of %d listings; delete the Node if its VM does not exist",
				node.Spec.ProviderID, len(s.Classes)), s.now.Add(s.policy.Period))
		}
	}
}

// unlisted reports whether a provider ID identifies a VM that no machine has and no listing
// contains.
func (s *step) unlisted(providerID string) bool {
	id := s.owners.keys.of(providerID)
	_, owned := s.owners.byID[id]
	return id != "" && !owned && !s.listedVMs().ids[id]
}

// firstMissing returns the time of the first listing since the creation of a Node that lacks its
// VM. Zero means none. known is that of the earlier steps.
func (s *step) firstMissing(known, created time.Time) (first time.Time) {
	if known.After(created) {
		return known
	}
	for _, f := range s.found {
		if f.asOf.After(created) {
			first = machinist.Earliest(first, f.asOf)
		}
	}
	return first
}

// allListedSince reports whether the last listing of every class is not older than t.
func (s *step) allListedSince(t time.Time) bool {
	return len(s.Classes) > 0 && !slices.ContainsFunc(s.Classes, func(class types.NamespacedName) bool {
		at, ok := s.next.Listed[class.String()]
		return !ok || at.Before(t)
	})
}
