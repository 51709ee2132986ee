// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	life "github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// guardPool returns n available machines.
func guardPool(name, zone string, n int) []safety.GuardMember {
	members := make([]safety.GuardMember, n)
	for i := range members {
		members[i] = safety.GuardMember{ID: fmt.Sprintf("%s-%s-%d", name, zone, i), Pool: name, Zone: zone, Available: true}
	}
	return members
}

// fail makes a machine unavailable.
func fail(m *safety.GuardMember, at time.Time) { m.Available, m.FailingSince = false, at }

// failedPool returns a pool of machines of which the first n have failed at the start.
func failedPool(of, n int) []safety.GuardMember {
	members := guardPool("p", "z", of)
	for i := range n {
		fail(&members[i], start)
	}
	return members
}

// askedFor returns the question whether the first of some members may be failed.
func askedFor(members []safety.GuardMember) safety.GuardObservation {
	return safety.GuardObservation{Machine: members[0], Members: members, Complete: true}
}

// assess decides whether one of the members may be failed.
func assess(members []safety.GuardMember, i int, now time.Time) safety.Decision[machinist.Action] {
	return safety.DecideGuard(safety.GuardObservation{Machine: members[i], Members: members, Complete: true}, safety.DefaultGuardPolicy(), now)
}

// allowed reports whether a machine may be failed.
func allowed(a safety.Decision[machinist.Action]) bool { return len(a.Holds) == 0 }

func TestGuard_FailuresOverHours_AllReplaced(t *testing.T) {
	const k = 10
	members := guardPool("p", "z", 2*k)
	for i := range k { // none is replaced meanwhile
		at := start.Add(time.Duration(i) * 20 * time.Minute)
		fail(&members[i], at)
		a := assess(members, i, at.Add(10*time.Minute))
		require.Equal(t, safety.Decision[machinist.Action]{}, a, "failure %d", i)
	}
}

func TestGuard_SameFailuresWithinAMinute_HeldUntilHalfRecovered(t *testing.T) {
	const k = 10
	members, now := guardPool("p", "z", 2*k), start.Add(10*time.Minute)
	for i := range k {
		fail(&members[i], start.Add(time.Duration(i)*6*time.Second))
	}
	for i := range k {
		a := assess(members, i, now)
		require.Len(t, a.Holds, 1)
		h := a.Holds[0]
		require.Equal(t, []any{safety.ReplacementsHeld, safety.ReplacementsHeld, "pool/p"}, []any{a.Reason, h.Reason, h.Subject})
		require.Equal(t, members[i].FailingSince.Add(time.Hour), h.Until)
		require.Contains(t, h.Message, "pool/p: 10 of 20 machines failed within 5m0s of each other, which is one event: none is replaced until fewer than 50 % fail, or until 2026-03-01T13:0")
		require.Contains(t, h.Message, "safety.machine.sapcloud.io/replace-until")
	}
	copy(members, guardPool("p", "z", k/2))
	for i := k / 2; i < k; i++ {
		require.True(t, allowed(assess(members, i, now)), "5 of 20 is no event any more")
	}
}

// TestGuard_RecoveringOneAfterTheOther_LastIsNotReplaced lets the machines of an event recover within
// minutes. The last of them has long reached its timeout when most others are healthy.
func TestGuard_RecoveringOneAfterTheOther_LastIsNotReplaced(t *testing.T) {
	members, now := failedPool(6, 6), start.Add(30*time.Minute)
	for i := range 5 {
		members[i].Available, members[i].FailingSince, members[i].RecoveredAt = true, time.Time{}, now
		a := assess(members, 5, now)
		require.Equal(t, safety.ReplacementsHeld, a.Reason, "%d recovered", i+1)
		require.Contains(t, a.Message, fmt.Sprintf("pool/p: 6 of 6 machines failed within 5m0s of each other, which is one event, and %d of them recovered within 5m0s: none", i+1))
		now = now.Add(time.Minute)
	}
	require.True(t, allowed(assess(members, 5, now.Add(2*time.Minute))), "2 others recovered within 5 minutes, and 3 failures are few")
	members[3].Available = false
	fail(&members[4], now)
	require.True(t, allowed(assess(members, 5, now)), "one is deleted, and one fails again")
}

