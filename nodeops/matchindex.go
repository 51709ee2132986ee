// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Index finds the machine of a node among many in constant time, where a search through the
// list takes time in proportion to the number of machines for every node. It is built once
// from the candidates and does not follow later changes. The zero and the nil Index contain nothing.
// An Index is read only, and safe for use by multiple goroutines.
type Index struct {
	candidates []Candidate
	byNodeName map[string][]int
	byID       map[string][]int
}

// NewIndex returns an index of candidates, and keeps no reference to the slice.
func NewIndex(candidates []Candidate) *Index {
	x := &Index{
		candidates: slices.Clone(candidates),
		byNodeName: make(map[string][]int, len(candidates)),
		byID:       make(map[string][]int, len(candidates)),
	}
	// One array for the lists of one, which nearly all are.
	numbers := make([]int, len(candidates))
	for i, c := range x.candidates {
		numbers[i] = i
		one := numbers[i : i+1 : i+1]
		insert(x.byNodeName, c.NodeName, one)
		insert(x.byID, NormalizeProviderID(c.ProviderID), one)
	}
	return x
}

// insert adds the number in one to those under key, unless key is empty.
func insert(m map[string][]int, key string, one []int) {
	if key == "" {
		return
	}
	if have := m[key]; have != nil {
		m[key] = append(have, one...)
		return
	}
	m[key] = one
}

// Match answers as the function [Match] does for the candidates of the index.
func (x *Index) Match(node *corev1.Node) MatchResult {
	nodeName, id := nodeIdentity(node)
	if x == nil {
		return decideMatch(nodeName, id, nil, nil, nil)
	}
	// An empty name or id is under no key.
	return decideMatch(nodeName, id, x.byNodeName[nodeName], x.byID[id], x.candidates)
}

// Len returns the number of candidates.
func (x *Index) Len() int {
	if x == nil {
		return 0
	}
	return len(x.candidates)
}
