// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mcd"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of machines that are Running"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of machines asked for"
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`,description="Number of machines of the newest template"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of machines that count as available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the deployment was created"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.class.name`,description="MachineClass of the newest template"
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.strategy.type`,description="Type of the strategy"
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="Reason of the condition Progressing"

// MachineDeployment replaces one generation of machines by the next.
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	// +optional
	Spec MachineDeploymentSpec `json:"spec,omitempty"`
	// Status is what was last observed.
	// +optional
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MachineDeploymentList is a list of MachineDeployments.
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the deployments, in the order of the API server.
	Items []MachineDeployment `json:"items"`
}

// MachineDeploymentSpec is what is asked for of a deployment.
type MachineDeploymentSpec struct {
	// Replicas is the number of machines wanted. The API server refuses a negative one.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Selector selects the sets and machines of the deployment; it has to match
	// the labels of the template. Nil and empty selectors select nothing.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Template is what machines are made from. A change of anything but the node
	// template, the overrides and the class kind starts a roll-out.
	// +optional
	Template MachineTemplateSpec `json:"template"`
	// Strategy is how old machines are replaced.
	// +optional
	Strategy MachineDeploymentStrategy `json:"strategy,omitempty"`
	// MinReadySeconds is passed on and has no effect, as in the reference system: a
	// machine counts as available as soon as it is Running.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// RevisionHistoryLimit is how many empty old sets are kept. Nil keeps all.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Paused stops roll-outs; scaling goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// RollbackTo asks to go back to an earlier revision. It is cleared when that
	// is done.
	// +optional
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty"`
	// ProgressDeadlineSeconds is how long a roll-out may stand still before it
	// is reported as failed. Nil means for ever.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// AutoPreserveFailedMachineMax is how many Failed machines are preserved
	// without being asked.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// RollbackConfig says where to roll back to.
type RollbackConfig struct {
	// Revision to go back to; 0 means the one before the newest.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// MachineDeploymentStrategyType is the kind of a strategy.
type MachineDeploymentStrategyType string

// The strategies.
const (
	// RecreateMachineDeploymentStrategyType deletes all old machines first.
	RecreateMachineDeploymentStrategyType MachineDeploymentStrategyType = "Recreate"
	// RollingUpdateMachineDeploymentStrategyType replaces machines bit by bit.
	RollingUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "RollingUpdate"
	// InPlaceUpdateMachineDeploymentStrategyType updates the machines without
	// replacing them.
	InPlaceUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "InPlaceUpdate"
)

// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type in ['InPlaceUpdate', 'Recreate', 'RollingUpdate']",fieldPath=".type",message="the type of the strategy is missing or unknown: write InPlaceUpdate, Recreate or RollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || has(self.rollingUpdate) && has(self.rollingUpdate.maxSurge) && has(self.rollingUpdate.maxUnavailable)",fieldPath=".rollingUpdate",message="the strategy RollingUpdate needs maxSurge and maxUnavailable: write both in rollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || type(self.rollingUpdate.maxSurge) == int || self.rollingUpdate.maxSurge.matches('^[+-]?[0-9]+%$')",fieldPath=".rollingUpdate.maxSurge",message="maxSurge is neither a number nor a percentage: write such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxUnavailable) || type(self.rollingUpdate.maxUnavailable) == int || self.rollingUpdate.maxUnavailable.matches('^[+-]?[0-9]+%$')",fieldPath=".rollingUpdate.maxUnavailable",message="maxUnavailable is neither a number nor a percentage: write such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || has(self.inPlaceUpdate) && has(self.inPlaceUpdate.maxSurge) && has(self.inPlaceUpdate.maxUnavailable)",fieldPath=".inPlaceUpdate",message="the strategy InPlaceUpdate needs maxSurge and maxUnavailable: write both in inPlaceUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || !has(self.inPlaceUpdate.maxSurge) || type(self.inPlaceUpdate.maxSurge) == int || self.inPlaceUpdate.maxSurge.matches('^[+-]?[0-9]+%$')",fieldPath=".inPlaceUpdate.maxSurge",message="maxSurge is neither a number nor a percentage: write such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || !has(self.inPlaceUpdate.maxUnavailable) || type(self.inPlaceUpdate.maxUnavailable) == int || self.inPlaceUpdate.maxUnavailable.matches('^[+-]?[0-9]+%$')",fieldPath=".inPlaceUpdate.maxUnavailable",message="maxUnavailable is neither a number nor a percentage: write such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || has(self.inPlaceUpdate.orchestrationType) && self.inPlaceUpdate.orchestrationType in ['Auto', 'Manual']",fieldPath=".inPlaceUpdate.orchestrationType",message="the orchestration type is missing or unknown: write Auto or Manual"

// MachineDeploymentStrategy is how old machines are replaced by new ones.
type MachineDeploymentStrategy struct {
	// Type of the strategy. It has no default.
	// +optional
	Type MachineDeploymentStrategyType `json:"type,omitempty"`
	// RollingUpdate is read if Type is RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateMachineDeployment `json:"rollingUpdate,omitempty"`
	// InPlaceUpdate is read if Type is InPlaceUpdate.
	// +optional
	InPlaceUpdate *InPlaceUpdateMachineDeployment `json:"inPlaceUpdate,omitempty"`
}

// RollingUpdateMachineDeployment bounds a rolling update.
type RollingUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`
}

// OrchestrationType says who selects the machines of an in-place update.
type OrchestrationType string

// The orchestrations of an in-place update.
const (
	// OrchestrationTypeAuto lets the controller select them.
	OrchestrationTypeAuto OrchestrationType = "Auto"
	// OrchestrationTypeManual leaves it to the user.
	OrchestrationTypeManual OrchestrationType = "Manual"
)

// InPlaceUpdateMachineDeployment bounds an in-place update.
type InPlaceUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`
	// OrchestrationType says who selects the machines.
	// +optional
	OrchestrationType OrchestrationType `json:"orchestrationType,omitempty"`
}

