// SPDX-License-Identifier: Apache-2.0

// Package command is the command rollout without its process: it takes arguments, a reader and
// writers, and returns the exit status.
//
//	status := command.Command{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}.Run(ctx, os.Args[1:])
//
// It decides nothing about roll-outs. Flags become a world of package deploymenttest, in which
// package deployment plans; every instant at which something changed becomes a [Frame], and the
// frames a table, a picture or a [Document] for programs.
package command
