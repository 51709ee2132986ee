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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	expected   perObject[machine.Expectations]
	counted    perObject[time.Time] // when the status was last written
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
		r.expected.forget(d.UID)
		r.counted.forget(d.UID)
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
		nodes := c.target.Core().V1().Nodes()
		r.node = nodes.Lister().Get
		on(nodes.Informer(), func(before, after *corev1.Node) {
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
		if err := writeClaims(ctx, claims, machineset.OwnerDeployment(live), live, r.api().MachineSets(key.Namespace).Patch); err != nil {
			return time.Time{}, err
		}
	}
	return r.advance(ctx, in, plan)
}

// onlyNodes reports whether all actions write Nodes.
func onlyNodes(actions []deployment.Action) bool {
	return !slices.ContainsFunc(actions, func(a deployment.Action) bool { _, node := a.(deployment.WriteNode); return !node })
}

// observe returns the observation of a deployment: its sets, their machines, and the Nodes of the
// machines.
func (r *machineDeploymentReconciler) observe(d *api.MachineDeployment) (deployment.Observation, machineset.Claims[*api.MachineSet]) {
	in := deployment.Observation{Deployment: d, Nodes: map[string]*corev1.Node{}, NoCluster: r.node == nil, Freeze: r.cfg.freeze.now()}
	// Expectations are read before the lists, so that the lists are at least as new.
	in.Expectations = r.expected.change(d.UID, func(e machine.Expectations) machine.Expectations {
		return e.Observe(func(kind, name string) metav1.Object { return r.find(d.Namespace, kind, name) }, true)
	})
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

// find returns an object of the caches, whatever deployment it belongs to, or nil.
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
	if _, node := last.(deployment.WriteNode); failed != nil && !node {
		plan.Status.ObservedGeneration = observed // the other actions were not tried
	}
	if create, ok := last.(deployment.CreateSet); ok && apierrors.IsAlreadyExists(failed) && in.NameTakenBy == nil {
		taken, lookErr := r.api().MachineSets(d.Namespace).Get(ctx, create.Set.Name, metav1.GetOptions{})
		if lookErr == nil {
			in.NameTakenBy = taken
			return r.advance(ctx, in, deployment.Decide(in, r.cfg.Deployments, r.cfg.Clock.Now())) // which knows the set that has the name
		}
		err = errors.Join(err, lookErr)
	} else if ok && failed != nil && ctx.Err() == nil {
		status, event := deployment.CreateFailed(d.Status, create.Set.Name, failed, r.cfg.Clock.Now())
		plan.Status, plan.WriteStatus, plan.Events = status, true, append(plan.Events, event)
	}
	due := r.counted.get(d.UID).Add(counterInterval)
	if plan.WriteStatus && due.After(now) && len(plan.Events) == 0 && onlyCounters(d.Status, plan.Status) {
		plan.WriteStatus, plan.NextCheck = false, machinist.Earliest(plan.NextCheck, due)
	}
	if plan.WriteStatus {
		d.Status = plan.Status
		written, statusErr := r.api().MachineDeployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		if statusErr != nil {
			return plan.NextCheck, errors.Join(err, ignoreNotFound(statusErr)) // the next pass has the same events
		}
		r.written.put(written)
		r.counted.change(d.UID, func(time.Time) time.Time { return now })
	}
	for _, e := range plan.Events {
		r.cfg.event(d, e)
	}
	return plan.NextCheck, err
}

// counterInterval is how long a status waits after the last one if nothing but counters and the time of
// the last progress is new. Each machine of a rollout changes them, and no decision waits for them.
const counterInterval = time.Second

// onlyCounters reports whether two statuses differ in numbers of machines and the times of progress
// only.
func onlyCounters(a, b api.MachineDeploymentStatus) bool {
	b.Replicas, b.UpdatedReplicas, b.ReadyReplicas, b.AvailableReplicas, b.UnavailableReplicas =
		a.Replicas, a.UpdatedReplicas, a.ReadyReplicas, a.AvailableReplicas, a.UnavailableReplicas
	return equality.Semantic.DeepEqual(withoutProgress(a), withoutProgress(b))
}

func withoutProgress(s api.MachineDeploymentStatus) *api.MachineDeploymentStatus {
	out := s.DeepCopy()
	for i := range out.Conditions {
		out.Conditions[i].LastUpdateTime = metav1.Time{}
	}
	return out
}

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
func (r *machineDeploymentReconciler) apply(ctx context.Context, d *api.MachineDeployment, actions []deployment.Action) (last deployment.Action, failed error) {
	nodes := slices.IndexFunc(actions, func(a deployment.Action) bool { _, node := a.(deployment.WriteNode); return node })
	if nodes < 0 {
		nodes = len(actions)
	}
	for _, last = range actions[:nodes] {
		if failed = r.applyOne(ctx, d, last); failed != nil {
			return last, fmt.Errorf("%s: %w", last, failed)
		}
		if e := last.Event(); e != nil {
			r.cfg.event(d, *e)
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
func (r *machineDeploymentReconciler) applyOne(ctx context.Context, d *api.MachineDeployment, action deployment.Action) error {
	switch a := action.(type) {
	case deployment.WriteDeployment:
		written, err := r.api().MachineDeployments(d.Namespace).Update(ctx, a.Deployment, metav1.UpdateOptions{})
		if err == nil {
			*d = *written.DeepCopy() // the status is written after this
			r.written.put(written)
		}
		return ignoreNotFound(err)
	case deployment.CreateSet:
		r.cfg.own(a.Set)
		return r.expect(d, machine.Expectations.Created)(r.api().MachineSets(d.Namespace).Create(ctx, a.Set, metav1.CreateOptions{}))
	case deployment.WriteSet:
		return r.expect(d, machine.Expectations.Updated)(r.api().MachineSets(d.Namespace).Update(ctx, a.Set, metav1.UpdateOptions{}))
	case deployment.WriteMachine:
		return r.expect(d, machine.Expectations.Updated)(r.api().Machines(d.Namespace).Update(ctx, a.Machine, metav1.UpdateOptions{}))
	case deployment.WriteNode:
		patch, err := a.Patch()
		if err != nil {
			return err
		}
		return r.expect(d, machine.Expectations.Updated)(r.cfg.Target.CoreV1().Nodes().Patch(ctx, a.Node.Name, types.MergePatchType, patch, metav1.PatchOptions{}))
	case deployment.DeleteSet:
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))}
		if a.ResourceVersion != "" {
			options.Preconditions.ResourceVersion = &a.ResourceVersion
		}
		return ignoreNotFound(r.api().MachineSets(d.Namespace).Delete(ctx, a.Name, options))
	case deployment.Look:
		return r.look(ctx, d, a)
	default:
		return fmt.Errorf("unknown action %T", action)
	}
}

// expect records a write until the caches show it.
func (r *machineDeploymentReconciler) expect(d *api.MachineDeployment, record func(machine.Expectations, metav1.Object, time.Time) machine.Expectations) func(metav1.Object, error) error {
	return func(o metav1.Object, err error) error {
		if err == nil {
			r.expected.change(d.UID, func(e machine.Expectations) machine.Expectations { return record(e, o, r.cfg.Clock.Now()) })
		}
		return ignoreNotFound(err)
	}
}

// look reads an object from the API server if the caches do not show the expected write.
func (r *machineDeploymentReconciler) look(ctx context.Context, d *api.MachineDeployment, a deployment.Look) error {
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
		r.expected.change(d.UID, func(e machine.Expectations) machine.Expectations {
			return e.Looked(a.Kind, a.Name, live, r.cfg.Clock.Now())
		})
	}
	return err
}
