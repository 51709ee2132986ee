// SPDX-License-Identifier: Apache-2.0

package drain

import "slices"

// List is what a source gave. The zero List is one that nobody asked, which is
// not the same as an empty one.
type List[T any] struct {
	// Items in any order. Nil ones and second copies do no harm.
	Items []T
	// Complete says that Items are all there are.
	Complete bool
}

// All is the complete list of items.
func All[T any](items ...T) List[T] { return List[T]{Items: items, Complete: true} }

// Source names one of the lists of an [Observation].
type Source string

// The sources.
const (
	SourceBudgets     Source = "budgets"
	SourceDaemonSets  Source = "daemonsets"
	SourceAttachments Source = "volumeattachments"
	SourceClaims      Source = "persistentvolumeclaims"
	SourceVolumes     Source = "persistentvolumes"
)

// Sources returns the lists that a drain with this policy needs, in the order of the
// constants.
func (p Policy) Sources() []Source { return (&Observation{}).missing(p) }

// missing returns the sources that a policy has a use for and nobody asked, in
// the order of the constants.
func (in *Observation) missing(p Policy) []Source {
	var missing []Source
	for _, s := range []struct {
		source   Source
		complete bool
		wanted   bool
	}{
		{SourceBudgets, in.Budgets.Complete, true},
		{SourceDaemonSets, in.DaemonSets.Complete, true},
		{SourceAttachments, in.Attachments.Complete, p.Volumes.Wait},
		{SourceClaims, in.Claims.Complete, p.Volumes.Wait},
		{SourceVolumes, in.Volumes.Complete, p.Volumes.Wait},
	} {
		if s.wanted && !s.complete {
			missing = append(missing, s.source)
		}
	}
	return slices.Clip(missing)
}
