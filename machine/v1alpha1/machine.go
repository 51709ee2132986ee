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
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.metadata.labels.node`,description="Node of the machine"
// +kubebuilder:printcolumn:name="Waiting",type=string,JSONPath=`.status.conditions[?(@.type=="Waiting")].message`,description="What the machine waits for"
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.providerID`,description="Identity of the VM at the provider"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.class.name`,description="MachineClass of the machine"
// +kubebuilder:printcolumn:name="Operation",type=string,priority=1,JSONPath=`.status.lastOperation.type`,description="Type of the last operation"
// +kubebuilder:printcolumn:name="State",type=string,priority=1,JSONPath=`.status.lastOperation.state`,description="State of the last operation"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.lastOperation.description`,description="Description of the last operation"

// Machine is one VM or one bare-metal machine, and the Node that it becomes.
type Machine struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`

	// Spec is the desired state.
	Spec MachineSpec `json:"spec,omitempty"`
	// Status is the observed state. Controllers write it through the status subresource.
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

// MachineSpec is the desired state of a machine.
type MachineSpec struct {
	// Class refers to the MachineClass, in the namespace of the machine.
	// +kubebuilder:validation:XValidation:rule="has(self.kind) && self.kind == 'MachineClass'",fieldPath=".kind",message="the kind of the class is not MachineClass, so that no machine can be created: write MachineClass"
	// +kubebuilder:validation:XValidation:rule="has(self.name) && self.name != ''",fieldPath=".name",message="the name of the class is empty, so that no machine can be created: write the name of a MachineClass"
	Class ClassSpec `json:"class,omitempty"`
	// ProviderID is the identity of the VM at the provider. It is empty until the VM is
	// known, and never changes afterwards.
	ProviderID string `json:"providerID,omitempty"`
	// NodeTemplateSpec has the labels, annotations and taints of the Node. The controller
	// keeps the Node in sync with them.
	// +optional
	NodeTemplateSpec NodeTemplateSpec `json:"nodeTemplate,omitempty"`
	// MachineConfiguration overrides the timeouts and limits of the controller
	// for this machine. Nil overrides nothing.
	*MachineConfiguration `json:",inline"`
}

// ClassSpec refers to a MachineClass.
type ClassSpec struct {
	// APIGroup is the group of the class. It is informational.
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind is the kind of the class: "MachineClass".
	Kind string `json:"kind,omitempty"`
	// Name is the name of the class.
	Name string `json:"name,omitempty"`
}

// NodeTemplateSpec is the desired metadata and taints of a Node.
type NodeTemplateSpec struct {
	// ObjectMeta has the labels and annotations of the Node. Other metadata is stored and has
	// no effect.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec has the taints of the Node. Its other fields have no effect.
	// +optional
	Spec corev1.NodeSpec `json:"spec,omitempty"`
}

// MachineTemplateSpec is the template of the machines of a MachineSet.
type MachineTemplateSpec struct {
	// ObjectMeta has the labels, annotations and finalizers of the machines.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the spec of the machines.
	// +optional
	Spec MachineSpec `json:"spec,omitempty"`
}

// MachineConfiguration has the overrides of one machine. Nil means the value of the
// controller.
type MachineConfiguration struct {
	// MachineDrainTimeout is how long a drain may take before it is forced, counted from the
	// deletion timestamp.
	// +optional
	MachineDrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// MachineHealthTimeout is how long a machine may be Unknown before it becomes Failed.
	// +optional
	MachineHealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`
	// MachineCreationTimeout is how long a machine may take to join before it becomes Failed,
	// counted from its creation.
	// +optional
	MachineCreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`
	// MachineInPlaceUpdateTimeout is how long an in-place update may take.
	// +optional
	MachineInPlaceUpdateTimeout *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	// MachinePreserveTimeout is how long a machine is preserved.
	// +optional
	MachinePreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	// DisableHealthTimeout, if true, means that the machine does not become Failed because of
	// its health.
	// +optional
	DisableHealthTimeout *bool `json:"disableHealthTimeout,omitempty"`
	// MaxEvictRetries has no effect. The limit of a drain is the drain timeout. In MCM it
	// limits the evictions of each pod.
	// +optional
	MaxEvictRetries *int32 `json:"maxEvictRetries,omitempty"`
	// NodeConditions is the comma-separated list of the condition types that make a Node
	// unhealthy.
	// +optional
	NodeConditions *string `json:"nodeConditions,omitempty"`
}

// MachineStatus is the observed state of a machine.
type MachineStatus struct {
	// Addresses are the addresses of the machine, without duplicates.
	// +optional
	Addresses []corev1.NodeAddress `json:"addresses,omitempty"`
	// Conditions are copies of the conditions of the Node. The condition Valid is added while
	// the object has invalid fields. Without a target cluster there is no Node, and Ready is
	// True when the VM exists.
	// +optional
	Conditions []corev1.NodeCondition `json:"conditions,omitempty"`
	// LastOperation is the last operation of a controller on the machine.
	// +optional
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// CurrentStatus has the phase of the machine.
	// +optional
	CurrentStatus CurrentStatus `json:"currentStatus,omitempty"`
	// LastKnownState is an opaque text that the driver keeps between calls.
	// +optional
	LastKnownState string `json:"lastKnownState,omitempty"`
}

// LastOperation is the last operation of a controller on an object. Its description is for
// people, and marks the step of a deletion for a takeover from or by MCM.
type LastOperation struct {
	// Description is the text of the operation, for people.
	// +optional
	Description string `json:"description,omitempty"`
	// ErrorCode is the name of the error code of the provider. Empty means none.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`
	// LastUpdateTime is when the operation was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// State is the state of the operation.
	// +optional
	State MachineState `json:"state,omitempty"`
	// Type is the type of the operation.
	// +optional
	Type MachineOperationType `json:"type,omitempty"`
}

