// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of kubectl-machines share: [Env] has the streams and connects to the
// clusters, [Env.Run] runs a command and returns its exit status, and [Printer] prints objects.
//
//	env := cli.New(os.Stdin, os.Stdout, os.Stderr)
//	os.Exit(env.Run(ctx, machines.NewRollout(env), os.Args[1:]))
package cli
