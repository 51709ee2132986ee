// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// simCall is one call of the controllers, to an API server or to the driver.
type simCall struct {
	n         int   // the index of the call, from 0
	site      *site // nil for a call of the driver
	verb      string
	resource  string
	sub       string
	name      string
	write     bool
	operation driver.Operation
}

func (a simCall) String() string {
	if a.site == nil {
		return fmt.Sprintf("%d: %s %s", a.n, a.operation, a.name)
	}
	resource := a.resource
	if a.sub != "" {
		resource += "/" + a.sub
	}
	return fmt.Sprintf("%d: %s %s %s %s", a.n, a.verb, a.site.name, resource, a.name)
}

// faultKind is the kind of a fault.
type faultKind string

const (
	nothing         faultKind = ""
	crashBefore     faultKind = "crash before the call"
	crashAfter      faultKind = "crash after the call"
	crashOldLists   faultKind = "crash after the call, then old lists"
	conflict        faultKind = "a conflict"
	refused         faultKind = "the server fails"
	throttled       faultKind = "the server throttles"
	broken          faultKind = "the connection is refused"
	lost            faultKind = "the response is lost"
	cut             faultKind = "the connection breaks before the response"
	cancelBefore    faultKind = "the context ends before the call"
	cancelDuring    faultKind = "the context ends during the call"
	cancelAfter     faultKind = "the context ends with the response"
	deleted         faultKind = "a user deletes the machine"
	concurrentWrite faultKind = "another client writes the same object before"
	slowBefore      faultKind = "31s pass before the call"
	slowAfter       faultKind = "31s pass before the response"
	stale           faultKind = "watches deliver nothing for a while"
	outage          faultKind = "the server is out of reach for a while"
	driverFails     faultKind = "the driver fails"
	driverLoses     faultKind = "the response of the driver is lost"
	driverHalf      faultKind = "the driver fails half-way"
)

// fault is a fault of a call.
type fault struct {
	kind  faultKind
	code  codes.Code
	steps int
	wait  time.Duration
}

func (t fault) String() string {
	text := string(t.kind)
	if t.code != codes.OK {
		text += fmt.Sprintf(" with %s", t.code)
	}
	if t.steps > 0 {
		text += fmt.Sprintf(" after %d steps", t.steps)
	}
	if t.wait > 0 {
		text += fmt.Sprintf(", %s", t.wait)
	}
	return text
}

// commonFaults are the faults of every call.
var commonFaults = []fault{
	{kind: crashBefore, wait: time.Second},
	{kind: crashAfter, wait: time.Second},
	{kind: crashOldLists, wait: 20 * time.Second},
	{kind: cancelBefore, wait: time.Second},
	{kind: cancelDuring, wait: time.Second},
	{kind: cancelAfter, wait: time.Second},
	{kind: deleted},
	{kind: concurrentWrite},
	{kind: slowBefore},
	{kind: slowAfter},
	{kind: stale, wait: 20 * time.Second},
}

// serverFaults are the faults of every call to an API server. writeFaults are those of
// writes, updateFaults those of updates and patches.
var (
	serverFaults = []fault{{kind: refused}, {kind: throttled}, {kind: broken}, {kind: outage, wait: 40 * time.Second}}
	writeFaults  = []fault{{kind: lost}, {kind: cut}}
	updateFaults = []fault{{kind: conflict}}
)

// driverFaults are the faults of driver calls: every code, except those that would be a false
// statement about the VM.
func driverFaults(op driver.Operation) (out []fault) {
	lies := map[driver.Operation][]codes.Code{
		driver.OpGetMachineStatus:  {codes.NotFound, codes.Unimplemented, codes.Uninitialized},
		driver.OpDeleteMachine:     {codes.NotFound},
		driver.OpInitializeMachine: {codes.Unimplemented},
	}
	for code := codes.Canceled; code <= codes.Uninitialized+1; code++ {
		if slices.Contains(lies[op], code) {
			continue
		}
		out = append(out, fault{kind: driverFails, code: code}, fault{kind: driverLoses, code: code})
		if op == driver.OpCreateMachine || op == driver.OpDeleteMachine {
			out = append(out, fault{kind: driverHalf, code: code, steps: 1}, fault{kind: driverHalf, code: code, steps: 2})
		}
	}
	return out
}

// possible returns all faults of a call.
func (a simCall) possible() []fault {
	if a.site == nil {
		return slices.Concat(commonFaults, driverFaults(a.operation))
	}
	out := slices.Concat(commonFaults, serverFaults)
	if a.write {
		out = append(out, writeFaults...)
	}
	if a.verb == "update" || a.verb == "patch" {
		out = append(out, updateFaults...)
	}
	return out
}

// plan returns the fault of each call.
type plan func(a simCall) fault

// errCrash is the panic value that ends a pass by a crash.
var errCrash = errors.New("crash")

func call[T any](ctx context.Context, p *process, a simCall, do func() (T, error)) (T, error) {
	var out, none T
	err := p.through(ctx, a, func(fault) error {
		var err error
		out, err = do()
		return err
	})
	if err != nil {
		return none, err
	}
	return out, nil
}

func driverCall[R any](ctx context.Context, p *process, op driver.Operation, name string, do func(context.Context) (*R, error)) (*R, error) {
	var out *R
	p.w.driverCalls++
	p.checkUnended(op, name)
	err := p.through(ctx, simCall{operation: op, name: name, write: true}, func(t fault) error {
		kinds := map[faultKind]drivertest.FaultKind{driverFails: drivertest.Refuse, driverLoses: drivertest.LoseResponse, driverHalf: drivertest.Partial}
		if kind, faulty := kinds[t.kind]; faulty {
			defer p.w.cloud.Inject(drivertest.Fault{Kind: kind, Code: t.code, Steps: t.steps, LastKnownState: "half-way"})()
		}
		effect := func() (err error) {
			out, err = do(context.WithoutCancel(ctx))
			p.w.noteRefused(op, name, err, t)
			return err
		}
		if t.kind == driverNever {
			return p.neverAnswers(op, name, t.wait, effect) //nolint:contextcheck // others have a context of their own
		}
		return effect()
	})
	if err != nil && errors.Is(err, context.Canceled) {
		return nil, err
	}
	return out, err
}

