// SPDX-License-Identifier: Apache-2.0

package machineset

// Counts is the arithmetic of one pass over a set, in machines. Negative numbers
// count as 0.
type Counts struct {
	// Desired is what the set wants.
	Desired int
	// Present are the machines that are not visibly on their way out; those whose
	// deletion is in flight are present until it shows.
	Present int
	// InFlight are creations which do not show yet.
	InFlight int
	// Eligible are the machines that may be chosen for deletion: of those present,
	// neither those whose deletion is in flight nor those that move to another
	// set.
	Eligible int
}

// Missing returns how many machines are to be created. What is present and in
// flight never exceeds what is desired by it.
func (c Counts) Missing() int {
	return max(0, max(0, c.Desired)-max(0, c.Present)-max(0, c.InFlight))
}

// Surplus returns how many machines are too many. Creations in flight are not
// part of it: they can be deleted once they show.
func (c Counts) Surplus() int {
	return max(0, max(0, c.Eligible)-max(0, c.Desired))
}
