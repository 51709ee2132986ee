// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mcd"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Number of machines in phase Running"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`,description="Number of desired machines"
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`,description="Number of machines of the newest template"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,description="Number of available machines"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the deployment was created"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.template.spec.class.name`,description="MachineClass of the newest template"
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.strategy.type`,description="Type of the strategy"
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`,description="Reason of the condition Progressing"

// MachineDeployment keeps a number of machines, and replaces or updates them when its
// template changes.
type MachineDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec MachineDeploymentSpec `json:"spec,omitempty"`
	// Status is the observed state.
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

// MachineDeploymentSpec is the desired state of a MachineDeployment.
type MachineDeploymentSpec struct {
	// Replicas is the desired number of machines. The API server refuses a negative number.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Selector selects the MachineSets and machines of the deployment. It must match the
	// labels of the template. Nil and empty selectors select nothing.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Template is the template of the machines. A change starts a rollout, except for a change
	// of the node template, the overrides or the kind of the class.
	// +optional
	Template MachineTemplateSpec `json:"template"`
	// Strategy is how a rollout replaces or updates old machines.
	// +optional
	Strategy MachineDeploymentStrategy `json:"strategy,omitempty"`
	// MinReadySeconds is how long a machine has to be Running before it counts as available,
	// counted from when its Node became ready. MCM ignores it.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// RevisionHistoryLimit is how many old MachineSets without machines are kept. Nil means
	// all.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// Paused stops rollouts. Scaling continues.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// RollbackTo asks for an earlier revision. The controller clears it after the rollback.
	// +optional
	RollbackTo *RollbackConfig `json:"rollbackTo,omitempty"`
	// ProgressDeadlineSeconds is how long a rollout may make no progress before Progressing
	// becomes False. Nil means no limit.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// AutoPreserveFailedMachineMax is how many Failed machines the controllers preserve
	// without an annotation of a user.
	// +optional
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// RollbackConfig has the revision of a rollback.
type RollbackConfig struct {
	// Revision is the revision to restore. Zero means the one before the newest.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// MachineDeploymentStrategyType is the type of a strategy.
type MachineDeploymentStrategyType string

// The types of strategies.
const (
	// RecreateMachineDeploymentStrategyType deletes all old machines before it creates new
	// ones.
	RecreateMachineDeploymentStrategyType MachineDeploymentStrategyType = "Recreate"
	// RollingUpdateMachineDeploymentStrategyType replaces machines within maxSurge and
	// maxUnavailable.
	RollingUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "RollingUpdate"
	// InPlaceUpdateMachineDeploymentStrategyType updates the machines and keeps their VMs.
	InPlaceUpdateMachineDeploymentStrategyType MachineDeploymentStrategyType = "InPlaceUpdate"
)

// +kubebuilder:validation:XValidation:rule="has(self.type) && self.type in ['InPlaceUpdate', 'Recreate', 'RollingUpdate']",fieldPath=".type",message="the type of the strategy is missing or unknown: write InPlaceUpdate, Recreate or RollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || has(self.rollingUpdate) && has(self.rollingUpdate.maxSurge) && has(self.rollingUpdate.maxUnavailable)",fieldPath=".rollingUpdate",message="the strategy RollingUpdate needs maxSurge and maxUnavailable: write both in rollingUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || type(self.rollingUpdate.maxSurge) == int || self.rollingUpdate.maxSurge.matches('^[+-]?[0-9]+%$')",fieldPath=".rollingUpdate.maxSurge",message="maxSurge is neither a number nor a percentage: write a value such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'RollingUpdate' || !has(self.rollingUpdate) || !has(self.rollingUpdate.maxUnavailable) || type(self.rollingUpdate.maxUnavailable) == int || self.rollingUpdate.maxUnavailable.matches('^[+-]?[0-9]+%$')",fieldPath=".rollingUpdate.maxUnavailable",message="maxUnavailable is neither a number nor a percentage: write a value such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || has(self.inPlaceUpdate) && has(self.inPlaceUpdate.maxSurge) && has(self.inPlaceUpdate.maxUnavailable)",fieldPath=".inPlaceUpdate",message="the strategy InPlaceUpdate needs maxSurge and maxUnavailable: write both in inPlaceUpdate"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || !has(self.inPlaceUpdate.maxSurge) || type(self.inPlaceUpdate.maxSurge) == int || self.inPlaceUpdate.maxSurge.matches('^[+-]?[0-9]+%$')",fieldPath=".inPlaceUpdate.maxSurge",message="maxSurge is neither a number nor a percentage: write a value such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || !has(self.inPlaceUpdate.maxUnavailable) || type(self.inPlaceUpdate.maxUnavailable) == int || self.inPlaceUpdate.maxUnavailable.matches('^[+-]?[0-9]+%$')",fieldPath=".inPlaceUpdate.maxUnavailable",message="maxUnavailable is neither a number nor a percentage: write a value such as 1 or 10%"
// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'InPlaceUpdate' || !has(self.inPlaceUpdate) || has(self.inPlaceUpdate.orchestrationType) && self.inPlaceUpdate.orchestrationType in ['Auto', 'Manual']",fieldPath=".inPlaceUpdate.orchestrationType",message="the orchestration type is missing or unknown: write Auto or Manual"

// MachineDeploymentStrategy is how a rollout replaces or updates old machines.
type MachineDeploymentStrategy struct {
	// Type is the type of the strategy. It has no default.
	// +optional
	Type MachineDeploymentStrategyType `json:"type,omitempty"`
	// RollingUpdate has the limits of the type RollingUpdate.
	// +optional
	RollingUpdate *RollingUpdateMachineDeployment `json:"rollingUpdate,omitempty"`
	// InPlaceUpdate has the limits of the type InPlaceUpdate.
	// +optional
	InPlaceUpdate *InPlaceUpdateMachineDeployment `json:"inPlaceUpdate,omitempty"`
}

// RollingUpdateMachineDeployment has the limits of a rolling update.
type RollingUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`
}

// OrchestrationType is how the machines of an in-place update are selected.
type OrchestrationType string

// The types of orchestration of an in-place update.
const (
	// OrchestrationTypeAuto means that the controller selects them.
	OrchestrationTypeAuto OrchestrationType = "Auto"
	// OrchestrationTypeManual means that the user selects them.
	OrchestrationTypeManual OrchestrationType = "Manual"
)

// InPlaceUpdateMachineDeployment has the limits of an in-place update.
type InPlaceUpdateMachineDeployment struct {
	UpdateConfiguration `json:",inline"`
	// OrchestrationType is how the machines are selected.
	// +optional
	OrchestrationType OrchestrationType `json:"orchestrationType,omitempty"`
}

// UpdateConfiguration has the limits of an update.
type UpdateConfiguration struct {
	// MaxUnavailable is how many machines may be unavailable: a number, or a percentage of the
	// replicas, rounded down.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxSurge is how many machines may exist above the replicas: a number, or a percentage of
	// the replicas, rounded up.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// MachineDeploymentStatus is the observed state of a MachineDeployment.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that the controller has applied or
	// refused. A refused spec has Progressing=False with the reason InvalidSpec or
	// EmptySelector. While an action fails, it is the former generation.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of machines of all MachineSets.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// UpdatedReplicas is the number of machines of the newest template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// ReadyReplicas is how many machines are in phase Running.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is how many machines are available: see MinReadySeconds.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// PreservedFailedReplicas is how many machines are Failed and preserved.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`
	// UnavailableReplicas is how many desired machines are not available.
	// +optional
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`
	// Conditions are the conditions of the deployment.
	// +optional
	Conditions []MachineDeploymentCondition `json:"conditions,omitempty"`
	// CollisionCount counts the name collisions of new MachineSets. Nil means none.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// FailedMachines are the machines whose last operation failed.
	// +optional
	FailedMachines []*MachineSummary `json:"failedMachines,omitempty"`
}

// MachineDeploymentConditionType is the type of a condition of a MachineDeployment.
type MachineDeploymentConditionType string

// The conditions of a MachineDeployment.
const (
	// MachineDeploymentAvailable means that enough machines are available.
	MachineDeploymentAvailable MachineDeploymentConditionType = "Available"
	// MachineDeploymentProgressing means that a rollout makes progress or is complete.
	MachineDeploymentProgressing MachineDeploymentConditionType = "Progressing"
	// MachineDeploymentReplicaFailure means that the creation or deletion of a machine failed.
	MachineDeploymentReplicaFailure MachineDeploymentConditionType = "ReplicaFailure"
	// MachineDeploymentFrozen means that a MachineSet of the deployment is frozen.
	MachineDeploymentFrozen MachineDeploymentConditionType = "Frozen"
	// MachineDeploymentControllerFrozen means that no machine of the deployment is created,
	// failed or replaced, because an API server does not answer.
	MachineDeploymentControllerFrozen MachineDeploymentConditionType = "ControllerFrozen"
)

// MachineDeploymentCondition is one condition of a MachineDeployment.
type MachineDeploymentCondition struct {
	// Type is the type of the condition.
	// +optional
	Type MachineDeploymentConditionType `json:"type"`
	// Status is the status of the condition.
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
	// Message is for people. Its text may change.
	// +optional
	Message string `json:"message,omitempty"`
}
