// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	api "github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// machineDeploymentReconciler reconciles MachineDeployment objects.
type machineDeploymentReconciler struct {
	*loop
	cfg        *Config
	deployment func(namespace, name string) (*api.MachineDeployment, error)
	setsOf     func(ownerKey string) []*api.MachineSet
	set        func(namespace, name string) (*api.MachineSet, error)
	machinesOf func(ownerKey string) []*api.Machine
	node       func(name string) (*corev1.Node, error) // nil without a target cluster
	machine    func(namespace, name string) (*api.Machine, error)
	written    *written[*api.MachineDeployment]
	memory     perObject[deploymentMemory]
}

// deploymentMemory is what is kept of a deployment between two passes.
type deploymentMemory struct {
	expected machine.Expectations
	counted  time.Time // when the status was last written
	proven   bool
}

// batchDelay is how long changes of machines are collected before the next pass over their
// deployment. It acts upon the changes of its sets, whose delay is shorter up to 3,000 machines.
const batchDelay = time.Second

func newMachineDeployments(cfg *Config, c *caches) *machineDeploymentReconciler {
	informers := c.machines.Machine().V1alpha1()
	deployments, sets := informers.MachineDeployments().Informer(), informers.MachineSets()
	r := &machineDeploymentReconciler{cfg: cfg, machinesOf: c.machinesOf, setsOf: index(sets.Informer(), "owner-of-set", ownerKey[*api.MachineSet])}
	r.deployment = func(namespace, name string) (*api.MachineDeployment, error) {
		return informers.MachineDeployments().Lister().MachineDeployments(namespace).Get(name)
	}
	r.set = func(namespace, name string) (*api.MachineSet, error) {
		return sets.Lister().MachineSets(namespace).Get(name)
	}
	r.machine = func(namespace, name string) (*api.Machine, error) {
		return informers.Machines().Lister().Machines(namespace).Get(name)
	}
	r.written = newWritten[*api.MachineDeployment](shows[*api.MachineDeployment](deployments))
	r.loop = newLoop(cfg, "machinedeployment", r.pass)
	r.wakeWithFreeze(deployments, time.Second)
	on(deployments, addChanged[*api.MachineDeployment](r.loop))
	onDelete(deployments, func(d *api.MachineDeployment) {
		r.memory.forget(d.UID)
		r.written.forget(d.UID)
	})
	on(sets.Informer(), each(func(s *api.MachineSet) { r.addOwner(s, deployments, 0) }))
	ofMachine := func(m *api.Machine) {
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			if s, err := sets.Lister().MachineSets(m.Namespace).Get(owner.Name); err == nil {
				r.addOwner(s, deployments, batchDelay)
			}
		}
	}
	on(informers.Machines().Informer(), func(before, after *api.Machine) {
		if machine.Changed(before, after) {
			each(ofMachine)(before, after)
		}
	})
	if c.target != nil {
		r.node = c.node
		on(c.target.Core().V1().Nodes().Informer(), func(before, after *corev1.Node) {
			if machine.Changed(before, after) {
				for _, m := range c.ofNode(cmp.Or(after, before).Name) {
					ofMachine(m)
				}
			}
		})
	}
	return r
}

func (r *machineDeploymentReconciler) api() v1alpha1.MachineV1alpha1Interface {
	return r.cfg.SetClient.MachineV1alpha1()
}

// pass decides on the newest known version of a deployment. If anything but its status and Nodes is to
// be written, it reads the deployment from the API server, and decides again if that is another version.
// The API server refuses the status of an old version, and the next pass corrects a mark of a Node.
func (r *machineDeploymentReconciler) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	d, err := r.deployment(key.Namespace, key.Name)
	if err != nil {
		r.cfg.holds.forget(r.kind, key)
		return time.Time{}, ignoreNotFound(err)
	}
	if !r.cfg.mine(d) {
		return time.Time{}, nil
	}
	d, _ = r.written.newest(d)
	in, claims := r.observe(d.DeepCopy())
	plan := deployment.Decide(in, r.cfg.Deployments, r.cfg.Clock.Now())
	if !onlyNodes(plan.Actions) || !claims.Settled() {
		live, err := r.api().MachineDeployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil || !r.cfg.mine(live) {
			r.cfg.holds.forget(r.kind, key)
			return time.Time{}, ignoreNotFound(err)
		}
		r.written.put(live)
		if live.ResourceVersion != d.ResourceVersion {
			in, claims = r.observe(live.DeepCopy())
			plan = deployment.Decide(in, r.cfg.Deployments, r.cfg.Clock.Now())
		}
		if err := writeClaims(ctx, r.cfg.setClients(), claims, machineset.OwnerDeployment(live), live); err != nil {
			return time.Time{}, err
		}
	}
	return r.advance(ctx, in, plan)
}

// onlyNodes reports whether all actions write Nodes.
func onlyNodes(actions []machinist.Action) bool {
	return !slices.ContainsFunc(actions, func(a machinist.Action) bool { return !writesNode(a) })
}

