// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// GuardObservation describes a machine that is about to be failed, and the other machines of
// the cluster. With the zero value the machine is held.
type GuardObservation struct {
	// Machine is the machine to be failed. Zero FailingSince means that it fails since now.
	Machine GuardMember
	// Override is the value of the annotation [v1alpha1.ReplaceUntilAnnotation] of the
	// MachineDeployment or MachineSet of Machine, empty for none.
	Override string
	// Members are all machines of the cluster, in any order. Machine may be among them.
	Members []GuardMember
	// Complete reports that Members has all machines.
	Complete bool
}

// GuardMember describes one machine for [DecideGuard].
type GuardMember struct {
	// ID is the UID of the machine.
	ID string
	// Pool names the MachineDeployment or MachineSet of the machine. Zone names its failure
	// domain. Empty means unknown.
	Pool, Zone string
	// Available reports that the machine has joined and has not failed. A machine that is
	// neither available nor failing, such as a new one, does not count.
	Available bool
	// FailingSince is when the machine became unhealthy, see machine.FailingSince. Zero
	// means that it is healthy.
	FailingSince time.Time
	// RecoveredAt is when the machine last became healthy after it had been unhealthy. Zero
	// means never. It counts only for a machine that is available and not failing.
	RecoveredAt time.Time
	// VMGone reports that the provider answered NotFound for the VM of the machine.
	VMGone bool
	// ReplacedAt is when the replacement of the machine began: when it was failed, when
	// its deletion was requested, or when it was created to replace another machine. Zero
	// means never.
	ReplacedAt time.Time
}

// GuardPolicy defines when failures count as one event. The zero value is off: every machine
// may be replaced. [DefaultGuardPolicy] is on.
type GuardPolicy struct {
	// HoldPercent is the percentage of a pool, a zone or the cluster at which no machine is
	// replaced, if it fails within Window. Zero or less means never.
	HoldPercent int
	// SlowPercent is the percentage at which at most SlowCount machines are replaced within
	// SlowWindow. Zero or less means never.
	SlowPercent int
	// AlwaysFew is the number of failures within Window that never count as one event,
	// whatever the percentage. Less than 0 means 0.
	AlwaysFew int
	// Window is the time within which the failures of one event begin. A machine that has
	// recovered counts as failing for so long, because others of its event recover later.
	// Zero means 5m.
	Window time.Duration
	// HoldFor is how long a machine is held at most, counted from its failure. After that at
	// most SlowCount machines are replaced within SlowWindow. Zero means 1h.
	HoldFor time.Duration
	// SlowCount is the number of replacements within SlowWindow. Zero or less means 1.
	SlowCount int
	// SlowWindow is the period of SlowCount. Zero means 10m.
	SlowWindow time.Duration
}

// DefaultGuardPolicy returns the policy of the manager. It needs more than 3 failures within
// 5 minutes. At 50 % of a pool, a zone or the cluster no machine is replaced, for at most an
// hour. At 30 % one machine is replaced in 10 minutes.
func DefaultGuardPolicy() GuardPolicy {
	p := GuardPolicy{HoldPercent: 50, SlowPercent: 30, AlwaysFew: 3}
	return p.withDefaults()
}

func (p GuardPolicy) withDefaults() GuardPolicy {
	fill := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
		*d = min(*d, maxDuration)
	}
	fill(&p.Window, 5*time.Minute)
	fill(&p.HoldFor, time.Hour)
	fill(&p.SlowWindow, 10*time.Minute)
	p.AlwaysFew, p.SlowCount = max(p.AlwaysFew, 0), max(p.SlowCount, 1)
	return p
}

