// SPDX-License-Identifier: Apache-2.0

package audit

// A Bound is one that must never be broken.
type Bound string

// The bounds.
const (
	// MachinesOfDeployment are at most its replicas and surge.
	MachinesOfDeployment Bound = "MachinesOfDeployment"
	// MachinesOfSet are at most its replicas.
	MachinesOfSet Bound = "MachinesOfSet"
	// VMsOfDeployment are at most its replicas and surge.
	VMsOfDeployment Bound = "VMsOfDeployment"
	// Availability of a deployment does not fall under its floor.
	Availability Bound = "Availability"
	// Frozen is no set and no deployment: the controllers create as many machines as they
	// were asked for.
	Frozen Bound = "Frozen"
	// OneVM is what a machine has at most.
	OneVM Bound = "OneVM"
	// Guarded is the machine of a VM when it begins.
	Guarded Bound = "Guarded"
	// Outlived is a VM by its machine, and by the guard of it.
	Outlived Bound = "Outlived"
	// NothingLeft is what the cloud holds in the end.
	NothingLeft Bound = "NothingLeft"
)

// A Violation says that a bound was broken.
type Violation struct { //nolint:errname // what it is, and not that it is an error, matters to readers
	// Bound that was broken.
	Bound Bound
	// Text says how, with the numbers.
	Text string
}

// Error returns the text.
func (b Violation) Error() string { return b.Text }
