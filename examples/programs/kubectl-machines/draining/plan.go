// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
)

// plan is the first decision of the drain of a Node.
type plan struct {
	node     string
	uid      types.UID
	decision drain.Decision
	// recordon means that an earlier drain of the same owner left a claim, and that a user has
	// uncordoned the Node since.
	recordon bool
	// daemons are the pods of DaemonSets, as namespace/name.
	daemons []string
}

// plans returns a plan for each Node of the command line.
func (c command) plans(ctx context.Context, client kubernetes.Interface) ([]plan, error) {
	names := c.nodes
	if c.selector != "" {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: c.selector})
		if err != nil {
			return nil, fmt.Errorf("nodes: %w", err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		slices.Sort(names)
		if len(names) == 0 {
			return nil, refused("selector "+c.selector, "no Node has these labels")
		}
	}
	var plans []plan
	for _, name := range names {
		p, err := c.plan(ctx, client, name)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		plans = append(plans, p)
	}
	return plans, nil
}

func (c command) plan(ctx context.Context, client kubernetes.Interface, name string) (plan, error) {
	policy, now := c.policy(), c.Clock.Now()
	in, err := runner.Observe(ctx, runner.NewClient(client), name, policy, drain.State{})
	if err != nil {
		return plan{}, err
	}
	p := plan{node: name, daemons: daemonPods(in.Pods.Items)}
	p.recordon = slices.ContainsFunc(drain.Decide(in, policy, now).Gates, func(g machinist.Hold) bool { return g.Reason == drain.ReasonUncordoned })
	if in.Node != nil {
		p.uid = in.Node.UID
	}
	policy.Reassert = p.recordon
	state, d := drain.Step(drain.State{}, in, policy, now)
	if c.dryRun == "server" && d.Feasible() {
		results, err := runner.Executor{Client: runner.NewClient(client), Clock: c.Clock, DryRun: true}.Apply(ctx, d)
		if err != nil {
			return plan{}, err
		}
		in.Results = slices.DeleteFunc(results, func(r drain.Result) bool { return r.Err == nil })
		_, d = drain.Step(state, in, policy, now)
	}
	p.decision, p.decision.Node = d, name
	return p, nil
}

// daemonPods returns the pods of DaemonSets that have not ended.
func daemonPods(pods []*corev1.Pod) []string {
	var names []string
	for _, p := range pods {
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if owner := metav1.GetControllerOf(p); !ended && owner != nil && owner.Kind == "DaemonSet" {
			names = append(names, p.Namespace+"/"+p.Name)
		}
	}
	return names
}

// refusal returns why the drain cannot end, or nil.
func (p plan) refusal(o options, w words) error {
	var lines []string
	if !o.ignoreDaemonSets {
		for _, name := range p.daemons {
			lines = append(lines, name+": its DaemonSet would create it again; --ignore-daemonsets leaves it on the Node")
		}
	}
	switch {
	case p.decision.Outcome == drain.NodeGone:
		lines = []string{"it does not exist"}
	case !p.decision.Feasible():
		lines = append(lines, w.obstacles(p.decision)...)
	case len(lines) == 0:
		return nil
	}
	return refused("node "+p.node, lines...)
}

// refused returns the error of a drain that was not begun, with everything that keeps it from ending.
func refused(subject string, lines ...string) error {
	return cli.Refuse("%s is not drained, and nothing was changed:%s", subject, list(lines))
}

// obstacles returns a line for everything that keeps a drain from ending.
func (w words) obstacles(d drain.Decision) []string {
	var lines []string
	for _, r := range d.Obstacles() {
		line := fmt.Sprintf("%s/%s: %s", r.Namespace, r.Name, w.why(r))
		if flag := remedies[r.Reason]; flag != "" {
			line += "; " + flag
		}
		lines = append(lines, line)
	}
	for _, g := range d.Gates {
		lines = append(lines, w.hold(g))
	}
	if len(lines) == 0 {
		lines = []string{reasonOf(d.Reason, d.Message)}
	}
	return lines
}

// list returns one line as it is, and several on lines of their own.
func list(lines []string) string {
	if len(lines) == 1 {
		return " " + lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}
