// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replace is the command.
type replace struct {
	*cli.Env
	timeout time.Duration
	wait    bool
}

// NewReplace returns the command that replaces one machine.
func NewReplace(e *cli.Env) *cobra.Command {
	r := &replace{Env: e}
	cmd := &cobra.Command{
		Use: "replace NAME", Short: "Replace one machine of a MachineDeployment by a new one",
		Long: `Replace one machine of a MachineDeployment by a new one.

If the strategy has a surge, the deployment gets one replica more. Once as many other machines are
available as there were replicas, the replica is taken back, together with this machine. Otherwise the
machine is deleted, and its set creates another one. Its pods are evicted as in any deletion.

If no other machine becomes available before --timeout or Ctrl-C, the replica is taken back and the
machine stays. If the command is killed, one machine more is left: the annotation machinist.dev/replacing
of the deployment says so, and the same command goes on.`,
		Example: "  kubectl machines replace workers-5d94c-abcde --timeout 1h\n  kubectl machines replace workers-5d94c-abcde --wait=false   # do not wait until it is deleted",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: e.Complete(explain.Machines),
	}
	cmd.Flags().DurationVar(&r.timeout, "timeout", 0, "stop after this time; 0 is never")
	cmd.Flags().BoolVar(&r.wait, "wait", true, "wait until the machine is deleted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) }
	return cmd
}

func (r *replace) run(ctx context.Context, arg string) error {
	_, name, err := cli.Named(arg, explain.Machines)
	if err != nil {
		return err
	}
	c, err := r.Connect()
	if err != nil {
		return err
	}
	d, err := deploymentOf(ctx, c, name)
	if err != nil {
		return err
	}
	within, cancel := cli.Within(ctx, r.timeout)
	defer cancel()
	last, written := "", ""
	err = r.Watch(within, c, d, func(in deployment.Observation) (bool, time.Time, error) {
		if in.Deployment.ResourceVersion == written { // the write is not visible yet
			return false, time.Time{}, nil
		}
		decision, err := deployment.Replace(in, name, r.Clock.Now())
		if err != nil {
			return false, time.Time{}, cli.Refuse("%w", err)
		}
		if text := said(decision); text != last {
			_, _ = fmt.Fprintln(r.Out, text)
			last = text
		}
		deletes, err := carryOut(within, c, decision)
		if !deletes && len(decision.Actions) > 0 {
			written = in.Deployment.ResourceVersion
		}
		return decision.Reason == deployment.ReasonComplete || deletes && !r.wait, decision.NextCheck, err
	})
	if within.Err() == nil {
		return err
	}
	return fmt.Errorf("machine %s is not replaced: %w; %s%s", name, context.Cause(within), last, r.giveUp(ctx, c, d))
}

// said returns a decision for people.
func said(d deployment.Decision) string {
	for _, a := range d.Actions {
		return a.String()
	}
	for _, h := range d.Holds {
		return "waits for " + h.String()
	}
	return d.Message
}

// carryOut sends the requests of a decision, and reports whether one of them deletes the machine. After a
// conflict the next observation decides again.
func carryOut(ctx context.Context, c cli.Clients, d deployment.Decision) (deletes bool, err error) {
	for _, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Update:
			before, _ := a.Before.(*v1alpha1.MachineDeployment)
			next, ok := a.Object.(*v1alpha1.MachineDeployment)
			if !ok {
				return false, fmt.Errorf("unexpected object %T", a.Object)
			}
			_, err = c.Patch(ctx, before, next)
			deletes = next.Spec.Replicas < before.Spec.Replicas
		case machinist.Delete:
			err, deletes = client.New(c.Machines, nil).Delete(ctx, a.Object, false), true
		default:
			err = fmt.Errorf("unknown action %T", a)
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return deletes, nil
}

// giveUp takes back the replica that was added, and returns what it did.
func (r *replace) giveUp(ctx context.Context, c cli.Clients, name string) string {
	ctx, cancel := cli.ToUndo(ctx)
	defer cancel()
	d, err := c.Machines.MachineV1alpha1().MachineDeployments(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		next, added := deployment.StopReplacing(d)
		if !added {
			return ""
		}
		_, err = c.Patch(ctx, d, next)
	}
	if err != nil {
		return "; the replica that was added to machinedeployment " + name + " stays: " + cli.OneLine(err)
	}
	return "; the replica that was added to machinedeployment " + name + " is taken back"
}

// deploymentOf returns the name of the deployment of a machine.
func deploymentOf(ctx context.Context, c cli.Clients, machine string) (string, error) {
	api := c.Machines.MachineV1alpha1()
	m, err := api.Machines(c.Namespace).Get(ctx, machine, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	owner := metav1.GetControllerOf(m)
	if owner == nil {
		return "", cli.Refuse("machine %s has no MachineSet that would replace it", machine)
	}
	set, err := api.MachineSets(c.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if owner = metav1.GetControllerOf(set); owner == nil {
		return "", cli.Refuse("machineset %s has no MachineDeployment: delete machine %s, and the set creates another one", set.Name, machine)
	}
	return owner.Name, nil
}
