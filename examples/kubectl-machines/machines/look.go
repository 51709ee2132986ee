// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
)

// drawEvery is how often a watched tree is looked at.
const drawEvery = time.Second

// show makes a command print a text about its argument, which may be missing, in the view of its flags.
func show(e *cli.Env, cmd *cobra.Command, text func(ctx context.Context, v *explain.View, subject string) (string, error)) *cobra.Command {
	s := &source{}
	cmd.Flags().StringVarP(&s.dump, "filename", "f", "", "file or folder with the output of kubectl get -o yaml, instead of a cluster")
	cmd.Flags().StringVar(&s.at, "at", "", "time of the decisions about a dump, such as 2026-03-01T12:00:00Z; the default is that of the dump")
	cmd.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "objects of all namespaces")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := s.view(cmd.Context(), e)
		if err != nil {
			return err
		}
		defer v.Close()
		out, err := text(cmd.Context(), v, strings.Join(args, ""))
		if err == nil {
			_, err = io.WriteString(e.Out, out)
		}
		return err
	}
	return cmd
}

// source is where the objects are read from: the cluster, or a dump.
type source struct {
	dump, at string
	all      bool // namespaces
}

// view opens the source.
func (s *source) view(ctx context.Context, e *cli.Env) (*explain.View, error) {
	var at time.Time
	if s.at != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, s.at); err != nil {
			return nil, cli.Refuse("--at: %w", err)
		}
	}
	if s.dump != "" { // all its namespaces, without the flag
		namespace := e.NamespaceFlag()
		if s.all {
			namespace = ""
		}
		return explain.Dump(ctx, s.dump, namespace, at)
	}
	if s.at != "" {
		return nil, cli.Refuse("--at needs a dump: --filename")
	}
	c, err := e.Connect()
	if err != nil {
		return nil, err
	}
	if s.all {
		c.Namespace = ""
	}
	v, err := explain.Live(ctx, c.Clients, c.Namespace)
	if err == nil {
		v.Now = e.Clock.Now
	}
	return v, err
}

// NewTree returns the command that shows what everything waits for.
func NewTree(e *cli.Env) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use: "tree [KIND/NAME]", Short: "Show deployments, sets, machines, Nodes and pods, and what each waits for",
		Long: `Show deployments with their sets, machines, Nodes, and the pods that a drain waits for: phase,
age, class, and what each waits for and since when.

It needs only the rights to read, or a dump of the objects.`,
		Example: "  kubectl machines tree\n  kubectl machines tree machinedeployment/workers -w\n  kubectl machines tree -f dump.yaml",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: e.Complete(cli.Deployments, cli.Sets, cli.Machines),
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "draw the tree again when it changes, until the command is interrupted")
	return show(e, cmd, func(ctx context.Context, v *explain.View, subject string) (string, error) {
		if watch {
			screen := cmp.Or(explain.Terminal(e.Out), &explain.Screen{Out: e.Out, Plain: true})
			return "", v.Watch(ctx, subject, screen, e.Clock, drawEvery)
		}
		return v.Tree(ctx, subject)
	})
}

// NewExplain returns the command that shows what the controller decides about an object.
func NewExplain(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain KIND/NAME", Short: "Show what the controller decides now about an object, and what it waits for",
		Long: `Show what the controller decides now about a machinedeployment, machineset, machine, machineclass or
node: the action, every hold, when it is looked at again, and the row of each pod of a drain.

It needs only the rights to read, or a dump of the objects.`,
		Example: "  kubectl machines explain machine/workers-5d94c-abcde\n  kubectl machines explain node/worker-1 -f must-gather/",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: e.Complete(cli.Machines, cli.Sets, cli.Deployments),
	}
	return show(e, cmd, func(ctx context.Context, v *explain.View, subject string) (string, error) {
		return v.Explain(ctx, subject)
	})
}
