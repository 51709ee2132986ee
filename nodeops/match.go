// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a machine that a node may belong to, as far as that can be told.
type Candidate struct {
	// Name identifies the machine for the caller. It is not compared with anything.
	Name string
	// NodeName is the node that the machine says is its own (the value of its label "node").
	// Empty: it does not know yet.
	NodeName string
	// ProviderID is the machine's provider id. Empty: it does not know yet, or the ids of this
	// cloud's machines and nodes have nothing in common and are not to be compared.
	ProviderID string
}

// MatchReason says how a match was found, or why there is none. The values are stable.
type MatchReason string

const (
	// NoMatch means that no candidate knows the node. It is the reason of the zero [MatchResult].
	NoMatch MatchReason = ""
	// NothingToMatch means that the node is nil or has neither a name nor a provider id.
	NothingToMatch MatchReason = "NothingToMatch"
	// MatchedByNodeName means that exactly one candidate names the node, and nothing speaks against it.
	MatchedByNodeName MatchReason = "NodeName"
	// MatchedByProviderID means that no candidate names the node, that exactly one has its provider id,
	// and that this one names no other node.
	MatchedByProviderID MatchReason = "ProviderID"
	// Ambiguous means that several candidates name the node, or that none does and several have its
	// provider id.
	Ambiguous MatchReason = "Ambiguous"
	// Contradiction means that name and provider id point to different machines: the candidate
	// that names the node has the id of another instance (a node name was used again), or
	// another candidate has the node's id, or the candidate with the node's id names another node.
	Contradiction MatchReason = "Contradiction"
)

// String returns the reason as text; NoMatch has one, too.
func (r MatchReason) String() string {
	if r == NoMatch {
		return "NoMatch"
	}
	return string(r)
}

// MatchResult is the answer to the question which machine a node belongs to. The zero
// MatchResult means none.
type MatchResult struct {
	// Reason says how the match was found, or why there is none.
	Reason MatchReason
	// Index is the place of the match among the candidates, if there is one, and otherwise -1
	// (0 in the zero MatchResult: ask [MatchResult.Found]).
	Index int
	// Names are the names of the candidates that the result is about, sorted: one for a match, all of
	// those in conflict for [Ambiguous] and [Contradiction], none otherwise.
	Names []string
}

// Found reports whether there is a match.
func (r MatchResult) Found() bool {
	return r.Reason == MatchedByNodeName || r.Reason == MatchedByProviderID
}

// Conflict reports whether there are candidates, but none that could be chosen without guessing.
func (r MatchResult) Conflict() bool { return r.Reason == Ambiguous || r.Reason == Contradiction }

// String returns the reason and the names.
func (r MatchResult) String() string {
	if len(r.Names) == 0 {
		return r.Reason.String()
	}
	return fmt.Sprintf("%s: %s", r.Reason, strings.Join(r.Names, ", "))
}

// Match finds the machine that node belongs to: the one that names it, or else the one with
// its provider id, compared as [NormalizeProviderID] says. It never guesses. Several
// candidates are [Ambiguous], and evidence for different machines is a [Contradiction]; see there.
// An empty name or id matches nothing. The result does not depend on the order of the
// candidates, except for Index.
//
// For more than one node, an [Index] of the same candidates gives the same answers and does not go
// through all of them each time.
func Match(node *corev1.Node, candidates []Candidate) MatchResult {
	nodeName, id := nodeIdentity(node)
	var named, identified []int
	for i := range candidates {
		c := &candidates[i]
		if nodeName != "" && c.NodeName == nodeName {
			named = append(named, i)
		}
		if id != "" && c.ProviderID != "" && NormalizeProviderID(c.ProviderID) == id {
			identified = append(identified, i)
		}
	}
	return decideMatch(nodeName, id, named, identified, candidates)
}

// nodeIdentity returns what a node is known by: its name and its normalized provider id.
func nodeIdentity(node *corev1.Node) (name, id string) {
	if node == nil {
		return "", ""
	}
	return node.Name, NormalizeProviderID(node.Spec.ProviderID)
}

// decideMatch decides between the candidates that name the node and those with its id.
func decideMatch(nodeName, id string, named, identified []int, candidates []Candidate) MatchResult {
	switch {
	case nodeName == "" && id == "":
		return MatchResult{Reason: NothingToMatch, Index: -1}
	case len(named) > 1:
		return conflict(Ambiguous, candidates, named)
	case len(named) == 1:
		i := named[0]
		claimed := NormalizeProviderID(candidates[i].ProviderID)
		if id != "" && claimed != "" && !sameLastElement(claimed, id) {
			return conflict(Contradiction, candidates, named, identified)
		}
		if slices.ContainsFunc(identified, func(k int) bool { return k != i }) {
			return conflict(Contradiction, candidates, named, identified)
		}
		return MatchResult{Reason: MatchedByNodeName, Index: i, Names: []string{candidates[i].Name}}
	case len(identified) > 1:
		return conflict(Ambiguous, candidates, identified)
	case len(identified) == 1:
		i := identified[0]
		if other := candidates[i].NodeName; other != "" && nodeName != "" {
			return conflict(Contradiction, candidates, identified)
		}
		return MatchResult{Reason: MatchedByProviderID, Index: i, Names: []string{candidates[i].Name}}
	}
	return MatchResult{Reason: NoMatch, Index: -1}
}

// conflict returns a result without a match, with the names of the candidates involved.
func conflict(reason MatchReason, candidates []Candidate, groups ...[]int) MatchResult {
	involved := slices.Concat(groups...)
	slices.Sort(involved)
	involved = slices.Compact(involved)
	names := make([]string, len(involved))
	for k, i := range involved {
		names[k] = candidates[i].Name
	}
	slices.Sort(names)
	return MatchResult{Reason: reason, Index: -1, Names: names}
}
