// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
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
	decides string           // the decision without its holds, in one line
	holds   []machinist.Hold // Since is set if it is known
	next    time.Time
	plan    *drain.Decision // of the Node that is drained
	details []string        // more lines
	notes   []string        // what only the controller knows
	node    *corev1.Node
}

// newVerdict returns the verdict of a decision with a text and holds. The time since when a hold lasts is
// that of the hold if the decision remembers it, or else that of the last change of the status, which would
// have changed with the decision.
func newVerdict(text string, acts bool, holds []machinist.Hold, next, now, changed time.Time) verdict {
	d := verdict{decides: text, acts: acts, holds: slices.Clone(holds), next: next}
	for i := range d.holds {
		if h := &d.holds[i]; h.Since.IsZero() || !h.Since.Before(now) {
			h.Since = changed
		}
	}
	if len(holds) > 0 {
		d.decides = text[:strings.LastIndex(text, "; waits for "+holds[0].String())]
	}
	return d
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// decideDeployment observes and decides a deployment as its runner does.
func (v *View) decideDeployment(ctx context.Context, o *v1alpha1.MachineDeployment) (verdict, error) {
	in, err := deploymentrunner.Observe(ctx, v.reader, keyOf(o))
	in.Proven = true
	now, changed := v.Now(), time.Time{}
	for _, c := range o.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			changed = c.LastUpdateTime.Time
		}
	}
	d := deployment.Decide(in, v.Deployments, now)
	out := newVerdict(d.String(), len(d.Actions) > 0, d.Holds, d.NextCheck, now, changed)
	out.status = fmt.Sprintf("%d desired, %d available, %d of the newest template", o.Spec.Replicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas)
	for _, t := range d.Targets {
		if t.From != t.To {
			out.details = append(out.details, "size of machineset/"+t.String())
		}
	}
	return out, err
}

// decideSet observes and decides a set as its runner does.
func (v *View) decideSet(ctx context.Context, o *v1alpha1.MachineSet) (verdict, error) {
	in, err := setrunner.Observe(ctx, v.reader, keyOf(o))
	in.Proven = true
	d := machineset.Decide(in, v.Sets, v.Now())
	out := newVerdict(d.String(), len(d.Actions) > 0, d.Holds, d.NextCheck, v.Now(), o.Status.LastOperation.LastUpdateTime.Time)
	out.status = fmt.Sprintf("%d desired, %d available", o.Spec.Replicas, o.Status.AvailableReplicas)
	return out, err
}

// decideMachine observes and decides a machine as its runner does, with the answers of the provider that
// its status records. A drain is planned and not begun.
func (v *View) decideMachine(ctx context.Context, m *v1alpha1.Machine) (verdict, error) {
	now, plan, notes := v.Now(), (*drain.Decision)(nil), []string(nil)
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
	d := machine.Decide(in, v.Machines, now)
	if a, drains := d.Action.(machine.DrainNode); drains {
		if state, p, err := v.drain(ctx, a, in); err != nil {
			notes = append(notes, "what the drain waits for is not known: "+err.Error())
		} else {
			in.Drain, plan = in.Drain.After(a, state, p, now), &p
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
	for i := range holds {
		for _, c := range m.Status.Conditions {
			if h := &holds[i]; c.Type == v1alpha1.MachineWaiting && c.Reason == string(h.Reason) && strings.Contains(c.Message, h.Subject) {
				h.Since = c.LastTransitionTime.Time
			}
		}
	}
	out := newVerdict(d.String(), d.Action != nil, holds, d.NextCheck, now, m.Status.LastOperation.LastUpdateTime.Time)
	switch d.Action.(type) {
	case machine.CallDriver:
		notes = append(notes, "what the provider answered last is known only to the controller")
	case machine.TakePermit:
		notes = append(notes, "whether a permit is free is known only to the controller")
	case nil:
		if in.VM.Failure.Code != codes.OK {
			if out.next = (time.Time{}); !strings.Contains(m.Status.LastOperation.Description, "next attempt at ") {
				notes = append(notes, "when the call is repeated is known only to the controller")
			}
			for i := range out.holds {
				out.holds[i].Until = time.Time{}
			}
		}
	}
	s, op := m.Status.CurrentStatus, m.Status.LastOperation
	if out.status = cmp.Or(string(s.Phase), "new") + since(s.LastUpdateTime.Time, now); op.Type != "" {
		out.status += fmt.Sprintf("; %s %s: %s", op.Type, op.State, op.Description)
	}
	out.node, out.plan, out.notes = in.Node.Node, plan, notes
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

// decideClass decides the finalizer of a class, and says whether machines can be created with it.
func (v *View) decideClass(ctx context.Context, c *v1alpha1.MachineClass) (verdict, error) {
	var users []metav1.Object
	var err error
	for _, kind := range []machinist.Object{&v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}} {
		found, listErr := v.reader.List(ctx, kind, runners.ByNeeded, keyOf(c).String())
		some, typeErr := objects.All[metav1.Object](found, listErr)
		users, err = append(users, some...), errors.Join(err, typeErr)
	}
	d := machine.DecideClass(machine.ClassObservation{Class: c, Users: users, Complete: len(v.reader.missing) == 0}, v.Now())
	out := newVerdict(d.String(), d.Action != nil, d.Holds, d.NextCheck, v.Now(), time.Time{})
	out.status = fmt.Sprintf("machines, sets and deployments that need it: %d", len(users))
	for _, ref := range machine.SecretRefs(c) {
		if s, err := objects.Get[*corev1.Secret](ctx, v.reader, ref.Namespace, ref.Name); err == nil && s == nil {
			out.details = append(out.details, fmt.Sprintf("secret/%s/%s does not exist: no machine can be created", ref.Namespace, ref.Name))
		}
	}
	return out, err
}

// decideNode returns the drain of a Node for its machine, or else a plan of a drain.
func (v *View) decideNode(ctx context.Context, n *corev1.Node) (verdict, error) {
	out := verdict{status: nodeStatus(n), node: n, decides: "nothing: the Node is not drained; below is what a drain would do now"}
	found, err := objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByNode, n.Name)
	if id := nodeops.NormalizeProviderID(n.Spec.ProviderID); id != "" && len(found) == 0 && err == nil {
		found, err = objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByID, id)
	}
	if err != nil {
		return out, err
	}
	for _, m := range found {
		d, err := v.decideMachine(ctx, m)
		if out.details = append(out.details, nameOf(m)+" has this Node"); err == nil && d.plan != nil {
			d.status, d.details = out.status, out.details
			return d, nil
		}
	}
	if len(found) == 0 {
		out.details = append(out.details, "no machine has this Node")
	}
	seen, err := drainrunner.Observe(ctx, v.reader, n.Name, drain.ForMachine(time.Time{}), drain.State{})
	plan := drain.Decide(seen, drain.ForMachine(time.Time{}), v.Now())
	out.plan = &plan
	return out, err
}
