// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
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
	live, err := r.liveMachines(ctx, in.Machine.Namespace)
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

// failureGuard tells correlated failures of machines from independent ones; see
// [safety.DecideGuard]. It remembers the permissions that caches do not show yet, and the reported
// actions. It is safe for several goroutines.
type failureGuard struct {
	cfg        *Config
	machines   listers.MachineLister
	deployment func(namespace, name string) *v1alpha1.MachineDeployment // nil if there is none
	groups     *groups
	node       func(name string) (*corev1.Node, error)
	written    *written[*v1alpha1.Machine]
	began      time.Time // the start of this process, in whole seconds like creation timestamps

	mu       sync.Mutex
	granted  map[types.UID]safety.GuardMember // machines with a permission to fail
	reported map[reportKey]reportedAction     // reported actions other than ReplaceAll
	seen     map[string]population            // by namespace
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
		granted:    map[types.UID]safety.GuardMember{}, reported: map[reportKey]reportedAction{}, seen: map[string]population{},
	}
	if c.part != MachinesAlone {
		lister := api.MachineDeployments().Lister()
		f.deployment = func(namespace, name string) *v1alpha1.MachineDeployment {
			d, err := lister.MachineDeployments(namespace).Get(name)
			if err != nil {
				return nil
			}
			return d
		}
	}
	if c.target != nil {
		f.node = c.target.Core().V1().Nodes().Lister().Get
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
	before, ok := f.seen[m.Namespace]
	if ok && !before.at.After(now) && now.Sub(before.at) < reuse {
		if a := f.assess(m, vmGone, before.members, now); a.Action == safety.ReplaceNone {
			f.report(m, a, now)
			return a.Holds[0]
		}
	}
	return f.decide(m, vmGone, f.look(m.Namespace, now), now)
}

// confirm is ask with the machines of the API server. The first lists of a new process may not
// contain the failures of the process before it.
func (f *failureGuard) confirm(m *v1alpha1.Machine, vmGone bool, live []*v1alpha1.Machine, now time.Time) machinist.Hold {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return machinist.Hold{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decide(m, vmGone, f.members(live, now), now)
}

func (f *failureGuard) decide(m *v1alpha1.Machine, vmGone bool, members []safety.GuardMember, now time.Time) machinist.Hold {
	a := f.assess(m, vmGone, members, now)
	if !vmGone {
		f.report(m, a, now)
	}
	if len(a.Holds) > 0 {
		delete(f.granted, m.UID)
		return a.Holds[0]
	}
	member := f.member(m, now)
	member.Available, member.FailingSince, member.ReplacedAt = false, time.Time{}, now
	f.granted[m.UID] = member
	return machinist.Hold{}
}

// revoke removes the permission of a machine that did not fail.
func (f *failureGuard) revoke(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.granted, uid)
}

