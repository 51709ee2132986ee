// SPDX-License-Identifier: Apache-2.0

// Package controllers composes the packages of the SDK into running
// controllers: of machines, machine sets, machine deployments, of the classes
// and secrets that machines need, and of the VMs that nobody owns.
//
// Each file observes with client-go informers, asks one decision function, and
// carries out what it says, through one typed work queue. No rule stands here:
// what to do, why the rest is not done and when to look again all come from
// packages machine, machineset, deployment and drain.
//
//	err := controllers.Run(ctx, controllers.Config{
//		Machines: machineClient, // the objects of machine.sapcloud.io
//		Control:  controlClient, // their secrets
//		Target:   targetClient,  // the Nodes; nil for none
//		Driver:   cloud,
//		Policy:   machine.DefaultPolicy(),
//	})
//
// It is an example to copy from, and the controllers of the programs beside it.
package controllers
