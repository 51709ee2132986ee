// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// status is the command.
type status struct {
	*cli.Env
	watch    bool
	timeout  time.Duration
	revision int64
}

func newStatus(e *cli.Env) *cobra.Command {
	s := &status{Env: e}
	cmd := &cobra.Command{
		Use: "status NAME", Short: "Show the progress of a rollout until it is complete or stuck, and what it waits for",
		Long: `Show the progress of a rollout until it is complete or stuck, and what it waits for.

The text is that of the controller: the command observes what the controller observes, decides with the
same function, and only reads. The exit status is 0 if the rollout is complete, and 1 if it is stuck, was
not over in time, or its objects cannot be read.`,
		Example: "  kubectl machines rollout status workers --timeout 30m\n  kubectl machines rollout status workers --watch=false",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: e.Complete(explain.Deployments),
	}
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", true, "watch until the rollout is complete or stuck")
	cmd.Flags().DurationVar(&s.timeout, "timeout", 0, "stop watching after this time; 0 is never")
	cmd.Flags().Int64Var(&s.revision, "revision", 0, "fail if the deployment gets another revision; 0 is any")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args[0]) }
	return cmd
}

func (s *status) run(ctx context.Context, arg string) error {
	c, d, err := find(ctx, s.Env, arg)
	if err != nil {
		return err
	}
	within, cancel := cli.Within(ctx, s.timeout)
	defer cancel()
	last := ""
	err = s.Watch(within, c, d.Name, func(in deployment.Observation) (bool, time.Time, error) {
		d := deployment.Decide(in, deployment.Policy{}, s.Clock.Now())
		text := report(in.Deployment, d)
		if text != last {
			_, _ = fmt.Fprintf(s.Out, "machinedeployment %s: %s\n", in.Deployment.Name, text)
		}
		last = text
		if revision := in.Deployment.Annotations[v1alpha1.RevisionAnnotation]; s.revision != 0 && revision != strconv.FormatInt(s.revision, 10) {
			return false, time.Time{}, fmt.Errorf("machinedeployment %s has revision %s, not %d", in.Deployment.Name, cmp.Or(revision, "0"), s.revision)
		}
		switch {
		case deployment.Complete(in.Deployment, in.Deployment.Status):
			return true, time.Time{}, nil
		case d.Reason == deployment.ReasonStuck:
			for _, hold := range d.Holds {
				if !strings.Contains(text, hold.String()) && !strings.Contains(hold.String(), d.Message) {
					_, _ = fmt.Fprintf(s.Out, "  waits for %s\n", hold)
				}
			}
			return false, time.Time{}, fmt.Errorf("the rollout of machinedeployment %s is stuck; kubectl machines rollout undo %s restores the previous template", in.Deployment.Name, in.Deployment.Name)
		}
		return !s.watch, d.NextCheck, nil
	})
	if within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the rollout of machinedeployment %s is not complete after %s: %s", d.Name, s.timeout, last)
	}
	return err
}

// report returns what is to be said about a rollout, in the words of the controller.
func report(d *v1alpha1.MachineDeployment, decision deployment.Decision) string {
	if c := rollout.Condition(d.Status, v1alpha1.MachineDeploymentControllerFrozen); c != nil {
		return string(c.Type) + ": " + c.Message
	}
	text := string(decision.Reason)
	switch {
	case deployment.Complete(d, d.Status):
		return fmt.Sprintf("%s: %d of %d machines updated, %d available", deployment.ReasonComplete, d.Status.UpdatedReplicas, d.Spec.Replicas, d.Status.AvailableReplicas)
	case d.Status.ObservedGeneration < d.Generation:
		return fmt.Sprintf("the controller has not observed generation %d yet", d.Generation)
	case decision.Message != "":
		return text + ": " + decision.Message
	case len(decision.Holds) > 0:
		return text + ": " + decision.Holds[0].Message
	}
	return text
}