// through makes a call of the controllers with its fault.
func (p *process) through(ctx context.Context, a simCall, do func(fault) error) error {
	w := p.w
	w.collect(others) //nolint:contextcheck // others have a context of their own
	if err := ctx.Err(); err != nil {
		if p.late++; p.late > 5 {
			w.violate("%s called long after the end of the context", a)
		}
		return err // like every client
	}
	a.n = w.calls
	w.calls++
	t := w.plan(a)
	w.logf("  %s", a)
	if t.kind != nothing {
		w.logf("  fault: %s", t)
		w.recordFault(t.wait)
	}
	w.remember(a, t)
	w.rememberRequest(a)
	w.before(a, t) //nolint:contextcheck // others have a context of their own
	if err := a.fails(t, w.clock.Now()); err != nil {
		w.logf("      %v", err)
		return err
	}
	switch t.kind { //nolint:exhaustive // before and after handle the others
	case crashBefore:
		p.crash(t.wait)
	case cancelBefore:
		p.stop(t.wait)
		return status.WrapError(codes.Canceled, "canceled", context.Canceled)
	}
	err := do(t)
	w.collect(ours) //nolint:contextcheck // others have a context of their own
	p.checkConflict(a, t, err)
	if err != nil {
		w.logf("      %v", err)
	}
	return p.after(a, t, err) //nolint:contextcheck // others have a context of their own
}

// checkConflict checks that no write is rejected because it is based on an older version than the
// last write of the same process.
func (p *process) checkConflict(a simCall, t fault, err error) {
	if a.site == nil || a.resource != "machines" || p.w.scenario.rollout != nil { // sets write machines too
		return
	}
	m := p.w.machine(a.name)
	switch {
	case m == nil:
	case apierrors.IsConflict(err) && p.lastVersions[a.name] == m.ResourceVersion:
		p.w.violate("%s refused although this process made the last write", a)
	case err == nil && a.write && (t.kind == nothing || t.kind == slowAfter || t.kind == concurrentWrite):
		p.lastVersions[a.name] = m.ResourceVersion
	}
}

// remember records what the judge needs of a call.
func (w *world) remember(a simCall, t fault) {
	if a.operation == driver.OpDeleteMachine {
		w.judge.askedAt[a.name] = w.clock.Now()
		if slices.Contains([]faultKind{crashAfter, crashOldLists, cancelDuring, cancelAfter}, t.kind) && w.unproven(a.name) {
			w.judge.unknownNode = a.name // no later process can prove whose it is
		}
	}
	if a.verb == "create" && a.resource == "secrets" && slices.Contains([]faultKind{lost, cut, crashAfter, crashOldLists, cancelDuring}, t.kind) {
		w.judge.unconfirmedToken = true
	}
}

// unproven reports whether a Node has joined that has no record of its machine.
func (w *world) unproven(name string) bool {
	return slices.ContainsFunc(all[*corev1.Node](w.target, "nodes"), func(n *corev1.Node) bool {
		return n.Name == name && n.Annotations[v1alpha1.MachineUIDAnnotation] == ""
	})
}

// before simulates the part of a fault before the call.
func (w *world) before(a simCall, t fault) {
	now := w.clock.Now()
	switch t.kind { //nolint:exhaustive // after handles the others
	case deleted:
		w.remove(w.machineFor(a))
	case concurrentWrite:
		w.writeConcurrently(a)
	case slowBefore:
		w.clock.Step(31 * time.Second)
		w.live()
	case stale:
		w.hold(now.Add(t.wait))
	case outage:
		if a.site != nil {
			a.site.beginOutage(now, now.Add(t.wait))
		}
	}
	w.bindLate(a)
	w.interleave()
}

// hold delays the events of all watches until a time.
func (w *world) hold(until time.Time) {
	w.control.hold(until, w.process.caches)
	w.target.hold(until, w.process.caches)
}

// fails returns the error of a call that the server rejects.
func (a simCall) fails(t fault, now time.Time) error {
	if a.site == nil {
		return nil
	}
	resource := schema.GroupResource{Resource: a.resource}
	switch {
	case now.Before(a.site.outUntil), t.kind == broken:
		return fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	case t.kind == conflict:
		return apierrors.NewConflict(resource, a.name, errors.New("it has changed"))
	case t.kind == refused:
		return apierrors.NewInternalError(errors.New("no leader"))
	case t.kind == throttled:
		return apierrors.NewTooManyRequests("too many requests", 1)
	default:
		return nil
	}
}

// after simulates the part of a fault after the call, and returns the error for the caller.
func (p *process) after(a simCall, t fault, err error) error {
	w := p.w
	switch t.kind { //nolint:exhaustive // before handles the others
	case crashAfter:
		p.crash(t.wait)
	case crashOldLists:
		w.hold(w.clock.Now().Add(t.wait))
		p.crash(0)
	case cancelDuring:
		p.stop(t.wait)
		return status.WrapError(codes.Canceled, "canceled", context.Canceled)
	case cancelAfter:
		p.stop(t.wait)
	case slowAfter:
		w.clock.Step(31 * time.Second)
		w.live()
		w.interleave()
	case lost:
		return apierrors.NewTimeoutError("no answer in time", 1)
	case cut:
		return fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
	}
	return err
}
