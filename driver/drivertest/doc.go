// SPDX-License-Identifier: Apache-2.0

// Package drivertest checks that a driver keeps the contract of package driver,
// and simulates a cloud on which everything can go wrong.
//
// # Conformance
//
// A provider project proves its driver in a few lines, against a fake of its
// cloud or the real one:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, func(t *testing.T) drivertest.Harness {
//			return drivertest.Harness{
//				New:          func() driver.Driver { return mycloud.New() },
//				MachineClass: class,  // valid for an account to play with
//				Secret:       secret, // credentials and user data for it
//				Settle:       2 * time.Minute,
//			}
//		})
//	}
//
// Every promise of the contract is one parallel subtest, whose sentence is printed when it
// is broken. Subtests have machines of their own, and remove what
// they made even if they fail. What a driver or harness does not offer is listed
// in one line at the end, not passed over in silence.
//
// # Simulation
//
// A [Cloud] is a driver with a cloud in it: deterministic, on the clock it is
// given, with latency, late visibility, quota, initialisation, side
// resources that leak unless the driver deletes them, and faults by operation, machine
// and chance.
//
//	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clk, BootTime: time.Minute, Quota: 10})
//	cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Kind: drivertest.LoseResponse, Times: 1})
//	... // run a controller on it
//	n, machine := cloud.History().MaxVMsOfOneMachine() // never more than one?
//	leaked := cloud.Snapshot()                          // empty in the end?
//
// # What this package does not do
//
// It proves nothing about a cloud, only about what a driver makes visible of it:
// whether a deleted disk is billed on is beyond it. It does not measure speed.
package drivertest
