// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"time"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// GuardObservation is what [Assess] is told of a machine that is about to be failed, and
// of the machines beside it. The zero observation holds.
type GuardObservation struct {
	// Machine is the one to be failed. It counts as failing, since now if FailingSince is
	// zero.
	Machine GuardMember
	// VMGone says that the provider does not find the VM of Machine any more.
	VMGone bool
	// Override is the value of the annotation [v1alpha1.ReplaceUntilAnnotation] of the
	// MachineDeployment or MachineSet of Machine, empty for none.
	Override string
	// Members are all machines of the cluster, in any order. Machine may be among them.
	Members []GuardMember
	// Complete says that no machine is missing in Members.
	Complete bool
}

// GuardMember is what [Assess] needs to know of one machine.
type GuardMember struct {
	// ID is the UID of the machine.
	ID string
	// Pool names the machines that are replaced together, and Zone the failure domain.
	// Empty is not known.
	Pool, Zone string
	// Serves says that the machine has joined and was not given up. Machines that
	// neither serve nor fail, as new ones, do not count.
	Serves bool
	// FailingSince is when the machine stopped serving, zero for one that did not; see
	// machine.FailingSince.
	FailingSince time.Time
	// ReplacedAt is when the replacement of the machine began: when it was failed, when
	// its deletion was asked for, or when it was created in place of another. Zero is
	// never.
	ReplacedAt time.Time
}

// GuardPolicy says when many failures are one event. The zero GuardPolicy is off: every
// machine may be replaced. [DefaultGuardPolicy] is on.
type GuardPolicy struct {
	// HoldPercent is from how many percent of the machines of a pool, a zone or the
	// cluster on that fail within Window none is replaced. Zero or less is never.
	HoldPercent int
	// SlowPercent is from how many percent on at most SlowCount are replaced within
	// SlowWindow. Zero or less is never.
	SlowPercent int
	// AlwaysFew is how many machines that fail within Window are never one event,
	// whatever share of their pool they are. Below 0 is 0.
	AlwaysFew int
	// Window is within what time failures begin that are one event. Zero means 5m.
	Window time.Duration
	// HoldFor is how long after its failure a machine is held at most. Then it is
	// replaced, at most SlowCount within SlowWindow. Zero means 1h.
	HoldFor time.Duration
	// SlowCount is how many are replaced within SlowWindow. Zero or less means 1.
	SlowCount int
	// SlowWindow is the time in which SlowCount are replaced. Zero means 10m.
	SlowWindow time.Duration
}

// DefaultGuardPolicy returns a policy that holds when more than 3 machines and at least
// 50 % of a pool, a zone or the cluster fail within 5 minutes, for at most an hour, and
// from 30 % on has one replaced every 10 minutes.
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

// Verdict is how far machines of a scope may be replaced.
type Verdict int

// The verdicts, the least strict first.
const (
	// Replace: failures are independent of each other, or too few to tell.
	Replace Verdict = iota
	// Slow: one event, of which some machines are replaced within a window.
	Slow
	// HoldAll: one event, of which none is replaced.
	HoldAll
)

const (
	// ReplacementsHeld is the reason of a hold: most machines of a scope failed at once.
	ReplacementsHeld machinist.Reason = "ReplacementsHeld"
	// ReplacementsSlowed is the reason of a hold: many machines of a scope failed at
	// once, and as many are replaced within the window as may be.
	ReplacementsSlowed machinist.Reason = "ReplacementsSlowed"
)

// Assessment is whether a machine may be failed now, and why.
type Assessment struct {
	// Verdict of the strictest scope.
	Verdict Verdict
	// Message names the scope, the numbers, and what ends the verdict. Empty for
	// Replace, unless a user or the provider decided so.
	Message string
	// Hold is why the machine is not failed now. Without a reason it may be failed.
	// Otherwise Until is when the hold ends at the latest, never zero.
	Hold machinist.Hold
}

// Assess returns whether a machine may be failed because of a timeout, or whether its
// failure is a part of an event that hit many machines at once: a broken network, a zone,
// a provider, or an observer that lost its own connection. To replace the machines of such
// an event destroys what would recover.
//
// The machines of the pool, of the zone and of the whole cluster are judged each by
// themselves, and the strictest verdict counts. It follows from the observation alone: it
// ends when enough machines serve again, when a user sets the annotation, and for each
// machine HoldFor after its failure. It does not depend on the order of Members, nor on
// how often it is asked.
//
// A machine without a VM is never held, as nothing is destroyed.
func Assess(in GuardObservation, p GuardPolicy, now time.Time) Assessment {
	p = p.withDefaults()
	if p.HoldPercent <= 0 && p.SlowPercent <= 0 {
		return Assessment{}
	}
	if in.VMGone {
		return Assessment{Message: "the VM does not exist: there is nothing to destroy"}
	}
	asked, problem := override(in.Override, now)
	switch {
	case asked:
		return Assessment{Message: "a user allows replacements until " + in.Override}
	case !in.Complete:
		return Assessment{Verdict: HoldAll, Message: guardUnseen, Hold: machinist.Hold{
			Subject: "machines", Reason: ReplacementsHeld, Message: guardUnseen, Until: now.Add(guardRetry),
		}}
	}
	strictest := Assessment{}
	g := newGuard(in, p, now)
	for _, s := range g.scopes(in.Machine) {
		if a := g.judge(s); a.Verdict > strictest.Verdict || a.Verdict == strictest.Verdict && a.Hold.Until.After(strictest.Hold.Until) {
			strictest = a
		}
	}
	if problem != "" && strictest.Verdict > Replace {
		strictest.Message += "; " + problem
	}
	if strictest.Hold.Reason != "" {
		strictest.Hold.Message = strictest.Message
	}
	return strictest
}

