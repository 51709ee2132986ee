// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	setrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// decided returns an object with a decision that has a text and holds. The time since when a hold lasts is
// that of the hold if the decision remembers it, or else that of the last change of the status, which would
// have changed with the decision.
func decided(text string, acts bool, holds []machinist.Hold, next, now, changed time.Time) Object {
	d := Object{Decides: text, Acts: acts, NextCheck: next}
	for _, h := range holds {
		if h.Since.IsZero() || !h.Since.Before(now) {
			h.Since = changed
		}
		d.WaitsFor = append(d.WaitsFor, Wait{Hold: h})
	}
	if len(holds) > 0 {
		d.Decides = text[:strings.LastIndex(text, "; waits for "+holds[0].String())]
	}
	return d
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Deployment returns what its controller observes of a deployment. Its Deployment is nil if there is none.
func (v *View) Deployment(ctx context.Context, key types.NamespacedName) (deployment.Observation, error) {
	in, err := deploymentrunner.Observe(ctx, v.reader, key)
	in.Proven, in.Freeze = true, v.freeze(ctx, key.Namespace) // its lists are new
	return in, err
}

// freeze returns the freeze that the controllers of a namespace have written into the status of deployments.
func (v *View) freeze(ctx context.Context, namespace string) (f machine.Freeze) {
	all, _ := objects.In[*v1alpha1.MachineDeployment](ctx, v.reader, namespace)
	for _, d := range all {
		if c := rollout.Condition(d.Status, v1alpha1.MachineDeploymentControllerFrozen); c != nil {
			_, message, _ := strings.Cut(c.Message, "deletions go on: ")
			f = machine.Freeze{Frozen: true, Since: c.LastTransitionTime.Time, Message: cmp.Or(message, c.Message)}
		}
	}
	return f
}

// decideDeployment observes and decides a deployment as its runner does.
func (v *View) decideDeployment(ctx context.Context, o *v1alpha1.MachineDeployment) (Object, error) {
	in, err := v.Deployment(ctx, keyOf(o))
	now, changed := v.Now(), time.Time{}
	if c := rollout.Condition(o.Status, v1alpha1.MachineDeploymentProgressing); c != nil {
		changed = c.LastUpdateTime.Time
	}
	d := deployment.Decide(in, v.Deployments, now)
	out := decided(d.String(), len(d.Actions) > 0, d.Holds, d.NextCheck, now, changed)
	out.Status = fmt.Sprintf("%d desired, %d available, %d of the newest template", o.Spec.Replicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas)
	out.Class, out.Replicas = o.Spec.Template.Spec.Class.Name, &Replicas{o.Spec.Replicas, o.Status.AvailableReplicas, &o.Status.UpdatedReplicas}
	for _, t := range d.Targets {
		if t.From != t.To {
			out.Details = append(out.Details, "size of machineset/"+t.String())
		}
	}
	return out, err
}

// decideSet observes and decides a set as its runner does.
func (v *View) decideSet(ctx context.Context, o *v1alpha1.MachineSet) (Object, error) {
	in, err := setrunner.Observe(ctx, v.reader, keyOf(o))
	in.Proven, in.Freeze = true, v.freeze(ctx, o.Namespace)
	d := machineset.Decide(in, v.Sets, v.Now())
	out := decided(d.String(), len(d.Actions) > 0, d.Holds, d.NextCheck, v.Now(), o.Status.LastOperation.LastUpdateTime.Time)
	out.Status = fmt.Sprintf("%d desired, %d available", o.Spec.Replicas, o.Status.AvailableReplicas)
	out.Class, out.Replicas = o.Spec.Template.Spec.Class.Name, &Replicas{Desired: o.Spec.Replicas, Available: o.Status.AvailableReplicas}
	return out, err
}

// decideMachine observes and decides a machine as its runner does, with the answers of the provider that
// its status records. A drain is planned and not begun.
func (v *View) decideMachine(ctx context.Context, m *v1alpha1.Machine) (Object, error) {
	now, plan, notes := v.Now(), (*drain.Decision)(nil), []string(nil)
	in, err := machinerunner.Observe(ctx, v.reader, keyOf(m))
	if err != nil {
		return Object{}, err
	}
	in.FirstSeen, in.Freeze = time.Time{}, v.freeze(ctx, m.Namespace) // not the begin of this process
	if v.reader.missing[secrets] != nil {
		in.Class.Problem = ""
	}
	if in.Node.Looked {
		in.Node.AsOf = now
	}
	in.VM = machine.RecordedVM(m, in.Class, now)
	d := machine.Decide(in, v.Machines, now)
	if v.Assumed && !reflect.DeepEqual(d, machine.Decide(in, unlimited(v.Machines), now)) {
		notes = append(notes, "with the default limits of the manager: --manager-flags names others")
	}
	if a, drains := d.Action.(machine.DrainNode); drains {
		if state, p, err := v.drain(ctx, a, in); err != nil {
			notes = append(notes, "what the drain waits for is not known: "+err.Error())
		} else {
			in.Drain, plan = in.Drain.After(a, state, p, now), firstLook(p, now)
			d = machine.Decide(in, v.Machines, now)
		}
	}
	if u, ok := d.Action.(machinist.Update); ok && u.Subresource == "status" { // that of a wait without the memory of the controller
		in.Machine, _ = u.Object.(*v1alpha1.Machine)
		if after := machine.Decide(in, v.Machines, now); after.Action == nil {
			d = after
		}
	}
	holds := slices.Clone(d.Holds)
	waiting := facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
	for i := range holds {
		if h := &holds[i]; waiting != nil && waiting.Reason == string(h.Reason) && strings.Contains(waiting.Message, h.Subject) {
			h.Since = waiting.LastTransitionTime.Time
		}
	}
	out := decided(d.String(), d.Action != nil, holds, d.NextCheck, now, m.Status.LastOperation.LastUpdateTime.Time)
	switch d.Action.(type) {
	case machine.CallDriver:
		notes = append(notes, "what the provider answered last is known only to the controller")
	case machine.TakePermit:
		notes = append(notes, "whether a permit is free is known only to the controller")
	case nil:
		if in.VM.Failure.Code != codes.OK {
			if out.NextCheck = nextAttempt(m); out.NextCheck.IsZero() {
				notes = append(notes, "when the call is repeated is known only to the controller")
			}
			for i := range out.WaitsFor {
				out.WaitsFor[i].Until = out.NextCheck
			}
		}
	}
	s, op := m.Status.CurrentStatus, m.Status.LastOperation
	out.Class, out.Phase, out.Since = m.Spec.Class.Name, cmp.Or(string(s.Phase), "new"), s.LastUpdateTime.Time
	if out.Status = out.Phase + since(out.Since, now); op.Type != "" {
		out.Status += fmt.Sprintf("; %s %s: %s", op.Type, op.State, op.Description)
	}
	out.node, out.Drain, out.Notes = in.Node.Node, plan, notes
	return out, nil
}

// unlimited returns a policy without the limits that have a flag of the manager.
func unlimited(p machine.Policy) machine.Policy {
	p.CreationTimeout, p.HealthTimeout, p.DrainTimeout, p.InPlaceTimeout, p.PreserveTimeout, p.MaxReplacements = 0, 0, 0, 0, 0, 0
	return p
}

// nextAttempt returns when the provider is called again, as the controller has written it, or zero.
func nextAttempt(m *v1alpha1.Machine) time.Time {
	text := m.Status.LastOperation.Description
	const says = "next attempt at "
	i := strings.LastIndex(text, says)
	if i < 0 {
		return time.Time{}
	}
	text, _, _ = strings.Cut(text[i+len(says):], ";")
	at, _ := time.Parse(time.RFC3339, strings.TrimSuffix(text, ")"))
	return at
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

// firstLook returns a plan without the times that are those of this look.
func firstLook(plan drain.Decision, now time.Time) *drain.Decision {
	plan.Rows, plan.Volumes = slices.Clone(plan.Rows), slices.Clone(plan.Volumes)
	times := []*time.Time{&plan.Started, &plan.CordonedAt}
	for i := range plan.Rows {
		times = append(times, &plan.Rows[i].Since)
	}
	for i := range plan.Volumes {
		times = append(times, &plan.Volumes[i].Since)
	}
	for _, t := range times {
		if t.Equal(now) {
			*t = time.Time{}
		}
	}
	return &plan
}

// decideClass decides the finalizer of a class, and says whether machines can be created with it.
func (v *View) decideClass(ctx context.Context, c *v1alpha1.MachineClass) (Object, error) {
	var users []metav1.Object
	var err error
	for _, kind := range []machinist.Object{&v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}} {
		found, listErr := v.reader.List(ctx, kind, runners.ByNeeded, keyOf(c).String())
		some, typeErr := objects.All[metav1.Object](found, listErr)
		users, err = append(users, some...), errors.Join(err, typeErr)
	}
	d := machine.DecideClass(machine.ClassObservation{Class: c, Users: users, Complete: len(v.reader.missing) == 0}, v.Now())
	out := decided(d.String(), d.Action != nil, d.Holds, d.NextCheck, v.Now(), time.Time{})
	out.Status = fmt.Sprintf("machines, sets and deployments that need it: %d", len(users))
	for _, ref := range machine.SecretRefs(c) {
		if s, err := objects.Get[*corev1.Secret](ctx, v.reader, ref.Namespace, ref.Name); err == nil && s == nil {
			out.Details = append(out.Details, fmt.Sprintf("secret/%s/%s does not exist: no machine can be created", ref.Namespace, ref.Name))
		}
	}
	return out, err
}

// decideNode returns the drain of a Node for its machine, or else a plan of a drain.
func (v *View) decideNode(ctx context.Context, n *corev1.Node) (Object, error) {
	out := Object{Phase: nodeStatus(n), Status: nodeStatus(n), Decides: "nothing: the Node is not drained; below is what a drain would do now"}
	found, err := objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByNode, n.Name)
	if id := nodeops.NormalizeProviderID(n.Spec.ProviderID); id != "" && len(found) == 0 && err == nil {
		found, err = objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByID, id)
	}
	if err != nil {
		return out, err
	}
	for _, m := range found {
		d, err := v.decideMachine(ctx, m)
		if out.Details = append(out.Details, nameOf(m)+" has this Node"); err == nil && d.Drain != nil {
			out.Decides, out.Acts, out.WaitsFor, out.NextCheck, out.Notes, out.Drain = d.Decides, d.Acts, d.WaitsFor, d.NextCheck, d.Notes, d.Drain
			return out, nil
		}
	}
	if len(found) == 0 {
		out.Details = append(out.Details, "no machine has this Node")
	}
	seen, err := drainrunner.Observe(ctx, v.reader, n.Name, drain.ForMachine(time.Time{}), drain.State{})
	out.Drain = firstLook(drain.Decide(seen, drain.ForMachine(time.Time{}), v.Now()), v.Now())
	return out, err
}
