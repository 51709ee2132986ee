// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/client"
	"github.com/machinist-dev/machinist/safety"
	"github.com/machinist-dev/machinist/safety/runner"
)

// concerns has a loop for each concern of package safety.
type concerns struct {
	informers *runner.Informers
	executor  *runner.Executor
	loops     map[runner.Concern]*loop
}

// newConcerns returns the loops of the concerns that the part has.
func newConcerns(cfg *Config, c *caches) (*concerns, error) {
	informers, err := runner.NewInformers(c.factories())
	if err != nil {
		return nil, err
	}
	r := &concerns{informers: informers, loops: map[runner.Concern]*loop{}}
	r.executor = &runner.Executor{
		Reader: informers, Requests: client.New(cfg.SetClient, cfg.Target), Driver: cfg.Driver, Namespace: cfg.Namespace, Shard: cfg.Shard,
		Policy: cfg.Orphans, Overshoot: cfg.Overshoot, Unmanaged: safety.UnmanagedPolicy{Timeout: cfg.Policy.CreationTimeout},
		Freeze: cfg.probes.Freeze, Clock: cfg.Clock, Report: cfg.event, Collected: cfg.Collected,
		Decided: func(concern runner.Concern, d safety.Decision[machinist.Action]) {
			l := r.loops[concern]
			l.hold(types.NamespacedName{}, d.Holds, nil)
			l.tell(types.NamespacedName{}, note{d.String(), d.Reason, d.Holds, len(d.Actions) > 0})
		},
	}
	add := func(concern runner.Concern) {
		l := newLoop(cfg, string(concern), func(ctx context.Context, _ types.NamespacedName) (time.Time, error) {
			return r.executor.Reconcile(ctx, concern)
		})
		cfg.wakes = append(cfg.wakes, func() { l.queue.Add(types.NamespacedName{}) })
		r.loops[concern] = l
	}
	if cfg.Part.machines() {
		add(runner.Orphans)
		if c.target != nil {
			add(runner.Unmanaged)
		}
	}
	if cfg.Part.sets() {
		add(runner.Overshoot)
	}
	return r, informers.OnChange(r.executor, r.after)
}

// after enqueues a concern that the part has.
func (r *concerns) after(concern runner.Concern, wait time.Duration) {
	if l := r.loops[concern]; l != nil {
		l.queue.AddAfter(types.NamespacedName{}, wait)
	}
}

// wake makes the orphans of a class due.
func (r *concerns) wake(class types.NamespacedName) {
	r.after(runner.Orphans, r.executor.Wake(class))
}

// probesKey is the only key of the loop of probes.
var probesKey = types.NamespacedName{Name: "api-servers"}

// newProbes returns the loop that finds out whether the API servers answer. It has to be the first loop.
func newProbes(cfg *Config) *loop {
	l := newLoop(cfg, "freeze", func(ctx context.Context, _ types.NamespacedName) (time.Time, error) { return cfg.probes.Reconcile(ctx) })
	cfg.probes = &runner.Prober{
		Requests: client.New(cmp.Or(cfg.ProbeMachines, cfg.Machines), cmp.Or(cfg.ProbeTarget, cfg.Target)),
		NoTarget: cfg.Target == nil, Namespace: cfg.Namespace, Policy: cfg.Freeze, Clock: cfg.Clock,
		Decided: func(d safety.FreezeDecision) {
			if d.Began || d.Ended {
				cfg.note(Note{Kind: l.kind, Key: probesKey.Name, Text: d.String(), Acts: true, Waits: d.Freeze.Frozen})
				for _, wake := range cfg.wakes {
					wake()
				}
			}
			if cfg.Probed != nil {
				cfg.Probed(d)
			}
		},
	}
	return l
}

// wakeSpread is the time over which the passes of all machines are spread when a freeze begins or ends.
const wakeSpread = 10 * time.Second

// wakeWithFreeze enqueues all objects of an informer when a freeze begins or ends, spread over a time.
func (l *loop) wakeWithFreeze(informer cache.SharedIndexInformer, over time.Duration) {
	l.cfg.wakes = append(l.cfg.wakes, func() {
		for _, key := range slices.Sorted(slices.Values(informer.GetIndexer().ListKeys())) {
			if name, err := cache.ParseObjectName(key); err == nil {
				l.queue.AddAfter(types.NamespacedName(name), time.Duration(l.cfg.Random()*float64(over)))
			}
		}
	})
}
