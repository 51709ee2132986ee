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

// takePermit answers whether a machine may be failed, which is asked here alone: the guard
// against correlated failures first, then the limit of replacements of its group.
func (r *machines) takePermit(ctx context.Context, in *machine.Observation, a machine.TakePermit) error {
	in.Permit = machine.PermitView{Asked: true, Within: a.Within}
	if h := r.failures.ask(in.Machine, a.VMGone, r.cfg.Clock.Now()); h.Reason != "" {
		in.Permit.Refused = h
		return nil
	}
	if a.Within == 0 { // nothing else is limited
		in.Permit.Held = true
		return nil
	}
	if _, refused := r.permits.AcquireWithin(a.Within, a.Key, a.Holder, r.cfg.Clock.Now()); refused != nil {
		r.failures.giveBack(in.Machine.UID)
		in.Permit.Refused.Until = refused.RetryAt
		return nil
	}
	in.Permit.Held = true
	live, err := r.liveMachines(ctx, in.Machine.Namespace)
	if err != nil {
		return err
	}
	// With the permit in hand, they are counted again.
	in.Siblings = r.groups.among(in.Machine, slices.Clone(live))
	if h := r.failures.confirm(in.Machine, a.VMGone, live, r.cfg.Clock.Now()); h.Reason != "" {
		r.permits.Release(a.Key, a.Holder, r.cfg.Clock.Now())
		in.Permit.Held, in.Permit.Refused = false, h
	}
	return nil
}

// failureGuard tells failures of machines that are one event from independent ones; see
// [safety.DecideGuard]. What it remembers is what caches do not show yet, and the verdicts that
// were told. It is safe for several goroutines.
type failureGuard struct {
	cfg        *Config
	machines   listers.MachineLister
	deployment func(namespace, name string) *v1alpha1.MachineDeployment // nil if there is none
	groups     *groups
	node       func(name string) (*corev1.Node, error)
	written    *written[*v1alpha1.Machine]
	began      time.Time // when this process began to grant, in whole seconds as creation timestamps

	mu      sync.Mutex
	granted map[types.UID]safety.GuardMember // machines that may be failed, and since when
	told    map[tellKey]toldVerdict          // verdicts other than Replace
	seen    map[string]population            // by namespace
}

// population are the machines of a namespace as they were once.
type population struct {
	at      time.Time
	members []safety.GuardMember
}

// reuse is for how long machines that were counted answer also others: a hold that is based
// on them is at most so much too long. Nothing is granted on them.
const reuse = time.Second