// Reasons of decisions of the guard.
const (
	// ReplacementsHeld means that most machines of a scope failed at the same time. No machine
	// is replaced.
	//
	// What helps: it ends by itself, or with the annotation replace-until of the MachineDeployment.
	ReplacementsHeld machinist.Reason = "ReplacementsHeld"
	// replacementsSlowed means that many machines of a scope failed at the same time, and
	// SlowCount of them may be replaced within SlowWindow.
	//
	// What helps: it ends by itself, or with the annotation replace-until of the MachineDeployment.
	replacementsSlowed machinist.Reason = "ReplacementsSlowed"
)

// strictness orders the reasons. The empty reason allows every replacement: the failures are
// independent of each other, or too few to tell.
func strictness(r machinist.Reason) int {
	return slices.Index([]machinist.Reason{"", replacementsSlowed, ReplacementsHeld}, r)
}

// guardDecision is whether a machine may be failed now, and why. It has no actions.
type guardDecision = Decision[machinist.Action]

// DecideGuard decides whether a machine may be failed because of a timeout. It may not if its
// failure belongs to an event that hit many machines at the same time, such as a broken
// network, a failed zone, or an outage of the provider. The machines of such an event
// recover, and replacing them destroys work.
//
// The machine may be failed if there is no hold. There is at most one, and its Until is not zero.
// Reason is [ReplacementsHeld], "ReplacementsSlowed", or empty if every machine may be replaced.
// Message names the scope, the numbers, and what ends the restriction. Without a reason it is empty,
// unless the annotation or a missing VM allows the replacement. The decision has no actions.
//
// The machines of the pool, of the zone and of the whole cluster are judged separately, and
// the strictest reason counts. The decision follows from the observation alone. A hold ends
// Window after enough machines are available again, when a user sets the annotation, and HoldFor
// after the machine failed. The order of Members and the number of calls do not matter.
//
// A machine whose VM the provider does not find is not held, because there is nothing to destroy.
// If more than AlwaysFew VMs are not found at once, the provider is not believed: it may have been
// asked with the credentials of another project. Such machines are judged as all others.
func DecideGuard(in GuardObservation, p GuardPolicy, now time.Time) Decision[machinist.Action] {
	p = p.withDefaults()
	if p.HoldPercent <= 0 && p.SlowPercent <= 0 {
		return guardDecision{}
	}
	if in.Machine.VMGone && in.Complete && goneAtOnce(in, p, now) <= p.AlwaysFew {
		return guardDecision{Message: "the VM does not exist: there is nothing to destroy"}
	}
	asked, problem := override(in.Override, now)
	switch {
	case asked:
		return guardDecision{Message: "a user allows replacements until " + in.Override}
	case !in.Complete:
		return guardHold(ReplacementsHeld, guardIncomplete, "machines", time.Time{}, now.Add(guardRetry))
	}
	var strictest guardDecision
	g := newGuard(in, p, now)
	for _, s := range g.scopes(in.Machine) {
		d := g.judge(s)
		if c := cmp.Compare(strictness(d.Reason), strictness(strictest.Reason)); c > 0 || c == 0 && d.NextCheck.After(strictest.NextCheck) {
			strictest = d
		}
	}
	if problem != "" && strictest.Reason != "" {
		strictest.Message += "; " + problem
	}
	for i := range strictest.Holds {
		strictest.Holds[i].Message = strictest.Message
	}
	return strictest
}

// goneAtOnce returns the number of machines whose VM the provider does not find, and that began to
// fail within Window of the machine, or were replaced within SlowWindow. It counts the machine.
func goneAtOnce(in GuardObservation, p GuardPolicy, now time.Time) int {
	since, n := in.Machine.FailingSince, 1
	if since.IsZero() {
		since = now
	}
	for i := range in.Members {
		m := &in.Members[i]
		fails := !m.FailingSince.IsZero() && m.FailingSince.Sub(since).Abs() <= p.Window
		replaced := recent(m.ReplacedAt, now, p.SlowWindow)
		if m.VMGone && m.ID != in.Machine.ID && (fails || replaced) {
			n++
		}
	}
	return n
}