const (
	guardUnseen = "the list of machines may not be whole, so that nothing tells whether many fail at once"
	// guardRetry is when to look again for machines that are not known.
	guardRetry = 10 * time.Second
	// maxOverride is how far ahead the end of an override may be.
	maxOverride = 24 * time.Hour
)

// override reads the annotation, and returns what is wrong with its value.
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

// scopes of a machine, as bits of what counts for them.
const inPool, inZone, inCluster uint8 = 1, 2, 4

// mark is something that happened to a machine so long ago, and in which scopes: one
// number, as ten thousand of them are sorted for a decision.
type mark int64

func newMark(ago time.Duration, in uint8) mark {
	return mark(min(max(0, ago), maxDuration))<<3 | mark(in)
}

func (m mark) ago() time.Duration { return time.Duration(m >> 3) }

func (m mark) in(bit uint8) bool { return uint8(m&7)&bit != 0 }

// guard is one assessment in the making.
type guard struct {
	policy   GuardPolicy
	now      time.Time
	since    time.Time // when the machine failed
	failing  []mark    // machines that fail, the latest first
	replaced []mark    // replacements within the slow window, the latest first
	machines [inCluster + 1]int
}

// scope is one of the sets of machines that are judged.
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

// newGuard counts the machines of each scope.
func newGuard(in GuardObservation, p GuardPolicy, now time.Time) *guard {
	g := &guard{policy: p, now: now, since: in.Machine.FailingSince}
	if g.since.IsZero() || g.since.After(now) {
		g.since = now
	}
	fail := 1
	for i := range in.Members {
		if !in.Members[i].FailingSince.IsZero() {
			fail++
		}
	}
	g.failing = append(make([]mark, 0, fail), newMark(now.Sub(g.since), g.count(&in.Machine, &in.Machine)))
	for i := range in.Members {
		if m := &in.Members[i]; m.ID != in.Machine.ID {
			g.add(m, &in.Machine)
		}
	}
	slices.Sort(g.failing)
	slices.Sort(g.replaced)
	return g
}

// add counts one machine beside the one that is to be failed.
func (g *guard) add(m, failed *GuardMember) {
	if !m.FailingSince.IsZero() {
		g.failing = append(g.failing, newMark(g.now.Sub(m.FailingSince), g.count(m, failed)))
	} else if m.Serves {
		g.count(m, failed)
	}
	if m.ReplacedAt.IsZero() {
		return
	}
	// One within a window ahead is by a clock that is ahead of ours, and counts as now.
	if ago := g.now.Sub(m.ReplacedAt); ago < g.policy.SlowWindow && ago > -g.policy.SlowWindow {
		g.replaced = append(g.replaced, newMark(ago, bits(m, failed)))
	}
}

// count counts a machine in each scope in which it is, and returns these.
func (g *guard) count(m, failed *GuardMember) uint8 {
	in := bits(m, failed)
	for _, bit := range [...]uint8{inPool, inZone, inCluster} {
		if in&bit != 0 {
			g.machines[bit]++
		}
	}
	return in
}

// bits returns the scopes of a machine in which another one is too.
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

// judge returns the verdict of one scope.
func (g *guard) judge(s scope) Assessment {
	p, n, of := g.policy, g.burst(s.bit), g.machines[s.bit]
	most := p.HoldPercent > 0 && n*100 >= of*p.HoldPercent
	many := most || p.SlowPercent > 0 && n*100 >= of*p.SlowPercent
	event := fmt.Sprintf("%s: %d of %d machines failed within %s of each other, which is one event", s.name, n, of, p.Window)
	end := g.since.Add(p.HoldFor)
	switch {
	case n <= p.AlwaysFew || !many:
		return Assessment{}
	case most && end.After(g.now):
		return Assessment{
			Verdict: HoldAll,
			Hold:    machinist.Hold{Subject: s.name, Reason: ReplacementsHeld, Since: g.since, Until: end},
			Message: fmt.Sprintf("%s: none is replaced until fewer than %d %% fail, or until %s; to replace them nevertheless, set the annotation %s of their owner to a time",
				event, p.HoldPercent, end.UTC().Format(time.RFC3339), v1alpha1.ReplaceUntilAnnotation),
		}
	}
	a := Assessment{Verdict: Slow, Message: fmt.Sprintf("%s: at most %d replaced in %s", event, p.SlowCount, p.SlowWindow)}
	if last, full := g.lastReplaced(s.bit); full {
		a.Hold = machinist.Hold{Subject: s.name, Reason: ReplacementsSlowed, Since: g.since, Until: g.now.Add(p.SlowWindow - last)}
	}
	return a
}

// burst returns how many machines of a scope began to fail within one window at most.
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

// lastReplaced returns whether as many machines of a scope were replaced within the window
// as may be, and how long ago the last replacement began that leaves room when it is over.
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
