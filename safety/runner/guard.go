// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// Guard is a [machinerunner.Guard] that holds replacements back when many machines fail at once: see
// [safety.DecideGuard]. It remembers the permissions that the Reader does not show yet, and what it has
// reported, so use one Guard for all machines of a process. It is safe for concurrent use, and its fields
// must not be changed.
type Guard struct {
	// Machines is the Executor that the Guard is for, with the Reader of the Guard. Required.
	Machines *machinerunner.Executor
	// Policy is that of the decisions.
	Policy safety.GuardPolicy
	// Began is when this process began to act. Machines that were created before may replace others that
	// failed. Zero means the end of the first pass over a machine, which may have created others meanwhile.
	Began time.Time
	// Report receives the Events to report about a deployment, a set, or a machine without either. Nil
	// means none.
	Report func(o runtime.Object, e machinist.Event)

	mu     sync.Mutex
	memory safety.GuardMemory
	began  time.Time             // in whole seconds like creation timestamps
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

// Ask implements [machinerunner.Guard]: the first lists of a new process may not contain the failures of the
// process before it, so a permission is confirmed with the machines of the API server.
func (g *Guard) Ask(ctx context.Context, m *v1alpha1.Machine, vmGone bool, live []*v1alpha1.Machine) machinist.Hold {
	if m == nil || g.Machines == nil || g.Machines.Reader == nil {
		return machinist.Hold{Subject: "guard", Reason: machine.ReasonNotObserved, Message: "the guard has no Machines or no Reader"}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	member := g.member(ctx, m, vmGone, now)
	if live != nil {
		return g.decide(ctx, m, member, g.members(ctx, live, now), now)
	}
	before, ok := g.seen[m.Namespace]
	if ok && !before.at.After(now) && now.Sub(before.at) < reuse {
		if a := g.assess(ctx, m, member, before.members, now); a.Reason == safety.ReplacementsHeld {
			g.report(ctx, m, member, a, now)
			return a.Holds[0]
		}
	}
	return g.decide(ctx, m, member, g.look(ctx, m.Namespace, now), now)
}

func (g *Guard) decide(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) machinist.Hold {
	a := g.assess(ctx, m, member, members, now)
	if !member.VMGone || len(a.Holds) > 0 {
		g.report(ctx, m, member, a, now)
	}
	if len(a.Holds) > 0 {
		g.memory.Keep(string(m.UID))
		return a.Holds[0]
	}
	g.memory.Replace(member, now)
	return machinist.Hold{}
}

// Revoke removes the permission of a machine that did not fail.
func (g *Guard) Revoke(m *v1alpha1.Machine) {
	if m == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.memory.Keep(string(m.UID))
}

// Settle records whether the VM of a machine is not found, and a failed machine, also of an earlier process,
// before its set deletes it. It reports the recovery of the last failing machine of a group, after which
// no machine requests a permission.
func (g *Guard) Settle(ctx context.Context, m *v1alpha1.Machine, vmGone bool) {
	if m == nil || g.Machines == nil || g.Machines.Reader == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	member := g.member(ctx, m, vmGone, now)
	g.memory.Settle(member, m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed, now)
	if !g.memory.Reported(member) {
		return
	}
	for _, sibling := range g.Machines.SiblingsOf(ctx, m).Machines {
		if sibling.DeletionTimestamp == nil && g.zone(ctx, sibling) == member.Zone && !machine.FailingSince(sibling, g.Machines.Policy, now).IsZero() {
			return
		}
	}
	g.event(ctx, m, *g.memory.Resume(member, ""))
}

// now returns the time, and remembers that of the first call if Began is zero.
func (g *Guard) now() time.Time {
	now := runners.Now(g.Machines.Clock)
	if g.began.IsZero() {
		g.began = now.Truncate(time.Second)
		if !g.Began.IsZero() {
			g.began = g.Began.Truncate(time.Second)
		}
	}
	return now
}

func (g *Guard) assess(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, members []safety.GuardMember, now time.Time) safety.Decision[machinist.Action] {
	in := safety.GuardObservation{Machine: member, Members: members, Complete: true}
	if o := g.owner(ctx, m); o != nil {
		in.Override = o.GetAnnotations()[v1alpha1.ReplaceUntilAnnotation]
	}
	return safety.DecideGuard(in, g.Policy, now)
}

// look returns the machines of a namespace that the Reader has, and stores the snapshot.
func (g *Guard) look(ctx context.Context, namespace string, now time.Time) []safety.GuardMember {
	known, _ := objects.In[*v1alpha1.Machine](ctx, g.Machines.Reader, namespace) // a permission is confirmed with the API server
	machines := make([]*v1alpha1.Machine, 0, len(known))
	for _, m := range known {
		if m, exists := g.Machines.Latest(m); exists {
			machines = append(machines, m)
		}
	}
	if g.seen == nil {
		g.seen = map[string]population{}
	}
	maps.DeleteFunc(g.seen, func(_ string, p population) bool { return now.Sub(p.at) >= reuse })
	g.seen[namespace] = population{now, g.members(ctx, machines, now)}
	return g.seen[namespace].members
}

// members returns the guard members for the given machines and for failed machines that were deleted.
func (g *Guard) members(ctx context.Context, machines []*v1alpha1.Machine, now time.Time) []safety.GuardMember {
	all := make([]safety.GuardMember, 0, len(machines))
	for _, m := range machines {
		all = append(all, g.member(ctx, m, false, now)) // the memory knows
	}
	return g.memory.Members(all, now)
}

// member returns the guard member of a machine.
func (g *Guard) member(ctx context.Context, m *v1alpha1.Machine, vmGone bool, now time.Time) safety.GuardMember {
	member := safety.NewGuardMember(m, g.set(ctx, m), g.Machines.Policy, g.began, now)
	member.Pool, member.Zone, member.VMGone = runners.GroupOf(ctx, g.Machines.Reader, m).String(), g.zone(ctx, m), vmGone
	return member
}

// zone returns the zone of a machine: the label of its Node, or of its Node template.
func (g *Guard) zone(ctx context.Context, m *v1alpha1.Machine) string {
	if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" {
		if node, err := objects.Get[*corev1.Node](ctx, g.Machines.Reader, "", name); err == nil && node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
			return node.Labels[corev1.LabelTopologyZone]
		}
	}
	return m.Spec.NodeTemplateSpec.Labels[corev1.LabelTopologyZone]
}

