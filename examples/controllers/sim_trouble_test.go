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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
)

// arrow is one call of the controllers: of an API server, or of the driver.
type arrow struct {
	n         int   // counted from 0
	site      *site // nil for a call of the driver
	verb      string
	resource  string
	sub       string
	name      string
	write     bool
	operation driver.Operation
}

func (a arrow) String() string {
	if a.site == nil {
		return fmt.Sprintf("%d: %s %s", a.n, a.operation, a.name)
	}
	resource := a.resource
	if a.sub != "" {
		resource += "/" + a.sub
	}
	return fmt.Sprintf("%d: %s %s %s %s", a.n, a.verb, a.site.name, resource, a.name)
}

// what is what goes wrong at an arrow.
type what string

const (
	nothing      what = ""
	crashBefore  what = "crash before the call"
	crashAfter   what = "crash after the call"
	crashBlind   what = "crash after the call, and old lists for a while"
	conflict     what = "a conflict"
	refused      what = "the server fails"
	throttled    what = "the server has too much to do"
	broken       what = "the connection is refused"
	lost         what = "the answer is lost, after a while"
	cut          what = "the connection breaks before the answer"
	cancelBefore what = "the context ends before the call"
	cancelAmid   what = "the context ends during the call"
	cancelAfter  what = "the context ends with the answer"
	deleted      what = "a user deletes the machine"
	meddled      what = "another client writes the same object before"
	slowBefore   what = "half a minute passes before the call"
	slowAfter    what = "half a minute passes before the answer"
	stale        what = "watches show nothing for a while"
	outage       what = "the server is out of reach for a while"
	driverFails  what = "the driver fails"
	driverLoses  what = "the answer of the driver is lost"
	driverHalf   what = "the driver fails half-way"
)

// trouble is what goes wrong, in detail.
type trouble struct {
	what  what
	code  codes.Code
	steps int
	wait  time.Duration
}