// TestGuard_NumberOfFailures_SetsTheAction checks the action for each number of failures in a pool.
func TestGuard_NumberOfFailures_SetsTheAction(t *testing.T) {
	const all, slowed, held = machinist.Reason(""), safety.ReplacementsSlowed, safety.ReplacementsHeld
	for of, want := range map[int]map[int]machinist.Reason{
		1: {1: all}, 2: {2: all}, 3: {3: all}, 4: {4: held},
		20: {3: all, 5: all, 6: slowed, 9: slowed, 10: held, 20: held},
	} {
		for failed, want := range want {
			unborn := []safety.GuardMember{{ID: "new", Pool: "p", Zone: "z"}, {ID: "newer", Pool: "p", Zone: "z"}}
			a := assess(append(failedPool(of, failed), unborn...), 0, start.Add(time.Minute))
			require.Equal(t, want, a.Reason, "%d of %d; new machines do not count", failed, of)
		}
	}
}

func TestGuard_FailedZone_OtherZonesAreRepaired(t *testing.T) {
	members := slices.Concat(guardPool("p", "a", 10), guardPool("p", "b", 10), guardPool("p", "c", 10), guardPool("q", "c", 10))
	for i := range 10 {
		fail(&members[i], start)
	}
	now := start.Add(10 * time.Minute)
	require.Equal(t, "zone/a", assess(members, 0, now).Holds[0].Subject)
	for _, i := range []int{15, 25, 35} {
		fail(&members[i], start.Add(-time.Hour))
		require.True(t, allowed(assess(members, i, now)), "%+v", assess(members, i, now))
	}
	for i := range 20 {
		fail(&members[i], start)
	}
	fail(&members[36], start)
	require.Equal(t, "cluster", assess(members, 36, now).Holds[0].Subject, "21 of 40")
}

func TestGuard_WithoutGuardOrVM_NotHeld(t *testing.T) {
	in, p, none := askedFor(failedPool(10, 10)), safety.DefaultGuardPolicy(), safety.Decision[machinist.Action]{}
	require.Equal(t, none, safety.DecideGuard(in, safety.GuardPolicy{}, start))
	require.Equal(t, none, safety.DecideGuard(safety.GuardObservation{}, safety.GuardPolicy{}, start))

	in.Complete = false
	a := safety.DecideGuard(in, p, start)
	require.Equal(t, safety.ReplacementsHeld, a.Holds[0].Reason, "a list that may not be whole proves nothing")
	require.Equal(t, start.Add(10*time.Second), a.Holds[0].Until)

	in.Machine.VMGone = true
	require.False(t, allowed(safety.DecideGuard(in, p, start)), "it is not known whether others are gone, too")
	in.Complete = true
	require.True(t, allowed(safety.DecideGuard(in, p, start)), "nothing is destroyed")
}

// TestGuard_VMsNotFound_FewBelievedManyHeld asserts that the provider is believed about few VMs, also
// while all Nodes are silent, and that many at once are one event like any other.
func TestGuard_VMsNotFound_FewBelievedManyHeld(t *testing.T) {
	t.Parallel()
	p := safety.DefaultGuardPolicy()
	for gone := 1; gone <= 20; gone++ {
		members := failedPool(20, 20)
		for i := range gone {
			members[i].VMGone = true
		}
		in := askedFor(members)
		require.Equal(t, gone <= p.AlwaysFew, allowed(safety.DecideGuard(in, p, start)), "%d VMs are not found", gone)

		if gone > 10 {
			continue // too few others fail
		}
		for i := range gone - 1 { // replaced a moment ago
			members[i+1].FailingSince, members[i+1].ReplacedAt = time.Time{}, start.Add(-time.Minute)
		}
		held := !allowed(safety.DecideGuard(in, p, start))
		require.Equal(t, gone > p.AlwaysFew, held, "%d VMs are not found, and were replaced one after the other", gone)

		for i := range gone - 1 { // an hour ago
			members[i+1].ReplacedAt = start.Add(-time.Hour)
		}
		require.True(t, allowed(safety.DecideGuard(in, p, start)), "others were gone before")
		copy(members, guardPool("p", "z", 20))
		require.True(t, allowed(safety.DecideGuard(in, p, start)), "all other machines are healthy")
	}
}

