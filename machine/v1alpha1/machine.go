// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mc"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.currentStatus.phase`,description="Phase of the machine"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the machine was created"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.metadata.labels.node`,description="Node that the machine became"
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`,description="Identity of the VM at the provider"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.class.name`,description="MachineClass of the machine"
// +kubebuilder:printcolumn:name="Operation",type=string,priority=1,JSONPath=`.status.lastOperation.type`,description="Type of the last operation"
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.lastOperation.description`,description="What the last operation waits for, or what it ended with"

// Machine is one VM or piece of hardware, and the Node that it becomes.
type Machine struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`

	// Spec is what is asked for.
	Spec MachineSpec `json:"spec,omitempty"`
	// Status is what was last observed. It is written by controllers, through
	// the status subresource only.
	Status MachineStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the machines, in the order of the API server.
	Items []Machine `json:"items"`
}

// MachineSpec is what is asked for of one machine.
type MachineSpec struct {
	// Class refers to the MachineClass, in the namespace of the machine.
	// +kubebuilder:validation:XValidation:rule="has(self.kind) && self.kind != ''",fieldPath=".kind",message="the kind of the class is empty, so no machine can be made: write MachineClass"
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",fieldPath=".name",message="the name of the class is empty, so no machine can be made: write the name of a MachineClass"
	Class ClassSpec `json:"class,omitempty"`
	// ProviderID is the identity of the VM at the provider. It is empty until a
	// VM is known; once written it never changes.
	ProviderID string `json:"providerID,omitempty"`
	// NodeTemplateSpec holds the labels, annotations and taints that the Node
	// is kept to have.
	// +optional
	NodeTemplateSpec NodeTemplateSpec `json:"nodeTemplate,omitempty"`
	// MachineConfiguration overrides the timeouts and limits of the controller
	// for this machine. Nil overrides nothing.
	*MachineConfiguration `json:",inline"`
}

// ClassSpec refers to a MachineClass.
type ClassSpec struct {
	// APIGroup of the class. It is informational.
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the class: "MachineClass".
	Kind string `json:"kind,omitempty"`
	// Name of the class.
	Name string `json:"name,omitempty"`
}

// NodeTemplateSpec is what a Node is kept to look like.
type NodeTemplateSpec struct {
	// Labels and annotations of the Node. Other metadata is kept but not used.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the Node; only its taints are used.
	// +optional
	Spec corev1.NodeSpec `json:"spec,omitempty"`
}

// MachineTemplateSpec is what the machines of a set are made from.
type MachineTemplateSpec struct {
	// Labels, annotations and finalizers of the machines.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec of the machines.
	// +optional
	Spec MachineSpec `json:"spec,omitempty"`
}

// MachineConfiguration holds the overrides of one machine. A nil field leaves
// the controller's own value in force.
type MachineConfiguration struct {
	// MachineDrainTimeout is how long a drain may take, counted from the
	// deletion timestamp, before it is forced.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// MachineHealthTimeout is how long a machine may be Unknown before it is
	// declared Failed.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`
	// MachineCreationTimeout is how long a machine may take to join, counted
	// from its creation timestamp, before it is declared Failed.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`
	// MachineInPlaceUpdateTimeout is how long an in-place update may take.
	// +optional
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// MachinePreserveTimeout is how long a preserved machine is kept.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// DisableHealthTimeout, if true, never declares the machine Failed for bad
	// health.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// MaxEvictRetries bounds the eviction attempts per pod during a drain.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// NodeConditions is the comma-separated list of condition types that make a
	// Node unhealthy.
	// +optional
	NodeConditions *string `json:"nodeConditions,omitempty"`
}

// MachineStatus is what was last observed of a machine.
type MachineStatus struct {
	// Addresses of the machine, without duplicates.
	// +optional
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
	// Conditions are those of the Node, copied when they last changed. Valid is added
	// while something is wrong with what is written in the machine. In the mode without a
	// target cluster there is no Node: Ready is True once the VM exists.
	// +optional
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`
	// LastOperation is what was last done, for people to read.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// CurrentStatus is where the machine is in its life.
	// +optional
	CurrentStatus CurrentStatus `json:"currentStatus,omitempty"`
	// LastKnownState is an opaque text which the driver keeps between calls.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`
}

