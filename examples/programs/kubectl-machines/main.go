// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/machines"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

// root returns the program as a command.
func root(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kubectl-machines", Short: "Look at and control machines, their rollouts and drains",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl machines"},
	}
	e.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(machines.NewTree(e), machines.NewExplain(e), machines.NewRollout(e), simulation.New(e), draining.New(e),
		draining.NewUncordon(e), machines.NewReplace(e), machines.NewRetry(e), machines.NewPreserve(e))
	return cmd
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "kubectl_complete-machines" { // kubectl runs it for completion
		args = slices.Concat([]string{cobra.ShellCompRequestCmd}, args)
	}
	e := cli.New(os.Stdin, os.Stdout, os.Stderr)
	os.Exit(e.Run(ctx, root(e), args))
}