func TestGuard_Annotation_AllowsReplacement(t *testing.T) {
	in, now := askedFor(failedPool(10, 10)), start.Add(10*time.Minute)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for name, tc := range map[string]struct {
		value   string
		allowed bool
		message string
	}{
		"none":              {"", false, ""},
		"an hour":           {at(time.Hour), true, "a user allows replacements until " + at(time.Hour)},
		"a day":             {at(24 * time.Hour), true, "a user allows"},
		"over":              {at(0), false, ""},
		"more than a day":   {at(24*time.Hour + time.Second), false, "is more than 24h0m0s ahead"},
		"not a time":        {"true", false, `replace-until is ignored: "true" is not a time`},
		"a text of any way": {string(make([]byte, 5000)), false, "is not a time"},
	} {
		in.Override = tc.value
		a := safety.DecideGuard(in, safety.DefaultGuardPolicy(), now)
		require.Equal(t, tc.allowed, allowed(a), name)
		require.Contains(t, a.Message, tc.message, name)
		require.Less(t, len(a.Message), 600, name)
	}
}

// guardWorld simulates machines that fail, their owners, and a controller that decides at any
// interval.
type guardWorld struct {
	members  []safety.GuardMember
	now      time.Time
	replaced []time.Time
	failed   map[string]time.Time // since when machines are in phase Failed
}

// tick decides for each machine that has failed for ten minutes. An allowed machine is replaced
// by one that is available seven minutes later.
func (w *guardWorld) tick(r *rand.Rand) {
	for _, i := range r.Perm(len(w.members)) {
		m := &w.members[i]
		since, going := w.failed[m.ID]
		switch {
		case going && w.now.Sub(since) >= 7*time.Minute:
			delete(w.failed, m.ID)
			*m = safety.GuardMember{ID: m.ID + "+", Pool: m.Pool, Zone: m.Zone, Available: true, ReplacedAt: since}
		case going, m.FailingSince.IsZero(), w.now.Sub(m.FailingSince) < 10*time.Minute:
		case allowed(assess(w.members, i, w.now)):
			w.failed[m.ID], m.ReplacedAt = w.now, w.now
			w.replaced = append(w.replaced, w.now)
		}
	}
}

// TestGuard_PermanentOutage_ReplacedAtThePace fails a part of a pool, or all of it, for good.
// In the end all machines are replaced. During the event at most one is replaced within ten
// minutes, for any interval between decisions.
func TestGuard_PermanentOutage_ReplacedAtThePace(t *testing.T) {
	t.Parallel()
	for silent, hold := range map[int]time.Duration{8: 10 * time.Minute, 10: time.Hour, 20: time.Hour} { // of 20
		early := map[int]bool{} // how many are replaced within half an hour
		for _, interval := range []time.Duration{5 * time.Second, time.Minute} {
			w := &guardWorld{members: failedPool(20, silent), now: start, failed: map[string]time.Time{}}
			r, n := rand.New(rand.NewPCG(uint64(silent), uint64(interval))), 0
			for begin := start.Add(hold); w.now.Before(start.Add(6 * time.Hour)); w.now = w.now.Add(interval) {
				w.tick(r)
				if w.now.Before(begin) {
					require.Empty(t, w.replaced, "held for its time")
				}
				if w.now.Before(begin.Add(30 * time.Minute)) {
					n = len(w.replaced)
				}
			}
			require.Len(t, w.replaced, silent, "all in the end")
			for i := 1; silent-i >= 6; i++ { // so many of 20 are still one event
				require.GreaterOrEqual(t, w.replaced[i].Sub(w.replaced[i-1]), 10*time.Minute, "replacement %d of %d, asked every %s", i, silent, interval)
			}
			early[n] = true
		}
		require.Len(t, early, 1, "%d silent: the pace does not depend on the interval", silent)
	}
}

