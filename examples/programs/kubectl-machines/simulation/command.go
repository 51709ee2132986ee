// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

const help = `Simulate the rollout of a MachineDeployment in virtual time: which set grows and shrinks when and why,
and how close the rollout comes to its bounds.

Each decision is that of the controller. With -f the deployment of the file is brought up first; its status
and its revisions are not used. With --live the simulation begins with the machines that the cluster has
now: they join as fast as those before them, and the timeouts are those of the template.

Without --class and --to, the command assumes a new class with the name of the old one and -next, and says
so. A rollout that is not complete goes on instead, with --live.

--at TIME=EVENT changes the world at a time after the change:

  replicas:N, class:NAME, surge:N or N%, unavailable:N or N%, pause, resume
  rollback            to the previous revision; rollback:REVISION to another one
  delete:MACHINE      a user deletes a machine: its name, oldest or newest
  select:MACHINE      a user selects its Node for an update in place; select:all selects all candidates
  quota:N             the quota of the provider becomes N; quota:none removes it

Exit status: 0 the rollout is complete; 1 it stopped before, or was not over after the time of --for;
2 nothing was simulated.`

const examples = `  kubectl machines simulate -f deployment.yaml                        # a new class, step by step
  kubectl machines simulate -f deployment.yaml -o svg > rollout.svg   # as a picture
  kubectl machines simulate -f deployment.yaml --never --at 40m=rollback
  kubectl machines simulate workers --live --class large -o summary`

// command is a simulation.
type command struct {
	*cli.Env
	options
}

// New returns the command.
func New(e *cli.Env) *cobra.Command {
	c := command{Env: e}
	cmd := &cobra.Command{
		Use: "simulate [NAME] (-f FILE | --live)", Short: "Simulate the rollout of a MachineDeployment", Long: help, Example: examples,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: e.Complete(explain.Deployments),
	}
	c.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		debug.SetGCPercent(400) // the process runs for seconds and keeps most of what it allocates
		if len(args) == 1 {
			c.name = args[0]
		}
		if err := c.complete(cmd.Flags()); err != nil {
			return cli.Refuse("%w", err)
		}
		return c.run(cmd.Context())
	}
	return cmd
}

func (c command) run(ctx context.Context) error {
	s, err := c.prepare(ctx)
	if err != nil {
		return cli.Refuse("%w", err)
	}
	d, err := s.simulate(ctx)
	if err != nil {
		return err
	}
	if err := d.print(c.Out, c.output); err != nil {
		return err
	}
	if d.Outcome != OutcomeComplete {
		return fmt.Errorf("%s", d.ending())
	}
	return nil
}

// print writes a rollout in a format of -o.
func (d Document) print(out io.Writer, format string) error {
	var text string
	switch format {
	case "json", "yaml":
		data, err := cli.Data(format, d)
		if err != nil {
			return err
		}
		text = string(data)
	case "svg":
		text = picturize(d)
	case "summary":
		text = fmt.Sprintf("%s: %s\n%s", d.Deployment, d.Change, d.summary())
	default:
		text = table(d)
	}
	_, err := io.WriteString(out, text)
	return err
}
