// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// silenceKind is a pattern of many silent Nodes, and the replacements that the guard allows.
type silenceKind struct {
	name             string
	machines, silent int32
	spread           time.Duration // from the first silent Node to the last
	recover          time.Duration // after the first silence; zero means never
	back             time.Duration // from the first Node that recovers to the last
	never            bool          // the machines never join
	holds            bool          // no machine may fail within an hour
	slow             int           // the number of first failures that are a window apart
	replaced         int           // the number of replaced machines at the end
	length           time.Duration
	crash            time.Duration // the downtime of the controllers after the first failure; zero means no crash
	health           time.Duration // the health timeout; zero means the default
	lies             int           // the number of silent machines whose living VM the provider does not find
}

// silences are the patterns that the guard is tested with.
var silences = []silenceKind{
	{name: "all silent, then they recover", machines: 8, silent: 8, spread: time.Minute, recover: 45 * time.Minute, holds: true, length: 2 * time.Hour},
	{name: "all silent, then they recover one after the other", machines: 8, silent: 8, spread: time.Minute, recover: 45 * time.Minute, back: 5 * time.Minute, holds: true, length: 2 * time.Hour},
	{name: "all silent for good", machines: 6, silent: 6, spread: time.Minute, holds: true, slow: 3, replaced: 6, length: 4 * time.Hour},
	{name: "part silent for good", machines: 12, silent: 5, spread: time.Minute, slow: 2, replaced: 5, length: 3 * time.Hour},
	{name: "part silent for good, and the controllers crash", machines: 12, silent: 5, spread: time.Minute, slow: 2, replaced: 5, length: 3 * time.Hour, crash: 3 * time.Minute, health: 2 * time.Minute},
	{name: "silent over hours", machines: 8, silent: 4, spread: 2 * time.Hour, replaced: 4, length: 4 * time.Hour},
	{name: "few silent at once", machines: 5, silent: 3, replaced: 3, length: 2 * time.Hour},
	{name: "all silent, no VM is found, then they recover", machines: 8, silent: 8, spread: time.Minute, recover: 45 * time.Minute, holds: true, lies: 8, length: 2 * time.Hour},
	{name: "all silent, one VM is not found, then they recover", machines: 8, silent: 8, spread: time.Minute, recover: 45 * time.Minute, replaced: 1, lies: 1, length: 2 * time.Hour},
}

// silentAt is when the first Node becomes silent.
const silentAt = 5 * time.Minute

// failure is the time at which a machine failed because of its health.
type failure struct {
	machine string
	at      time.Time
}

// fallSilent runs one pattern and checks the replacements.
func fallSilent(k silenceKind, rng *rand.Rand, at plan, guard safety.GuardPolicy, verbose bool) *world {
	s := scenario{
		name: k.name, joins: !k.never, deployment: true, guard: guard,
		rollout: rolling(k.machines, 0, 1),
		cloud:   drivertest.CloudOptions{BootTime: 20 * time.Second},
	}
	var w *world
	var start, recordFault time.Time
	var failures []failure
	w = newWorld(s, rng, func(a simCall) fault {
		if k.crash > 0 && len(failures) > 0 && w.clock.Now().After(failures[0].at.Add(k.crash)) {
			k.crash = 0
			return fault{kind: crashBefore, wait: time.Second}
		}
		if recordFault.IsZero() || w.clock.Now().Before(recordFault) { // faults begin with the silence
			return fault{}
		}
		return at(a)
	}, verbose)
	if k.health > 0 { // the timeout begins again after the crash
		w.policy.HealthTimeout = k.health
	}
	silent := map[string]bool{}
	w.lies = map[string]bool{}
	start = w.clock.Now()
	recordFault = start.Add(silentAt)
	if rng != nil {
		recordFault = recordFault.Add(time.Duration(rng.Int64N(int64(80 * time.Minute))))
	}
	w.later(silentAt, func() { w.silence(k, silent) })
	w.onWrite = func(write draintest.Write) {
		was, _ := write.Before.(*v1alpha1.Machine)
		is, _ := write.After.(*v1alpha1.Machine)
		if was != nil && is != nil && was.Status.CurrentStatus.Phase != is.Status.CurrentStatus.Phase && is.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
			failures = append(failures, failure{is.Name, is.Status.CurrentStatus.LastUpdateTime.Time}) // not the time of the write, which may be slow
			if !silent[is.Name] {
				w.violate("machine %s failed, but its Node was not silent", is.Name)
			}
		}
	}
	w.runUntil(start.Add(k.length), func() {})
	if w.process != nil {
		w.process.cancel()
	}
	if len(w.violations) == 0 {
		w.judgeSilence(k, start, failures)
	}
	return w
}

// silence makes Nodes silent, one after the other.
func (w *world) silence(k silenceKind, silent map[string]bool) {
	for i, node := range all[*corev1.Node](w.target, "nodes") {
		if i >= int(k.silent) {
			return
		}
		silent[node.Name] = true
		if i < k.lies {
			w.lies[node.Name] = true
			w.later(cmp.Or(k.recover, k.length), func() { delete(w.lies, node.Name) })
		}
		w.later(k.spread*time.Duration(i)/time.Duration(k.silent), func() { w.report(node.Name, corev1.ConditionUnknown) })
		if k.recover > 0 {
			w.later(k.recover+k.back*time.Duration(i)/time.Duration(k.silent), func() { w.report(node.Name, corev1.ConditionTrue) })
		}
	}
}