// anyMembers returns machines of a few pools and zones with any history.
func anyMembers(r *rand.Rand, now time.Time) []safety.GuardMember {
	members := make([]safety.GuardMember, 1+r.IntN(40))
	moment := func() time.Time { return now.Add(time.Duration(r.IntN(7200)-6900) * time.Second) }
	for i := range members {
		m := &members[i]
		*m = safety.GuardMember{ID: fmt.Sprint(i), Pool: []string{"", "p", "q"}[r.IntN(3)], Zone: []string{"", "a", "b"}[r.IntN(3)], Available: r.IntN(3) > 0}
		switch r.IntN(3) {
		case 0:
			fail(m, moment())
		case 1:
			fail(m, now.Add(-time.Duration(r.IntN(60))*time.Second))
		}
		if r.IntN(8) == 0 {
			m.ReplacedAt = moment()
		}
		if r.IntN(4) == 0 {
			m.RecoveredAt = now.Add(time.Duration(r.IntN(2400)-1200) * time.Second)
		}
	}
	return members
}

func anyGuardPolicy(r *rand.Rand) safety.GuardPolicy {
	return safety.GuardPolicy{
		HoldPercent: r.IntN(130) - 10, SlowPercent: r.IntN(130) - 10, AlwaysFew: r.IntN(8) - 1, SlowCount: r.IntN(4),
		Window: time.Duration(r.IntN(20)-1) * time.Minute, HoldFor: time.Duration(r.IntN(90)-1) * time.Minute, SlowWindow: time.Duration(r.IntN(20)-1) * time.Minute,
	}
}

// TestGuard_AnySchedule_EveryHoldEnds checks any machines and any policy. A hold has a subject
// and ends after now. The order of the machines does not matter. A machine that has failed for
// HoldFor is not held. A slowed machine may be replaced at the end of its hold, if no other
// machine was replaced in between.
func TestGuard_AnySchedule_EveryHoldEnds(t *testing.T) {
	t.Parallel()
	seen := map[machinist.Reason]int{}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 5))
		p, members := anyGuardPolicy(r), anyMembers(r, start)
		in := safety.GuardObservation{Machine: oneOf(r, members...), Members: members, Complete: true}
		a := safety.DecideGuard(in, p, start)
		seen[a.Reason]++
		for _, h := range a.Holds {
			require.Equal(t, h.Until, a.NextCheck)
			require.True(t, h.Until.After(start), "seed %d: %+v", seed, h)
			require.NotEmpty(t, h.Subject)
			require.Contains(t, h.Message, h.Subject, "seed %d", seed)
		}
		in.Members = mixed(r, members)
		require.Equal(t, a, safety.DecideGuard(in, p, start), "seed %d: the order matters", seed)

		if in.Machine.FailingSince.IsZero() || in.Machine.FailingSince.After(start) {
			in.Machine.FailingSince = start
		}
		for i := 0; len(a.Holds) > 0 && i < 3; i++ { // held, then slowed by what was replaced before
			a = safety.DecideGuard(in, p, a.Holds[0].Until)
		}
		require.Empty(t, a.Holds, "seed %d: it never ends", seed)
	}
	require.Greater(t, min(seen[safety.ReplacementsSlowed], seen[safety.ReplacementsHeld], seen[""]), 500)
}

// TestGuard_Burst_IsTheMaximumWithinTheWindow compares the action with a count of all pairs.
func TestGuard_Burst_IsTheMaximumWithinTheWindow(t *testing.T) {
	t.Parallel()
	p := safety.GuardPolicy{HoldPercent: 40, AlwaysFew: 2, Window: 10 * time.Minute, HoldFor: 1000 * time.Hour}
	seen := map[machinist.Reason]int{}
	for seed := range uint64(5000) {
		members := anyMembers(rand.New(rand.NewPCG(seed, 6)), start)
		fail(&members[0], start.Add(-time.Hour))
		var failures []time.Time
		of := 0
		for i := range members {
			m := &members[i]
			m.Pool, m.Zone = "", ""
			at := m.FailingSince
			if m.Available && at.IsZero() && !m.RecoveredAt.IsZero() && start.Sub(m.RecoveredAt).Abs() < p.Window {
				at = members[0].FailingSince
			}
			if m.Available || !at.IsZero() {
				of++
			}
			if at.After(start) {
				at = start
			}
			if !at.IsZero() {
				failures = append(failures, at)
			}
		}
		most := 0
		for _, from := range failures {
			n := 0
			for _, at := range failures {
				if d := at.Sub(from); d >= 0 && d <= p.Window {
					n++
				}
			}
			most = max(most, n)
		}
		want := machinist.Reason("")
		if most > p.AlwaysFew && most*100 >= of*p.HoldPercent {
			want = safety.ReplacementsHeld
		}
		a := safety.DecideGuard(askedFor(members), p, start)
		require.Equal(t, want, a.Reason, "seed %d: %d of %d: %s", seed, most, of, a.Message)
		seen[want]++
	}
	require.Greater(t, min(seen[""], seen[safety.ReplacementsHeld]), 500)
}

