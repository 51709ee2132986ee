// SPDX-License-Identifier: Apache-2.0

// Command manager runs all machine controllers in one process, against real clusters and the
// simulated cloud of another process. The machine-controller of a provider has the same main
// function with its own driver:
//
//	func main() {
//		s := options.NewMCServer()
//		s.AddFlags(pflag.CommandLine)
//		pflag.Parse()
//		if err := app.Run(s, mycloud.NewDriver()); err != nil {
//			fmt.Fprintln(os.Stderr, err)
//			os.Exit(1)
//		}
//	}
//
// The programs machine-controller and machine-controller-manager beside it each run a part of the
// controllers.
//
// To try it, with a kubeconfig of a cluster administrator:
//
//	manager install --kubeconfig=$KUBECONFIG --rbac
//	manager --simulated-cloud=http://127.0.0.1:8484 --target-kubeconfig=$KUBECONFIG
//
// Package options describes the flags, which have the names of MCM, and package app the process.
// The folder manifests has the roles.
//
// The exit status is 0 after a requested stop, 2 for an invalid command line, and 1 for any other
// error.
package main
