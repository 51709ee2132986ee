// SPDX-License-Identifier: Apache-2.0

// Command manager runs the machine controllers against real clusters, over a
// cloud that is simulated by another process. It is what the machine controller
// of a provider looks like, with the provider's driver in place of the simulated
// one:
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
// It runs all controllers in one process. The programs machine-controller and
// machine-controller-manager beside it run those of machines, and those of sets and deployments.
//
// To try it, with a kubeconfig that may do everything:
//
//	manager install --kubeconfig=$KUBECONFIG --rbac
//	manager --simulated-cloud=http://127.0.0.1:8484 --target-kubeconfig=$KUBECONFIG
//
// Flags have the names and defaults of the reference system; package options says
// which, and app what the process does with them and when it ends. Its roles are in
// the folder manifests.
//
// It exits with 0 if it was asked to stop and has, with 2 if the command line
// makes no sense, and with 1 for everything else.
package main
