// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/nodeops"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

// command is a drain.
type command struct {
	*cli.Env
	options
}

// New returns the command drain.
func New(e *cli.Env) *cobra.Command {
	c := command{Env: e}
	cmd := &cobra.Command{
		Use: "drain NODE...", Short: "Evict the pods of Nodes, and say of each what it waits for",
		Long: help, Example: examples, ValidArgsFunction: e.Complete(explain.Nodes),
	}
	c.addFlags(cmd.Flags())
	c.changed = cmd.Flags().Changed
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.complete(args); err != nil {
			return cli.Refuse("%w", err)
		}
		return c.drain(cmd.Context())
	}
	return cmd
}

// NewUncordon returns the command uncordon.
func NewUncordon(e *cli.Env) *cobra.Command {
	var owner string
	cmd := &cobra.Command{
		Use: "uncordon NODE...", Short: "Let pods be scheduled to Nodes again",
		Long: `Let pods be scheduled to Nodes again.

A Node with a cordon of an owner (drain --owner) stays cordoned until the last owner uncordons it.`,
		Example: "  kubectl machines uncordon node-1\n  kubectl machines uncordon node-1 --owner kured",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: e.Complete(explain.Nodes),
	}
	cmd.Flags().StringVar(&owner, "owner", "", "`name` of the owner of the cordon, as in drain")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		nodes, err := nodesOf(args)
		if err != nil {
			return cli.Refuse("%w", err)
		}
		client, err := connect(e)
		if err != nil {
			return err
		}
		var errs []error
		for _, node := range nodes {
			changed, err := uncordon(cmd.Context(), client, node, owner)
			switch {
			case err != nil:
				errs = append(errs, err)
			case changed:
				_, _ = fmt.Fprintf(e.Out, "node/%s uncordoned\n", node)
			default:
				_, _ = fmt.Fprintf(e.Out, "node/%s is not cordoned\n", node)
			}
		}
		return errors.Join(errs...)
	}
	return cmd
}

// uncordon removes the cordon of an owner, or without one that of drain and kubectl cordon.
func uncordon(ctx context.Context, client kubernetes.Interface, node, owner string) (changed bool, err error) {
	if owner != "" {
		changed, err = noderunner.UncordonNode(ctx, client.CoreV1().Nodes(), node, "", owner)
		return changed, err
	}
	_, changed, err = noderunner.UpdateNode(ctx, client.CoreV1().Nodes(), node, func(n *corev1.Node) (bool, error) {
		if claims := nodeops.Cordons(n); len(claims) > 0 {
			return false, cli.Refuse("cordoned by %s: uncordon it with --owner", claims[0].Owner)
		}
		was := n.Spec.Unschedulable
		n.Spec.Unschedulable = false
		return was, nil
	})
	return changed, err
}

// connect returns the client of the cluster of the Nodes.
func connect(e *cli.Env) (kubernetes.Interface, error) {
	c, err := e.Connect()
	if err == nil && c.Target == nil {
		err = cli.Refuse("there are no Nodes: --target-kubeconfig is %s", cli.NoTarget)
	}
	return c.Target, err
}

// drain plans the drain of each Node. If all plans can end, and this is no dry run, it drains the
// Nodes one after the other.
func (c command) drain(ctx context.Context) error {
	client, err := connect(c.Env)
	if err != nil {
		return err
	}
	if c.disableEviction {
		_, _ = fmt.Fprintln(c.ErrOut, "warning: --disable-eviction deletes pods, whatever PodDisruptionBudgets allow")
	}
	plans, err := c.plans(ctx, client)
	if err != nil {
		return err
	}
	out := output{format: c.output, out: c.Out, words: c.words()}
	var refusals []error
	for _, p := range plans {
		if c.dry() && p.decision.Outcome != drain.NodeGone {
			if err := out.plan(p.decision); err != nil {
				return err
			}
		}
		refusals = append(refusals, p.refusal(c.options, c.words()))
	}
	if err := errors.Join(refusals...); c.dry() || err != nil {
		return err
	}
	return errors.Join(c.carryOut(ctx, client, plans, &out)...)
}

func (c command) words() words { return words{now: c.Clock.Now(), zone: c.Zone} }

