// SPDX-License-Identifier: Apache-2.0

// Package controllers composes the packages of the SDK into running controllers: of
// Machines, MachineSets, MachineDeployments, of the machine classes and Secrets that
// machines use, and of orphan VMs.
//
//	err := controllers.Run(ctx, controllers.Config{
//		Machines: machineClient, // the objects of machine.sapcloud.io
//		Control:  controlClient, // their Secrets
//		Target:   targetClient,  // the Nodes; nil for none
//		Driver:   cloud,
//		Policy:   machine.DefaultPolicy(),
//	})
//
// Each kind has a work queue of client-go, and an Executor that makes the passes. The rules
// are in packages machine, machineset, deployment, drain and safety: what to do, what is on
// hold, and when to look again. How that is sent is in their runner packages.
//
// The package is an example to copy from. The programs beside it run these controllers.
package controllers
