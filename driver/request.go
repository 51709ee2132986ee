// SPDX-License-Identifier: Apache-2.0

package driver

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// CreateMachineRequest is the request to create the VM of a machine.
type CreateMachineRequest struct {
	// Machine is the machine of the VM.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret has the credentials. Its key "userData" has the user data of this machine, with
	// all placeholders replaced.
	Secret *corev1.Secret
}

// CreateMachineResponse describes the VM of a machine.
type CreateMachineResponse struct {
	// ProviderID identifies the VM. It is unique and does not change.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// LastKnownState is a text for the status of the machine, which the driver reads in its
	// next call. Empty keeps the present text. A crash of the controller may lose it.
	LastKnownState string
	// Addresses of the VM that are known.
	Addresses []corev1.NodeAddress
}

// InitializeMachineRequest is the request to complete the VM of a machine.
type InitializeMachineRequest struct {
	// Machine is the machine of the VM.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret has the credentials.
	Secret *corev1.Secret
}

// InitializeMachineResponse describes the completed VM.
type InitializeMachineResponse struct {
	// ProviderID identifies the VM.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// Addresses of the VM that are known.
	Addresses []corev1.NodeAddress
}

// DeleteMachineRequest is the request to delete the VM of a machine and its side resources.
type DeleteMachineRequest struct {
	// Machine is the machine of the VM. Its ProviderID may be empty. For a VM without a
	// machine it has only the name and provider ID of the list.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret has the credentials.
	Secret *corev1.Secret
}

// DeleteMachineResponse is the response to a deletion.
type DeleteMachineResponse struct {
	// LastKnownState is a text for the status of the machine, which the driver reads in its
	// next call. Empty keeps the present text.
	LastKnownState string
}

// GetMachineStatusRequest is the request to find the VM of a machine.
type GetMachineStatusRequest struct {
	// Machine is the machine of the VM. Its ProviderID may be empty.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret has the credentials.
	Secret *corev1.Secret
}

// GetMachineStatusResponse describes the VM of a machine.
type GetMachineStatusResponse struct {
	// ProviderID identifies the VM.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// Addresses of the VM that are known.
	Addresses []corev1.NodeAddress
}

// ListMachinesRequest is the request for all VMs in the scope of a class.
type ListMachinesRequest struct {
	// MachineClass is the class whose scope is searched.
	MachineClass *v1alpha1.MachineClass
	// Secret has the credentials.
	Secret *corev1.Secret
}

// ListMachinesResponse has all VMs in the scope of a class.
type ListMachinesResponse struct {
	// MachineList maps provider IDs to names of machines. Nil means none.
	MachineList map[string]string
}

// GetVolumeIDsRequest is the request for the IDs of volumes at the cloud.
type GetVolumeIDsRequest struct {
	// PVSpecs are the volumes. None is nil.
	PVSpecs []*corev1.PersistentVolumeSpec
}

// GetVolumeIDsResponse has the IDs of volumes at the cloud.
type GetVolumeIDsResponse struct {
	// VolumeIDs are the IDs in the order of the request, without the volumes of other storage
	// systems.
	VolumeIDs []string
}
