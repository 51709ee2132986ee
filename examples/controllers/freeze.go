// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// freezeView holds the current freeze for all controllers. The zero value means no freeze. It is
// safe for several goroutines.
type freezeView struct {
	mu     sync.Mutex
	freeze machine.Freeze
	wake   []func() // called when a freeze begins or ends
}

// now returns the current freeze. A nil view has none.
func (v *freezeView) now() machine.Freeze {
	if v == nil {
		return machine.Freeze{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.freeze
}

// set stores a freeze, and wakes the controllers if a freeze begins or ends.
func (v *freezeView) set(f machine.Freeze) {
	v.mu.Lock()
	changed := v.freeze.Frozen != f.Frozen
	v.freeze = f
	v.mu.Unlock()
	if changed {
		for _, wake := range v.wake {
			wake()
		}
	}
}

// freezes probes the API servers and decides whether the controllers are frozen.
type freezes struct {
	*loop
	cfg   *Config
	ask   func(context.Context) []safety.Probe
	state safety.FreezeState // passes do not run concurrently
}

// probeTimeout is the deadline of a probe.
const probeTimeout = 5 * time.Second

// probeName is the name of the object that a probe gets. The object need not exist.
const probeName = "machinist-probe"

// freezeKey is the only key of the loop.
var freezeKey = cache.ObjectName{Name: "api-servers"}

func newFreezes(cfg *Config) *freezes {
	r := &freezes{cfg: cfg}
	r.ask = r.probe
	r.loop = newLoop(cfg, "freeze", r.pass)
	return r
}

// begin makes the first probe. It must run before the first decision.
func (r *freezes) begin(ctx context.Context) {
	if again, err := r.pass(ctx, freezeKey); err == nil {
		r.queue.AddAfter(freezeKey, again.Sub(r.cfg.Clock.Now()))
	}
}

// pass probes both API servers, decides, and stores the freeze.
func (r *freezes) pass(ctx context.Context, _ cache.ObjectName) (time.Time, error) {
	probes := r.ask(ctx)
	if ctx.Err() != nil { // a canceled probe proves nothing
		return time.Time{}, ctx.Err()
	}
	next, d := safety.StepFreeze(r.state, probes, r.cfg.Freeze, r.cfg.Clock.Now())
	r.state = next
	if d.Began || d.Ended {
		r.cfg.note(Note{Kind: r.kind, Key: freezeKey.Name, Text: d.String(), Acts: true, Waits: d.Freeze.Frozen})
	}
	r.cfg.freeze.set(d.Freeze)
	if r.cfg.Probed != nil {
		r.cfg.Probed(d)
	}
	return d.NextCheck, nil
}

// probe probes both API servers concurrently.
func (r *freezes) probe(ctx context.Context) []safety.Probe {
	ask := []struct {
		server string
		get    func(context.Context) error
	}{{"control", r.control}, {"target", r.target}}
	if r.cfg.Target == nil {
		ask = ask[:1]
	}
	probes := make([]safety.Probe, len(ask))
	var asking sync.WaitGroup
	for i, a := range ask {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			probes[i] = safety.Probe{Server: a.server, Err: a.get(ctx)}
		})
	}
	asking.Wait()
	return probes
}

func (r *freezes) control(ctx context.Context) error {
	client, namespace := cmp.Or(r.cfg.ProbeMachines, r.cfg.Machines), cmp.Or(r.cfg.Namespace, metav1.NamespaceDefault)
	_, err := client.MachineV1alpha1().Machines(namespace).Get(ctx, probeName, metav1.GetOptions{})
	return err
}

func (r *freezes) target(ctx context.Context) error {
	_, err := cmp.Or(r.cfg.ProbeTarget, r.cfg.Target).CoreV1().Nodes().Get(ctx, probeName, metav1.GetOptions{})
	return err
}

// wakeSpread is the interval over which the passes of all machines are spread after a freeze began
// or ended.
const wakeSpread = 10 * time.Second

// wakeWithFreeze enqueues every object of an informer when a freeze begins or ends. The passes are
// spread over the given duration.
func (l *loop) wakeWithFreeze(informer cache.SharedIndexInformer, over time.Duration) {
	v := l.cfg.freeze
	v.wake = append(v.wake, func() {
		for _, key := range slices.Sorted(slices.Values(informer.GetIndexer().ListKeys())) {
			if name, err := cache.ParseObjectName(key); err == nil {
				l.queue.AddAfter(name, time.Duration(l.cfg.Random()*float64(over)))
			}
		}
	})
}
