// SPDX-License-Identifier: Apache-2.0

// Package options says which flags a machine manager has, what they mean, and
// which combinations make no sense.
//
// There are three programs: [NewMCServer] has the defaults of the machine-controller that a
// provider project builds, [NewMCMServer] those of the machine-controller-manager beside it, and
// [NewManagerServer] those of one process that runs everything. Names and defaults of flags are
// those of MCM's two programs, so that a deployment of them can move over with its command line:
//
//	s := options.NewMCServer()
//	s.AddFlags(pflag.CommandLine)
//	pflag.Parse()
//	if err := s.Validate(); err != nil { … } // all that is wrong, in one error
//	config := controllers.Config{Policy: s.MachinePolicy(), Orphans: s.OrphanPolicy(), …}
//
// A flag of MCM that has no effect here is accepted, and named by [MCServer.Ineffective], so
// that the program can warn of it. A flag of the other program is refused with the name of that
// program. Any other flag that is not known is an error, as usual.
//
// Where a duration bounds how long a machine may take, zero means for ever, which
// is the cautious reading; the reference system reads it as no time at all.
//
// Three defaults differ. Health checks and metrics listen on 127.0.0.1 and not on all addresses:
// a pod whose kubelet probes it needs --address=0.0.0.0, and should have --tls-cert-file and
// --tls-private-key-file then. --kube-api-qps and --kube-api-burst are 100 and 200 and not 20 and
// 30, with which 100 machines take four to five times as long. MCM serves profiles on the port of the
// metrics; here they have --profiling-port on 127.0.0.1.
//
// The package parses no command line and reads no file.
package options