// owner returns the MachineDeployment of a machine, or else its MachineSet, or nil.
func (g *Guard) owner(ctx context.Context, m *v1alpha1.Machine) owner {
	name := runners.GroupOf(ctx, g.Machines.Reader, m).Deployment
	if d, err := objects.Get[*v1alpha1.MachineDeployment](ctx, g.Machines.Reader, m.Namespace, name); err == nil && d != nil {
		return d
	}
	if s := g.set(ctx, m); s != nil {
		return s
	}
	return nil
}

// set returns the MachineSet of a machine, or nil.
func (g *Guard) set(ctx context.Context, m *v1alpha1.Machine) *v1alpha1.MachineSet {
	set, _ := runners.Owner[*v1alpha1.MachineSet](ctx, g.Machines.Reader, m)
	return set
}

// report reports when the reason of a group changes.
func (g *Guard) report(ctx context.Context, m *v1alpha1.Machine, member safety.GuardMember, a safety.Decision[machinist.Action], now time.Time) {
	if e := g.memory.Report(member, a, now); e != nil {
		g.event(ctx, m, *e)
	}
}

func (g *Guard) event(ctx context.Context, m *v1alpha1.Machine, e machinist.Event) {
	if g.Report == nil {
		return
	}
	if o := g.owner(ctx, m); o != nil {
		g.Report(o, e)
		return
	}
	g.Report(m, e)
}