// largeGuard is a cluster of 10,000 machines that all fail within minutes, in 50 pools and
// 3 zones.
func largeGuard() safety.GuardObservation {
	members := make([]safety.GuardMember, 10000)
	for i := range members {
		members[i] = safety.GuardMember{ID: fmt.Sprint("uid-", i), Pool: fmt.Sprint("shoot/pool-", i%50), Zone: fmt.Sprint("zone-", i%3)}
		fail(&members[i], start.Add(time.Duration(i*7919%600)*time.Second))
	}
	return safety.GuardObservation{Machine: members[17], Members: members, Complete: true}
}

// TestGuard_Large_AllocatesForTheFailuresOnce limits the allocations of a decision about 10,000
// machines.
func TestGuard_Large_AllocatesForTheFailuresOnce(t *testing.T) {
	in, p, now := largeGuard(), safety.DefaultGuardPolicy(), start.Add(15*time.Minute)
	require.Equal(t, safety.ReplacementsHeld, safety.DecideGuard(in, p, now).Reason)
	require.LessOrEqual(t, testing.AllocsPerRun(5, func() { safety.DecideGuard(in, p, now) }), 60.0)
}

func member(id string) safety.GuardMember { return safety.GuardMember{ID: id, Pool: "pool", Zone: "a"} }

func withoutVM(m safety.GuardMember) safety.GuardMember {
	m.VMGone = true
	return m
}

func TestGuardMemory_Replaced_CountsForAnHourAlsoOnceDeleted(t *testing.T) {
	t.Parallel()
	var g safety.GuardMemory
	g.Replace(withoutVM(member("m")), start)
	want := withoutVM(member("m"))
	want.ReplacedAt = start
	require.Equal(t, []safety.GuardMember{want}, g.Members(nil, start.Add(time.Minute)), "the machine was deleted")
	all := g.Members([]safety.GuardMember{member("m")}, start.Add(time.Minute))
	require.Len(t, all, 1)
	require.Equal(t, start, all[0].ReplacedAt, "the cache does not show it yet")
	g.Keep("m")
	require.Empty(t, g.Members(nil, start))

	g.Replace(member("m"), start)
	require.Len(t, g.Members(nil, start.Add(time.Hour)), 1)
	require.Empty(t, g.Members(nil, start.Add(time.Hour+time.Second)))
}

func TestGuardMemory_Settle_RecordsReplacementsOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failed bool
		at     time.Time
		want   int
	}{
		"failed before the restart": {true, start.Add(-time.Minute), 1},
		"failed long ago":           {true, start.Add(-2 * time.Hour), 0},
		"deleted, but healthy":      {true, time.Time{}, 0},
		"created as a replacement":  {false, start.Add(-time.Minute), 0},
	} {
		var g safety.GuardMemory
		m := member("m")
		m.ReplacedAt = tc.at
		g.Settle(m, tc.failed, start)
		require.Len(t, g.Members(nil, start), tc.want, name)
	}
	var g safety.GuardMemory
	g.Settle(withoutVM(member("m")), false, start)
	require.True(t, g.Members([]safety.GuardMember{member("m")}, start)[0].VMGone)
	g.Settle(member("m"), false, start)
	require.False(t, g.Members([]safety.GuardMember{member("m")}, start)[0].VMGone)
}

