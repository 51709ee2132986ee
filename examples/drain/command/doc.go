// SPDX-License-Identifier: Apache-2.0

// Package command is the command drain without its process: it takes arguments and
// writers, and returns the exit status.
//
//	status := command.Command{Out: os.Stdout, ErrOut: os.Stderr}.Run(ctx, os.Args[1:])
//
// It decides nothing about draining. Flags become a [drain.Policy]; the plan is looked at once
// before anything is written, and refused if it cannot end; then [drain.Executor] carries
// it out, and every event becomes a line. A [Document] is a plan for programs.
package command
