// SPDX-License-Identifier: Apache-2.0

// Package command is the rollout command as a function: [Command.Run] takes arguments, a reader
// and writers, and returns the exit status.
//
//	status := command.Command{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}.Run(ctx, os.Args[1:])
//
// The flags become a model of package deploymenttest, in which package deployment decides. Each
// time at which something changes becomes a [Frame]. The frames are printed as a table, as a
// picture, or as a [Document] in JSON.
package command
