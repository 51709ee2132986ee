// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/deployment"
	deploymentrunner "github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	setrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// verdict is the decision about one object.
type verdict struct {
	status  string           // what the status of the object says
	acts    bool             // the decision has actions
	decides string           // the decision without its holds, as one line
	holds   []machinist.Hold // Since is set if it is known
	next    time.Time
	plan    *drain.Decision // of the Node that is drained
	details []string        // more lines
	notes   []string        // what only the controller knows
	node    *corev1.Node
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// sinces sets the time since when each hold lasts: that of the hold if the decision remembers it, or else
// the time of the last change of the status, which would have changed with the decision.
func (d *verdict) sinces(now, changed time.Time) {
	d.holds = slices.Clone(d.holds)
	for i := range d.holds {
		if h := &d.holds[i]; h.Since.IsZero() || !h.Since.Before(now) {
			h.Since = changed
		}
	}
}

// decideDeployment observes and decides a deployment as its runner does.
func (v *View) decideDeployment(ctx context.Context, d *v1alpha1.MachineDeployment) (verdict, error) {
	now := v.Now()
	in, err := deploymentrunner.Observe(ctx, v.reader, keyOf(d))
	if err != nil {
		return verdict{}, err
	}
	in.Proven = true
	dec := deployment.Decide(in, v.Deployments, now)
	out := verdict{
		status: fmt.Sprintf("%d desired, %d available, %d of the newest template", d.Spec.Replicas, d.Status.AvailableReplicas, d.Status.UpdatedReplicas),
		acts:   len(dec.Actions) > 0, holds: dec.Holds, next: dec.NextCheck,
	}
	for _, t := range dec.Targets {
		if t.From != t.To {
			out.details = append(out.details, "size of machineset/"+t.String())
		}
	}
	bare := dec
	bare.Holds = nil
	out.decides = bare.String()
	var changed time.Time
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			changed = c.LastUpdateTime.Time
		}
	}
	out.sinces(now, changed)
	return out, nil
}

// decideSet observes and decides a set as its runner does.
func (v *View) decideSet(ctx context.Context, s *v1alpha1.MachineSet) (verdict, error) {
	now := v.Now()
	in, err := setrunner.Observe(ctx, v.reader, keyOf(s))
	if err != nil {
		return verdict{}, err
	}
	in.Proven = true
	dec := machineset.Decide(in, v.Sets, now)
	bare := dec
	bare.Holds = nil
	out := verdict{
		status: fmt.Sprintf("%d desired, %d available", s.Spec.Replicas, s.Status.AvailableReplicas),
		acts:   len(dec.Actions) > 0, decides: bare.String(), holds: dec.Holds, next: dec.NextCheck,
	}
	out.sinces(now, s.Status.LastOperation.LastUpdateTime.Time)
	return out, nil
}

// decideMachine observes and decides a machine as its runner does, with the answers of the provider that
// its status records. A drain is planned and not begun.
func (v *View) decideMachine(ctx context.Context, m *v1alpha1.Machine) (verdict, error) {
	now := v.Now()
	in, err := machinerunner.Observe(ctx, v.reader, keyOf(m))
	if err != nil {
		return verdict{}, err
	}
	in.FirstSeen = time.Time{} // not the begin of this process
	if v.reader.missing[secrets] != nil {
		in.Class.Problem = ""
	}
	if in.Node.Looked {
		in.Node.AsOf = now
	}
	in.VM = machine.RecordedVM(m, in.Class, now)
	out := verdict{status: statusOf(m, now), node: in.Node.Node}
	dec := machine.Decide(in, v.Machines, now)
	if a, drains := dec.Action.(machine.DrainNode); drains {
		state, plan, err := v.drain(ctx, a, in)
		if err != nil {
			out.notes = append(out.notes, "what the drain waits for is not known: "+err.Error())
		} else {
			in.Drain, out.plan = in.Drain.After(a, state, plan, now), &plan
			dec = machine.Decide(in, v.Machines, now)
		}
	}
	bare := dec
	bare.Holds = nil
	out.acts, out.decides, out.holds, out.next = dec.Action != nil, bare.String(), dec.Holds, dec.NextCheck
	switch dec.Action.(type) {
	case machine.CallDriver:
		out.notes = append(out.notes, "what the provider answered last is known only to the controller")
	case machine.TakePermit:
		out.notes = append(out.notes, "whether a permit is free is known only to the controller")
	case nil:
		if in.VM.Failure.Code != codes.OK {
			out.notes, out.next = append(out.notes, "when the call is repeated is known only to the controller"), time.Time{}
			for i := range out.holds {
				out.holds[i].Until = time.Time{}
			}
		}
	}
	out.sinces(now, m.Status.LastOperation.LastUpdateTime.Time)
	return out, nil
}

