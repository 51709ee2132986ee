// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

// The exit status of a [Command].
const (
	// Done means that all Nodes are drained, or that a dry run found that they can be.
	Done = 0
	// Failed means that a Node is not drained. Changes stay, unless they were undone.
	Failed = 1
	// Refused means that the command line is invalid, that a Node does not exist, or that a drain
	// cannot end. Nothing was changed.
	Refused = 2
)

// undoTimeout is the timeout of removing a cordon.
const undoTimeout = 30 * time.Second

// Command is the drain command. The zero value writes nothing and reads the kubeconfig. It may run
// several times, also concurrently if its writers allow that.
type Command struct {
	// Out receives the progress and the decisions, and ErrOut the errors. Nil means none.
	Out, ErrOut io.Writer
	// Clock gives the time. Nil means the real one.
	Clock clock.Clock
	// Zone is the time zone of printed times. Nil means the local one.
	Zone *time.Location
	// Connect returns a client for a kubeconfig and a context, each empty for the default. Nil reads
	// the files as kubectl does.
	Connect func(kubeconfig, context string) (kubernetes.Interface, error)
}

// Run runs the command until it is done or the context is canceled, and returns the exit status. The
// arguments do not include the name of the program.
func (c Command) Run(ctx context.Context, args []string) int {
	c = c.completed()
	o, err := parseFlags(args, c.Out)
	if errors.Is(err, pflag.ErrHelp) {
		return Done
	}
	errs := []error{err}
	if err == nil {
		errs = c.drain(ctx, o)
	}
	status := Done
	for _, err := range errs {
		if err == nil {
			continue
		}
		_, _ = fmt.Fprintf(c.ErrOut, "drain: %v\n", err)
		status = Failed
		if _, refused := errors.AsType[*refusedError](err); refused || errors.Is(err, errUsage) {
			status = Refused
		}
	}
	return status
}

func (c Command) completed() Command {
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.ErrOut == nil {
		c.ErrOut = io.Discard
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Zone == nil {
		c.Zone = time.Local //nolint:gosmopolitan // times are printed for people on this host
	}
	if c.Connect == nil {
		c.Connect = connect
	}
	return c
}

// drain plans the drain of each Node. If all plans can end, and this is no dry run, it drains the
// Nodes one after the other.
func (c Command) drain(ctx context.Context, o options) []error {
	client, leave, err := c.cluster(ctx, o)
	if err != nil {
		return []error{err}
	}
	defer leave()
	if o.disableEviction {
		_, _ = fmt.Fprintln(c.ErrOut, "drain: warning: --disable-eviction deletes pods, whatever PodDisruptionBudgets allow")
	}
	plans, err := c.plans(ctx, client, o)
	if err != nil {
		return []error{err}
	}
	out := output{format: o.output, out: c.Out, words: c.words(), explain: o.explain}
	var refusals []error
	for _, p := range plans {
		if o.dry() && p.decision.Outcome != drain.NodeGone {
			if err := out.plan(p.decision); err != nil {
				return []error{err}
			}
		}
		if err := p.refusal(o, c.words()); err != nil {
			refusals = append(refusals, err)
		}
	}
	if o.dry() || len(refusals) > 0 {
		return refusals
	}
	return c.carryOut(ctx, client, o, plans, &out)
}

func (c Command) words() words { return words{now: c.Clock.Now(), zone: c.Zone} }

// carryOut cordons all Nodes if there are several, so that no pod moves from one to the next, and
// drains them. A Node that cannot be drained does not keep the others from being drained.
func (c Command) carryOut(ctx context.Context, client kubernetes.Interface, o options, plans []plan, out *output) []error {
	for i, p := range plans {
		if len(plans) == 1 && !p.recordon {
			continue
		}
		if _, err := noderunner.CordonNode(ctx, client, p.node, p.uid, o.cordon(), c.Clock.Now()); err != nil {
			errs := []error{fmt.Errorf("node %s: cordon: %w", p.node, err)}
			for _, done := range plans[:i] {
				errs = append(errs, c.undo(ctx, runner.Executor{Client: client, Clock: c.Clock}, o, done))
			}
			return errs
		}
	}
	var errs []error
	for _, p := range plans {
		errs = append(errs, c.drainNode(ctx, client, o, p, out))
	}
	return errs
}

// drainNode drains a Node. If that fails, it removes the cordon if --undo is set.
func (c Command) drainNode(ctx context.Context, client kubernetes.Interface, o options, p plan, out *output) error {
	e := runner.Executor{Client: client, Clock: c.Clock}
	progress := newProgress(c, o, p.decision)
	if out.structured() {
		progress = newProgress(Command{Out: io.Discard, Clock: c.Clock, Zone: c.Zone}, o, p.decision)
		e.Decided = out.changed
	}
	e.Observer = progress
	progress.preface(p.decision)
	timed, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	d, err := e.Run(timed, p.node, o.policy())
	progress.end()
	if out.structured() {
		out.changed(d)
	}
	if err == nil || d.Outcome == drain.Proceeded {
		progress.line(ended(d, c.words()))
		return nil
	}
	err = c.failed(o, d, err, ctx.Err() != nil)
	return errors.Join(err, c.undo(ctx, e, o, p))
}

// withTimeout returns a context that ends a second after the ladder, for requests without a
// response.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 || timeout > math.MaxInt64-time.Second {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout+time.Second)
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
func (c Command) failed(o options, d drain.Decision, err error, interrupted bool) error {
	f := &failedError{node: d.Node, err: err, lines: c.words().waits(d)}
	cause := err
	if unfinished, is := errors.AsType[*runner.UnfinishedError](err); is && unfinished.Err != nil {
		cause = unfinished.Err
	}
	switch {
	case interrupted:
		f.how = "interrupted"
	case d.Outcome == drain.GaveUp, errors.Is(err, context.DeadlineExceeded):
		f.how = fmt.Sprintf("not drained after %s", o.timeout)
	default:
		f.how = "not drained: " + oneLine(cause)
		return f
	}
	if d.Reason == drain.ReasonNotObserved && !interrupted { // there are no holds
		f.how += ": " + oneLine(cause)
	}
	return f
}

// undo removes the cordon, if --undo is set.
func (c Command) undo(ctx context.Context, e runner.Executor, o options, p plan) error {
	if !o.undo {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := e.Abort(ctx, p.node, p.uid, o.policy()); err != nil {
		return fmt.Errorf("node %s: the cordon stays: %w", p.node, err)
	}
	return nil
}
