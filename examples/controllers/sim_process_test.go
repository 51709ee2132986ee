// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// process is one life of the controllers, with all that they remember.
type process struct {
	w        *world
	ctx      context.Context //nolint:containedctx // it is the process's
	cancel   context.CancelFunc
	loops    []*loop
	queues   []*handQueue // of the loops, in their order
	probes   *handQueue   // of the probes, one of the queues
	freeze   *freezeView
	caches   []*informer
	safety   *overshoots // only decides, and is never to act
	stopping bool
	late     int               // calls after the end
	heard    map[string]string // versions of machines that it has written last
}

// begin starts the controllers: they list everything, and watch.
func (w *world) begin() {
	p := &process{w: w, heard: map[string]string{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	queues := map[string]*handQueue{}
	cfg := Config{
		Machines: machineClient{w.machines, p}, Control: coreClient{w.secrets, p, w.control}, Driver: cloudCalls{p},
		Policy: w.policy, Clock: wrongClock{w.clock, w.scenario.clockAhead}, Workers: 1, Random: w.chance, Observe: w.note, Events: eventLog{w: w}, parallel: 1,
		uncaught: true, Guard: w.scenario.guard,
		newQueue: func(kind string) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
			queues[kind] = newHandQueue(w.clock)
			return queues[kind]
		},
	}
	control, target, tokens := newFeed(w.control, ""), newFeed(w.target, ""), newFeed(w.target, machine.TokenOwnerLabel)
	c := &caches{machines: machineFeed{feed: control}, control: builtinFeed{feed: control}}
	if !w.scenario.noTarget {
		cfg.Target, c.target, c.tokens = coreClient{w.nodes, p, w.target}, builtinFeed{feed: target}, builtinFeed{feed: tokens}
	}
	must(cfg.complete())
	c.index()
	probes := newFreezes(&cfg)
	probes.ask = func(context.Context) []safety.Probe { return w.probe() }
	for _, l := range append(newLoops(&cfg, c), probes.loop) {
		ofRollouts := w.scenario.rollout != nil && (l.kind == "machineset" || l.kind == "machinedeployment")
		if l.kind == "machine" || l.kind == "machineclass" || l.kind == "secret" || l.kind == "freeze" || ofRollouts {
			p.loops, p.queues = append(p.loops, l), append(p.queues, queues[l.kind])
		}
	}
	p.safety = w.newSafety(cfg, c)
	p.probes, p.freeze = queues[probes.kind], cfg.freeze
	p.caches = slices.Concat(control.informers, target.informers, tokens.informers)
	w.collect(others)
	for _, i := range p.caches {
		i.list(w.scenario.oldLists, w.clock.Now())
	}
	w.process = p
	w.say("the controllers begin")
	p.probes.Add(freezeKey)
	p.pass(probes.loop, p.probes, freezeKey) // before anything is decided
}

// probe probes the API servers: no arrow, as nothing can be lost with it.
func (w *world) probe() []safety.Probe {
	sites := []*site{w.control, w.target}
	if w.scenario.noTarget {
		sites = sites[:1]
	}
	var probes []safety.Probe
	for _, s := range sites {
		probe := safety.Probe{Server: s.name}
		if w.clock.Now().Before(s.outUntil) {
			probe.Err = syscall.ECONNREFUSED
		}
		probes = append(probes, probe)
	}
	return probes
}

// newSafety makes the controller that freezes sets. It asks without troubles, and nothing
// that happens in a roll-out may make it act.
func (w *world) newSafety(cfg Config, c *caches) *overshoots {
	cfg.Machines = w.machines
	cfg.Observe = func(n Note) {
		if n.Acts {
			w.wrong("sets create too many machines: %s", n.Text)
		}
		if n.Waits {
			w.tooMany++
		}
	}
	return newOvershoots(&cfg, c)
}

// guard has the controller that freezes sets look at what the caches show.
func (p *process) guard() {
	if p.w.scenario.rollout == nil {
		return
	}
	if _, err := p.safety.pass(p.ctx, cache.ObjectName{}); err != nil {
		p.w.wrong("sets are not looked at: %v", err)
	}
}

// crash ends the process at once.
func (p *process) crash(downtime time.Duration) {
	p.w.beginAt = p.w.clock.Now().Add(downtime)
	panic(errCrash)
}

// stop tells the process to end.
func (p *process) stop(downtime time.Duration) {
	p.w.beginAt = p.w.clock.Now().Add(downtime)
	p.stopping = true
	p.cancel()
}

// pass lets the controllers work on one object.
func (p *process) pass(l *loop, q *handQueue, key cache.ObjectName) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case r == any(errCrash):
			p.w.end()
		default:
			panic(r)
		}
	}()
	w := p.w
	w.say("%s %s", l.kind, key)
	if w.busy++; w.busy > 300 {
		w.wrong("%d passes while no time passes", w.busy)
	}
	if d := w.deployment(); d != nil {
		w.judge.promise.most = d.Spec.Replicas
	}
	w.judge.oldClass = len(w.unseen("machineclasses")) > 0
	q.chosen = key
	w.last = Note{}
	l.next(p.ctx)
	w.collect(ours)
	if p.stopping {
		w.end()
		return
	}
	switch again, now := q.later[key], q.ready[key]; {
	case l.kind != "machine":
	case w.last.Err != nil && again.IsZero() && !now:
		w.wrong("I-12: %s failed and is not looked at again: %v", key, w.last.Err)
	case w.last.Err == nil:
		if err := waits(w.last, again, now); err != nil {
			w.wrong("I-12: %s: %v", key, err)
		}
	}
}

// waits says what is wrong with the end of a pass that is to be continued at
// some time, or now: a controller that does nothing
// and sets no time is finished, or names an object whose change starts the next pass.
func waits(last Note, again time.Time, now bool) error {
	if last.Text == "" || last.Acts || now { // the object is gone, or it goes on
		return nil
	}
	_, subject, named := strings.Cut(last.Text, "; waits for ")
	reason, _, _ := strings.Cut(strings.TrimPrefix(last.Text, "nothing ("), ":")
	reason = strings.TrimSuffix(reason, ")")
	switch {
	case !last.Waits && !slices.Contains(arrived, machinist.Reason(reason)):
		return fmt.Errorf("does nothing and waits for nothing: %s", last.Text)
	case last.Waits && (!named || strings.HasPrefix(subject, ":")):
		return fmt.Errorf("does not say what it waits for: %s", last.Text)
	case last.Waits && again.IsZero() && !slices.ContainsFunc(watched, func(kind string) bool { return strings.HasPrefix(subject, kind) }):
		return fmt.Errorf("waits for what cannot wake it: %s", last.Text)
	}
	return nil
}

// arrived are the reasons of a machine that needs nothing; watched are the kinds
// whose changes wake it.
var (
	arrived = []machinist.Reason{machine.ReasonNodeReady, machine.ReasonAvailable, machine.ReasonReleased, machine.ReasonNotObserved}
	watched = []string{"machine/", "machineclass/", "node/", "pod/", "volumeattachment/"}
)
