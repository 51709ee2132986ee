// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the Go types [Machine], [MachineClass], [MachineSet] and
// [MachineDeployment] of the API group machine.sapcloud.io/v1alpha1, and their
// CustomResourceDefinitions.
//
//	package main
//
//	import (
//		"fmt"
//
//		"k8s.io/apimachinery/pkg/runtime"
//
//		"github.com/machinist-dev/machinist/machine/v1alpha1"
//	)
//
//	func main() {
//		if err := v1alpha1.AddToScheme(runtime.NewScheme()); err != nil {
//			panic(err)
//		}
//		for _, crd := range v1alpha1.CRDs() {
//			fmt.Println(crd.Name) // apply crd.YAML to the API server
//		}
//	}
//
// A Machine is one VM and the Node that the VM becomes. Its MachineClass has the
// configuration of the provider. A MachineSet keeps a number of machines with one template.
// A MachineDeployment replaces machines when its template changes.
//
// The objects have the fields and JSON names of Gardener's machine-controller-manager (MCM),
// so that a cluster can change between MCM and this module while its machines run.
//
// The constants are the labels, annotations, finalizers, taints, conditions and reasons of
// the API group. Package machine decides the next step for a machine. The packages below
// machine/client are its typed clients, listers and informers.
//
// +k8s:deepcopy-gen=package
// +groupName=machine.sapcloud.io
package v1alpha1
