// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// clocks are the differences of the clock of the API servers to that of the controller.
var clocks = []time.Duration{3 * time.Second, 30 * time.Minute, 24 * time.Hour, -3 * time.Second, -30 * time.Minute}

func TestDecide_ClockWrong_NoMoreCallsOrDecisions(t *testing.T) {
	t.Parallel()
	for name, o := range clouds() {
		for _, force := range []bool{false, true} {
			for _, deleteAfter := range []time.Duration{0, 100 * time.Millisecond, 10 * time.Second, 40 * time.Second, 3 * time.Minute} {
				for _, ahead := range clocks {
					t.Run(fmt.Sprintf("%s/deleted after %s/force %t/API server %s ahead", name, deleteAfter, force, ahead), func(t *testing.T) {
						t.Parallel()
						noMoreThanRight(t, func(ahead time.Duration) (*sim, time.Duration, error) {
							return lifeByClock(o, nil, ahead, deleteAfter, force)
						}, ahead)
					})
				}
			}
		}
	}
}

// TestDecide_ClockBehindDuringDeletion_NoMoreCalls deletes the machine in the middle of a pass. The
// clock of the controller is behind, so that the deletion timestamp is later than every observation
// of the pass.
func TestDecide_ClockBehindDuringDeletion_NoMoreCalls(t *testing.T) {
	t.Parallel()
	for name, o := range clouds() {
		s, _, err := lifeByClock(o, nil, 0, 3*time.Minute, false)
		require.NoError(t, err)
		for i := range s.point {
			at := func(point int) incident {
				if point == i {
					return deleted
				}
				return noIncident
			}
			for _, ahead := range clocks {
				t.Run(fmt.Sprintf("%s/deleted at step %d/API server %s ahead", name, i, ahead), func(t *testing.T) {
					t.Parallel()
					noMoreThanRight(t, func(ahead time.Duration) (*sim, time.Duration, error) {
						return lifeByClock(o, at, ahead, time.Hour, false)
					}, ahead)
				})
			}
		}
	}
}

// noMoreThanRight runs a machine with a right clock and with a wrong one, and compares calls,
// decisions and duration.
func noMoreThanRight(t *testing.T, run func(ahead time.Duration) (*sim, time.Duration, error), ahead time.Duration) {
	t.Helper()
	right, took, err := run(0)
	require.NoError(t, err)
	s, lasted, err := run(ahead)
	require.NoError(t, err)
	require.Empty(t, s.machines)
	require.LessOrEqual(t, s.called, right.called+2, "driver calls")
	require.LessOrEqual(t, s.decided, right.decided+10, "decisions")
	require.LessOrEqual(t, lasted, took+time.Minute)
}

// quickWorld returns a world in which each effect takes a millisecond, and drains never end.
func quickWorld(in machine.Observation, p machine.Policy) *world {
	return &world{in: in, policy: p, now: now, fast: true, tick: time.Millisecond, rounds: 1 << 30}
}

func TestDecide_AnyTimes_Settles(t *testing.T) {
	t.Parallel()
	acted := 0
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 23))
		in, p := anyLife(r), anyPolicy(r)
		in.FirstSeen = pick(r, time.Time{}, now, moment(r))
		w := quickWorld(in, p)
		w.lookErr = pick[error](r, nil, status.Error(codes.NotFound, "none"), status.Error(codes.Internal, "broken"))
		effects, err := w.settle()
		require.NoError(t, err, "seed %d", seed)
		d := w.last
		require.True(t, w.released || d.NextCheck.IsZero() || d.NextCheck.After(w.now.Add(-time.Millisecond)), "seed %d: %s", seed, d)
		acted += effects
	}
	require.Greater(t, acted, 6000)
}

