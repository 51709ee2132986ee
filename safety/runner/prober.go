// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// Prober finds out whether the API servers answer: see [safety.StepFreeze]. Use one for each process, from
// its start. Its fields must not be changed.
type Prober struct {
	// Requests are sent to the API servers of the machine objects and of the Nodes. They should have no
	// rate limit, because a probe that waits for other requests looks like an outage. Required.
	Requests machinist.Requests
	// NoTarget means that the machines join no cluster.
	NoTarget bool
	// Namespace is the namespace of the machines. Empty means all namespaces.
	Namespace string
	// Policy is that of the decisions. The zero Policy has the defaults.
	Policy safety.FreezePolicy
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.PassiveClock
	// Decided receives each decision. When a freeze has begun or ended, all objects have to be
	// reconciled. Nil means none.
	Decided func(safety.FreezeDecision)

	pass  sync.Mutex // one pass at a time
	state safety.FreezeState

	mu     sync.Mutex
	freeze machine.Freeze
}

// errNoRequests is the error of a Prober without Requests.
var errNoRequests = errors.New("safety/runner: the Prober has no Requests")

const (
	// probeTimeout is the time in which a server has to answer a probe.
	probeTimeout = 5 * time.Second
	// probeName is the name of the objects that probes read. They do not exist.
	probeName = "machinist-probe"
)

// Reconcile makes one pass: it probes the API servers and decides. It returns when to make the next pass.
// The first pass has to be made before any object is reconciled.
func (p *Prober) Reconcile(ctx context.Context) (time.Time, error) {
	if p.Requests == nil {
		return time.Time{}, errNoRequests
	}
	p.pass.Lock()
	defer p.pass.Unlock()
	probes := p.probe(ctx)
	if ctx.Err() != nil { // a canceled probe proves nothing
		return time.Time{}, ctx.Err()
	}
	var d safety.FreezeDecision
	p.state, d = safety.StepFreeze(p.state, probes, p.Policy, runners.Now(p.Clock))
	p.mu.Lock()
	p.freeze = d.Freeze
	p.mu.Unlock()
	if p.Decided != nil {
		p.Decided(d)
	}
	return d.NextCheck, nil
}

// Freeze returns the result of the last pass. It is safe for concurrent use, and for a nil Prober, which
// finds no outage.
func (p *Prober) Freeze() machine.Freeze {
	if p == nil {
		return machine.Freeze{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeze
}

// probe probes the servers at the same time.
func (p *Prober) probe(ctx context.Context) []safety.Probe {
	probes := []safety.Probe{{Server: "control"}, {Server: "target"}}
	objects := []machinist.Object{
		&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(p.Namespace, metav1.NamespaceDefault), Name: probeName}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: probeName}},
	}
	if p.NoTarget {
		probes = probes[:1]
	}
	var asking sync.WaitGroup
	for i := range probes {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			_, probes[i].Err = p.Requests.Get(ctx, objects[i])
		})
	}
	asking.Wait()
	return probes
}
