// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mcs"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of desired machines"
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,description="Number of existing machines"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of machines in phase Running"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of available machines"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the set was created"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.class.name`,description="MachineClass of the machines"
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="Reason of the condition Progressing"

// MachineSet keeps a number of machines with one template.
type MachineSet struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`

	// Spec is the desired state.
	// +optional
	Spec MachineSetSpec `json:"spec,omitempty"`
	// Status is the observed state.
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

// MachineSetSpec is the desired state of a MachineSet.
type MachineSetSpec struct {
	// Replicas is the desired number of machines. The API server refuses a negative number.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Selector selects the machines of the set. It must match the labels of the template.
	// Nil and empty selectors select nothing.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// MachineClass has no effect. The class of the machines is in the template.
	// +optional
	MachineClass ClassSpec `json:"machineClass,omitempty"`
	// Template is the template of new machines.
	// +optional
	Template MachineTemplateSpec `json:"template,omitempty"`
	// MinReadySeconds is how long a machine has to be Running before it counts as available,
	// counted from when its Node became ready. MCM ignores it.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// AutoPreserveFailedMachineMax is how many Failed machines the controller preserves
	// without an annotation of a user.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// MachineSetStatus is the observed state of a MachineSet.
type MachineSetStatus struct {
	// Replicas is the number of machines of the set.
	Replicas int32 `json:"replicas,omitempty"`
	// FullyLabeledReplicas is how many of them have all labels of the template.
	// +optional
	FullyLabeledReplicas int32 `json:"fullyLabeledReplicas,omitempty"`
	// ReadyReplicas is how many of them are in phase Running.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many of them are available: see MinReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// PreservedFailedReplicas is how many of them are Failed and preserved.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`
	// ObservedGeneration is the generation of the spec that the controller has acted on or
	// refused. A refused spec has Progressing=False with the reason InvalidSpec. While a
	// machine cannot be updated to the template, it is the former generation. Creations and
	// deletions that fail do not keep it back: the condition ReplicaFailure has their error.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are the conditions that MCM writes, too. The JSON name is that of MCM.
	// +optional
	Conditions []MachineSetCondition `json:"machineSetCondition,omitempty"`
	// StandardConditions are Available and Progressing, with the JSON name that kubectl wait
	// reads.
	// +optional
	StandardConditions []MachineSetCondition `json:"conditions,omitempty"`
	// LastOperation is the last operation of the controller on the set.
	LastOperation LastOperation `json:"lastOperation,omitempty"`
	// FailedMachines are the machines whose last operation failed. Nil means none.
	// +optional
	FailedMachines *[]MachineSummary `json:"failedMachines,omitempty"`
	// AutoPreserveFailedMachineCount is how many machines the controller preserves without an
	// annotation of a user.
	// +optional
	AutoPreserveFailedMachineCount int32 `json:"autoPreserveFailedMachineCount,omitempty"`
}

// MachineSetConditionType is the type of a condition of a MachineSet.
type MachineSetConditionType string

// The conditions of a MachineSet.
const (
	// MachineSetReplicaFailure means that the creation or deletion of a machine failed.
	MachineSetReplicaFailure MachineSetConditionType = "ReplicaFailure"
	// MachineSetFrozen means that the set creates no machines, because it has too many.
	MachineSetFrozen MachineSetConditionType = "Frozen"
	// MachineSetAvailable means that all desired machines are available. Preserved Failed
	// machines are left out.
	MachineSetAvailable MachineSetConditionType = "Available"
	// MachineSetProgressing is False if the spec is invalid, or if the creation or deletion of
	// a machine failed.
	MachineSetProgressing MachineSetConditionType = "Progressing"
)

// MachineSetCondition is one condition of a MachineSet.
type MachineSetCondition struct {
	// Type is the type of the condition.
	// +optional
	Type MachineSetConditionType `json:"type"`
	// Status is the status of the condition.
	// +optional
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is a stable CamelCase word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is for people. Its text may change.
	// +optional
	Message string `json:"message,omitempty"`
}
