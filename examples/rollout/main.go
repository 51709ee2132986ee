// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/machinist-dev/machinist/examples/rollout/command"
)

func main() {
	debug.SetGCPercent(400) // the process runs for seconds and keeps most of what it allocates
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(command.Command{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}.Run(ctx, os.Args[1:]))
}