func TestGuardMemory_Report_EventForEachChangeOfTheAction(t *testing.T) {
	t.Parallel()
	const all, slowed, held = machinist.Reason(""), safety.ReplacementsSlowed, safety.ReplacementsHeld
	var g safety.GuardMemory
	m := member("m")
	message := map[machinist.Reason]string{all: "all", slowed: "slowly", held: "none"}
	for i, step := range []struct {
		minutes time.Duration
		reason  machinist.Reason
		event   string
	}{
		{0, all, ""},
		{0, slowed, "Warning ReplacementsSlowed slowly"},
		{1, slowed, ""},
		{1, held, "Warning ReplacementsHeld none"},
		{2, slowed, ""}, // another machine may still be held
		{4, slowed, "Warning ReplacementsSlowed slowly"},
		{7, all, "Normal ReplacementsResumed all; they are replaced as usual"},
		{7, all, ""},
	} {
		d := safety.Decision[machinist.Action]{Reason: step.reason, Message: message[step.reason]}
		e := g.Report(m, d, start.Add(step.minutes*time.Minute))
		if step.event == "" {
			require.Nil(t, e, "step %d", i)
			continue
		}
		require.NotNil(t, e, "step %d", i)
		require.Equal(t, step.event, e.String())
		require.Equal(t, step.reason != all, g.Reported(m))
	}
	g.Report(m, safety.Decision[machinist.Action]{Reason: held}, start)
	other := m
	other.Zone = "b"
	require.False(t, g.Reported(other), "another zone")
	require.Equal(t, "Normal ReplacementsResumed its machines no longer fail all at once; they are replaced as usual", g.Resume(m, "").String())
	require.False(t, g.Reported(m))
}

func TestNewGuardMember_EachMachine_AvailableOrReplaced(t *testing.T) {
	t.Parallel()
	began, now := start, start.Add(10*time.Minute)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(start.Add(d)) }
	set := &v1alpha1.MachineSet{}
	set.CreationTimestamp = at(-time.Hour)
	running := machineOf(v1alpha1.MachineRunning, at(-2*time.Hour))
	require.Zero(t, safety.NewGuardMember(running, nil, life.DefaultPolicy(), began, now).RecoveredAt, "it has never failed")
	for _, op := range []v1alpha1.LastOperation{
		{Type: v1alpha1.MachineOperationHealthCheck, State: v1alpha1.MachineStateSuccessful},
		{Type: v1alpha1.MachineOperationHealthCheck, State: v1alpha1.MachineStateProcessing},
		{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateSuccessful},
	} {
		running.Status.LastOperation = op
		running.Status.LastOperation.LastUpdateTime = at(time.Minute)
		var want time.Time
		if op.Type == v1alpha1.MachineOperationHealthCheck && op.State == v1alpha1.MachineStateSuccessful {
			want = start.Add(time.Minute)
		}
		require.Equal(t, want, safety.NewGuardMember(running, nil, life.DefaultPolicy(), began, now).RecoveredAt, "%s %s", op.Type, op.State)
	}
	for name, tc := range map[string]struct {
		created   time.Duration
		phase     v1alpha1.MachinePhase
		set       *v1alpha1.MachineSet
		available bool
		replaced  time.Time
	}{
		"running for long":                     {created: -2 * time.Hour, phase: v1alpha1.MachineRunning, available: true},
		"failed":                               {created: -2 * time.Hour, phase: v1alpha1.MachineFailed, replaced: start.Add(5 * time.Minute)},
		"created shortly before the restart":   {created: -10 * time.Minute, phase: v1alpha1.MachineRunning, available: true, replaced: start.Add(-10 * time.Minute)},
		"created after it by an older set":     {created: 30 * time.Second, phase: v1alpha1.MachinePending, set: set, replaced: start.Add(30 * time.Second)},
		"created after it without a set":       {created: 30 * time.Second, phase: v1alpha1.MachinePending},
		"created a minute after the restart":   {created: time.Minute, phase: v1alpha1.MachinePending, set: set},
		"created more than an hour before it ": {created: -time.Hour - time.Second, phase: v1alpha1.MachineRunning, set: set, available: true},
	} {
		m := machineOf(tc.phase, at(tc.created))
		got := safety.NewGuardMember(m, tc.set, life.DefaultPolicy(), began, now)
		require.Equal(t, tc.available, got.Available, name)
		require.True(t, tc.replaced.Equal(got.ReplacedAt), "%s: %s", name, got.ReplacedAt)
	}
}

// machineOf returns a machine in a phase that it has had since 5 minutes after start.
func machineOf(phase v1alpha1.MachinePhase, created metav1.Time) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m", UID: "m", CreationTimestamp: created}}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(start.Add(5 * time.Minute))}
	return m
}
