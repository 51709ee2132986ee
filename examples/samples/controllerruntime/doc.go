// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime composes the packages of the SDK into controllers of controller-runtime: [Add]
// adds the controllers of Machines, MachineSets, MachineDeployments, of the machine classes and Secrets that
// machines use, and of package safety to a manager.
//
//	package main
//
//	import (
//		ctrl "sigs.k8s.io/controller-runtime"
//
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/examples/samples/controllerruntime"
//		"github.com/machinist-dev/machinist/machine"
//		"github.com/machinist-dev/machinist/safety"
//	)
//
//	func main() {
//		ctx, config := ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie()
//		o := ctrl.Options{LeaderElection: true, LeaderElectionID: "machine-controller"}
//		o.Controller.MaxConcurrentReconciles = 50 // they wait for the provider
//		mgr, err := ctrl.NewManager(config, o)
//		if err == nil {
//			err = controllerruntime.Add(ctx, mgr, controllerruntime.Config{
//				Target: config, Policy: machine.DefaultPolicy(), Orphans: safety.DefaultPolicy(),
//				Driver: drivertest.NewCloud(drivertest.CloudOptions{}), // use your driver
//			})
//		}
//		if err == nil {
//			err = mgr.Start(ctx)
//		}
//		if err != nil {
//			panic(err)
//		}
//	}
//
// The cluster that the machines join may be another than that of the manager. Machines that join none are not
// supported. The controllers start when both clusters answer. Leader election, metrics, logs and the number of
// workers are those of the manager.
//
// The package is an example to copy from, as examples/controllers is, which composes the same packages over
// the informers and work queues of client-go. The program in the folder manager runs it.
package controllerruntime