// carryOut cordons all Nodes if there are several, so that no pod moves from one to the next, and
// drains them. A Node that cannot be drained does not keep the others from being drained.
func (c command) carryOut(ctx context.Context, client kubernetes.Interface, plans []plan, out *output) []error {
	for i, p := range plans {
		if len(plans) == 1 && !p.recordon {
			continue
		}
		if _, err := noderunner.CordonNode(ctx, client.CoreV1().Nodes(), p.node, p.uid, c.cordon(), c.Clock.Now()); err != nil {
			errs := []error{fmt.Errorf("node %s: cordon: %w", p.node, err)}
			for _, done := range plans[:i] {
				errs = append(errs, c.undo(ctx, runner.Executor{Client: runner.NewClient(client), Clock: c.Clock}, done))
			}
			return errs
		}
	}
	var errs []error
	for _, p := range plans {
		errs = append(errs, c.drainNode(ctx, client, p, out))
	}
	return errs
}

// drainNode drains a Node. If that fails, it removes the cordon if --undo is set.
func (c command) drainNode(ctx context.Context, client kubernetes.Interface, p plan, out *output) error {
	e := runner.Executor{Client: runner.NewClient(client), Clock: c.Clock}
	progress := c.newProgress(p.decision)
	if out.structured() {
		progress.out, progress.screen = io.Discard, nil
		e.Decided = func(d drain.Decision) { _ = out.document(d) } // an error of the writer does not end the drain
	}
	e.Observer = progress
	if len(p.decision.NotEvaluated) > 0 {
		progress.line(notEvaluated(p.decision))
	}
	limit := c.timeout
	if limit > 0 {
		limit += time.Second // for requests without a response: the ladder ends before; an overflow is no limit
	}
	timed, cancel := cli.Within(ctx, limit)
	defer cancel()
	d, err := e.Run(timed, p.node, c.policy())
	progress.screen.Draw("")
	if out.structured() {
		_ = out.document(d)
	}
	if err == nil || d.Outcome == drain.Proceeded {
		progress.line(ended(d, c.words()))
		return nil
	}
	err = c.failed(d, err, ctx.Err() != nil)
	return errors.Join(err, c.undo(ctx, e, p))
}

// ended returns how a drain ended.
func ended(d drain.Decision, w words) string {
	switch d.Outcome {
	case drain.NodeGone:
		return fmt.Sprintf("node %s does not exist anymore", d.Node)
	case drain.Proceeded:
		var left []string
		for _, r := range d.Rows {
			if r.Reason == drain.ReasonAbandoned {
				left = append(left, fmt.Sprintf("%s/%s (%s)", r.Namespace, r.Name, w.why(r)))
			}
		}
		return fmt.Sprintf("node %s drained, except for %s", d.Node, strings.Join(left, ", "))
	default:
		return fmt.Sprintf("node %s drained", d.Node)
	}
}

// failed returns the error of a drain that has not succeeded, with its holds.
func (c command) failed(d drain.Decision, err error, interrupted bool) error {
	if unfinished, is := errors.AsType[*runner.UnfinishedError](err); is && unfinished.Err != nil {
		err = unfinished.Err
	}
	text, timedOut := "node "+d.Node+": ", d.Outcome == drain.GaveUp || errors.Is(err, context.DeadlineExceeded)
	switch {
	case interrupted:
		text += "interrupted"
	case timedOut:
		text += fmt.Sprintf("not drained after %s", c.timeout)
	default:
		text += "not drained"
	}
	if !interrupted && (!timedOut || d.Reason == drain.ReasonNotObserved) { // there are no holds that say why
		text += ": " + cli.OneLine(err)
	}
	if lines := c.words().waits(d); len(lines) > 0 {
		text += "; it waits for" + list(lines)
	}
	return errors.New(text)
}

// undo removes the cordon, if --undo is set.
func (c command) undo(ctx context.Context, e runner.Executor, p plan) error {
	if !c.options.undo {
		return nil
	}
	ctx, cancel := cli.ToUndo(ctx)
	defer cancel()
	if err := e.Uncordon(ctx, p.node, c.owner); err != nil {
		return fmt.Errorf("node %s: the cordon stays: %w", p.node, err)
	}
	return nil
}