// writesNode reports whether an action writes a Node.
func writesNode(a machinist.Action) bool {
	u, ok := a.(machinist.Update)
	if !ok {
		return false
	}
	_, node := u.Object.(*corev1.Node)
	return node
}

// observe returns the observation of a deployment: its sets, their machines, and the Nodes of the
// machines.
func (r *machineDeploymentReconciler) observe(d *api.MachineDeployment) (deployment.Observation, machineset.Claims[*api.MachineSet]) {
	in := deployment.Observation{Deployment: d, Nodes: map[string]*corev1.Node{}, NoCluster: r.node == nil, Freeze: r.cfg.freeze.now()}
	// Expectations are read before the lists, so that the lists are at least as new.
	memory := r.expect(d, func(e machine.Expectations) machine.Expectations {
		return e.Observe(func(kind, name string) metav1.Object { return r.find(d.Namespace, kind, name) }, true)
	})
	in.Expectations, in.Proven = memory.expected, memory.proven
	claims := claim(machineset.OwnerDeployment(d), d, deployment.ClaimSelector(d), r.setsOf)
	in.Sets, in.Released, in.Complete = claims.Owned, claims.Released, claims.Settled()
	for _, s := range in.Sets {
		in.Machines = append(in.Machines, r.machinesOf(string(s.UID))...)
	}
	for _, m := range in.Machines {
		if name := m.Labels[api.NodeLabelKey]; name != "" && r.node != nil {
			if node, err := r.node(name); ignoreNotFound(err) == nil {
				in.Nodes[name] = node
			}
		}
	}
	return in, claims
}

// list lists the sets of a deployment and their machines from the API server. The decisions wait until
// the caches show them.
func (r *machineDeploymentReconciler) list(ctx context.Context, d *api.MachineDeployment) error {
	selector := deployment.ClaimSelector(d)
	sets, err := r.api().MachineSets(d.Namespace).List(ctx, listOptions(selector))
	if err != nil {
		return err
	}
	machines, err := liveMachines(ctx, r.cfg.SetClient, d.Namespace, selector)
	if err == nil {
		in, _ := r.observe(d)
		now := r.cfg.Clock.Now()
		e := machine.Listed(machine.Listed(in.Expectations, pointers(sets.Items), in.Sets, now), machines, in.Machines, now)
		r.memory.change(d.UID, func(m deploymentMemory) deploymentMemory { return deploymentMemory{e, m.counted, true} })
	}
	return err
}

// find returns an object of the caches, of any deployment, or nil.
func (r *machineDeploymentReconciler) find(namespace, kind, name string) metav1.Object {
	var found metav1.Object
	var err error
	switch {
	case kind == machine.KindSet:
		found, err = r.set(namespace, name)
	case kind == machine.KindMachine:
		found, err = r.machine(namespace, name)
	case kind == machine.KindNode && r.node != nil:
		found, err = r.node(name)
	}
	if err != nil {
		return nil
	}
	return found
}

// advance carries out the actions of a plan up to the first error, and writes the status.
func (r *machineDeploymentReconciler) advance(ctx context.Context, in deployment.Observation, plan deployment.Decision) (time.Time, error) {
	d := in.Deployment
	now := r.cfg.Clock.Now()
	stuck := r.cfg.reportStuck(r.kind, d, cache.MetaObjectToName(d), plan.Holds, sinceProgress(lastProgress(d), now))
	plan.NextCheck = machinist.Earliest(plan.NextCheck, stuck)
	r.cfg.note(Note{Kind: r.kind, Key: cache.MetaObjectToName(d).String(), Text: plan.String(), Reason: plan.Reason, Holds: plan.Holds, Acts: len(plan.Actions) > 0, Waits: len(plan.Holds) > 0})
	observed := d.Status.ObservedGeneration
	last, failed := r.apply(ctx, d, plan.Actions)
	err := failed
	if failed != nil && !writesNode(last) {
		plan.Status.ObservedGeneration = observed // the other actions were not tried
	}
	if create, ok := last.(machinist.Create); ok && apierrors.IsAlreadyExists(failed) && in.NameTakenBy == nil {
		taken, lookErr := r.api().MachineSets(d.Namespace).Get(ctx, create.Object.GetName(), metav1.GetOptions{})
		if lookErr == nil {
			in.NameTakenBy = taken
			return r.advance(ctx, in, deployment.Decide(in, r.cfg.Deployments, r.cfg.Clock.Now())) // which knows the set that has the name
		}
		err = errors.Join(err, lookErr)
	} else if ok && failed != nil && ctx.Err() == nil {
		status, event := deployment.CreateFailed(d.Status, create.Object.GetName(), failed, r.cfg.Clock.Now())
		plan.Status, plan.WriteStatus, plan.Events = status, true, append(plan.Events, event)
	}
	due := r.memory.get(d.UID).counted.Add(counterInterval)
	if plan.WriteStatus && due.After(now) && len(plan.Events) == 0 && deployment.OnlyCounters(d.Status, plan.Status) {
		plan.WriteStatus, plan.NextCheck = false, machinist.Earliest(plan.NextCheck, due)
	}
	if plan.WriteStatus {
		d.Status = plan.Status
		written, statusErr := r.api().MachineDeployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		if statusErr != nil {
			return plan.NextCheck, errors.Join(err, ignoreNotFound(statusErr)) // the next pass has the same events
		}
		r.written.put(written)
		r.memory.change(d.UID, func(m deploymentMemory) deploymentMemory { return deploymentMemory{m.expected, now, m.proven} })
	}
	for _, e := range plan.Events {
		r.cfg.event(d, e)
	}
	return plan.NextCheck, err
}