// UpdateConfiguration bounds an update.
type UpdateConfiguration struct {
	// MaxUnavailable is how many machines may be unavailable: a number, or a
	// percentage of the replicas rounded down.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many machines may exist above the replicas: a number, or a
	// percentage of the replicas rounded up.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// MachineDeploymentStatus is what was last observed of a deployment.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that the controller has acted on or
	// has refused. A refused spec has Progressing=False with the reason InvalidSpec or
	// EmptySelector. It stays at the former generation while an action fails.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of machines of all sets.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// UpdatedReplicas is the number of machines of the newest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// ReadyReplicas is how many machines are Running.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many machines count as available.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// PreservedFailedReplicas is how many machines are Failed and preserved.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`
	// UnavailableReplicas is how many machines are asked for and not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`
	// Conditions of the deployment.
	// +optional
	Conditions []MachineDeploymentCondition `json:"conditions,omitempty"`
	// CollisionCount counts name collisions of new sets. Nil means none.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// FailedMachines are the machines whose last operation failed.
	// +optional
	FailedMachines []*MachineSummary `json:"failedMachines,omitempty"`
}

// MachineDeploymentConditionType is the type of a condition of a deployment.
type MachineDeploymentConditionType string

// The conditions of a deployment.
const (
	// MachineDeploymentAvailable means that enough machines are available.
	MachineDeploymentAvailable MachineDeploymentConditionType = "Available"
	// MachineDeploymentProgressing means that a roll-out makes progress, or is
	// complete.
	MachineDeploymentProgressing MachineDeploymentConditionType = "Progressing"
	// MachineDeploymentReplicaFailure means that a machine could not be created
	// or deleted.
	MachineDeploymentReplicaFailure MachineDeploymentConditionType = "ReplicaFailure"
	// MachineDeploymentFrozen means that a set of the deployment is frozen.
	MachineDeploymentFrozen MachineDeploymentConditionType = "Frozen"
	// MachineDeploymentControllerFrozen means that the controllers hold the deployment, as
	// an API server does not answer.
	MachineDeploymentControllerFrozen MachineDeploymentConditionType = "ControllerFrozen"
)

// MachineDeploymentCondition is one condition of a deployment.
type MachineDeploymentCondition struct {
	// Type of the condition.
	// +optional
	Type MachineDeploymentConditionType `json:"type"`
	// Status of the condition.
	// +optional
	Status ConditionStatus `json:"status"`
	// LastUpdateTime is when the condition was last written.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
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
