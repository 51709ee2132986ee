// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// takePermit decides whether a machine may fail: first the guard against correlated failures, then
// the replacement limit of its group.
func (r *machineReconciler) takePermit(ctx context.Context, in *machine.Observation, a machine.TakePermit) error {
	in.Permit = machine.PermitView{Asked: true, Within: a.Within}
	if h := r.failures.ask(in.Machine, a.VMGone, r.cfg.Clock.Now()); h.Reason != "" {
		in.Permit.Refused = h
		return nil
	}
	if a.Within == 0 { // the group has no limit
		in.Permit.Held = true
		return nil
	}
	if _, refused := r.permits.AcquireWithin(a.Within, a.Key, a.Holder, r.cfg.Clock.Now()); refused != nil {
		r.failures.revoke(in.Machine.UID)
		in.Permit.Refused.Until = refused.RetryAt
		return nil
	}
	in.Permit.Held = true
	live, err := liveMachines(ctx, r.cfg.Machines, in.Machine.Namespace, nil)
	if err != nil {
		return err
	}
	// The siblings are counted again while the permit is held.
	in.Siblings = r.groups.among(in.Machine, slices.Clone(live))
	if h := r.failures.confirm(in.Machine, a.VMGone, live, r.cfg.Clock.Now()); h.Reason != "" {
		r.permits.Release(a.Key, a.Holder, r.cfg.Clock.Now())
		in.Permit.Held, in.Permit.Refused = false, h
	}
	return nil
}

// failureGuard holds replacements back when many machines fail at once: see [safety.DecideGuard]. It
// remembers the permissions that caches do not show yet, and the reported actions. It is safe for
// several goroutines.
type failureGuard struct {
	cfg        *Config
	machines   listers.MachineLister
	deployment func(namespace, name string) *v1alpha1.MachineDeployment // nil if there is none
	groups     *groups
	node       func(name string) (*corev1.Node, error)
	written    *written[*v1alpha1.Machine]
	began      time.Time // the start of this process, in whole seconds like creation timestamps

	mu     sync.Mutex
	memory safety.GuardMemory
	seen   map[string]population // by namespace
}

// population is a snapshot of the machines of a namespace.
type population struct {
	at      time.Time
	members []safety.GuardMember
}

// reuse is how long a snapshot is used for other machines. A hold may last longer by this time. No
// permission is based on a reused snapshot.
const reuse = time.Second

func newFailureGuard(cfg *Config, c *caches, g *groups, written *written[*v1alpha1.Machine]) *failureGuard {
	api := c.machines.Machine().V1alpha1()
	f := &failureGuard{
		cfg: cfg, machines: api.Machines().Lister(), groups: g, written: written, began: cfg.Clock.Now().Truncate(time.Second),
		deployment: func(_, _ string) *v1alpha1.MachineDeployment { return nil },
		node:       c.node, seen: map[string]population{},
	}
	if c.part != MachinesAlone {
		lister := api.MachineDeployments().Lister()
		f.deployment = func(namespace, name string) *v1alpha1.MachineDeployment {
			return orNil(lister.MachineDeployments(namespace).Get(name))
		}
	}
	return f
}

