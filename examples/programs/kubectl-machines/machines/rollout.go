// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// restartedAt is the annotation with which kubectl changes a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// NewRollout returns the command with its subcommands.
func NewRollout(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollout", Short: "Look at and control the rollouts of MachineDeployments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var revision int64
	undo := newChange(e, "undo", "Restore the template of an earlier revision", "rolled back",
		func(ctx context.Context, c cli.Clients, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			sets, err := setsOf(ctx, c, d)
			if err != nil {
				return nil, err
			}
			if d.Spec.Paused {
				return nil, cli.Refuse("machinedeployment %s is paused: resume it first, with kubectl machines rollout resume %s", d.Name, d.Name)
			}
			next, err := deployment.RollBack(d, sets, revision)
			if err != nil {
				return nil, cli.Refuse("%w", err)
			}
			return next, nil
		})
	undo.Flags().Int64Var(&revision, "to-revision", 0, "revision to restore; 0 is the previous one")
	undo.Example = "  kubectl machines rollout undo workers                  # the previous template\n  kubectl machines rollout undo workers --to-revision 2"
	cmd.AddCommand(newStatus(e), newHistory(e), undo, newPause(e, true), newPause(e, false), newRestart(e))
	return cmd
}

// newChange returns a command that changes one deployment.
func newChange(
	e *cli.Env, verb, short, done string,
	next func(context.Context, cli.Clients, *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Example: "  kubectl machines rollout " + verb + " workers",
		Args: cobra.ExactArgs(1), ValidArgsFunction: e.Complete(explain.Deployments),
	}
	printer := cli.NewPrinter(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, d, err := find(cmd.Context(), e, args[0])
		if err != nil {
			return err
		}
		changed, err := next(cmd.Context(), c, d)
		if err != nil {
			return err
		}
		written, err := c.Patch(cmd.Context(), d, changed)
		if err != nil {
			return err
		}
		return printer.Print(e.Out, written, done)
	}
	return cmd
}

func newPause(e *cli.Env, paused bool) *cobra.Command {
	verb, short, done := "resume", "Continue a paused rollout", "resumed"
	if paused {
		verb, short, done = "pause", "Pause a rollout; changes of spec.replicas are still carried out", "paused"
	}
	return newChange(e, verb, short, done, func(_ context.Context, _ cli.Clients, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
		if d.Spec.Paused == paused {
			return nil, cli.Refuse("machinedeployment %s is %s", d.Name, map[bool]string{true: "already paused", false: "not paused"}[paused])
		}
		next := d.DeepCopy()
		next.Spec.Paused = paused
		return next, nil
	})
}

func newRestart(e *cli.Env) *cobra.Command {
	return newChange(e, "restart", "Replace or update all machines, with the same template", "restarted",
		func(_ context.Context, _ cli.Clients, d *v1alpha1.MachineDeployment) (*v1alpha1.MachineDeployment, error) {
			if d.Spec.Paused {
				return nil, cli.Refuse("machinedeployment %s is paused: resume it first, with kubectl machines rollout resume %s", d.Name, d.Name)
			}
			next := d.DeepCopy()
			metav1.SetMetaDataAnnotation(&next.Spec.Template.ObjectMeta, restartedAt, e.Clock.Now().UTC().Format(time.RFC3339))
			return next, nil
		})
}

// find connects and reads the deployment of an argument.
func find(ctx context.Context, e *cli.Env, arg string) (c cli.Clients, d *v1alpha1.MachineDeployment, err error) {
	_, name, err := cli.Named(arg, explain.Deployments)
	if err == nil {
		c, err = e.Connect()
	}
	if err == nil {
		d, err = c.Machines.MachineV1alpha1().MachineDeployments(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return c, d, err
}

// setsOf returns the sets that a deployment controls.
func setsOf(ctx context.Context, c cli.Clients, d *v1alpha1.MachineDeployment) (sets []*v1alpha1.MachineSet, _ error) {
	list, err := c.Machines.MachineV1alpha1().MachineSets(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], d) {
			sets = append(sets, &list.Items[i])
		}
	}
	return sets, nil
}
