// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// drawEvery and ageEvery are the times between two looks with --watch, with and without a change.
const drawEvery, ageEvery = time.Second, 10 * time.Second

// look is what tree and explain have in common.
type look struct {
	*cli.Env
	report   func(v *explain.View, ctx context.Context, subject string) (explain.Report, error)
	printer  *cli.Printer
	dump, at string
	flags    string // of the manager
	all      bool   // namespaces
	watch    bool
}

// newLook makes a command print a report about its argument, which may be missing.
func newLook(e *cli.Env, cmd *cobra.Command, report func(v *explain.View, ctx context.Context, subject string) (explain.Report, error)) *cobra.Command {
	l := &look{Env: e, report: report, printer: cli.NewPrinter(cmd)}
	cmd.Flags().StringVarP(&l.dump, "filename", "f", "", "file or folder with the output of kubectl get -o yaml, instead of a cluster")
	cmd.Flags().StringVar(&l.at, "at", "", "time of the decisions about a dump, such as 2026-03-01T12:00:00Z; the default is that of the dump")
	cmd.Flags().BoolVarP(&l.all, "all-namespaces", "A", false, "objects of all namespaces")
	cmd.Flags().BoolVarP(&l.watch, "watch", "w", false, "print again when something changes, until the command is interrupted")
	cmd.Flags().StringVar(&l.flags, "manager-flags", "", "flags of the manager, separated by spaces; without them its limits are the defaults")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v, err := l.view(cmd.Context())
		if err != nil {
			return err
		}
		defer v.Close()
		if err := l.limits(v); err != nil {
			return cli.Refuse("--manager-flags: %w", err)
		}
		return l.run(cmd.Context(), v, strings.Join(args, ""))
	}
	return cmd
}

// run prints the report, and with --watch each one that differs. At a terminal the ages are drawn, too.
func (l *look) run(ctx context.Context, v *explain.View, subject string) error {
	screen, last := explain.Terminal(l.Out), ""
	err := v.Follow(ctx, l.Clock, drawEvery, func() (bool, time.Time, error) {
		r, err := l.report(v, ctx, subject)
		if key := r.Key(); err == nil && l.watch && screen != nil && !l.printer.Asked() {
			screen.Draw(r.String())
		} else if err == nil && key != last {
			err = l.print(r, last == "")
			last = key
		}
		return !l.watch, r.At.Add(ageEvery), err
	})
	if l.watch && ctx.Err() != nil {
		err = nil // an interrupt ends it in order
	}
	return err
}

// print prints a report for programs, or for people after an empty line if it is not the first one.
func (l *look) print(r explain.Report, first bool) error {
	if l.printer.Asked() {
		return l.printer.Print(l.Out, &r, "")
	}
	text := r.String()
	if !first {
		text = "\n" + text
	}
	_, err := io.WriteString(l.Out, text)
	return err
}

// limits sets the policies that the controllers get of the flags of the manager.
func (l *look) limits(v *explain.View) error {
	if l.flags == "" {
		return nil
	}
	s, fs := options.NewManagerServer(), pflag.NewFlagSet("", pflag.ContinueOnError)
	s.AddFlags(fs)
	if err := fs.Parse(strings.Fields(l.flags)); err != nil {
		return err
	}
	c := s.Config()
	v.Machines, v.Sets, v.Deployments, v.Assumed = c.Policy, c.Sets, c.Deployments, false
	return s.Validate()
}

// view opens the cluster, or the dump.
func (l *look) view(ctx context.Context) (*explain.View, error) {
	var at time.Time
	if l.at != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, l.at); err != nil {
			return nil, cli.Refuse("--at: %w", err)
		}
	}
	switch {
	case l.dump != "" && l.watch:
		return nil, cli.Refuse("--watch needs a cluster, and --filename is a dump")
	case l.dump == "" && l.at != "":
		return nil, cli.Refuse("--at needs a dump: --filename")
	case l.dump != "" && l.all:
		return explain.Dump(ctx, l.dump, "", at)
	case l.dump != "": // all its namespaces, without the flag
		return explain.Dump(ctx, l.dump, l.NamespaceFlag(), at)
	}
	c, err := l.Connect()
	if err != nil {
		return nil, err
	}
	if l.all {
		c.Namespace = ""
	}
	v, err := explain.Live(ctx, c.Clients, c.Namespace)
	if err == nil {
		v.Now = l.Clock.Now
	}
	return v, err
}

// NewTree returns the command that shows what everything waits for.
func NewTree(e *cli.Env) *cobra.Command {
	return newLook(e, &cobra.Command{
		Use: "tree [KIND/NAME]", Short: "Show deployments, sets, machines, Nodes and pods, and what each waits for",
		Long: `Show deployments with their sets, machines, Nodes, and the pods that a drain waits for: phase,
age, class, and what each waits for and since when.

It needs only the rights to read, or a dump of the objects.`,
		Example: "  kubectl machines tree\n  kubectl machines tree machinedeployment/workers -w\n  kubectl machines tree -f dump.yaml -o json",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: e.Complete(explain.Deployments, explain.Sets, explain.Machines),
	}, (*explain.View).Tree)
}

// NewExplain returns the command that shows what the controller decides about an object.
func NewExplain(e *cli.Env) *cobra.Command {
	return newLook(e, &cobra.Command{
		Use: "explain KIND/NAME", Short: "Show what the controller decides now about an object, and what it waits for",
		Long: `Show what the controller decides now about a machinedeployment, machineset, machine, machineclass or
node: the action, every hold, when it is looked at again, and the row of each pod of a drain.

It needs only the rights to read, or a dump of the objects.`,
		Example: "  kubectl machines explain machine/workers-5d94c-abcde\n  kubectl machines explain node/worker-1 -f must-gather/ -o yaml",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: e.Complete(explain.Machines, explain.Sets, explain.Deployments),
	}, (*explain.View).Explain)
}