func (t trouble) String() string {
	text := string(t.what)
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

// anywhere is what can go wrong with every call.
var anywhere = []trouble{
	{what: crashBefore, wait: time.Second},
	{what: crashAfter, wait: time.Second},
	{what: crashBlind, wait: 20 * time.Second},
	{what: cancelBefore, wait: time.Second},
	{what: cancelAmid, wait: time.Second},
	{what: cancelAfter, wait: time.Second},
	{what: deleted},
	{what: meddled},
	{what: slowBefore},
	{what: slowAfter},
	{what: stale, wait: 20 * time.Second},
}

// ofServer is what can go wrong with every call of an API server, ofWrite with
// the writes, ofUpdate with those that are refused when they are based on old
// news.
var (
	ofServer = []trouble{{what: refused}, {what: throttled}, {what: broken}, {what: outage, wait: 40 * time.Second}}
	ofWrite  = []trouble{{what: lost}, {what: cut}}
	ofUpdate = []trouble{{what: conflict}}
)

// ofDriver is what can go wrong with the calls of an operation: any code, except
// those by which a driver would lie.
func ofDriver(op driver.Operation) (out []trouble) {
	lies := map[driver.Operation][]codes.Code{
		driver.OpGetMachineStatus:  {codes.NotFound, codes.Unimplemented, codes.Uninitialized},
		driver.OpDeleteMachine:     {codes.NotFound},
		driver.OpInitializeMachine: {codes.Unimplemented},
	}
	for code := codes.Canceled; code <= codes.Uninitialized+1; code++ {
		if slices.Contains(lies[op], code) {
			continue
		}
		out = append(out, trouble{what: driverFails, code: code}, trouble{what: driverLoses, code: code})
		if op == driver.OpCreateMachine || op == driver.OpDeleteMachine {
			out = append(out, trouble{what: driverHalf, code: code, steps: 1}, trouble{what: driverHalf, code: code, steps: 2})
		}
	}
	return out
}

// possible returns all that can go wrong at an arrow.
func (a arrow) possible() []trouble {
	if a.site == nil {
		return slices.Concat(anywhere, ofDriver(a.operation))
	}
	out := slices.Concat(anywhere, ofServer)
	if a.write {
		out = append(out, ofWrite...)
	}
	if a.verb == "update" || a.verb == "patch" {
		out = append(out, ofUpdate...)
	}
	return out
}

// plan says what goes wrong at which arrow.
type plan func(a arrow) trouble

// errCrash is what a pass panics with that is cut off by a crash.
var errCrash = errors.New("crash")

func call[T any](ctx context.Context, p *process, a arrow, do func() (T, error)) (T, error) {
	var out, none T
	err := p.through(ctx, a, func(trouble) error {
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
	err := p.through(ctx, arrow{operation: op, name: name, write: true}, func(t trouble) error {
		kinds := map[what]drivertest.FaultKind{driverFails: drivertest.Refuse, driverLoses: drivertest.LoseResponse, driverHalf: drivertest.Partial}
		if kind, faulty := kinds[t.what]; faulty {
			defer p.w.cloud.Inject(drivertest.Fault{Kind: kind, Code: t.code, Steps: t.steps, LastKnownState: "half-way"})()
		}
		var err error
		out, err = do(context.WithoutCancel(ctx))
		return err
	})
	if err != nil && errors.Is(err, context.Canceled) {
		return nil, err
	}
	return out, err
}

// through takes a call of the controllers past its arrow.
func (p *process) through(ctx context.Context, a arrow, do func(trouble) error) error {
	w := p.w
	w.collect(others) //nolint:contextcheck // others have a context of their own
	if err := ctx.Err(); err != nil {
		if p.late++; p.late > 5 {
			w.wrong("I-11: %s is called, and the context has ended long ago", a)
		}
		return err // as every client does
	}
	a.n = w.arrows
	w.arrows++
	t := w.plan(a)
	w.say("  %s", a)
	if t.what != nothing {
		w.say("  !!! %s", t)
		w.troubled(t.wait)
	}
	w.remember(a, t)
	w.before(a, t) //nolint:contextcheck // others have a context of their own
	if err := a.fails(t, w.clock.Now()); err != nil {
		w.say("      %v", err)
		return err
	}
	switch t.what { //nolint:exhaustive // the others come later, or have come
	case crashBefore:
		p.crash(t.wait)
	case cancelBefore:
		p.stop(t.wait)
		return status.WrapError(codes.Canceled, "given up", context.Canceled)
	}
	err := do(t)
	w.collect(ours) //nolint:contextcheck // others have a context of their own
	p.hear(a, t, err)
	if err != nil {
		w.say("      %v", err)
	}
	return p.after(a, t, err) //nolint:contextcheck // others have a context of their own
}

// hear judges that no write is refused because it is based on older news than
// what this very process has written, and heard of.
func (p *process) hear(a arrow, t trouble, err error) {
	if a.site == nil || a.resource != "machines" || p.w.scenario.rollout != nil { // sets write them too
		return
	}
	m := p.w.machine(a.name)
	switch {
	case m == nil:
	case apierrors.IsConflict(err) && p.heard[a.name] == m.ResourceVersion:
		p.w.wrong("%s is refused, and the last write was our own", a)
	case err == nil && a.write && (t.what == nothing || t.what == slowAfter || t.what == meddled):
		p.heard[a.name] = m.ResourceVersion
	}
}

// remember keeps what the judge has to know of an arrow.
func (w *world) remember(a arrow, t trouble) {
	if a.operation == driver.OpDeleteMachine {
		w.judge.askedAt[a.name] = w.clock.Now()
	}
	if a.verb == "create" && a.resource == "secrets" && slices.Contains([]what{lost, cut, crashAfter, crashBlind, cancelAmid}, t.what) {
		w.judge.unheard = true
	}
}

// before lets happen what happens before a call.
func (w *world) before(a arrow, t trouble) {
	now := w.clock.Now()
	switch t.what { //nolint:exhaustive // the others come later
	case deleted:
		w.remove(w.machineFor(a))
	case meddled:
		w.meddle(a)
	case slowBefore:
		w.clock.Step(31 * time.Second)
		w.live()
	case stale:
		w.hold(now.Add(t.wait))
	case outage:
		if a.site != nil {
			a.site.goOut(now, now.Add(t.wait))
		}
	}
	w.bindLate(a)
	w.interleave()
}

// hold lets no watch show anything more before some time.
func (w *world) hold(until time.Time) {
	w.control.hold(until, w.process.caches)
	w.target.hold(until, w.process.caches)
}

// fails returns the error of a call that the server does not carry out.
func (a arrow) fails(t trouble, now time.Time) error {
	if a.site == nil {
		return nil
	}
	resource := schema.GroupResource{Resource: a.resource}
	switch {
	case now.Before(a.site.outUntil), t.what == broken:
		return fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	case t.what == conflict:
		return apierrors.NewConflict(resource, a.name, errors.New("it has changed"))
	case t.what == refused:
		return apierrors.NewInternalError(errors.New("no leader"))
	case t.what == throttled:
		return apierrors.NewTooManyRequests("come again", 1)
	default:
		return nil
	}
}

// after lets happen what happens after a call, and returns what the caller sees.
func (p *process) after(a arrow, t trouble, err error) error {
	w := p.w
	switch t.what { //nolint:exhaustive // the others came before
	case crashAfter:
		p.crash(t.wait)
	case crashBlind:
		w.hold(w.clock.Now().Add(t.wait))
		p.crash(0)
	case cancelAmid:
		p.stop(t.wait)
		return status.WrapError(codes.Canceled, "given up", context.Canceled)
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
