// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

// freezeView is the latest decision about a freeze, which all controllers read. It is safe
// for several goroutines. The zero view is that there is none.
type freezeView struct {
	mu     sync.Mutex
	freeze machine.Freeze
	wake   []func() // called when a freeze begins or ends
}

// now returns the freeze as it is now, none for a nil view.
func (v *freezeView) now() machine.Freeze {
	if v == nil {
		return machine.Freeze{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.freeze
}

// set makes a freeze known, and wakes the controllers if it begins or ends.
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

// freezes probes the API servers.
type freezes struct {
	*loop
	cfg   *Config
	ask   func(context.Context) []safety.Probe
	state safety.FreezeState // no two passes run at a time
}

// probeName is the name of the object that a probe asks for. It need not exist.
const probeName = "machinist-probe"

// freezeKey is the only key of the loop.
var freezeKey = cache.ObjectName{Name: "api-servers"}

func newFreezes(cfg *Config) *freezes {
	r := &freezes{cfg: cfg}
	r.ask = r.probe
	r.loop = newLoop(cfg, "freeze", r.pass)
	return r
}

// begin makes the first probe. It is called before anything is decided.
func (r *freezes) begin(ctx context.Context) {
	if again, err := r.pass(ctx, freezeKey); err == nil {
		r.queue.AddAfter(freezeKey, again.Sub(r.cfg.Clock.Now()))
	}
}

// pass probes both API servers and makes known what follows.
func (r *freezes) pass(ctx context.Context, _ cache.ObjectName) (time.Time, error) {
	probes := r.ask(ctx)
	if ctx.Err() != nil { // a probe that was broken off proves nothing
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

// probe asks both API servers at the same time.
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
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			probes[i] = safety.Probe{Server: a.server, Err: a.get(ctx)}
		})
	}
	asking.Wait()
	return probes
}

func (r *freezes) control(ctx context.Context) error {
	client := r.cfg.Machines
	if r.cfg.ProbeMachines != nil {
		client = r.cfg.ProbeMachines
	}
	_, err := client.MachineV1alpha1().Machines(r.namespace()).Get(ctx, probeName, metav1.GetOptions{})
	return err
}

func (r *freezes) target(ctx context.Context) error {
	client := r.cfg.Target
	if r.cfg.ProbeTarget != nil {
		client = r.cfg.ProbeTarget
	}
	_, err := client.CoreV1().Nodes().Get(ctx, probeName, metav1.GetOptions{})
	return err
}

// namespace returns one in which the control cluster can be asked.
func (r *freezes) namespace() string {
	if r.cfg.Namespace == metav1.NamespaceAll {
		return metav1.NamespaceDefault
	}
	return r.cfg.Namespace
}

// thawTime is for how long the machines are looked at again after a freeze began or
// ended, each at a time of its own.
const thawTime = 10 * time.Second

// wakeWithFreeze asks for a pass over every object of an informer when a freeze begins or
// ends. The passes are spread over a time.
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