// TestDecide_AnyStatus_RunsOrHasReason has a machine with an existing VM, a healthy Node, and a
// status that was edited by hand.
func TestDecide_AnyStatus_RunsOrHasReason(t *testing.T) {
	t.Parallel()
	begins := append([]v1alpha1.MachinePhase{"Bogus", "running", "Running "}, allPhases...)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 29))
		begin := pick(r, begins...)
		readyAgain := false
		in := living(begin, healthy)
		in.Machine.CreationTimestamp, in.FirstSeen = metav1.NewTime(now.Add(-time.Hour)), now
		in.Machine.Status = anything(r).Machine.Status
		in.Machine.Status.CurrentStatus.Phase = begin
		if entered := in.Machine.Status.CurrentStatus.LastUpdateTime; begin == v1alpha1.MachineFailed && !entered.IsZero() {
			readyAgain = entered.Time.Before(now.Add(-time.Hour)) // when the Node became Ready
		}
		w, d := quickWorld(in, machine.DefaultPolicy()), machine.Decision{}
		for range 30 {
			_, err := w.settle()
			require.NoError(t, err, "seed %d", seed)
			d = w.last
			if d.NextCheck.IsZero() {
				break
			}
			require.True(t, d.NextCheck.After(w.now.Add(-time.Millisecond)), "seed %d: %s", seed, d)
			require.True(t, d.NextCheck.Before(now.AddDate(0, 0, 1)), "seed %d: %s", seed, d)
			w.now = d.NextCheck
		}
		require.Zero(t, d.NextCheck, "seed %d: %s", seed, d)
		switch end := w.in.Machine.Status.CurrentStatus.Phase; {
		case begin == v1alpha1.MachineFailed && !readyAgain: // the owner replaces the machine
			require.Equal(t, v1alpha1.MachineFailed, end, "seed %d", seed)
			require.Equal(t, machine.ReasonFailed, d.Holds[0].Reason, "seed %d", seed)
		default:
			require.Equal(t, v1alpha1.MachineRunning, end, "seed %d: from %q: %s", seed, begin, d)
		}
	}
}

// TestCreationTimeout_SeveralClocks_CountsFromBegin has a machine whose Node does not join. The
// begin of its creation is recorded by several clocks.
func TestCreationTimeout_SeveralClocks_CountsFromBegin(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct{ created, firstSeen, recorded, begin time.Time }{
		"not observed before":                {ago(5 * time.Minute), time.Time{}, time.Time{}, ago(5 * time.Minute)},
		"observed at once":                   {ago(5 * time.Minute), ago(4 * time.Minute), time.Time{}, ago(4 * time.Minute)},
		"observed after a restart":           {ago(5 * time.Minute), ago(time.Minute), ago(4 * time.Minute), ago(4 * time.Minute)},
		"clock of the API server behind":     {ago(time.Hour), ago(2 * time.Minute), ago(time.Minute), ago(2 * time.Minute)},
		"clock of the API server ahead":      {now.Add(time.Hour), ago(2 * time.Minute), ago(time.Minute), ago(2 * time.Minute)},
		"record older than the machine":      {ago(5 * time.Minute), ago(4 * time.Minute), ago(24 * time.Hour), ago(5 * time.Minute)},
		"record of a clock that is ahead":    {ago(5 * time.Minute), ago(4 * time.Minute), now.Add(time.Hour), ago(4 * time.Minute)},
		"observed by a clock that was ahead": {ago(5 * time.Minute), now.Add(2 * time.Hour), time.Time{}, ago(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			in := after(withID, seen(machine.Present), phase(v1alpha1.MachinePending), spec(func(m *v1alpha1.Machine) {
				m.CreationTimestamp = metav1.NewTime(tc.created)
				m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(tc.recorded)
			}))
			in.FirstSeen = tc.firstSeen
			d := machine.Decide(in, machine.DefaultPolicy(), now)
			require.NotEmpty(t, d.Holds)
			require.Equal(t, tc.begin.Add(machine.DefaultPolicy().CreationTimeout), d.Holds[0].Until, "%s", d)
		})
	}
}