func (f *failureGuard) assess(m *v1alpha1.Machine, vmGone bool, members []safety.GuardMember, now time.Time) safety.GuardDecision {
	in := safety.GuardObservation{Machine: f.member(m, now), VMGone: vmGone, Members: members, Complete: true}
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

// members returns the guard members for the given machines and for failed machines that were
// deleted. They are sorted by FailingSince, the latest first, so that decisions need not sort.
func (f *failureGuard) members(machines []*v1alpha1.Machine, now time.Time) []safety.GuardMember {
	all := make([]safety.GuardMember, 0, len(machines)+len(f.granted))
	found := map[string]bool{}
	for _, m := range machines {
		member := f.member(m, now)
		if grant, ok := f.granted[m.UID]; ok {
			found[member.ID] = true
			if grant.ReplacedAt.After(member.ReplacedAt) {
				member.ReplacedAt = grant.ReplacedAt
			}
		}
		all = append(all, member)
	}
	for uid, grant := range f.granted {
		if now.Sub(grant.ReplacedAt) > grantTime {
			delete(f.granted, uid)
		} else if !found[grant.ID] {
			all = append(all, grant)
		}
	}
	slices.SortFunc(all, func(a, b safety.GuardMember) int { return b.FailingSince.Compare(a.FailingSince) })
	return all
}

// grantTime is how long a permission is remembered. It is longer than the window in which the guard
// counts replacements.
const grantTime = time.Hour

// replacing is the longest time in which a set creates a replacement.
const replacing = time.Minute

// mayReplace reports whether a machine may replace one that failed before this process began.
func (f *failureGuard) mayReplace(m *v1alpha1.Machine) bool {
	created := m.CreationTimestamp.Time
	if !created.Before(f.began.Add(replacing)) || created.Before(f.began.Add(-grantTime)) {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		return created.Before(f.began)
	}
	set := f.groups.set(m.Namespace, owner.Name)
	return created.Before(f.began) || set != nil && set.CreationTimestamp.Time.Before(f.began)
}

// member returns the guard member of a machine.
func (f *failureGuard) member(m *v1alpha1.Machine, now time.Time) safety.GuardMember {
	status, going := m.Status.CurrentStatus, m.DeletionTimestamp != nil
	traits := machine.TraitsOf(status.Phase)
	member := safety.GuardMember{
		ID: string(m.UID), Pool: f.groups.of(m).String(), Zone: f.zone(m),
		Available: !going && (traits.Available || traits.Updating), FailingSince: machine.FailingSince(m, f.cfg.Policy, now),
	}
	switch failing := !member.FailingSince.IsZero(); {
	case going && failing:
		member.ReplacedAt = m.DeletionTimestamp.Time
	case status.Phase == v1alpha1.MachineFailed:
		member.ReplacedAt = status.LastUpdateTime.Time
	case !going && !failing && f.mayReplace(m):
		member.ReplacedAt = m.CreationTimestamp.Time
	}
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

// reportKey is the unit of reports: the machines of a group in a zone.
type reportKey struct {
	group machine.Group
	zone  string
}

// reportedAction is a reported action, and the time of its last confirmation.
type reportedAction struct {
	action safety.GuardAction
	at     time.Time
}

// reportPause is how long an action must be unconfirmed before a less strict one is reported. Held
// machines ask every minute, and some may be held longer than others.
const reportPause = 2 * time.Minute

// report records an Event when the action of a group changes.
func (f *failureGuard) report(m *v1alpha1.Machine, a safety.GuardDecision, now time.Time) {
	key := f.reportKey(m)
	before := f.reported[key]
	switch {
	case a.Action < before.action && now.Sub(before.at) < reportPause:
	case a.Action == before.action:
		if a.Action > safety.ReplaceAll {
			f.reported[key] = reportedAction{a.Action, now}
		}
	case a.Action == safety.ReplaceAll:
		f.resume(m, key, a.Message)
	default:
		f.reported[key] = reportedAction{a.Action, now}
		f.event(m, machinist.Event{Type: corev1.EventTypeWarning, Reason: a.Reason, Message: a.Message})
	}
}

func (f *failureGuard) reportKey(m *v1alpha1.Machine) reportKey {
	return reportKey{f.groups.of(m), f.zone(m)}
}

// replacementsResumed is the reason of the Event that machines are replaced as usual.
const replacementsResumed machinist.Reason = "ReplacementsResumed"

func (f *failureGuard) resume(m *v1alpha1.Machine, key reportKey, why string) {
	delete(f.reported, key)
	message := cmp.Or(why, "its machines no longer fail all at once") + "; they are replaced as usual"
	f.event(m, machinist.Event{Type: corev1.EventTypeNormal, Reason: replacementsResumed, Message: message})
}

func (f *failureGuard) event(m *v1alpha1.Machine, e machinist.Event) {
	if owner := f.owner(m); owner != nil {
		f.cfg.event(owner, e)
		return
	}
	f.cfg.event(m, e)
}

// settle records a failed machine, also of an earlier process, before its set deletes it. It
// reports the recovery of the last failing machine of a group, after which no machine asks any
// more.
func (f *failureGuard) settle(m *v1alpha1.Machine, now time.Time) {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.granted[m.UID]; !known && (m.DeletionTimestamp != nil || m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed) {
		if member := f.member(m, now); !member.ReplacedAt.IsZero() && now.Sub(member.ReplacedAt) <= grantTime {
			member.FailingSince = time.Time{}
			f.granted[m.UID] = member
		}
	}
	if len(f.reported) == 0 {
		return
	}
	key := f.reportKey(m)
	if _, reported := f.reported[key]; !reported {
		return
	}
	for _, sibling := range f.groups.siblings(m).Machines {
		if sibling.DeletionTimestamp == nil && f.zone(sibling) == key.zone && !machine.FailingSince(sibling, f.cfg.Policy, now).IsZero() {
			return
		}
	}
	f.resume(m, key, "")
}