// guardHold returns the decision with a hold that ends at until.
func guardHold(reason machinist.Reason, message, subject string, since, until time.Time) guardDecision {
	return guardDecision{
		Reason: reason, Message: message, NextCheck: until,
		Holds: []machinist.Hold{{Subject: subject, Reason: reason, Message: message, Since: since, Until: until}},
	}
}

const (
	guardIncomplete = "the list of machines may be incomplete, so the number of failed machines is not known"
	// guardRetry is the time to the next decision after an incomplete list.
	guardRetry = 10 * time.Second
	// maxOverride is how far ahead the end of an override may be.
	maxOverride = 24 * time.Hour
)

// override reports whether the annotation allows replacements now. problem describes an
// invalid value.
func override(value string, now time.Time) (asked bool, problem string) {
	if value == "" {
		return false, ""
	}
	until, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return false, fmt.Sprintf("annotation %s is ignored: %.40q is not a time such as 2026-01-02T15:04:05Z", v1alpha1.ReplaceUntilAnnotation, value)
	case until.After(now.Add(maxOverride)):
		return false, fmt.Sprintf("annotation %s is ignored: %s is more than %s ahead", v1alpha1.ReplaceUntilAnnotation, value, maxOverride)
	default:
		return until.After(now), ""
	}
}

// inPool, inZone and inCluster are the scopes of a machine as bits.
const inPool, inZone, inCluster uint8 = 1, 2, 4

// mark is the age of a failure or replacement, and the scopes of its machine. It is one
// number because a decision sorts ten thousand of them.
type mark int64

func newMark(ago time.Duration, in uint8) mark {
	return mark(min(max(0, ago), maxDuration))<<3 | mark(in)
}

func (m mark) ago() time.Duration { return time.Duration(m >> 3) }

func (m mark) in(bit uint8) bool { return uint8(m&7)&bit != 0 }

// guard counts the failures and replacements for one decision.
type guard struct {
	policy   GuardPolicy
	now      time.Time
	since    time.Time // when the machine failed
	failing  []mark    // failing machines, the latest failure first
	replaced []mark    // replacements within SlowWindow, the latest first
	// machines has the number of machines of each scope. recovered has those among them that
	// count as failing.
	machines, recovered [inCluster + 1]int
}

// scope is the pool, the zone or the cluster of a machine.
type scope struct {
	bit  uint8
	name string
}

func (*guard) scopes(m GuardMember) []scope {
	all := make([]scope, 0, 3)
	if m.Pool != "" {
		all = append(all, scope{inPool, "pool/" + m.Pool})
	}
	if m.Zone != "" {
		all = append(all, scope{inZone, "zone/" + m.Zone})
	}
	return append(all, scope{inCluster, "cluster"})
}

// newGuard returns a guard with the machines of each scope counted.
func newGuard(in GuardObservation, p GuardPolicy, now time.Time) *guard {
	g := &guard{policy: p, now: now, since: in.Machine.FailingSince}
	if g.since.IsZero() || g.since.After(now) {
		g.since = now
	}
	fail := 1
	for i := range in.Members {
		if !in.Members[i].FailingSince.IsZero() || g.hasRecovered(&in.Members[i]) {
			fail++
		}
	}
	g.failing = append(make([]mark, 0, fail), newMark(now.Sub(g.since), count(&g.machines, bits(&in.Machine, &in.Machine))))
	for i := range in.Members {
		if m := &in.Members[i]; m.ID != in.Machine.ID {
			g.add(m, &in.Machine)
		}
	}
	slices.Sort(g.failing)
	slices.Sort(g.replaced)
	return g
}

// recent reports whether a time that is not zero is less than window before now. A time in the future
// comes from a clock that is ahead, and counts as now.
func recent(t, now time.Time, window time.Duration) bool {
	return !t.IsZero() && now.Sub(t).Abs() < window
}

