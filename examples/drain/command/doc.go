// SPDX-License-Identifier: Apache-2.0

// Package command is the drain command without its process: [Command.Run] takes the arguments and
// returns the exit status.
//
//	status := command.Command{Out: os.Stdout, ErrOut: os.Stderr}.Run(ctx, os.Args[1:])
//
// Flags become a [drain.Policy]. Each Node gets a plan, its first [drain.Decision]. If all plans can
// end, [runner.Executor] carries them out. Its events become lines, or its decisions JSON or YAML.
package command
