// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
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

// newHotLoop is a world in which machines of the class are a failure. The timeouts
// are those that machines have by default.
func newHotLoop(t *testing.T, d *v1alpha1.MachineDeployment, class string, m deploymenttest.Model) *hotLoop {
	t.Helper()
	l := &hotLoop{class: class}
	m.CreationTimeout = machine.DefaultPolicy().CreationTimeout
	create, write := m.Create, m.OnWrite
	m.Create = func(m *v1alpha1.Machine) error {
		if m.Spec.Class.Name != class {
			return nil
		}
		l.calls = append(l.calls, l.w.Now())
		if create == nil {
			return nil
		}
		return create(m)
	}
	m.OnWrite = func(c deploymenttest.Change) {
		if m, ok := c.After.(*v1alpha1.Machine); ok && c.Before == nil && m.Spec.Class.Name == class {
			l.made = append(l.made, c.At)
			before := max(0, len(l.made)-100)
			require.True(t, before == 0 || l.made[before].Before(c.At), "machines are made and deleted without time passing")
		}
		if write != nil {
			write(c)
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

// rollOut asks for machines that do not work, and lets a day pass.
func (l *hotLoop) rollOut(t *testing.T) {
	t.Helper()
	l.run(time.Hour)
	require.NoError(t, l.w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = l.class }))
	l.run(24 * time.Hour)
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

// hotLoopRefusals are the errors of a provider that will never make a machine.
var hotLoopRefusals = map[string]error{
	"no capacity":     status.Error(codes.ResourceExhausted, "none left"),
	"a wrong request": status.Error(codes.InvalidArgument, "no such image"),
}

// refusing is a provider that answers so, and is asked again as a machine
// controller does. All its waits but the first are longer.
func refusing(err error) deploymenttest.Model {
	return deploymenttest.Model{
		Create: func(*v1alpha1.Machine) error { return err },
		Retry:  codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(err, 1), nil),
	}
}

// requireBounded checks what follows from the policies for so many places: in each
// there is one machine at a time; it is replaced only when it has not come up
// within the creation timeout; and until then the provider is asked at once and
// after each wait. How many a pass may create at a time (Burst) only lowers that.
//
//	machines per hour <= places * (1 + hour/CreationTimeout)
//	calls per hour    <= machines per hour * (1 + CreationTimeout/Retry)
func (l *hotLoop) requireBounded(t *testing.T, places int, retry time.Duration) {
	t.Helper()
	timeout := machine.DefaultPolicy().CreationTimeout
	machines := places * hotLoopBound(time.Hour, timeout)
	calls := places * hotLoopBound(time.Hour, timeout) * hotLoopBound(timeout, retry)
	t.Logf("machines per hour: %d of %d, calls: %d of %d, places: %d of %d", perHour(l.made), machines, perHour(l.calls), calls, l.most, places)
	require.LessOrEqual(t, l.most, places)
	require.LessOrEqual(t, perHour(l.made), machines)
	require.LessOrEqual(t, perHour(l.calls), calls)
	require.Greater(t, len(l.made), places, "machines are replaced")
}

func TestMS6MachinesThatCannotBeMadeAreReplacedNoFasterThanTheyTimeOut(t *testing.T) {
	for name, err := range hotLoopRefusals {
		model := refusing(err)
		t.Run("ten replicas, "+name, func(t *testing.T) {
			l := newHotLoop(t, rolling(10, 1, 0), "c1", model)
			l.run(24 * time.Hour)
			l.requireBounded(t, 10, model.Retry)
		})
		for _, free := range []bool{false, true} {
			t.Run(fmt.Sprintf("a roll-out of ten replicas, %s, capacity is freed: %v", name, free), func(t *testing.T) {
				m := model
				m.Policy.FreeCapacity = free
				l := newHotLoop(t, rolling(10, 2, 1), "c2", m)
				l.rollOut(t)
				places := 2 + 1 // surge and unavailable
				if free {
					places++ // and one that is given up
				}
				l.requireBounded(t, places, m.Retry)
			})
		}
	}
}

// Machines that come up and are sick at once are replaced no faster than they come
// up and are waited for. Without a health timeout it is the join alone that bounds
// them: a set replaces what is Failed as soon as it sees it.
//
//	machines per hour <= places * (1 + hour/(join + HealthTimeout))
func TestMS6MachinesThatAreSickAtOnceAreReplacedNoFasterThanTheirHealthTimesOut(t *testing.T) {
	const join, places = 2 * time.Minute, 2 + 1
	for name, health := range map[string]time.Duration{"after the health timeout": machine.DefaultPolicy().HealthTimeout, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			var l *hotLoop
			model := deploymenttest.Model{Join: func(*v1alpha1.Machine) (time.Duration, bool) { return join, true }}
			model.OnWrite = func(c deploymenttest.Change) {
				m, ok := c.After.(*v1alpha1.Machine)
				if ok && m.Spec.Class.Name == "c2" && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
					l.w.At(c.At, func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineUnknown) })
					l.w.At(c.At.Add(health), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineFailed) })
				}
			}
			l = newHotLoop(t, rolling(10, 2, 1), "c2", model)
			l.rollOut(t)
			bound := places * hotLoopBound(time.Hour, join+health)
			t.Logf("machines per hour: %d of %d, places: %d of %d", perHour(l.made), bound, l.most, places)
			require.LessOrEqual(t, l.most, places)
			require.LessOrEqual(t, perHour(l.made), bound)
			require.Greater(t, len(l.made), places, "machines are replaced")
		})
	}
}

// Machines that fail at once, and not because of a timeout, are replaced at once, as
// long as not too many are on their way out: as many as the set wants, or as it
// replaces of those it has released.
//
//	machines per hour <= (replicas + max(replicas, Replaced)) * (1 + hour/leave)
func TestMS6MachinesThatFailAtOnceAreReplacedNoFasterThanTheyLeave(t *testing.T) {
	const leave = 5 * time.Minute
	for _, replicas := range []int{1, 10} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			var l *hotLoop
			model := deploymenttest.Model{Leave: func(*v1alpha1.Machine) time.Duration { return leave }}
			model.OnWrite = func(c deploymenttest.Change) {
				if m, ok := c.After.(*v1alpha1.Machine); ok && c.Before == nil {
					l.w.At(c.At.Add(time.Second), func(w *deploymenttest.World) { _ = w.SetPhase(m.Name, v1alpha1.MachineFailed) })
				}
			}
			l = newHotLoop(t, rolling(int32(replicas), 1, 0), "c1", model)
			l.run(4 * time.Hour)
			bound := (replicas + max(replicas, 3)) * hotLoopBound(time.Hour, leave)
			t.Logf("machines per hour: %d of %d", perHour(l.made), bound)
			require.LessOrEqual(t, perHour(l.made), bound)
			require.Greater(t, perHour(l.made), bound/3, "machines are replaced")
		})
	}
}
