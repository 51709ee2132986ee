// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A driver that ignores its context: some of its calls end long after their deadline, or only with
// the process.

// driverNever is the fault of a call that does not end for a while.
const driverNever faultKind = "the driver does not answer for a while"

// unendedAfter is when such a call is abandoned: its deadline and ten seconds.
const unendedAfter = driver.DefaultTimeout + 10*time.Second

// unendedCall is a driver call that does not end.
type unendedCall struct {
	p       *process
	op      driver.Operation
	machine string
	effect  func() error
	err     error
	over    bool
	end     chan struct{}
}

// driver returns the driver of a process.
func (p *process) driver() driver.Driver {
	if !p.w.scenario.unended {
		return cloudCalls{p}
	}
	p.unended = map[string]*unendedCall{}
	// The controllers continue after the goroutine of the call has waited: only the race detector
	// does not know.
	turn := func(driver.Call) { p.w.turn.Lock(); p.w.turn.Unlock() } //nolint:staticcheck // nothing is done between
	return driver.Observe(driver.WithDeadline(cloudCalls{p}, driver.Timeouts{}), turn, p.w.clock)
}

// crashed reports whether the value of a panic is a crash, also of the goroutine of a driver call.
func crashed(value any) bool {
	err, ok := value.(error)
	return ok && errors.Is(err, errCrash)
}

// neverAnswers is a call that ends at a time after its deadline, and has its effect then, or ends
// with the process.
func (p *process) neverAnswers(op driver.Operation, machine string, lasts time.Duration, effect func() error) error {
	c := &unendedCall{p: p, op: op, machine: machine, effect: effect, end: make(chan struct{})}
	p.abandon(c, lasts)
	<-c.end
	return c.err
}

// abandon makes what happens until a call is abandoned.
func (p *process) abandon(c *unendedCall, lasts time.Duration) {
	p.w.turn.Lock()
	defer p.w.turn.Unlock()
	p.unended[c.machine] = c
	p.w.judge.unconfirmedToken = true // a drain may be by force when the worker goes on, and then leaves tokens
	if c.op == driver.OpDeleteMachine {
		p.w.judge.unknownNode = c.machine
	}
	p.w.unended = append(p.w.unended, c)
	retry := codes.BackoffPolicy{}.Pace(codes.RetrySoon).Cap // nothing tells the machine of the end
	p.w.calmFrom = later(p.w.calmFrom, p.w.clock.Now().Add(lasts+retry))
	p.w.later(lasts, func() { p.w.endCall(c) })
	for _, s := range []*site{p.w.control, p.w.target} {
		for i, o := range s.outages {
			if o.to.After(p.w.clock.Now()) { // here the probes have the same worker, and notice nothing until it goes on
				s.outages[i].from = p.w.clock.Now().Add(unendedAfter)
			}
		}
	}
	p.w.clock.Step(unendedAfter)
	p.w.live()
}

// endCall ends a call, with its effect if its process exists.
func (w *world) endCall(c *unendedCall) {
	if c.over {
		return
	}
	c.over = true
	if w.process == c.p {
		w.logf("%s of machine %s ends at last", c.op, c.machine)
		c.err = c.effect()
		delete(c.p.unended, c.machine)
	}
	close(c.end)
	synctest.Wait() // the goroutine of the call has ended
}

// checkUnended checks that no call of a machine is made while another one has not ended.
func (p *process) checkUnended(op driver.Operation, machine string) {
	if c := p.unended[machine]; c != nil {
		p.w.violate("%s of machine %s while %s has not ended", op, machine, c.op)
	}
}

// assessUnended checks that a machine is left alone while a call of it has not ended.
func (w *world) assessUnended(write draintest.Write, by author) {
	if by == others || w.process == nil || w.process.unended[write.Name] == nil {
		return
	}
	was, _ := write.Before.(*v1alpha1.Machine)
	is, exists := write.After.(*v1alpha1.Machine)
	op := w.process.unended[write.Name].op
	switch {
	case was == nil:
	case (!exists || write.After == nil) && op == driver.OpGetMachineStatus && was.Spec.ProviderID == "": // no VM was requested
	case !exists || write.After == nil:
		w.violate("machine %s released while %s has not ended", write.Name, op)
	case op == driver.OpCreateMachine && is.Status.CurrentStatus.Phase == v1alpha1.MachineFailed:
		w.violate("machine %s failed while %s has not ended", write.Name, op)
	}
}

// unendedSchedule is a scenario in which up to three calls do not end, among other faults.
func unendedSchedule(seed uint64, verbose bool) *world {
	rng := rand.New(rand.NewPCG(seed, 4))
	s := scenarios[[]int{0, 1, 1, 2, 3, 4, 5}[rng.IntN(7)]]
	s.unended, s.machines, s.pods = true, 1+rng.IntN(3), max(0, rng.IntN(4)-2)
	if s.deleteAfter > 0 {
		s.deleteAfter = time.Duration(rng.Int64N(int64(30 * time.Minute)))
	}
	s.cloud = anyCloud(rng)
	others, left := randomFaults(rng), 1+rng.IntN(3)
	w := play(s, rng, func(a simCall) fault {
		switch {
		case a.site == nil && a.name != "" && left > 0 && rng.IntN(3) == 0:
			left--
			return fault{kind: driverNever, wait: unendedAfter + time.Duration(1+rng.Int64N(int64(time.Hour)))}
		case rng.IntN(2) == 0:
			return others(a)
		default:
			return fault{}
		}
	}, verbose)
	w.process = nil
	for _, c := range w.unended {
		w.endCall(c)
	}
	return w
}

// TestSchedules_DriverNeverAnswers_MachineIsLeftAlone runs scenarios in which calls of the driver do
// not end.
func TestSchedules_DriverNeverAnswers_MachineIsLeftAlone(t *testing.T) {
	t.Parallel()
	playAll(t, "TestSchedules_DriverNeverAnswers", 1000, unendedSchedule)
}