// judgeSilence checks the number of failed machines.
func (w *world) judgeSilence(k silenceKind, start time.Time, failures []failure) {
	if len(failures) != k.replaced {
		w.violate("%d machines failed, want %d: %v", len(failures), k.replaced, failures)
		return
	}
	for i, f := range failures {
		if k.holds && f.at.Before(start.Add(silentAt+time.Hour-time.Second)) {
			w.violate("machine %s failed %s after the begin of the silence", f.machine, f.at.Sub(start)-silentAt)
		}
		if i > 0 && i < k.slow && f.at.Sub(failures[i-1].at) < 10*time.Minute-2*time.Second {
			w.violate("machine %s failed %s after the previous one", f.machine, f.at.Sub(failures[i-1].at))
		}
	}
	machines := all[*v1alpha1.Machine](w.control, "machines")
	if len(machines) != int(k.machines) {
		w.violate("at the end there are %d machines", len(machines))
	}
	for _, m := range machines {
		if m.Status.CurrentStatus.Phase != v1alpha1.MachineRunning {
			w.violate("at the end machine %s is %s", m.Name, m.Status.CurrentStatus.Phase)
		}
	}
}

// TestGuard_EachKindOfSilence_ReplacesWhatItAllows runs each pattern without other faults, with and
// without the guard.
func TestGuard_EachKindOfSilence_ReplacesWhatItAllows(t *testing.T) {
	t.Parallel()
	for _, k := range silences {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := fallSilent(k, nil, noFaults, safety.DefaultGuardPolicy(), true)
				require.Empty(t, w.violations, strings.Join(tail(w.trace, 80), "\n"))
				told := func(reason string) int {
					return len(slices.DeleteFunc(slices.Clone(w.events), func(e string) bool { return !strings.Contains(e, reason) }))
				}
				want := 0
				if k.holds || k.lies > 0 {
					want = 1
				}
				require.Equal(t, want, told("ReplacementsHeld"), "one Event: %v", w.events)
				times := 0
				switch {
				case k.crash > 0:
					times = 2 // once by each process
				case k.slow > 0:
					times = 1
				}
				require.Equal(t, times, told("ReplacementsSlowed"), "%v", w.events)
				if k.holds || k.lies > 0 || k.slow > 0 {
					require.Equal(t, 1, told("ReplacementsResumed"), "%v", w.events)
				}
				if w = fallSilent(k, nil, noFaults, safety.GuardPolicy{}, false); k.holds || k.lies > 0 || k.slow > 0 {
					require.NotEmpty(t, w.violations, "more machines are replaced without the guard")
				} else {
					require.Empty(t, w.violations, "the guard changes nothing")
				}
			})
		})
	}
}

// TestGuard_NoneJoins_HeldAndThenReplaced ends the creation timeouts of all machines of a new
// deployment at once, beyond the replacement limit. A user can request their replacement.
func TestGuard_NoneJoins_HeldAndThenReplaced(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		override time.Duration // after the begin; zero means never
		first    time.Duration
	}{
		"held for an hour": {0, 80 * time.Minute},
		"override":         {30 * time.Minute, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(scenario{
					name: name, deployment: true, guard: safety.DefaultGuardPolicy(), cloud: drivertest.CloudOptions{BootTime: 20 * time.Second},
					rollout: rolling(6, 0, 1),
				}, nil, noFaults, true)
				start, first := w.clock.Now(), time.Time{}
				if tc.override > 0 {
					until := start.Add(2 * time.Hour).UTC().Format(time.RFC3339)
					w.later(tc.override, func() {
						w.patchDeployment(`{"metadata":{"annotations":{"` + v1alpha1.ReplaceUntilAnnotation + `":"` + until + `"}}}`)
					})
				}
				w.runUntil(start.Add(100*time.Minute), func() {
					for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
						if first.IsZero() && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
							first = w.clock.Now()
						}
					}
				})
				w.process.cancel()
				require.Empty(t, w.violations)
				require.False(t, first.IsZero(), "replaced at the end")
				require.InDelta(t, tc.first.Minutes(), first.Sub(start).Minutes(), 1.5, strings.Join(tail(w.trace, 40), "\n"))
			})
		})
	}
}

// randomSilence is one pattern with random faults, except deletions by users, which the guard does
// not count.
func randomSilence(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 9))
	k, faults := silences[rng.IntN(len(silences))], randomFaults(rng)
	return fallSilent(k, rng, func(a simCall) fault {
		if t := faults(a); t.kind != deleted {
			return t
		}
		return fault{}
	}, safety.DefaultGuardPolicy(), verbose)
}

// TestGuard_Schedules runs patterns with crashes, old lists, refused and slow calls. Replacements
// before a crash count after it.
func TestGuard_Schedules(t *testing.T) {
	t.Parallel()
	playAll(t, "TestGuard_Schedules", 300, randomSilence)
}