// ask returns the hold of a machine that may not fail. A hold without a reason means that the
// machine may fail, and counts as failed from now on.
func (f *failureGuard) ask(m *v1alpha1.Machine, vmGone bool, now time.Time) machinist.Hold {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return machinist.Hold{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	member := f.member(m, vmGone, now)
	before, ok := f.seen[m.Namespace]
	if ok && !before.at.After(now) && now.Sub(before.at) < reuse {
		if a := f.assess(m, member, before.members, now); a.Reason == safety.ReplacementsHeld {
			f.report(m, member, a, now)
			return a.Holds[0]
		}
	}
	return f.decide(m, member, f.look(m.Namespace, now), now)
}

// confirm is ask with the machines of the API server. The first lists of a new process may not
// contain the failures of the process before it.
func (f *failureGuard) confirm(m *v1alpha1.Machine, vmGone bool, live []*v1alpha1.Machine, now time.Time) machinist.Hold {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return machinist.Hold{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decide(m, f.member(m, vmGone, now), f.members(live, now), now)
}

func (f *failureGuard) decide(m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) machinist.Hold {
	a := f.assess(m, member, members, now)
	if !member.VMGone || len(a.Holds) > 0 {
		f.report(m, member, a, now)
	}
	if len(a.Holds) > 0 {
		f.memory.Keep(string(m.UID))
		return a.Holds[0]
	}
	f.memory.Replace(member, now)
	return machinist.Hold{}
}

// revoke removes the permission of a machine that did not fail.
func (f *failureGuard) revoke(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory.Keep(string(uid))
}

func (f *failureGuard) assess(m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) safety.Decision[machinist.Action] {
	in := safety.GuardObservation{Machine: member, Members: members, Complete: true}
	if owner := f.owner(m); owner != nil {
		in.Override = owner.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation]
	}
	return safety.DecideGuard(in, f.cfg.Guard, now)
}

// look returns the machines of a namespace in the cache, and stores the snapshot.
func (f *failureGuard) look(namespace string, now time.Time) []safety.GuardMember {
	cached, _ := f.machines.Machines(namespace).List(labels.Everything()) // a lister returns no errors
	machines := make([]*v1alpha1.Machine, 0, len(cached))
	for _, m := range cached {
		if m, exists := f.written.newest(m); exists {
			machines = append(machines, m)
		}
	}
	f.seen[namespace] = population{now, f.members(machines, now)}
	return f.seen[namespace].members
}

// members returns the guard members for the given machines and for failed machines that were deleted.
func (f *failureGuard) members(machines []*v1alpha1.Machine, now time.Time) []safety.GuardMember {
	all := make([]safety.GuardMember, 0, len(machines))
	for _, m := range machines {
		all = append(all, f.member(m, false, now)) // the memory knows
	}
	return f.memory.Members(all, now)
}

// member returns the guard member of a machine.
func (f *failureGuard) member(m *v1alpha1.Machine, vmGone bool, now time.Time) safety.GuardMember {
	var set *v1alpha1.MachineSet
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		set = f.groups.set(m.Namespace, owner.Name)
	}
	member := safety.NewGuardMember(m, set, f.cfg.Policy, f.began, now)
	member.Pool, member.Zone, member.VMGone = f.groups.of(m).String(), f.zone(m), vmGone
	return member
}

// zone returns the zone of a machine: the label of its Node, or of its Node template.
func (f *failureGuard) zone(m *v1alpha1.Machine) string {
	if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" && f.node != nil {
		if node, err := f.node(name); err == nil && node.Labels[corev1.LabelTopologyZone] != "" {
			return node.Labels[corev1.LabelTopologyZone]
		}
	}
	return m.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]
}

// owned is an object that owns machines.
type owned interface {
	metav1.Object
	runtime.Object
}

// owner returns the MachineDeployment of a machine, or else its MachineSet, or nil.
func (f *failureGuard) owner(m *v1alpha1.Machine) owned {
	group := f.groups.of(m)
	if d := f.deployment(m.Namespace, group.Deployment); d != nil {
		return d
	}
	if s := f.groups.set(m.Namespace, group.Set); s != nil {
		return s
	}
	return nil
}

// report records an Event when the reason of a group changes.
func (f *failureGuard) report(m *v1alpha1.Machine, member safety.GuardMember, a safety.Decision[machinist.Action], now time.Time) {
	if e := f.memory.Report(member, a, now); e != nil {
		f.event(m, *e)
	}
}

func (f *failureGuard) event(m *v1alpha1.Machine, e machinist.Event) {
	if owner := f.owner(m); owner != nil {
		f.cfg.event(owner, e)
		return
	}
	f.cfg.event(m, e)
}

// settle records whether the VM of a machine is not found, and a failed machine, also of an earlier
// process, before its set deletes it. It reports the recovery of the last failing machine of a group,
// after which no machine requests a permission.
func (f *failureGuard) settle(m *v1alpha1.Machine, vmGone bool, now time.Time) {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	member := f.member(m, vmGone, now)
	f.memory.Settle(member, m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed, now)
	if !f.memory.Reported(member) {
		return
	}
	for _, sibling := range f.groups.siblings(m).Machines {
		if sibling.DeletionTimestamp == nil && f.zone(sibling) == member.Zone && !machine.FailingSince(sibling, f.cfg.Policy, now).IsZero() {
			return
		}
	}
	f.event(m, *f.memory.Resume(member, ""))
}
