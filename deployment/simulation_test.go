// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func deepCopy(in deployment.Observation) deployment.Observation {
	out := in
	out.Deployment = in.Deployment.DeepCopy()
	out.Sets = nil
	for _, s := range in.Sets {
		out.Sets = append(out.Sets, s.DeepCopy())
	}
	return out
}

func equalObservation(a, b deployment.Observation) bool { return cmp.Equal(a, b) }

var (
	seeds  = flag.Uint64("seeds", 90, "number of seeds of each simulated scenario")
	update = flag.Bool("update", false, "write the golden files anew")
)

type scenario struct {
	name                       string
	spiteful, fragile, scaleIn bool
	strategy                   v1alpha1.MachineDeploymentStrategyType
}

// run runs one seed; if it fails, once more to show how.
func (s scenario) run(t *testing.T, seed uint64) {
	t.Helper()
	defer func() {
		switch r := recover(); r {
		case nil:
		case errAgain:
			s.live(t, seed, true)
			t.Fatalf("seed %d failed and did not fail again", seed)
		default:
			panic(r)
		}
	}()
	s.live(t, seed, false)
}

func (s scenario) live(t *testing.T, seed uint64, loud bool) {
	t.Helper()
	w := newWorld(t, seed)
	w.loud = loud
	w.spiteful, w.fragile = s.spiteful, s.fragile
	w.d.Spec.Replicas = int32(w.rng.IntN(21))
	w.d.Spec.RevisionHistoryLimit = new(int32(w.rng.IntN(3)))
	w.d.Spec.Strategy = strategy(string(s.strategy), "", new(w.bound()), new(w.bound()))
	w.limit()
	if w.settle(5000); true {
		w.d.Spec.Template.Spec.Class.Name = "c2"
		w.d.Generation++
		w.dirty = true
	}
	for range w.rng.IntN(4) {
		for range w.rng.IntN(150) {
			w.step()
		}
		w.change(s.scaleIn)
	}
	w.d.Spec.Paused = false
	w.dirty = true
	w.settle(20000)
}

// bound is a random maxSurge or maxUnavailable.
func (w *world) bound() intstr.IntOrString {
	if w.rng.IntN(2) == 0 {
		return intstr.FromInt32(int32(w.rng.IntN(6) - 1))
	}
	return intstr.FromString(fmt.Sprintf("%d%%", w.rng.IntN(12)*10))
}

// settle runs the world until the roll-out has ended.
func (w *world) settle(steps int) {
	w.t.Helper()
	for range steps {
		w.step()
		if w.done() {
			return
		}
	}
	w.failf("not done after %d steps; last: %s %v", steps, w.last.Reason, w.last.Holds)
}

// Sets report late, in any order or not at all for a while, decisions are lost
// half-way, machines come and go, the user changes his mind.
func TestRolloutsKeepTheirBoundsAndEnd(t *testing.T) {
	const rolling, recreate = v1alpha1.RollingUpdateMachineDeploymentStrategyType, v1alpha1.RecreateMachineDeploymentStrategyType
	scenarios := []scenario{
		{name: "sets delete unavailable machines first", scaleIn: true, strategy: rolling},
		{name: "sets delete available machines first", spiteful: true, strategy: rolling},
		{name: "sets delete available machines first, scaled in", spiteful: true, scaleIn: true, strategy: rolling},
		{name: "old machines break for ever", fragile: true, scaleIn: true, strategy: rolling},
		{name: "old machines break for ever and are deleted last", fragile: true, spiteful: true, scaleIn: true, strategy: rolling},
		{name: "recreate", scaleIn: true, strategy: recreate},
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			start := time.Now()
			for seed := range *seeds {
				s.run(t, seed)
			}
			t.Logf("seeds 0..%d in %s", *seeds-1, time.Since(start).Round(time.Millisecond))
		})
	}
}
