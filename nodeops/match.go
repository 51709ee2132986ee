// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a machine that a Node may belong to.
type Candidate struct {
	// Name identifies the machine in the result. It is not compared with anything.
	Name string
	// NodeName is the Node that the machine names as its own (the value of its label "node").
	// Empty means that it does not know yet.
	NodeName string
	// ProviderID is the machine's provider ID. Empty means that it does not know yet, or that
	// the IDs of this cloud's machines and Nodes cannot be compared.
	ProviderID string
}

// MatchReason says how a match was found, or why there is none. The values are stable.
type MatchReason string

const (
	// NoMatch means that no candidate knows the Node, or that the Node is nil or has neither a
	// name nor a provider ID.
	NoMatch MatchReason = "NoMatch"
	// MatchedByNodeName means that exactly one candidate names the Node, and nothing speaks against it.
	MatchedByNodeName MatchReason = "NodeName"
	// MatchedByProviderID means that no candidate names the Node, that exactly one has its provider ID,
	// and that this one names no other Node.
	MatchedByProviderID MatchReason = "ProviderID"
	// Ambiguous means that several candidates name the Node, or that none does and several have its
	// provider ID.
	Ambiguous MatchReason = "Ambiguous"
	// Contradiction means that name and provider ID point to different machines: the candidate
	// that names the Node has the ID of another instance (a Node name was used again), or
	// another candidate has the Node's ID, or the candidate with the Node's ID names another Node.
	Contradiction MatchReason = "Contradiction"
)

// MatchResult says which machine a Node belongs to.
type MatchResult struct {
	// Reason says how the match was found, or why there is none.
	Reason MatchReason
	// Names are the names of the candidates that the result is about, sorted: one for a match, all of
	// those in conflict for [Ambiguous] and [Contradiction], none otherwise.
	Names []string
}

// Found reports whether there is a match.
func (r MatchResult) Found() bool {
	return r.Reason == MatchedByNodeName || r.Reason == MatchedByProviderID
}

// String returns the reason and the names.
func (r MatchResult) String() string {
	if len(r.Names) == 0 {
		return string(r.Reason)
	}
	return string(r.Reason) + ": " + strings.Join(r.Names, ", ")
}

// Index finds the machine of a Node among many in constant time. It does not follow later
// changes of the machines. The zero and the nil Index contain nothing. An Index is read only,
// and safe for use by multiple goroutines.
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

// Match returns the machine that node belongs to: the one that names it, or else the one with
// its provider ID, compared as [NormalizeProviderID] says. It never guesses: several candidates
// are [Ambiguous], and evidence for different machines is a [Contradiction]. An empty name or
// ID matches nothing. The result does not depend on the order of the candidates.
func (x *Index) Match(node *corev1.Node) MatchResult {
	if x == nil || node == nil {
		return MatchResult{Reason: NoMatch}
	}
	id := NormalizeProviderID(node.Spec.ProviderID)
	named, identified := x.byNodeName[node.Name], x.byID[id] // an empty name or id is under no key
	switch {
	case len(named) > 1:
		return x.conflict(Ambiguous, named)
	case len(named) == 1:
		i := named[0]
		claimed := NormalizeProviderID(x.candidates[i].ProviderID)
		another := id != "" && claimed != "" && !sameLastElement(claimed, id)
		if another || slices.ContainsFunc(identified, func(k int) bool { return k != i }) {
			return x.conflict(Contradiction, named, identified)
		}
		return MatchResult{Reason: MatchedByNodeName, Names: []string{x.candidates[i].Name}}
	case len(identified) > 1:
		return x.conflict(Ambiguous, identified)
	case len(identified) == 1 && x.candidates[identified[0]].NodeName != "" && node.Name != "":
		return x.conflict(Contradiction, identified)
	case len(identified) == 1:
		return MatchResult{Reason: MatchedByProviderID, Names: []string{x.candidates[identified[0]].Name}}
	}
	return MatchResult{Reason: NoMatch}
}

// conflict returns a result without a match, with the sorted names of the candidates involved.
func (x *Index) conflict(reason MatchReason, groups ...[]int) MatchResult {
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
