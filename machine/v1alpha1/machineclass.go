// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:shortName="mcc"
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.provider`,description="Name of the provider"
// +kubebuilder:printcolumn:name="Instance Type",type=string,JSONPath=`.nodeTemplate.instanceType`,description="Instance type of the machines"
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.nodeTemplate.zone`,description="Zone of the machines"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the class was created"
// +kubebuilder:printcolumn:name="Region",type=string,priority=1,JSONPath=`.nodeTemplate.region`,description="Region of the machines"

// MachineClass is the configuration of the provider for machines. Its fields are at the top
// level of the object. It has neither spec nor status.
type MachineClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// NodeTemplate is what a Node of this class offers, for autoscalers. Nil means that it is
	// not known.
	// +optional
	NodeTemplate *NodeTemplate `json:"nodeTemplate,omitempty"`
	// CredentialsSecretRef refers to the Secret with the credentials of the provider. Its keys
	// override those of SecretRef.
	CredentialsSecretRef *corev1.SecretReference `json:"credentialsSecretRef,omitempty"`
	// ProviderSpec is the configuration of the driver. Only the driver reads it. Unknown
	// fields are kept.
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderSpec runtime.RawExtension `json:"providerSpec"`
	// Provider is the name of the driver of the class.
	Provider string `json:"provider,omitempty"`
	// SecretRef refers to the Secret with the user data of the machines, in the key
	// "userData".
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MachineClassList is a list of MachineClasses.
type MachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the classes, in the order of the API server.
	Items []MachineClass `json:"items"`
}

// NodeTemplate is what a Node of a class offers. Autoscalers use it to scale up from zero.
type NodeTemplate struct {
	// Capacity is the capacity of the Node. It must have cpu, gpu and memory.
	// +optional
	Capacity corev1.ResourceList `json:"capacity"`
	// VirtualCapacity has extended resources that are added to the capacity of the Node. A
	// change starts no rollout.
	// +optional
	VirtualCapacity corev1.ResourceList `json:"virtualCapacity,omitempty"`
	// InstanceType is the instance type at the provider.
	// +optional
	InstanceType string `json:"instanceType"`
	// Region is the region at the provider.
	// +optional
	Region string `json:"region"`
	// Zone is the zone at the provider.
	// +optional
	Zone string `json:"zone"`
	// Architecture is the CPU architecture of the Node, such as "amd64". Nil means that it is
	// not known.
	// +optional
	Architecture *string `json:"architecture,omitempty"`
}
