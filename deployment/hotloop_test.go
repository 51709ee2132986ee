// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A hotLoop counts what is done for the machines of a class that does not work.
type hotLoop struct {
	w     *deploymenttest.World
	class string
	made  []time.Time // machines
	calls []time.Time // of the provider
	most  int         // machines at a time that are not leaving
}

// hotLoopJoin is how long machines take to come up. They are not healthy then.
const hotLoopJoin = 2 * time.Minute

// newHotLoop is a world in which machines of the class fail. The timeouts are those that
// machines have by default.
func newHotLoop(t *testing.T, d *v1alpha1.MachineDeployment, class string, sick time.Duration, m deploymenttest.Model) *hotLoop {
	t.Helper()
	l := &hotLoop{class: class}
	m.CreationTimeout = machine.DefaultPolicy().CreationTimeout
	create := m.Create
	m.Create = func(m *v1alpha1.Machine) error {
		if m.Spec.Class.Name != class || create == nil {
			return nil
		}
		l.calls = append(l.calls, l.w.Now())
		return create(m)
	}
	m.OnWrite = func(c deploymenttest.Change) {
		m, ok := c.After.(*v1alpha1.Machine)
		if !ok || c.Before != nil || m.Spec.Class.Name != class {
			return
		}
		l.made = append(l.made, c.At)
		before := max(0, len(l.made)-100)
		require.True(t, before == 0 || l.made[before].Before(c.At), "machines are made and deleted without time passing")
		if sick > 0 {
			l.w.At(c.At.Add(hotLoopJoin), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineUnknown) })
			l.w.At(c.At.Add(sick), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineFailed) })
		}
	}
	w, err := deploymenttest.New(d, m)
	require.NoError(t, err)
	l.w = w
	return l
}

// run lets time pass, and counts the machines.
func (l *hotLoop) run(d time.Duration) {
	end := l.w.Now().Add(d)
	for l.w.Now().Before(end) {
		next := l.w.Now().Add(time.Minute)
		l.w.Run(time.Minute)
		l.w.Wait(next.Sub(l.w.Now())) // if it has come to rest
		present := 0
		for _, m := range l.w.Machines() {
			if m.Spec.Class.Name == l.class && m.DeletionTimestamp == nil {
				present++
			}
		}
		l.most = max(l.most, present)
	}
}

// perHour returns the most of these times within any hour.
func perHour(times []time.Time) int {
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Hour {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// hotLoopBound is how many of what comes once in a period fall into a time: one at
// its beginning, and one after each period.
func hotLoopBound(d, period time.Duration) int {
	return 1 + int((d-1)/period)
}

// TestHotLoop_FailingMachines_ReplacedSlowly asserts that machines that fail, or cannot be
// created, are replaced no faster than the policies allow. A machine is replaced when it has not
// joined within the creation timeout, or when it is Failed. Of machines that fail at once, at most
// as many are in deletion as the set has replicas or has released.
//
//	machines per hour <= places * (1 + hour/period)
//	calls per hour    <= machines per hour * (1 + CreationTimeout/Retry)
func TestHotLoop_FailingMachines_ReplacedSlowly(t *testing.T) {
	const join, leave = hotLoopJoin, 5 * time.Minute
	policy := machine.DefaultPolicy()
	for name, c := range map[string]struct {
		replicas, surge int32
		class           string // c2: in a rollout
		places          int
		period          time.Duration
		refusal         error         // of the provider
		sick            time.Duration // after which a machine is Failed, from its creation; 0: never
		free            bool
	}{
		"ten replicas, no capacity":          {10, 1, "c1", 10, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, false},
		"a rollout, no capacity":             {10, 2, "c2", 2 + 1, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, false},
		"a rollout, capacity is freed":       {10, 2, "c2", 2 + 1 + 1, policy.CreationTimeout, status.Error(codes.ResourceExhausted, "none left"), 0, true},
		"a rollout, a wrong request":         {10, 2, "c2", 2 + 1, policy.CreationTimeout, status.Error(codes.InvalidArgument, "no such image"), 0, false},
		"a rollout, sick after they came up": {10, 2, "c2", 2 + 1, join + policy.HealthTimeout, nil, join + policy.HealthTimeout, false},
		"a rollout, sick when they come up":  {10, 2, "c2", 2 + 1, join, nil, join, false},
		"one replica that fails at once":     {1, 1, "c1", 1 + 3, leave, nil, time.Second, false},
		"ten replicas that fail at once":     {10, 1, "c1", 10 + 10, leave, nil, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := deploymenttest.Model{
				Join:  func(*v1alpha1.Machine) (time.Duration, bool) { return join, true },
				Leave: func(*v1alpha1.Machine) time.Duration { return leave },
			}
			m.Policy.FreeCapacity = c.free
			if c.refusal != nil { // asked again as a machine controller does, and all its waits but the first are longer
				m.Create, m.Retry = func(*v1alpha1.Machine) error { return c.refusal }, codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(c.refusal, 1), nil)
			}
			l := newHotLoop(t, rolling(c.replicas, c.surge, 1), c.class, c.sick, m)
			l.run(time.Hour)
			if c.class != "c1" {
				require.NoError(t, l.w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = l.class }))
			}
			l.run(12 * time.Hour)
			machines := c.places * hotLoopBound(time.Hour, c.period)
			t.Logf("machines per hour: %d of %d, places: %d of %d, calls: %d", perHour(l.made), machines, l.most, c.places, perHour(l.calls))
			require.LessOrEqual(t, l.most, c.places)
			require.LessOrEqual(t, perHour(l.made), machines)
			require.Greater(t, perHour(l.made), machines/4, "machines are replaced")
			if c.refusal != nil {
				require.LessOrEqual(t, perHour(l.calls), machines*hotLoopBound(policy.CreationTimeout, m.Retry))
			}
		})
	}
}
