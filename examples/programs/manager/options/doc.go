// SPDX-License-Identifier: Apache-2.0

// Package options has the flags of the manager programs. [NewMCServer] returns the flags of the
// machine-controller of a provider project:
//
//	s := options.NewMCServer()
//	s.AddFlags(pflag.CommandLine)
//	pflag.Parse()
//	if err := s.Validate(); err != nil { … } // names each invalid flag
//	config := s.Config() // of the controllers; clients, driver and observers are missing
//
// [NewMCMServer] has the flags of the machine-controller-manager, and [NewManagerServer] those of
// one program that runs all controllers. The names are the names of MCM's programs, so a
// deployment of MCM can keep its command line.
//
// A flag of MCM without an effect here is accepted, and [MCServer.Ineffective] names it. A flag of
// the other program is refused, and the error names that program. Any other unknown flag is an
// error.
//
// Zero means no limit for the flags that bound how long a machine may take. In MCM it means no
// time.
//
// Four defaults differ from MCM:
//
//   - --address is 127.0.0.1. A pod with probes needs 0.0.0.0, and should have --tls-cert-file and
//     --tls-private-key-file.
//   - --kube-api-qps and --kube-api-burst are 100 and 200. With MCM's 20 and 30, 100 machines take
//     about five times as long.
//   - --machine-pv-reattach-timeout is 0. MCM waits 90 seconds.
//   - --profiling-port is the port of the profiles, on 127.0.0.1. MCM serves them with the metrics.
//
// The package reads neither the command line nor a file.
package options
