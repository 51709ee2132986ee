// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// act carries out one action and puts what it learns into the observation.
func (r *machines) act(ctx context.Context, in *machine.Observation, kept *memory, do machine.Action) error {
	switch a := do.(type) {
	case machine.UpdateMachine:
		return r.written(in)(r.cfg.Machines.MachineV1alpha1().Machines(a.Machine.Namespace).Update(ctx, a.Machine, metav1.UpdateOptions{}))
	case machine.UpdateStatus:
		return r.written(in)(r.cfg.Machines.MachineV1alpha1().Machines(a.Machine.Namespace).UpdateStatus(ctx, a.Machine, metav1.UpdateOptions{}))
	case machine.DeleteMachine:
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))}
		err := r.cfg.Machines.MachineV1alpha1().Machines(a.Namespace).Delete(ctx, a.Name, options)
		if ignoreNotFound(err) != nil {
			return err
		}
		return r.written(in)(r.cfg.Machines.MachineV1alpha1().Machines(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{}))
	case machine.LookForVM, machine.CreateVM, machine.InitializeVM, machine.DeleteVM:
		return r.call(ctx, in, do)
	case machine.UpdateNode:
		return r.observed(in)(r.cfg.Target.CoreV1().Nodes().Update(ctx, a.Node, metav1.UpdateOptions{}))
	case machine.UpdateNodeCapacity:
		return r.observed(in)(r.cfg.Target.CoreV1().Nodes().UpdateStatus(ctx, a.Node, metav1.UpdateOptions{}))
	case machine.SetNodeCondition:
		if err := nodeops.AddOrUpdateConditionsOnNode(ctx, r.cfg.Target, a.NodeName, a.Condition); ignoreNotFound(err) != nil {
			return err
		}
		return r.observed(in)(r.cfg.Target.CoreV1().Nodes().Get(ctx, a.NodeName, metav1.GetOptions{}))
	case machine.DrainNode:
		return r.drain(ctx, in, kept, a)
	case machine.DeleteNode:
		return r.deleteNode(ctx, in, a)
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// written puts the machine that a write returned into the observation; a machine
// that is gone leaves nothing.
func (r *machines) written(in *machine.Observation) func(*v1alpha1.Machine, error) error {
	return func(m *v1alpha1.Machine, err error) error {
		switch {
		case apierrors.IsNotFound(err):
			r.bury(in.Machine)
			in.Machine = nil
			return nil
		case err != nil:
			return err
		}
		for _, e := range machine.Events(in.Machine, m) {
			r.cfg.event(m, e)
		}
		if !m.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
			r.bury(m)
			in.Machine = nil
			return nil
		}
		r.latest.put(m)
		in.Machine, in.Node = m, r.observeNode(m) // it may name its Node only now
		return nil
	}
}

// bury remembers that a machine is gone which the cache may still show.
func (r *machines) bury(m *v1alpha1.Machine) {
	if cached, err := r.lister.Machines(m.Namespace).Get(m.Name); err == nil && cached.UID == m.UID {
		r.latest.bury(m.UID)
	}
}

// observed puts the Node that a request returned into the observation.
func (r *machines) observed(in *machine.Observation) func(*corev1.Node, error) error {
	return func(n *corev1.Node, err error) error {
		switch {
		case apierrors.IsNotFound(err):
			r.buryNode(in)
			return nil
		case err != nil:
			return err
		}
		r.latestNode.put(n)
		in.Node.Node = n
		return nil
	}
}

// buryNode remembers that a Node is gone, as long as the cache shows it.
func (r *machines) buryNode(in *machine.Observation) {
	uid := in.Node.Node.UID
	if cached, err := r.node(in.Node.Node.Name); err == nil && cached.UID == uid {
		r.latestNode.bury(uid)
	} else {
		r.latestNode.forget(uid)
	}
	in.Node.Node = nil
}

