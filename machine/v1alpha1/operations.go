// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// Descriptions of operations. The reference system finds its place in a deletion
// by looking for the first six in status.lastOperation.description, so a
// controller that may be replaced by it, or replace it, has to write them. No
// decision of this module reads them.
const (
	// GetVMStatus is the first step: find the VM and the Node.
	GetVMStatus = "Set machine status to termination. Now, getting VM Status"
	// InitiateDrain is the second: drain the Node.
	InitiateDrain = "Initiate node drain"
	// DelVolumesAttachments is the third: delete what is still attached.
	DelVolumesAttachments = "Delete Volume Attachments"
	// InitiateVMDeletion is the fourth: delete the VM.
	InitiateVMDeletion = "Initiate VM deletion"
	// InitiateNodeDeletion is the fifth: delete the Node.
	InitiateNodeDeletion = "Initiate node object deletion"
	// InitiateFinalizerRemoval is the last: let the Machine go.
	InitiateFinalizerRemoval = "Initiate machine object finalizer removal"

	// CreatingMachine describes a machine whose VM exists and has not joined.
	CreatingMachine = "Creating machine on cloud provider"
	// CreatedMachine describes a machine whose VM exists, without a cluster to join.
	CreatedMachine = "Created machine on cloud provider"
	// DeletingMachine describes a machine which its set has asked to be deleted.
	DeletingMachine = "Deleting machine from cloud provider"
)

// RetryPeriod is how long to wait before an object is looked at again.
type RetryPeriod time.Duration

// The retry periods of the reference system.
const (
	// ConflictRetry follows a write that lost against another: 200 ms.
	ConflictRetry = RetryPeriod(200 * time.Millisecond)
	// ShortRetry follows a transient failure: 5 s.
	ShortRetry = RetryPeriod(5 * time.Second)
	// MediumRetry follows a failure that waiting may cure: 3 min.
	MediumRetry = RetryPeriod(3 * time.Minute)
	// LongRetry follows success, and failures that waiting will not cure: 10 min.
	LongRetry = RetryPeriod(10 * time.Minute)
)
