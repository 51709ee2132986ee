// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 says what a Machine, a MachineClass, a MachineSet and a
// MachineDeployment are: the API group machine.sapcloud.io/v1alpha1, its Go
// types, every label, annotation, finalizer, taint and condition that
// controllers of the group agree on, and the CustomResourceDefinitions.
//
// A [Machine] asks for one VM, and for the Node that the VM becomes. It names a
// [MachineClass], which holds what the provider needs to know. A [MachineSet]
// keeps a number of equal machines; a [MachineDeployment] replaces one
// generation of machines by the next. The objects are the same, field by field
// and JSON name by JSON name, as those of Gardener's machine-controller-manager,
// so that a cluster can move between the two with its machines running.
//
// Registering the types and installing the definitions is all there is to do:
//
//	scheme := runtime.NewScheme()
//	if err := v1alpha1.AddToScheme(scheme); err != nil { … }
//	for _, crd := range v1alpha1.CRDs() {
//		… // apply crd.YAML to the API server
//	}
//
// The package holds data only: it imports k8s.io/api and k8s.io/apimachinery,
// reads no clock and makes no decision. What the next step in the life of a
// machine is, package machine says; typed clients, listers and informers are
// in machine/client.
//
// +k8s:deepcopy-gen=package
// +groupName=machine.sapcloud.io
package v1alpha1