// call makes a driver call and puts the answer into the observation. A call that
// fails is an answer too: what it means is for the next decision.
func (r *machines) call(ctx context.Context, in *machine.Observation, do machine.Action) error {
	secret, err := mergedSecret(in.Class.Class, r.secret)
	if err != nil {
		return err
	}
	m, class := in.Machine, in.Class.Class
	var answer machine.Answer
	switch a := do.(type) {
	case machine.LookForVM:
		response, err := r.cfg.Driver.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromStatus(response, err)
	case machine.CreateVM:
		if secret.Data, err = machine.RenderUserData(secret.Data, m.Name); err != nil {
			return err
		}
		response, err := r.cfg.Driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromCreate(response, err)
	case machine.InitializeVM:
		if a.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = a.LastKnownState
		}
		response, err := r.cfg.Driver.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromInitialize(response, err)
	case machine.DeleteVM:
		response, err := r.cfg.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		answer = machine.FromDelete(response, err)
	default:
		return fmt.Errorf("%T is no driver call", do)
	}
	in.VM = in.VM.After(answer, r.cfg.Clock.Now(), r.cfg.Random())
	if ctx.Err() != nil && in.VM.Failure.Code == codes.OK {
		return errors.Join(ctx.Err(), r.lastWord(ctx, in))
	}
	return ctx.Err()
}

// lastWordTime bounds the write of what a call has answered after the end.
const lastWordTime = 5 * time.Second

// lastWord writes down what a call has answered that was let finish when its pass
// had been told to end, so that whoever comes next need not find it out again.
func (r *machines) lastWord(ctx context.Context, in *machine.Observation) error {
	d := machine.Decide(*in, r.cfg.Policy, r.cfg.Clock.Now())
	switch d.Do.(type) {
	case machine.UpdateMachine, machine.UpdateStatus:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordTime)
	defer cancel()
	return r.act(ctx, in, &memory{}, d.Do)
}

// drain makes one round of draining.
func (r *machines) drain(ctx context.Context, in *machine.Observation, kept *memory, a machine.DrainNode) error {
	now := r.cfg.Clock.Now()
	policy := drain.Policy{
		ForceAt: a.Mode.ForceAt, NodeUnreachable: a.Mode.NodeUnreachable,
		EvictUnmanaged: true, EvictLocalStorage: true, // a machine that goes takes its pods with it
	}
	seen := drain.Observation{
		Node: in.Node.Node, Looked: in.Node.Looked, Pods: r.podsOn(a.NodeName), PodsComplete: true, Answers: kept.answers,
	}
	plan := drain.Decide(seen, policy, now)
	if plan.Done { // the cache may not show yet what was bound just before the cordon
		var err error
		if seen.Pods, err = r.livePodsOn(ctx, a.NodeName); err != nil {
			return err
		}
		plan = drain.Decide(seen, policy, now)
	}
	results, err := drain.Carry(ctx, r.cfg.Target, plan)
	kept.answers = kept.answers.After(plan, results, policy, now)
	if err != nil && !plan.Done { // force does not wait for the cordon
		return err
	}
	in.Drain = machine.DrainView{Round: now, Done: plan.Done, NextCheck: plan.NextCheck}
	seen.Answers = kept.answers // a pod whose eviction was refused waits for what refused it
	for _, row := range drain.Decide(seen, policy, now).Holds() {
		in.Drain.Holds = append(in.Drain.Holds, machine.Hold{
			Subject: "pod/" + row.Namespace + "/" + row.Name, Reason: machine.Reason(row.Reason), Message: row.Message, Until: row.Until,
		})
	}
	return nil
}

// livePodsOn reads the pods of a Node from the API server.
func (r *machines) livePodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	list, err := r.cfg.Target.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// deleteNode takes our finalizer off a Node and deletes it.
func (r *machines) deleteNode(ctx context.Context, in *machine.Observation, a machine.DeleteNode) error {
	nodes := r.cfg.Target.CoreV1().Nodes()
	if patch, needed := machine.ReleaseNode(in.Node.Node); needed {
		released, err := nodes.Patch(ctx, a.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err := r.observed(in)(released, err); err != nil || in.Node.Node == nil {
			return err
		}
	}
	err := nodes.Delete(ctx, a.NodeName, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))})
	if ignoreNotFound(err) != nil {
		return err
	}
	if len(in.Node.Node.Finalizers) == 0 { // nothing keeps it
		r.buryNode(in)
		return nil
	}
	return r.observed(in)(nodes.Get(ctx, a.NodeName, metav1.GetOptions{}))
}
