// SPDX-License-Identifier: Apache-2.0

package driver

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// CreateMachineRequest asks for the VM of a machine.
type CreateMachineRequest struct {
	// Machine is the machine to make a VM for.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials, and under the key "userData" the user data
	// of this machine with all placeholders replaced.
	Secret *corev1.Secret
}

// CreateMachineResponse says which VM a machine has.
type CreateMachineResponse struct {
	// ProviderID is the identity of the VM, unique and stable.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// LastKnownState is a text which the driver wants to find in the status of
	// the machine at its next call. Empty keeps what is there. A controller that
	// crashes may lose it: what a driver cannot do without, it has to find at the
	// provider.
	LastKnownState string
	// Addresses of the VM, as far as they are known.
	Addresses []corev1.NodeAddress
}

// InitializeMachineRequest asks to finish the VM of a machine.
type InitializeMachineRequest struct {
	// Machine is the machine whose VM is to be finished.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// InitializeMachineResponse says which VM was finished.
type InitializeMachineResponse struct {
	// ProviderID is the identity of the VM.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// Addresses of the VM, as far as they are known.
	Addresses []corev1.NodeAddress
}

// DeleteMachineRequest asks to remove the VM of a machine and its side
// resources.
type DeleteMachineRequest struct {
	// Machine is the machine whose VM is to be removed. Its ProviderID may be
	// empty. For a VM that nobody owns it is made up of the name and provider ID
	// in the list, and has neither UID nor status.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// DeleteMachineResponse accompanies the end of a VM.
type DeleteMachineResponse struct {
	// LastKnownState is a text which the driver wants to find in the status of
	// the machine at its next call. Empty keeps what is there.
	LastKnownState string
}

// GetMachineStatusRequest asks for the VM of a machine.
type GetMachineStatusRequest struct {
	// Machine is the machine whose VM is wanted. Its ProviderID may be empty.
	Machine *v1alpha1.Machine
	// MachineClass is the class of the machine.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// GetMachineStatusResponse says which VM a machine has.
type GetMachineStatusResponse struct {
	// ProviderID is the identity of the VM.
	ProviderID string
	// NodeName is the name of the Node that the VM becomes.
	NodeName string
	// Addresses of the VM, as far as they are known.
	Addresses []corev1.NodeAddress
}

// ListMachinesRequest asks for all VMs in the scope of a class.
type ListMachinesRequest struct {
	// MachineClass is the class whose scope is searched.
	MachineClass *v1alpha1.MachineClass
	// Secret holds the credentials.
	Secret *corev1.Secret
}

// ListMachinesResponse has all VMs in the scope of a class.
type ListMachinesResponse struct {
	// MachineList maps provider IDs to names of machines. Nil means none.
	MachineList map[string]string
}

// GetVolumeIDsRequest asks for the names of volumes at the cloud.
type GetVolumeIDsRequest struct {
	// PVSpecs are the volumes. None of them is nil.
	PVSpecs []*corev1.PersistentVolumeSpec
}

// GetVolumeIDsResponse has the names of volumes at the cloud.
type GetVolumeIDsResponse struct {
	// VolumeIDs are the names, in the order of the request, without those that
	// are not volumes of this cloud.
	VolumeIDs []string
}
