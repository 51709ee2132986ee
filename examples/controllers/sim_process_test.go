// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety/runner"
)

// process is a process of the controllers with its memory.
type process struct {
	w            *world
	ctx          context.Context //nolint:containedctx // the context of the process
	cancel       context.CancelFunc
	loops        []*loop
	queues       []*handQueue // the queues of loops, in the same order
	probes       *handQueue   // the queue of the probes
	freeze       func() machine.Freeze
	caches       []*informer
	safety       *loop // only decides
	stopping     bool
	late         int                     // calls after the end of the context
	lastVersions map[string]string       // versions of its last writes, by machine
	unended      map[string]*unendedCall // driver calls that have not ended, by machine
}

// begin begins a process: it lists all objects, and then watches.
func (w *world) begin() {
	p := &process{w: w, lastVersions: map[string]string{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	queues := map[string]*handQueue{}
	cfg := Config{
		Machines: machineClient{w.machines, p}, Control: coreClient{w.secrets, p, w.control}, Driver: p.driver(),
		Policy: w.policy, Clock: wrongClock{w.clock, w.scenario.clockAhead}, Workers: 1, Random: w.chance, Observe: w.note, Events: eventLog{w: w}, parallel: 1,
		uncaught: true, Guard: w.scenario.guard,
		newQueue: func(kind string) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			queues[kind] = newHandQueue(w.clock)
			return queues[kind]
		},
	}
	control, target, tokens := newFeed(w.control, ""), newFeed(w.target, ""), newFeed(w.target, v1alpha1.TokenOwnerLabel)
	c := &caches{machines: machineFeed{feed: control}, control: builtinFeed{feed: control}}
	if !w.scenario.noTarget {
		cfg.Target, c.target, c.tokens = coreClient{w.nodes, p, w.target}, builtinFeed{feed: target}, builtinFeed{feed: tokens}
	}
	must(cfg.complete())
	probes := newProbes(&cfg)
	cfg.probes.Requests = probing{w: w}
	must(newLoops(&cfg, c))
	for _, l := range append(cfg.loops[1:], probes) {
		ofRollouts := w.scenario.rollout != nil && (l.kind == "machineset" || l.kind == "machinedeployment")
		if l.kind == "machine" || l.kind == "machineclass" || l.kind == "secret" || l.kind == "freeze" || ofRollouts {
			p.loops, p.queues = append(p.loops, l), append(p.queues, queues[l.kind])
		}
	}
	p.safety = w.newSafety(cfg, c)
	p.probes, p.freeze = queues[probes.kind], cfg.probes.Freeze
	p.caches = slices.Concat(control.informers, target.informers, tokens.informers)
	w.collect(others)
	for _, i := range p.caches {
		i.list(w.scenario.oldLists, w.clock.Now())
	}
	w.process = p
	w.logf("the process begins")
	p.probes.Add(probesKey)
	p.pass(probes, p.probes, probesKey) // before the first decision
}

// probing probes the API servers. It is not a call with faults, because nothing can be lost with it.
type probing struct {
	machinist.Requests
	w *world
}

func (p probing) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	s := p.w.control
	if _, node := o.(*corev1.Node); node {
		s = p.w.target
	}
	if p.w.clock.Now().Before(s.outUntil) {
		return nil, syscall.ECONNREFUSED
	}
	return o, nil
}

// newSafety returns the controller that freezes sets. Its requests have no faults. It must not
// freeze a set in a rollout.
func (w *world) newSafety(cfg Config, c *caches) *loop {
	cfg.Machines, cfg.SetClient = w.machines, w.machines
	cfg.Observe = func(n Note) {
		if n.Acts {
			w.violate("sets created too many machines: %s", n.Text)
		}
		if n.Waits {
			w.tooMany++
		}
	}
	return made(newConcerns(&cfg, c)).loops[runner.Overshoot]
}

// guard makes a pass of the controller that freezes sets.
func (p *process) guard() {
	if p.w.scenario.rollout == nil {
		return
	}
	if _, err := p.safety.pass(p.ctx, types.NamespacedName{}); err != nil {
		p.w.violate("sets were not checked: %v", err)
	}
}

// crash ends the process at once.
func (p *process) crash(downtime time.Duration) {
	p.w.beginAt = p.w.clock.Now().Add(downtime)
	panic(errCrash)
}

// stop ends the context of the process.
func (p *process) stop(downtime time.Duration) {
	p.w.beginAt = p.w.clock.Now().Add(downtime)
	p.stopping = true
	p.cancel()
}

// pass makes one pass over one object.
func (p *process) pass(l *loop, q *handQueue, key types.NamespacedName) {
	defer func() {
		switch r := recover(); {
		case r == nil:
		case crashed(r):
			p.w.end()
		default:
			panic(r)
		}
	}()
	w := p.w
	w.logf("%s %s", l.kind, key)
	if w.busy++; w.busy > 300 {
		w.violate("%d passes at the same time", w.busy)
	}
	if d := w.deployment(); d != nil {
		w.judge.promise.most = d.Spec.Replicas
	}
	w.judge.oldClass = len(w.unseen("machineclasses")) > 0
	q.chosen = key
	w.last = Note{}
	l.next(p.ctx)
	w.checkCaches()
	w.collect(ours)
	if p.stopping {
		w.end()
		return
	}
	switch again, now := q.later[key], q.ready[key]; {
	case l.kind != "machine":
	case w.last.Err != nil && again.IsZero() && !now:
		w.violate("%s failed and is not enqueued: %v", key, w.last.Err)
	case w.last.Err == nil:
		if err := waits(w.last, again, now); err != nil {
			w.violate("%s: %v", key, err)
		}
	}
}

// waits checks the end of a pass. A decision without action has either a final reason, or a time of
// the next check, or a hold whose subject enqueues the object.
func waits(last Note, again time.Time, now bool) error {
	if last.Text == "" || last.Acts || now { // deleted, or another pass follows
		return nil
	}
	_, subject, named := strings.Cut(last.Text, "; waits for ")
	reason, _, _ := strings.Cut(strings.TrimPrefix(last.Text, "nothing ("), ":")
	reason = strings.TrimSuffix(reason, ")")
	switch {
	case !last.Waits && !slices.Contains(arrived, machinist.Reason(reason)):
		return fmt.Errorf("has neither action nor hold: %s", last.Text)
	case last.Waits && (!named || strings.HasPrefix(subject, ":")):
		return fmt.Errorf("has a hold without subject: %s", last.Text)
	case last.Waits && again.IsZero() && !slices.ContainsFunc(watched, func(kind string) bool { return strings.HasPrefix(subject, kind) }):
		return fmt.Errorf("waits for an object that does not enqueue it: %s", last.Text)
	}
	return nil
}

// arrived are the reasons of machines without further actions. watched are the kinds of
// subjects whose changes enqueue a machine.
var (
	arrived = []machinist.Reason{"NodeReady", "Available", "Released", machine.ReasonNotObserved}
	watched = []string{"machine/", "machineclass/", "node/", "pod/", "volumeattachment/"}
)