func newFailureGuard(cfg *Config, c *caches, g *groups, written *written[*v1alpha1.Machine]) *failureGuard {
	api := c.machines.Machine().V1alpha1()
	f := &failureGuard{
		cfg: cfg, machines: api.Machines().Lister(), groups: g, written: written, began: cfg.Clock.Now().Truncate(time.Second),
		deployment: func(_, _ string) *v1alpha1.MachineDeployment { return nil },
		granted:    map[types.UID]safety.GuardMember{}, told: map[tellKey]toldVerdict{}, seen: map[string]population{},
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

// ask returns what a machine waits for before it may be failed; without a reason it may
// be, and counts as failed from now on.
func (f *failureGuard) ask(m *v1alpha1.Machine, vmGone bool, now time.Time) machinist.Hold {
	if f.cfg.Guard == (safety.GuardPolicy{}) {
		return machinist.Hold{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.seen[m.Namespace]
	if ok && !before.at.After(now) && now.Sub(before.at) < reuse {
		if a := f.assess(m, vmGone, before.members, now); a.Action == safety.ReplaceNone {
			f.tell(m, a, now)
			return a.Holds[0]
		}
	}
	return f.decide(m, vmGone, f.look(m.Namespace, now), now)
}

// confirm is ask with the machines as the API server shows them: the first lists of a
// controller that begins may not show yet what the one before it has failed.
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
		f.tell(m, a, now)
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

// giveBack forgets that a machine may be failed: it was not.
func (f *failureGuard) giveBack(uid types.UID) {
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

// look counts the machines of a namespace that the cache shows.
func (f *failureGuard) look(namespace string, now time.Time) []safety.GuardMember {
	cached, _ := f.machines.Machines(namespace).List(labels.Everything()) // it never fails
	machines := make([]*v1alpha1.Machine, 0, len(cached))
	for _, m := range cached {
		if m, exists := f.written.newest(m); exists {
			machines = append(machines, m)
		}
	}
	f.seen[namespace] = population{now, f.members(machines, now)}
	return f.seen[namespace].members
}

// members returns what the guard needs to know of machines, and of those that were failed
// and are gone. Those that failed last come last, which spares every decision the sorting.
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

// grantTime is for how long a machine that may be failed is remembered, longer than the
// window in which replacements count.
const grantTime = time.Hour

// replacing is how long a set takes at most to create a machine in place of another.
const replacing = time.Minute

// mayReplace says whether a machine may have been created in place of one that was failed
// before this process began, and of which it does not know therefore.
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

// member returns what the guard needs to know of one machine.
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

// zone returns the failure domain of a machine: that of its Node, or of the Node that is to
// come.
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

// owner returns the MachineDeployment of a machine, or the MachineSet of one without. Nil
// is none.
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

// tellKey is what has one verdict: the machines of a group in a zone.
type tellKey struct {
	group machine.Group
	zone  string
}

// toldVerdict is a verdict that was reported, and when it was last confirmed.
type toldVerdict struct {
	verdict safety.GuardAction
	at      time.Time
}

// tellPause is for how long a verdict has to be unconfirmed before a less strict one is
// reported. Machines that are held ask every minute, and some of them may be held longer
// than others.
const tellPause = 2 * time.Minute

// tell reports a verdict once, when it differs from the last one of its machines.
func (f *failureGuard) tell(m *v1alpha1.Machine, a safety.GuardDecision, now time.Time) {
	key := f.tellKey(m)
	before := f.told[key]
	switch {
	case a.Action < before.verdict && now.Sub(before.at) < tellPause:
	case a.Action == before.verdict:
		if a.Action > safety.ReplaceAll {
			f.told[key] = toldVerdict{a.Action, now}
		}
	case a.Action == safety.ReplaceAll:
		f.resume(m, key, a.Message)
	default:
		f.told[key] = toldVerdict{a.Action, now}
		f.event(m, machinist.Event{Type: corev1.EventTypeWarning, Reason: a.Reason, Message: a.Message})
	}
}

func (f *failureGuard) tellKey(m *v1alpha1.Machine) tellKey {
	return tellKey{f.groups.of(m), f.zone(m)}
}

// replacementsResumed is the reason of the Event that machines are replaced as usual.
const replacementsResumed machinist.Reason = "ReplacementsResumed"

func (f *failureGuard) resume(m *v1alpha1.Machine, key tellKey, why string) {
	delete(f.told, key)
	message := cmp.Or(why, "its machines do not fail all at once any more") + "; they are replaced as usual"
	f.event(m, machinist.Event{Type: corev1.EventTypeNormal, Reason: replacementsResumed, Message: message})
}

func (f *failureGuard) event(m *v1alpha1.Machine, e machinist.Event) {
	if owner := f.owner(m); owner != nil {
		f.cfg.event(owner, e)
		return
	}
	f.cfg.event(m, e)
}

// settle remembers a machine that was failed, also by an earlier process, before its set
// deletes it. It reports that the last machine of a group has recovered, of which none asks
// any more whether it may be failed.
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
	if len(f.told) == 0 {
		return
	}
	key := f.tellKey(m)
	if _, told := f.told[key]; !told {
		return
	}
	for _, sibling := range f.groups.siblings(m).Machines {
		if sibling.DeletionTimestamp == nil && f.zone(sibling) == key.zone && !machine.FailingSince(sibling, f.cfg.Policy, now).IsZero() {
			return
		}
	}
	f.resume(m, key, "")
}
