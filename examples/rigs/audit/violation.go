// SPDX-License-Identifier: Apache-2.0

package audit

// Bound is the name of a bound that controllers must never violate.
type Bound string

// These are the bounds that [Check] verifies.
const (
	// MachinesOfDeployment limits the machines of a deployment to its replicas and surge.
	MachinesOfDeployment Bound = "MachinesOfDeployment"
	// MachinesOfSet limits the machines of a set to its replicas.
	MachinesOfSet Bound = "MachinesOfSet"
	// VMsOfDeployment limits the VMs of a deployment to its replicas and surge.
	VMsOfDeployment Bound = "VMsOfDeployment"
	// Availability requires the replicas of a deployment less maxUnavailable to be available.
	Availability Bound = "Availability"
	// Frozen requires that no set or deployment is frozen because of surplus machines.
	Frozen Bound = "Frozen"
	// OneVM limits a machine to one VM.
	OneVM Bound = "OneVM"
	// Guarded requires a Machine with finalizer when a VM is created.
	Guarded Bound = "Guarded"
	// Outlived requires that the Machine keeps its finalizer until its VM is deleted.
	Outlived Bound = "Outlived"
	// NothingLeft requires that the cloud is empty at the end.
	NothingLeft Bound = "NothingLeft"
)

// Violation is the violation of a bound.
type Violation struct { //nolint:errname // the name says what was found
	// Bound is the violated bound.
	Bound Bound
	// Text describes the violation with its numbers.
	Text string
}

// Error returns the text.
func (v Violation) Error() string { return v.Text }
