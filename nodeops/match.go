// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a machine that a Node may belong to.
type Candidate struct {
	// Name identifies the machine in the result. It is not compared.
	Name string
	// NodeName is the Node that the machine records, in its label "node". Empty means none.
	NodeName string
	// ProviderID is the provider ID of the machine. Empty means none, or that the provider IDs
	// of machines and Nodes cannot be compared.
	ProviderID string
}

// Reasons of a [MatchResult].
const (
	// noMatch means that no candidate has the name or the provider ID of the Node.
	noMatch = "NoMatch"
	// matchedByNodeName means that exactly one candidate names the Node, without contradiction.
	matchedByNodeName = "NodeName"
	// matchedByProviderID means that no candidate names the Node, and that exactly one has its
	// provider ID and names no other Node.
	matchedByProviderID = "ProviderID"
	// ambiguous means that several candidates name the Node, or that none names it and several
	// have its provider ID.
	ambiguous = "Ambiguous"
	// contradiction means that the name and the provider ID belong to different machines: the
	// candidate that names the Node has another provider ID, or another candidate has that of
	// the Node, or the candidate with that of the Node names another Node.
	contradiction = "Contradiction"
)

// MatchResult is which machine a Node belongs to.
type MatchResult struct {
	// Reason is how the match was found, NodeName or ProviderID, or why there is none: NoMatch,
	// Ambiguous for several candidates, or Contradiction.
	Reason string
	// Names are candidates, sorted: one for a match, those in conflict for Ambiguous and
	// Contradiction, none without a candidate.
	Names []string
}

// Found reports whether there is a match.
func (r MatchResult) Found() bool {
	return r.Reason == matchedByNodeName || r.Reason == matchedByProviderID
}

// String returns the reason and the names.
func (r MatchResult) String() string {
	if len(r.Names) == 0 {
		return r.Reason
	}
	return r.Reason + ": " + strings.Join(r.Names, ", ")
}

// Index finds the machine of a Node in constant time. Later changes of the machines do not change
// it. The zero Index and a nil Index are empty. An Index is read-only and safe for concurrent
// use.
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
	// Nearly all lists have one element: they share one array.
	numbers := make([]int, len(candidates))
	for i, c := range x.candidates {
		numbers[i] = i
		one := numbers[i : i+1 : i+1]
		insert(x.byNodeName, c.NodeName, one)
		insert(x.byID, NormalizeProviderID(c.ProviderID), one)
	}
	return x
}

// insert appends the element of one to the list of key, unless key is empty.
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

// Match returns the machine that names the Node, or else the machine with its provider ID,
// compared by [NormalizeProviderID]. Several candidates are Ambiguous, and evidence for
// different machines is a Contradiction. An empty name or provider ID matches nothing. The
// result does not depend on the order of the candidates.
func (x *Index) Match(node *corev1.Node) MatchResult {
	if x == nil || node == nil {
		return MatchResult{Reason: noMatch}
	}
	id := NormalizeProviderID(node.Spec.ProviderID)
	named, identified := x.byNodeName[node.Name], x.byID[id] // an empty name or id is under no key
	switch {
	case len(named) > 1:
		return x.conflict(ambiguous, named)
	case len(named) == 1:
		i := named[0]
		claimed := NormalizeProviderID(x.candidates[i].ProviderID)
		another := id != "" && claimed != "" && !sameInstance(claimed, id)
		if another || slices.ContainsFunc(identified, func(k int) bool { return k != i }) {
			return x.conflict(contradiction, named, identified)
		}
		return MatchResult{Reason: matchedByNodeName, Names: []string{x.candidates[i].Name}}
	case len(identified) > 1:
		return x.conflict(ambiguous, identified)
	case len(identified) == 1 && x.candidates[identified[0]].NodeName != "" && node.Name != "":
		return x.conflict(contradiction, identified)
	case len(identified) == 1:
		return MatchResult{Reason: matchedByProviderID, Names: []string{x.candidates[identified[0]].Name}}
	}
	return MatchResult{Reason: noMatch}
}

// conflict returns a result without a match, with the sorted names of the candidates involved.
func (x *Index) conflict(reason string, groups ...[]int) MatchResult {
	numbers := slices.Concat(groups...)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	names := make([]string, len(numbers))
	for k, i := range numbers {
		names[k] = x.candidates[i].Name
	}
	slices.Sort(names)
	return MatchResult{Reason: reason, Names: names}
}