// drain observes a Node and plans its drain, without the memory of the controller.
func (v *View) drain(ctx context.Context, a machine.DrainNode, in machine.Observation) (drain.State, drain.Decision, error) {
	seen, err := drainrunner.Observe(ctx, v.reader, a.NodeName, a.Policy, in.Drain.StateFor(a))
	if err != nil {
		return drain.State{}, drain.Decision{}, err
	}
	seen.Node, seen.Reachability = in.Node.Node, a.Reachability
	state, plan := drain.Step(in.Drain.StateFor(a), seen, a.Policy, v.Now())
	return state, plan, nil
}

// statusOf returns what the status of a machine says.
func statusOf(m *v1alpha1.Machine, now time.Time) string {
	s, op := m.Status.CurrentStatus, m.Status.LastOperation
	text := cmp.Or(string(s.Phase), "new") + since(s.LastUpdateTime.Time, now)
	if op.Type != "" {
		text += fmt.Sprintf("; %s %s: %s", op.Type, op.State, op.Description)
	}
	return text
}

// decideClass decides the finalizer of a class, and says whether machines can be created with it.
func (v *View) decideClass(ctx context.Context, c *v1alpha1.MachineClass) (verdict, error) {
	users, err := v.reader.UsersOfClass(ctx, keyOf(c))
	if err != nil {
		return verdict{}, err
	}
	dec := machine.DecideClass(machine.ClassObservation{Class: c, Users: users, Complete: len(v.reader.missing) == 0}, v.Now())
	bare := dec
	bare.Holds = nil
	out := verdict{acts: dec.Action != nil, decides: bare.String(), holds: dec.Holds, next: dec.NextCheck}
	out.status = "needed by " + plural(len(users), "object")
	for _, ref := range machine.SecretRefs(c) {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		switch s, err := v.reader.Secret(ctx, key); {
		case err != nil:
			out.details = append(out.details, fmt.Sprintf("secret/%s: %v", key, err))
		case s == nil:
			out.details = append(out.details, fmt.Sprintf("secret/%s does not exist: no machine can be created", key))
		}
	}
	return out, nil
}

// machinesOf returns the machines of a Node.
func (v *View) machinesOf(ctx context.Context, n *corev1.Node) ([]*v1alpha1.Machine, error) {
	found, err := v.reader.MachinesOfNode(ctx, n.Name)
	if err != nil || n.Spec.ProviderID == "" {
		return found, err
	}
	same, err := v.reader.MachinesWithID(ctx, nodeops.NormalizeProviderID(n.Spec.ProviderID))
	for _, m := range same {
		if !slices.Contains(found, m) {
			found = append(slices.Clip(found), m)
		}
	}
	return found, err
}

// decideNode plans a drain of a Node.
func (v *View) decideNode(ctx context.Context, n *corev1.Node) (verdict, error) {
	out := verdict{status: nodeStatus(n), node: n}
	found, err := v.machinesOf(ctx, n)
	if err != nil {
		return out, err
	}
	if len(found) == 0 {
		out.details = append(out.details, "no machine has this Node")
	}
	for _, m := range found {
		out.details = append(out.details, fmt.Sprintf("machine/%s/%s has this Node", m.Namespace, m.Name))
	}
	for _, m := range found {
		if d, err := v.decideMachine(ctx, m); err == nil && d.plan != nil {
			d.status, d.details = out.status, out.details
			return d, nil
		}
	}
	seen, err := drainrunner.Observe(ctx, v.reader, n.Name, drain.ForMachine(time.Time{}), drain.State{})
	if err != nil {
		return out, err
	}
	plan := drain.Decide(seen, drain.ForMachine(time.Time{}), v.Now())
	out.plan, out.decides = &plan, "nothing: the Node is not drained; below is what a drain would do now"
	return out, nil
}
