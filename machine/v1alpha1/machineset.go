// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mcs"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of machines asked for"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Number of machines that exist"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of machines that are Running"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of machines that count as available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the set was created"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.class.name`,description="MachineClass of the machines"
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="Reason of the condition Progressing"

// MachineSet keeps a number of machines made from one template.
type MachineSet struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`

	// Spec is what is asked for.
	// +optional
	Spec MachineSetSpec `json:"spec,omitempty"`
	// Status is what was last observed.
	// +optional
	Status MachineSetStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MachineSetList is a list of MachineSets.
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the sets, in the order of the API server.
	Items []MachineSet `json:"items"`
}

// MachineSetSpec is what is asked for of a set.
type MachineSetSpec struct {
	// Replicas is the number of machines wanted. The API server refuses a negative one.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Selector selects the machines of the set; it has to match the labels of
	// the template. Nil and empty selectors select nothing.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// MachineClass is a left-over which nothing reads.
	// +optional
	MachineClass ClassSpec `json:"machineClass,omitempty"`
	// Template is what new machines are made from.
	// +optional
	Template MachineTemplateSpec `json:"template,omitempty"`
	// MinReadySeconds is passed on and has no effect, as in the reference system: a
	// machine counts as available as soon as it is Running.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// AutoPreserveFailedMachineMax is how many Failed machines are preserved
	// without being asked.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// MachineSetStatus is what was last observed of a set.
type MachineSetStatus struct {
	// Replicas is the number of machines of the set.
	Replicas int32 `json:"replicas,omitempty"`
	// FullyLabeledReplicas is how many of them carry all labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`
	// ReadyReplicas is how many of them are Running.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many of them count as available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// PreservedFailedReplicas is how many of them are Failed and preserved.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`
	// ObservedGeneration is the generation of the spec that the controller has acted on or
	// has refused. A refused spec has Progressing=False with the reason InvalidSpec. It stays
	// at the former generation while an error keeps the controller from creating and deleting.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the set that MCM writes, too; mind the JSON name.
	// +optional
	Conditions []MachineSetCondition `json:"machineSetCondition,omitempty"`
	// StandardConditions are Available and Progressing, where kubectl wait looks for them.
	// They are written together with what they follow from.
	// +optional
	StandardConditions []MachineSetCondition `json:"conditions,omitempty"`
	// LastOperation of the set.
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// FailedMachines are the machines whose last operation failed. Nil means none.
	// +optional
	FailedMachines *[]MachineSummary `json:"failedMachines,omitempty"`
	// AutoPreserveFailedMachineCount is how many machines are preserved without
	// having been asked for.
	// +optional
	AutoPreserveFailedMachineCount int32 `json:"autoPreserveFailedMachineCount,omitempty"`
}

// MachineSetConditionType is the type of a condition of a set.
type MachineSetConditionType string

// The conditions of a set.
const (
	// MachineSetReplicaFailure means that a machine could not be created or
	// deleted.
	MachineSetReplicaFailure MachineSetConditionType = "ReplicaFailure"
	// MachineSetFrozen means that the set creates no machines, because it has
	// too many.
	MachineSetFrozen MachineSetConditionType = "Frozen"
	// MachineSetAvailable means that all machines which the set wants are available. Failed
	// machines that are preserved are not missed.
	MachineSetAvailable MachineSetConditionType = "Available"
	// MachineSetProgressing is False if the spec is invalid, or if a machine could not be
	// created or deleted.
	MachineSetProgressing MachineSetConditionType = "Progressing"
)

// MachineSetCondition is one condition of a set.
type MachineSetCondition struct {
	// Type of the condition.
	// +optional
	Type MachineSetConditionType `json:"type"`
	// Status of the condition.
	// +optional
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is a stable CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is for people.
	// +optional
	Message string `json:"message,omitempty"`
}
