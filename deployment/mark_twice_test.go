// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestMarkLooksAtWhatAnotherRuleHasMadeOfTheNode(t *testing.T) {
	s := newUpdScene(updDeployment(3, "0", "1", false), "c2", 3, 0)
	for _, name := range []string{"a", "b", "c"} {
		s.machine("old", name, "moved") // its set is an old one again
	}
	taint := corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	for _, n := range s.in.Nodes {
		n.Labels[candKey] = "true" // so it is given back to pods
		n.Spec.Taints = []corev1.Taint{taint}
	}
	given := 0
	for _, a := range s.plan().dec.Actions {
		if a, ok := a.(deployment.WriteNode); ok && !slices.Contains(a.Node.Spec.Taints, taint) {
			t.Errorf("%s is given back, and its set is old: the taint stays", a.Node.Name)
		} else if ok {
			given++
		}
	}
	require.Equal(t, 3, given)
}

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