// counterInterval is how long a status waits after the last one if nothing but counters and the time of
// the last progress is new. Each machine of a rollout changes them, and no decision waits for them.
const counterInterval = time.Second

// lastProgress returns the time of the last progress of a rollout. Zero means that it is not known.
func lastProgress(d *api.MachineDeployment) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type == api.MachineDeploymentProgressing {
			return c.LastUpdateTime.Time
		}
	}
	return time.Time{}
}

// apply carries out actions up to the first that fails. It returns the last action that was tried, and
// its error. Nodes come last and are written in parallel; one that cannot be written stops no other,
// and the error is that of all.
func (r *machineDeploymentReconciler) apply(ctx context.Context, d *api.MachineDeployment, actions []machinist.Action) (last machinist.Action, failed error) {
	nodes := slices.IndexFunc(actions, writesNode)
	if nodes < 0 {
		nodes = len(actions)
	}
	for _, last = range actions[:nodes] {
		if failed = r.applyOne(ctx, d, last); failed != nil {
			return last, fmt.Errorf("%s: %w", last, failed)
		}
	}
	marks := actions[nodes:]
	errs := r.cfg.inParallel(ctx, len(marks), func(i int) error {
		if err := r.applyOne(ctx, d, marks[i]); err != nil {
			return fmt.Errorf("%s: %w", marks[i], err)
		}
		return nil
	})
	if len(marks) > 0 {
		last, failed = marks[len(marks)-1], errors.Join(errs...)
	}
	return last, failed
}

// applyOne carries out one action. A deleted object needs no write.
func (r *machineDeploymentReconciler) applyOne(ctx context.Context, d *api.MachineDeployment, action machinist.Action) error {
	send := r.cfg.setClients()
	switch a := action.(type) {
	case machinist.Update:
		written, err := send.update(ctx, a)
		return r.wrote(d, written, err, machine.Expectations.Updated, a.Report)
	case machinist.Create:
		if s, ok := a.Object.(*api.MachineSet); ok {
			r.cfg.own(s)
		}
		created, err := send.create(ctx, a.Object)
		return r.wrote(d, created, err, machine.Expectations.Created, a.Report)
	case machinist.Delete:
		return ignoreNotFound(send.remove(ctx, a))
	case machinist.Refresh:
		if a.Name == "" {
			return r.list(ctx, d)
		}
		return r.look(ctx, d, a)
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// expect changes the expectations of a deployment.
func (r *machineDeploymentReconciler) expect(d *api.MachineDeployment, change func(machine.Expectations) machine.Expectations) deploymentMemory {
	return r.memory.change(d.UID, func(m deploymentMemory) deploymentMemory {
		m.expected = change(m.expected)
		return m
	})
}

// wrote records a write until the caches show it, and reports its Event. A written deployment
// replaces d, because the status is written after this.
func (r *machineDeploymentReconciler) wrote(
	d *api.MachineDeployment, o metav1.Object, err error, record func(machine.Expectations, metav1.Object, time.Time) machine.Expectations, report *machinist.Event,
) error {
	if err != nil {
		return ignoreNotFound(err)
	}
	if written, ok := o.(*api.MachineDeployment); ok {
		first := !slices.Contains(d.Finalizers, api.MCMFinalizerName) // no process has made sets before
		r.memory.change(d.UID, func(m deploymentMemory) deploymentMemory {
			return deploymentMemory{m.expected, m.counted, m.proven || first}
		})
		*d = *written.DeepCopy()
		r.written.put(written)
	} else {
		r.expect(d, func(e machine.Expectations) machine.Expectations { return record(e, o, r.cfg.Clock.Now()) })
	}
	if report != nil {
		r.cfg.event(d, *report)
	}
	return nil
}

// look reads an object from the API server if the caches do not show the expected write.
func (r *machineDeploymentReconciler) look(ctx context.Context, d *api.MachineDeployment, a machinist.Refresh) error {
	var live metav1.Object
	var err error
	switch a.Kind {
	case machine.KindSet:
		live, err = r.api().MachineSets(d.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	case machine.KindMachine:
		live, err = r.api().Machines(d.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	case machine.KindNode:
		live, err = r.cfg.Target.CoreV1().Nodes().Get(ctx, a.Name, metav1.GetOptions{})
	default:
		return fmt.Errorf("unknown kind %q", a.Kind)
	}
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err == nil {
		r.expect(d, func(e machine.Expectations) machine.Expectations {
			return e.Looked(a.Kind, a.Name, live, r.cfg.Clock.Now())
		})
	}
	return err
}
