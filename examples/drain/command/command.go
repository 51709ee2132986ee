// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// The exit status of a [Command].
const (
	// Done: the Node is drained, or the plan was printed and is feasible.
	Done = 0
	// Failed: the Node is not drained. What was begun stays, unless it was undone.
	Failed = 1
	// Refused: the command line makes no sense, there is no such Node, or the plan is
	// not feasible. Nothing was changed.
	Refused = 2
)

// undoTime is how long taking back the cordon may take.
const undoTime = 30 * time.Second

// Command is the drain command. The zero value writes nothing and goes by the
// kubeconfig; it can be run several times, also at once if its writers allow that.
type Command struct {
	// Out is told of the progress and of plans, ErrOut of what went wrong. Nil is
	// nowhere.
	Out, ErrOut io.Writer
	// Clock gives the time; nil is the real one.
	Clock clock.Clock
	// Zone is that of the times that people read; nil is the local one.
	Zone *time.Location
	// Connect returns a client of the cluster that a kubeconfig and a context lead to,
	// each empty for the usual one. Nil reads the files as kubectl does.
	Connect func(kubeconfig, context string) (kubernetes.Interface, error)
}

// Run runs the command until it is done or the context ends, which is how it is
// interrupted, and returns the exit status. The arguments are those after the name
// of the program.
func (c Command) Run(ctx context.Context, args []string) int {
	c = c.completed()
	o, err := parseFlags(args, c.Out)
	if errors.Is(err, pflag.ErrHelp) {
		return Done
	}
	if err == nil {
		err = c.drain(ctx, o)
	}
	if err == nil {
		return Done
	}
	_, _ = fmt.Fprintf(c.ErrOut, "drain: %v\n", err)
	if _, refused := errors.AsType[*refusedError](err); refused || errors.Is(err, errUsage) {
		return Refused
	}
	return Failed
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
		c.Zone = time.Local //nolint:gosmopolitan // people read it where they are
	}
	if c.Connect == nil {
		c.Connect = connect
	}
	return c
}

// drain plans, and drains if that makes sense and is wanted.
func (c Command) drain(ctx context.Context, o options) error {
	client, leave, err := c.cluster(ctx, o)
	if err != nil {
		return err
	}
	defer leave()
	if o.disableEviction {
		_, _ = fmt.Fprintln(c.ErrOut, "drain: warning: --disable-eviction deletes pods, whatever their disruption budgets say")
	}
	p := o.policy()
	now := c.Clock.Now()
	in, err := runner.Observe(ctx, runner.Live{Client: client}, o.node, p, drain.State{})
	if err != nil {
		return fmt.Errorf("node %s: %w", o.node, err)
	}
	again := uncordoned(drain.Decide(in, p, now))
	p.Reassert = again // by whoever calls the command, once
	plan := drain.Decide(in, p, now)
	if plan.Outcome == drain.NodeGone {
		return &refusedError{node: o.node, lines: []string{"there is no such node"}}
	}
	if o.dry() {
		if err := printPlan(c.Out, o, plan, now, c.Zone); err != nil {
			return err
		}
	}
	if !plan.Feasible() {
		return refuse(plan, c.words())
	}
	if o.dry() {
		return nil
	}
	if again {
		if _, err := nodeops.CordonNode(ctx, client, o.node, in.Node.UID, p.Cordon, now); err != nil {
			return fmt.Errorf("cordon: %w", err)
		}
	}
	return c.carryOut(ctx, client, o, o.policy(), in.Node.UID, plan)
}

// uncordoned says whether an earlier drain of the same owner left a cordon that somebody took
// away since, such as with kubectl uncordon.
func uncordoned(plan drain.Decision) bool {
	return slices.ContainsFunc(plan.Gates, func(g machinist.Hold) bool { return g.Reason == drain.ReasonUncordoned })
}

func (c Command) words() words { return words{now: c.Clock.Now(), zone: c.Zone} }

// carryOut drains the Node, and takes back the cordon if that fails and is
// wanted.
func (c Command) carryOut(ctx context.Context, client kubernetes.Interface, o options, p drain.Policy, uid types.UID, before drain.Decision) error {
	progress := newProgress(c, o, before)
	progress.preface(before)
	e := runner.Executor{Client: client, Clock: c.Clock, Observer: progress}
	timed, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	plan, err := e.Run(timed, o.node, p)
	progress.end()
	if err == nil || plan.Outcome == drain.Proceeded {
		progress.line(ended(plan, c.words()))
		return nil
	}
	err = c.failed(o, plan, err, ctx.Err() != nil)
	if o.undo {
		err = errors.Join(err, c.takeBack(context.WithoutCancel(ctx), e, o, p, uid))
	}
	return err
}

// withTimeout ends what the ladder cannot end, such as a request that hangs, some time
// after the ladder would have.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 || timeout > math.MaxInt64-time.Second {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout+time.Second)
}

// ended says how a drain ended that is over.
func ended(plan drain.Decision, w words) string {
	switch plan.Outcome {
	case drain.NodeGone:
		return fmt.Sprintf("node %s is gone", plan.Node)
	case drain.Proceeded:
		var left []string
		for _, r := range plan.Rows {
			if r.Reason == drain.ReasonAbandoned {
				left = append(left, fmt.Sprintf("%s/%s (%s)", r.Namespace, r.Name, w.why(r)))
			}
		}
		return fmt.Sprintf("node %s drained, but for what was not waited for: %s", plan.Node, strings.Join(left, ", "))
	default:
		return fmt.Sprintf("node %s drained", plan.Node)
	}
}

// failed is the error of a drain that is not done, with what it waits for.
func (c Command) failed(o options, plan drain.Decision, err error, interrupted bool) error {
	f := &failedError{node: o.node, err: err, lines: c.words().waits(plan)}
	cause := err
	if unfinished, is := errors.AsType[*runner.UnfinishedError](err); is && unfinished.Err != nil {
		cause = unfinished.Err
	}
	switch {
	case interrupted:
		f.how = "interrupted"
	case plan.Outcome == drain.GaveUp, errors.Is(err, context.DeadlineExceeded):
		f.how = fmt.Sprintf("not drained after %s", o.timeout)
	default:
		f.how = "not drained: " + oneLine(cause)
		return f
	}
	if plan.Reason == drain.ReasonNotObserved { // nothing was seen that could be waited for
		f.how += ": " + oneLine(cause)
	}
	return f
}

// takeBack takes back the cordon.
func (c Command) takeBack(ctx context.Context, e runner.Executor, o options, p drain.Policy, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, undoTime)
	defer cancel()
	if err := e.Abort(ctx, o.node, uid, p); err != nil {
		return fmt.Errorf("the cordon stays: %w", err)
	}
	return nil
}