// hasRecovered reports whether a machine counts as failing because it recovered within Window.
func (g *guard) hasRecovered(m *GuardMember) bool {
	return m.Available && m.FailingSince.IsZero() && recent(m.RecoveredAt, g.now, g.policy.Window)
}

// add counts one machine other than the one to be failed.
func (g *guard) add(m, failed *GuardMember) {
	in := bits(m, failed)
	switch {
	case !m.FailingSince.IsZero():
		g.failing = append(g.failing, newMark(g.now.Sub(m.FailingSince), count(&g.machines, in)))
	case g.hasRecovered(m): // when it failed is not known any more
		g.failing = append(g.failing, newMark(g.now.Sub(g.since), count(&g.machines, in)))
		count(&g.recovered, in)
	case m.Available:
		count(&g.machines, in)
	}
	if recent(m.ReplacedAt, g.now, g.policy.SlowWindow) {
		g.replaced = append(g.replaced, newMark(g.now.Sub(m.ReplacedAt), in))
	}
}

// count counts a machine in each of its scopes, and returns them.
func count(machines *[inCluster + 1]int, in uint8) uint8 {
	for _, bit := range [...]uint8{inPool, inZone, inCluster} {
		if in&bit != 0 {
			machines[bit]++
		}
	}
	return in
}

// bits returns the scopes that two machines share.
func bits(m, failed *GuardMember) uint8 {
	in := inCluster
	if m.Pool == failed.Pool {
		in |= inPool
	}
	if m.Zone == failed.Zone {
		in |= inZone
	}
	return in
}

// judge returns the decision for one scope.
func (g *guard) judge(s scope) guardDecision {
	p, n, of := g.policy, g.burst(s.bit), g.machines[s.bit]
	most := p.HoldPercent > 0 && n*100 >= of*p.HoldPercent
	many := most || p.SlowPercent > 0 && n*100 >= of*p.SlowPercent
	event := fmt.Sprintf("%s: %d of %d machines failed within %s of each other, which is one event", s.name, n, of, p.Window)
	if back := g.recovered[s.bit]; back > 0 {
		event += fmt.Sprintf(", and %d of them recovered within %s", back, p.Window)
	}
	end := g.since.Add(p.HoldFor)
	switch {
	case n <= p.AlwaysFew || !many:
		return guardDecision{}
	case most && end.After(g.now):
		return guardHold(ReplacementsHeld, fmt.Sprintf("%s: none is replaced until fewer than %d %% fail, or until %s; to replace them nevertheless, set the annotation %s of their owner to a time",
			event, p.HoldPercent, end.UTC().Format(time.RFC3339), v1alpha1.ReplaceUntilAnnotation), s.name, g.since, end)
	}
	message := fmt.Sprintf("%s: at most %d replaced in %s", event, p.SlowCount, p.SlowWindow)
	if last, full := g.lastReplaced(s.bit); full {
		return guardHold(replacementsSlowed, message, s.name, g.since, g.now.Add(p.SlowWindow-last))
	}
	return guardDecision{Reason: replacementsSlowed, Message: message}
}

// burst returns the largest number of machines of a scope that began to fail within Window.
func (g *guard) burst(bit uint8) int {
	most, n, first := 0, 0, 0
	for _, f := range g.failing {
		if !f.in(bit) {
			continue
		}
		n++
		for f.ago()-g.failing[first].ago() > g.policy.Window {
			if g.failing[first].in(bit) {
				n--
			}
			first++
		}
		most = max(most, n)
	}
	return most
}

// lastReplaced reports whether SlowCount machines of a scope were replaced within
// SlowWindow. ago is the age of the replacement that has to leave the window first.
func (g *guard) lastReplaced(bit uint8) (ago time.Duration, full bool) {
	n := 0
	for _, r := range g.replaced {
		if r.in(bit) {
			if n++; n == g.policy.SlowCount {
				return r.ago(), true
			}
		}
	}
	return 0, false
}
