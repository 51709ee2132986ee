// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// Descriptions of operations. MCM finds its place in a deletion by the first six texts in
// status.lastOperation.description. Controllers write them, so that MCM can continue a
// deletion that they began, and the other way around.
const (
	// GetVMStatus is the first step of a deletion: find the VM and the Node.
	GetVMStatus = "Set machine status to termination. Now, getting VM Status"
	// InitiateDrain is the second step: drain the Node.
	InitiateDrain = "Initiate node drain"
	// DelVolumesAttachments is the third step: delete the remaining VolumeAttachments.
	DelVolumesAttachments = "Delete Volume Attachments"
	// InitiateVMDeletion is the fourth step: delete the VM.
	InitiateVMDeletion = "Initiate VM deletion"
	// InitiateNodeDeletion is the fifth step: delete the Node.
	InitiateNodeDeletion = "Initiate node object deletion"
	// InitiateFinalizerRemoval is the last step: remove the finalizer of the Machine.
	InitiateFinalizerRemoval = "Initiate machine object finalizer removal"

	// CreatingMachine describes a machine whose VM exists and has not joined.
	CreatingMachine = "Creating machine on cloud provider"
	// CreatedMachine describes a machine whose VM exists, without a cluster to join.
	CreatedMachine = "Created machine on cloud provider"
	// DeletingMachine describes a machine that its MachineSet deletes.
	DeletingMachine = "Deleting machine from cloud provider"
)

// RetryPeriod is the wait before an object is reconciled again.
type RetryPeriod time.Duration

// The retry periods of MCM, for drivers.
const (
	// ConflictRetry is the wait after a write conflict: 200 ms.
	ConflictRetry = RetryPeriod(200 * time.Millisecond)
	// ShortRetry is the wait after a transient failure: 5 s.
	ShortRetry = RetryPeriod(5 * time.Second)
	// MediumRetry is the wait after a failure that may end by itself: 3 min.
	MediumRetry = RetryPeriod(3 * time.Minute)
	// LongRetry is the wait after success, and after a failure that does not end by itself: 10 min.
	LongRetry = RetryPeriod(10 * time.Minute)
)
