// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// GuardMemory is what a caller of [DecideGuard] remembers between decisions: the replacements that
// its list of machines does not show yet, the machines whose VM is not found, and the reported
// reasons. If it is lost, failures are counted late and reported again. The zero value is empty. It
// is not safe for several goroutines.
type GuardMemory struct {
	replaced map[string]GuardMember // by ID
	vmGone   map[string]time.Time   // when the VM of a machine was last not found, by ID
	reported map[guardScope]report  // of decisions with a reason
}

// guardScope is the unit of reports: the machines of a pool in a zone.
type guardScope struct{ pool, zone string }

func (m GuardMember) scope() guardScope { return guardScope{m.Pool, m.Zone} }

// report is a reported reason, and the time of its last confirmation.
type report struct {
	reason machinist.Reason
	at     time.Time
}

const (
	// replacedFor is how long a replacement is remembered. It is longer than the window in which
	// replacements are counted.
	replacedFor = time.Hour
	// replacing is the longest time in which a set creates a replacement.
	replacing = time.Minute
	// reportPause is how long a reason must be unconfirmed before a less strict one is reported.
	// Held machines ask every minute, and some may be held longer than others.
	reportPause = 2 * time.Minute
)

// Members adds to the machines those that were replaced and deleted. It also adds the newer times of
// replacement, and returns the machines sorted by FailingSince, the latest first, so that decisions
// need not sort. It may change the given list.
func (g *GuardMemory) Members(all []GuardMember, now time.Time) []GuardMember {
	maps.DeleteFunc(g.vmGone, func(_ string, at time.Time) bool { return now.Sub(at) > replacedFor })
	maps.DeleteFunc(g.replaced, func(_ string, r GuardMember) bool { return now.Sub(r.ReplacedAt) > replacedFor })
	found := map[string]bool{}
	for i, m := range all {
		all[i].VMGone = m.VMGone || !g.vmGone[m.ID].IsZero()
		if r, ok := g.replaced[m.ID]; ok {
			found[m.ID] = true
			if r.ReplacedAt.After(m.ReplacedAt) {
				all[i].ReplacedAt = r.ReplacedAt
			}
		}
	}
	for id, r := range g.replaced {
		if !found[id] {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b GuardMember) int { return b.FailingSince.Compare(a.FailingSince) })
	return all
}

// Replace records that a machine may be replaced from now on.
func (g *GuardMemory) Replace(m GuardMember, now time.Time) {
	m.Available, m.FailingSince, m.RecoveredAt, m.ReplacedAt = false, time.Time{}, time.Time{}, now
	g.put(m)
}

func (g *GuardMemory) put(m GuardMember) {
	if g.replaced == nil {
		g.replaced = map[string]GuardMember{}
	}
	g.replaced[m.ID] = m
}

// Keep records that a machine is not replaced.
func (g *GuardMemory) Keep(id string) { delete(g.replaced, id) }

// Settle records whether the VM of a machine is not found. Of a machine that has failed or is being
// deleted, it also records the replacement that an earlier process began, before the set deletes it.
func (g *GuardMemory) Settle(m GuardMember, failed bool, now time.Time) {
	if delete(g.vmGone, m.ID); m.VMGone {
		if g.vmGone == nil {
			g.vmGone = map[string]time.Time{}
		}
		g.vmGone[m.ID] = now
	}
	if _, known := g.replaced[m.ID]; failed && !known && !m.ReplacedAt.IsZero() && now.Sub(m.ReplacedAt) <= replacedFor {
		m.FailingSince = time.Time{}
		g.put(m)
	}
}

// Report returns an Event if the reason for the pool and zone of a machine has changed, or nil. d is
// the result of [DecideGuard].
func (g *GuardMemory) Report(m GuardMember, d Decision[machinist.Action], now time.Time) *machinist.Event {
	before := g.reported[m.scope()]
	switch {
	case strictness(d.Reason) < strictness(before.reason) && now.Sub(before.at) < reportPause, d.Reason == "" && !g.Reported(m):
		return nil
	case d.Reason == "":
		return g.Resume(m, d.Message)
	}
	if g.reported == nil {
		g.reported = map[guardScope]report{}
	}
	g.reported[m.scope()] = report{d.Reason, now}
	if d.Reason == before.reason {
		return nil
	}
	return &machinist.Event{Type: corev1.EventTypeWarning, Reason: d.Reason, Message: d.Message}
}

// Reported reports whether the last Event for the pool and zone of a machine said that not every
// machine is replaced.
func (g *GuardMemory) Reported(m GuardMember) bool {
	_, reported := g.reported[m.scope()]
	return reported
}

// replacementsResumed means that machines are replaced as usual again.
const replacementsResumed machinist.Reason = "ReplacementsResumed"

// Resume returns the Event that the machines in the pool and zone of a machine are replaced as usual.
// An empty message means that no machine there fails any more.
func (g *GuardMemory) Resume(m GuardMember, message string) *machinist.Event {
	delete(g.reported, m.scope())
	message = cmp.Or(message, "its machines no longer fail all at once") + "; they are replaced as usual"
	return &machinist.Event{Type: corev1.EventTypeNormal, Reason: replacementsResumed, Message: message}
}

// NewGuardMember returns the member for a machine. set is the MachineSet of the machine, or nil.
// began is the start of this process in whole seconds: a machine that was created about then may
// replace one that failed before.
func NewGuardMember(m *v1alpha1.Machine, set *v1alpha1.MachineSet, policy machine.Policy, began, now time.Time) GuardMember {
	status, deleted := m.Status.CurrentStatus, m.DeletionTimestamp != nil
	traits := facts.TraitsOf(status.Phase)
	member := GuardMember{
		ID: string(m.UID), Available: !deleted && (traits.Available || traits.Updating), FailingSince: machine.FailingSince(m, policy, now),
	}
	if op := m.Status.LastOperation; op.Type == v1alpha1.MachineOperationHealthCheck && op.State == v1alpha1.MachineStateSuccessful {
		member.RecoveredAt = op.LastUpdateTime.Time
	}
	switch failing := !member.FailingSince.IsZero(); {
	case deleted && failing:
		member.ReplacedAt = m.DeletionTimestamp.Time
	case status.Phase == v1alpha1.MachineFailed:
		member.ReplacedAt = status.LastUpdateTime.Time
	case !deleted && !failing && mayReplace(m, set, began):
		member.ReplacedAt = m.CreationTimestamp.Time
	}
	return member
}

// mayReplace reports whether a machine may replace one that failed before this process began.
func mayReplace(m *v1alpha1.Machine, set *v1alpha1.MachineSet, began time.Time) bool {
	switch created := m.CreationTimestamp.Time; {
	case !created.Before(began.Add(replacing)), created.Before(began.Add(-replacedFor)):
		return false
	case created.Before(began):
		return true
	default:
		return set != nil && set.CreationTimestamp.Time.Before(began)
	}
}