// CurrentStatus has the phase of a machine, and when it changed.
type CurrentStatus struct {
	// Phase is the phase of the machine. It is empty for a new machine.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// TimeoutActive is true in phase Pending. It is informational.
	// +optional
	TimeoutActive bool `json:"timeoutActive,omitempty"`
	// LastUpdateTime is when the phase was last written. The health timeout counts from it.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// PreserveExpiryTime is when the preservation of the machine ends. Nil means that the
	// machine is not preserved.
	// +optional
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`
}

// MachineSummary is a machine in the status of its controller.
type MachineSummary struct {
	// Name is the name of the machine.
	Name string `json:"name,omitempty"`
	// ProviderID is the provider ID of the machine.
	ProviderID string `json:"providerID,omitempty"`
	// LastOperation is the last operation of the machine.
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// OwnerRef is the name of the controller of the machine.
	OwnerRef string `json:"ownerRef,omitempty"`
}

// MachinePhase is a phase of a machine.
type MachinePhase string

// The phases of a machine. A new machine has the empty phase.
const (
	// MachinePending means that the VM exists and has not joined yet.
	MachinePending MachinePhase = "Pending"
	// MachineAvailable means that the VM exists, and there is no target cluster.
	MachineAvailable MachinePhase = "Available"
	// MachineRunning means that the Node has joined and is healthy.
	MachineRunning MachinePhase = "Running"
	// MachineTerminating means that the machine is being deleted.
	MachineTerminating MachinePhase = "Terminating"
	// MachineUnknown means that the Node is unhealthy or missing, and may recover.
	MachineUnknown MachinePhase = "Unknown"
	// MachineFailed means that the machine waits to be replaced.
	MachineFailed MachinePhase = "Failed"
	// MachineCrashLoopBackOff means that the creation failed and is retried.
	MachineCrashLoopBackOff MachinePhase = "CrashLoopBackOff"
	// MachineInPlaceUpdating means that the Node is being updated in place.
	MachineInPlaceUpdating MachinePhase = "InPlaceUpdating"
	// MachineInPlaceUpdateSuccessful means that the in-place update has succeeded.
	MachineInPlaceUpdateSuccessful MachinePhase = "InPlaceUpdateSuccessful"
	// MachineInPlaceUpdateFailed means that the in-place update has failed.
	MachineInPlaceUpdateFailed MachinePhase = "InPlaceUpdateFailed"
)

// MachineState is the state of an operation.
type MachineState string

// The states of an operation.
const (
	// MachineStateProcessing means that the operation is in progress.
	MachineStateProcessing MachineState = "Processing"
	// MachineStateFailed means that the operation has failed.
	MachineStateFailed MachineState = "Failed"
	// MachineStateSuccessful means that the operation has succeeded.
	MachineStateSuccessful MachineState = "Successful"
)

// MachineOperationType is the type of an operation.
type MachineOperationType string

// The types of operations.
const (
	// MachineOperationCreate is the creation of the VM, until its Node joins.
	MachineOperationCreate MachineOperationType = "Create"
	// MachineOperationUpdate is reserved. No controller writes it.
	MachineOperationUpdate MachineOperationType = "Update"
	// MachineOperationInPlaceUpdate is the update of a running Node.
	MachineOperationInPlaceUpdate MachineOperationType = "InPlaceUpdate"
	// MachineOperationDrainNode is the drain before an in-place update.
	MachineOperationDrainNode MachineOperationType = "DrainNode"
	// MachineOperationHealthCheck is a change of the health.
	MachineOperationHealthCheck MachineOperationType = "HealthCheck"
	// MachineOperationDelete is the deletion of the machine.
	MachineOperationDelete MachineOperationType = "Delete"
)

// ConditionStatus is the status of a condition of a MachineSet or MachineDeployment.
type ConditionStatus string

// The statuses of a condition.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that the controller does not know.
	ConditionUnknown ConditionStatus = "Unknown"
)
