// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// wrongClock is a clock that is behind or ahead of the API servers.
type wrongClock struct {
	*clocktesting.FakeClock
	ahead time.Duration
}

func (c wrongClock) Now() time.Time                  { return c.FakeClock.Now().Add(c.ahead) }
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// TestControllers_WrongClock_NoMoreCallsThanWithARightClock runs every scenario with a manager
// whose clock is behind or ahead of the API servers.
func TestControllers_WrongClock_NoMoreCallsThanWithARightClock(t *testing.T) {
	t.Parallel()
	for _, s := range clockScenarios() {
		for _, ahead := range []time.Duration{-3 * time.Second, -30 * time.Minute, 3 * time.Second, 30 * time.Minute} {
			t.Run(fmt.Sprintf("%s/%s ahead", s.name, ahead), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := s                    // the other tests have the same scenario
					if ahead > drainTimeout { // then every drain is one by force
						s.pods = 0
					}
					right := play(s, nil, noFaults, false)
					require.Empty(t, right.violations)
					wrong := s
					wrong.clockAhead = ahead
					w := play(wrong, nil, noFaults, true)
					require.Empty(t, w.violations)
					t.Logf("driver calls %d (%d), all calls %d (%d), decisions %d (%d)",
						w.driverCalls, right.driverCalls, w.calls, right.calls, w.decisions, right.decisions)
					require.LessOrEqual(t, w.driverCalls, right.driverCalls+2*s.machines)
					require.LessOrEqual(t, w.calls, right.calls*5/4+10)
					require.LessOrEqual(t, w.decisions, right.decisions*5/4+20)
				})
			})
		}
	}
}

// TestControllers_ClockBehindAndDeletionDuringAPass_NoMoreCallsThanWithARightClock deletes the
// machine at every call. For the controllers, the deletion timestamp is then in the future.
func TestControllers_ClockBehindAndDeletionDuringAPass_NoMoreCallsThanWithARightClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, s := range clockScenarios() {
			if s.rollout != nil {
				continue // its machines have the lives of the others
			}
			s.machines, s.pods = 1, 0
			for i := range play(s, nil, noFaults, false).calls {
				deletion := func(a simCall) fault {
					if a.n == i {
						return fault{kind: deleted}
					}
					return fault{}
				}
				right := play(s, nil, deletion, false)
				require.Empty(t, right.violations, "%s, deleted at call %d", s.name, i)
				for _, ahead := range []time.Duration{-3 * time.Second, -30 * time.Minute} {
					wrong := s
					wrong.clockAhead = ahead
					w := play(wrong, nil, deletion, true)
					require.Empty(t, w.violations, "%s, clock %s ahead, deleted at call %d\n%s", s.name, ahead, i, strings.Join(w.trace, "\n"))
					require.LessOrEqual(t, w.driverCalls, right.driverCalls+2, "%s, clock %s ahead, deleted at call %d", s.name, ahead, i)
					require.LessOrEqual(t, w.decisions, right.decisions*5/4+20, "%s, clock %s ahead, deleted at call %d", s.name, ahead, i)
				}
			}
		}
	})
}

// clockScenarios are the scenarios that depend on the clock.
func clockScenarios() []scenario {
	var all []scenario
	for _, s := range scenarios {
		s.machines, s.pods, s.cloud.BootTime, s.cloud.Lag = 2, 1, 20*time.Second, 20*time.Second
		all = append(all, s)
	}
	early := all[1]
	early.name, early.deleteAfter = "deleted before its VM is visible", 100*time.Millisecond
	rolled := scenario{name: "rollout", joins: true, deployment: true, rollout: rolling(8, 2, 0, change{time.Minute, renewed(1)})}
	rolled.cloud.BootTime = 20 * time.Second
	return append(all, early, rolled)
}
