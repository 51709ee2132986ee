// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// failureGuard holds replacements back when many machines fail at once: see [safety.DecideGuard]. It
// remembers the permissions that caches do not show yet, and the reported actions. It is safe for
// several goroutines.
type failureGuard struct {
	cfg        *Config
	machines   listers.MachineLister
	deployment func(namespace, name string) *v1alpha1.MachineDeployment // nil if there is none
	reader     runner.Reader
	executor   *runner.Executor
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

// newFailureGuard returns the guard, or nil if the policy switches it off.
func newFailureGuard(cfg *Config, c *caches, reader runner.Reader, executor *runner.Executor) *failureGuard {
	if cfg.Guard == (safety.GuardPolicy{}) {
		return nil
	}
	api := c.machines.Machine().V1alpha1()
	f := &failureGuard{
		cfg: cfg, machines: api.Machines().Lister(), reader: reader, executor: executor, began: cfg.Clock.Now().Truncate(time.Second),
		deployment: func(_, _ string) *v1alpha1.MachineDeployment { return nil }, seen: map[string]population{},
	}
	if cfg.Part != MachinesAlone {
		lister := api.MachineDeployments().Lister()
		f.deployment = func(namespace, name string) *v1alpha1.MachineDeployment {
			return orNil(lister.MachineDeployments(namespace).Get(name))
		}
	}
	return f
}

// Ask implements [runner.Guard]: the first lists of a new process may not contain the failures of the process
// before it, so a permission is confirmed with the machines of the API server.
func (f *failureGuard) Ask(ctx context.Context, m *v1alpha1.Machine, vmGone bool, live []*v1alpha1.Machine) machinist.Hold {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Clock.Now()
	member := f.member(ctx, m, vmGone, now)
	if live != nil {
		return f.decide(ctx, m, member, f.members(ctx, live, now), now)
	}
	before, ok := f.seen[m.Namespace]
	if ok && !before.at.After(now) && now.Sub(before.at) < reuse {
		if a := f.assess(ctx, m, member, before.members, now); a.Reason == safety.ReplacementsHeld {
			f.report(ctx, m, member, a, now)
			return a.Holds[0]
		}
	}
	return f.decide(ctx, m, member, f.look(ctx, m.Namespace, now), now)
}

func (f *failureGuard) decide(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) machinist.Hold {
	a := f.assess(ctx, m, member, members, now)
	if !member.VMGone || len(a.Holds) > 0 {
		f.report(ctx, m, member, a, now)
	}
	if len(a.Holds) > 0 {
		f.memory.Keep(string(m.UID))
		return a.Holds[0]
	}
	f.memory.Replace(member, now)
	return machinist.Hold{}
}

// Revoke removes the permission of a machine that did not fail.
func (f *failureGuard) Revoke(m *v1alpha1.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory.Keep(string(m.UID))
}

func (f *failureGuard) assess(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) safety.Decision[machinist.Action] {
	in := safety.GuardObservation{Machine: member, Members: members, Complete: true}
	if owner := f.owner(ctx, m); owner != nil {
		in.Override = owner.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation]
	}
	return safety.DecideGuard(in, f.cfg.Guard, now)
}

// look returns the machines of a namespace in the cache, and stores the snapshot.
func (f *failureGuard) look(ctx context.Context, namespace string, now time.Time) []safety.GuardMember {
	cached, _ := f.machines.Machines(namespace).List(labels.Everything()) // a lister returns no errors
	machines := make([]*v1alpha1.Machine, 0, len(cached))
	for _, m := range cached {
		if m, exists := f.executor.Latest(m); exists {
			machines = append(machines, m)
		}
	}
	f.seen[namespace] = population{now, f.members(ctx, machines, now)}
	return f.seen[namespace].members
}

// members returns the guard members for the given machines and for failed machines that were deleted.
func (f *failureGuard) members(ctx context.Context, machines []*v1alpha1.Machine, now time.Time) []safety.GuardMember {
	all := make([]safety.GuardMember, 0, len(machines))
	for _, m := range machines {
		all = append(all, f.member(ctx, m, false, now)) // the memory knows
	}
	return f.memory.Members(all, now)
}

// member returns the guard member of a machine.
func (f *failureGuard) member(ctx context.Context, m *v1alpha1.Machine, vmGone bool, now time.Time) safety.GuardMember {
	set := f.set(ctx, m)
	member := safety.NewGuardMember(m, set, f.cfg.Policy, f.began, now)
	member.Pool, member.Zone, member.VMGone = runners.GroupOf(ctx, f.reader, m).String(), f.zone(ctx, m), vmGone
	return member
}

// zone returns the zone of a machine: the label of its Node, or of its Node template.
func (f *failureGuard) zone(ctx context.Context, m *v1alpha1.Machine) string {
	if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" {
		if node, err := f.reader.Node(ctx, name); err == nil && node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
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
func (f *failureGuard) owner(ctx context.Context, m *v1alpha1.Machine) owned {
	if d := f.deployment(m.Namespace, runners.GroupOf(ctx, f.reader, m).Deployment); d != nil {
		return d
	}
	if s := f.set(ctx, m); s != nil {
		return s
	}
	return nil
}

// set returns the MachineSet of a machine, or nil.
func (f *failureGuard) set(ctx context.Context, m *v1alpha1.Machine) *v1alpha1.MachineSet {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		set, _ := f.reader.Set(ctx, types.NamespacedName{Namespace: m.Namespace, Name: owner.Name})
		return set
	}
	return nil
}

// report records an Event when the reason of a group changes.
func (f *failureGuard) report(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, a safety.Decision[machinist.Action], now time.Time) {
	if e := f.memory.Report(member, a, now); e != nil {
		f.event(ctx, m, *e)
	}
}

func (f *failureGuard) event(ctx context.Context, m *v1alpha1.Machine, e machinist.Event) {
	if owner := f.owner(ctx, m); owner != nil {
		f.cfg.event(owner, e)
		return
	}
	f.cfg.event(m, e)
}

// Settle records whether the VM of a machine is not found, and a failed machine, also of an earlier process,
// before its set deletes it. It reports the recovery of the last failing machine of a group, after which
// no machine requests a permission.
func (f *failureGuard) Settle(ctx context.Context, m *v1alpha1.Machine, vmGone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Clock.Now()
	member := f.member(ctx, m, vmGone, now)
	f.memory.Settle(member, m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed, now)
	if !f.memory.Reported(member) {
		return
	}
	for _, sibling := range f.executor.SiblingsOf(ctx, m).Machines {
		if sibling.DeletionTimestamp == nil && f.zone(ctx, sibling) == member.Zone && !machine.FailingSince(sibling, f.cfg.Policy, now).IsZero() {
			return
		}
	}
	f.event(ctx, m, *f.memory.Resume(member, ""))
}
