// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var inPlaceSeeds = flag.Int("inplace-seeds", 60, "random worlds of updates in place")

// TestInPlaceInRandomWorlds lets everything happen in any order: controllers with
// caches that lag behind, crashes between any two writes, updates that fail,
// changes of the replicas and of the template. After each write no machine has two
// controllers, there are not too many, and none was made unavailable that was
// needed. When the disturbances stop, everything is updated and cleaned up.
func TestInPlaceInRandomWorlds(t *testing.T) {
	t.Parallel()
	for seed := range *inPlaceSeeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			randomUpdates(t, uint64(seed))
		})
	}
}

func randomUpdates(t *testing.T, seed uint64) {
	pick := newUpdWorld(t, seed, nil).rng
	bounds := []string{"0", "1", "2", "25%", "50%"}
	d := updDeployment(1+pick.IntN(6), bounds[pick.IntN(len(bounds))], bounds[pick.IntN(len(bounds))], pick.IntN(4) == 0)
	w := rolled(t, seed, d)
	failing, events := pick.IntN(3) == 0, pick.IntN(3)
	w.fails = func(m *v1alpha1.Machine) bool { return failing && m.Name[len(m.Name)-1]%3 == 0 }
	for range 400 {
		switch k := w.rng.IntN(100); {
		case k < 20:
			crash := -1
			if w.rng.IntN(4) == 0 {
				crash = w.rng.IntN(4)
			}
			w.deploy(w.rng.IntN(2) == 0, crash)
		case k < 45:
			sets := slices.Sorted(maps.Keys(w.live.sets))
			w.control(sets[w.rng.IntN(len(sets))], w.rng.IntN(2) == 0)
		case k < 96:
			if machines := byName(w.live.machines); len(machines) > 0 {
				w.live1(machines[w.rng.IntN(len(machines))])
			}
		case k < 98 && events > 0:
			w.scaleTo(1 + w.rng.IntN(6))
		case events > 1:
			w.template([]string{"c1", "c2", "c3"}[w.rng.IntN(3)])
		}
		w.selectByHand()
	}
	failing = false
	w.settleByHand(300)
	w.mustBeUpdated()
}

// selectByHand is what the user does if the orchestration is manual: one after the
// other.
func (w *updWorld) selectByHand() bool {
	if w.d.Spec.Strategy.InPlaceUpdate.OrchestrationType != v1alpha1.OrchestrationTypeManual {
		return false
	}
	for _, n := range byName(w.live.nodes) {
		_, candidate := n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate]
		_, selected := n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate]
		if selected {
			return false
		}
		if candidate {
			next := n.DeepCopy()
			next.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true"
			w.tell("  somebody selects %s", n.Name)
			w.write(machine.KindNode, next)
			return true
		}
	}
	return false
}

func (w *updWorld) settleByHand(rounds int) {
	w.t.Helper()
	w.settle(rounds)
	for w.selectByHand() {
		w.settle(rounds)
	}
}