// LastOperation is what was last done to an object. Its description is for
// people: no decision reads it.
type LastOperation struct {
	// Description of the operation.
	// +optional
	Description string `json:"description,omitempty"`
	// ErrorCode is the name of the provider's error code, if the operation
	// failed with one.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`
	// LastUpdateTime is when the operation was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// State of the operation.
	// +optional
	State MachineState `json:"state,omitempty"`
	// Type of the operation.
	// +optional
	Type MachineOperationType `json:"type,omitempty"`
}

// CurrentStatus is where a machine is in its life.
type CurrentStatus struct {
	// Phase of the machine; empty until it is first processed.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// TimeoutActive is true while the creation timeout runs. It is informational.
	// +optional
	TimeoutActive bool `json:"timeoutActive,omitempty"`
	// LastUpdateTime is when the phase was last written: the anchor of the
	// health timeout.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// PreserveExpiryTime, if set, is until when the machine is preserved.
	// +optional
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`
}

// MachineSummary is a machine in the status of its owner.
type MachineSummary struct {
	// Name of the machine.
	Name string `json:"name,omitempty"`
	// ProviderID of the machine.
	ProviderID string `json:"providerID,omitempty"`
	// LastOperation of the machine.
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// OwnerRef is the name of the machine's controller.
	OwnerRef string `json:"ownerRef,omitempty"`
}

// MachinePhase is where a machine is in its life.
type MachinePhase string

// The phases of a machine. The empty phase means that nothing has been recorded
// yet.
const (
	// MachinePending means that the VM exists and has not joined yet.
	MachinePending MachinePhase = "Pending"
	// MachineAvailable means that the VM exists and that there is no cluster to
	// join: the controller runs without a target cluster.
	MachineAvailable MachinePhase = "Available"
	// MachineRunning means that the Node has joined and is healthy.
	MachineRunning MachinePhase = "Running"
	// MachineTerminating means that the machine is being deleted.
	MachineTerminating MachinePhase = "Terminating"
	// MachineUnknown means that the Node is unhealthy or gone, and may recover.
	MachineUnknown MachinePhase = "Unknown"
	// MachineFailed means that the machine is to be replaced.
	MachineFailed MachinePhase = "Failed"
	// MachineCrashLoopBackOff means that creation fails and is tried again.
	MachineCrashLoopBackOff MachinePhase = "CrashLoopBackOff"
	// MachineInPlaceUpdating means that the Node is being updated in place.
	MachineInPlaceUpdating MachinePhase = "InPlaceUpdating"
	// MachineInPlaceUpdateSuccessful means that the in-place update succeeded.
	MachineInPlaceUpdateSuccessful MachinePhase = "InPlaceUpdateSuccessful"
	// MachineInPlaceUpdateFailed means that the in-place update failed.
	MachineInPlaceUpdateFailed MachinePhase = "InPlaceUpdateFailed"
)

// MachineState is the state of an operation.
type MachineState string

// The states of an operation.
const (
	// MachineStateProcessing means that the operation goes on.
	MachineStateProcessing MachineState = "Processing"
	// MachineStateFailed means that the operation failed.
	MachineStateFailed MachineState = "Failed"
	// MachineStateSuccessful means that the operation succeeded.
	MachineStateSuccessful MachineState = "Successful"
)

// MachineOperationType is the kind of an operation.
type MachineOperationType string

// The kinds of operation.
const (
	// MachineOperationCreate is the creation of the VM and its joining.
	MachineOperationCreate MachineOperationType = "Create"
	// MachineOperationUpdate is reserved; no controller writes it.
	MachineOperationUpdate MachineOperationType = "Update"
	// MachineOperationInPlaceUpdate is an update of a running Node.
	MachineOperationInPlaceUpdate MachineOperationType = "InPlaceUpdate"
	// MachineOperationDrainNode is the drain before an in-place update.
	MachineOperationDrainNode MachineOperationType = "DrainNode"
	// MachineOperationHealthCheck is a change of health.
	MachineOperationHealthCheck MachineOperationType = "HealthCheck"
	// MachineOperationDelete is the deletion of the machine.
	MachineOperationDelete MachineOperationType = "Delete"
)

// ConditionStatus is the status of a condition of a set or deployment.
type ConditionStatus string

// The statuses of a condition.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that it does not.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that the controller cannot tell.
	ConditionUnknown ConditionStatus = "Unknown"
)
