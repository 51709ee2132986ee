// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
)

func TestMarkKeepsTheAutoscalerAwayUntilTheSetsAreAtRest(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *marksWorld)
		back   bool
	}{
		"the roll-out is complete":          {func(*marksWorld) {}, true},
		"the set has not reported":          {func(w *marksWorld) { w.sets[0].Generation = 9 }, false},
		"the pass changes the set":          {func(w *marksWorld) { w.d.Spec.MinReadySeconds = 300 }, false},
		"a machine is not available":        {func(w *marksWorld) { w.sets[0].Status.AvailableReplicas-- }, false},
		"a machine more exists than wanted": {func(w *marksWorld) { w.addMachine(w.sets[0]) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMarksWorld(1)
			n := w.node(w.machines[0])
			n.Annotations = map[string]string{offKey: "true", ourKey: "true"}
			c.change(w)
			w.run(t, deployment.Policy{HoldAutoscaler: true})
			require.Equal(t, !c.back, w.node(w.machines[0]).Annotations[offKey] == "true")
		})
	}
}
