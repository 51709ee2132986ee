// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestInPlaceAutoUpdatesEveryMachineOnce(t *testing.T) {
	w := rolled(t, 1, updDeployment(3, "0", "2", false))
	w.policy.Discourage = deployment.DiscourageNone
	w.settle(60)
	w.mustBeUpdated()
	for uid, n := range w.done {
		require.Equal(t, 1, n, uid)
	}
	require.Len(t, w.done, 3)
	var lines []string
	for _, line := range w.story {
		if !strings.HasPrefix(line, "round") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	require.Equal(t, strings.TrimSpace(wholeUpdate), strings.Join(lines, "\n"))
}

const wholeUpdate = `
machines of class c2 are wanted
create d-5b664 with 0: 3 machines, 3 allowed
update deployment: revision is 2
update set1: its machines are updated in place, and it creates no others
mark node nm02: its machine is to be updated in place
mark node nm03: its machine is to be updated in place
mark node nm04: its machine is to be updated in place
mark node nm02: selected for an update in place
mark node nm03: selected for an update in place
m02 is InPlaceUpdating
m03 is InPlaceUpdating
m02 is InPlaceUpdateSuccessful
m03 is InPlaceUpdateSuccessful
update machine m02: it is updated and moves from set1 to set5
update machine m03: it is updated and moves from set1 to set5
m02 is Running
m03 is Running
scale set1 from 3 to 1: machines left: 1
scale set5 from 0 to 2: machines that have moved to it: 2
mark node nm02: its update in place succeeded
mark node nm03: its update in place succeeded
update machine m02: its set has a place for it
update machine m03: its set has a place for it
mark node nm04: selected for an update in place
m04 is InPlaceUpdating
m04 is InPlaceUpdateSuccessful
update machine m04: it is updated and moves from set1 to set5
m04 is Running
scale set1 from 1 to 0: machines left: 0
scale set5 from 2 to 3: machines that have moved to it: 1
mark node nm04: its update in place succeeded
update machine m04: its set has a place for it
`

func TestInPlaceWithASurgeNeverLacksAMachine(t *testing.T) {
	w := rolled(t, 2, updDeployment(3, "1", "0", false))
	w.settle(150)
	w.mustBeUpdated()
}

func TestInPlaceByHandUpdatesWhatIsSelected(t *testing.T) {
	w := rolled(t, 2, updDeployment(3, "1", "1", true))
	w.settle(50)
	require.Empty(t, w.done, "nobody has selected a Node")
	require.Contains(t, w.last.String(), "3 Nodes are candidates")
	require.True(t, w.selectByHand())
	w.settle(50)
	require.Len(t, w.done, 1)
	require.EqualValues(t, 1, w.set("c2").Spec.Replicas)
}

func TestInPlaceWhilePausedNothingIsSelectedOrMoves(t *testing.T) {
	w := rolled(t, 2, updDeployment(4, "0", "1", false))
	w.until("one is being updated", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdating) == 1 })
	w.d.Spec.Paused = true
	w.settle(50)
	require.Len(t, w.done, 1, "the update that had begun has ended")
	require.EqualValues(t, 0, w.set("c2").Status.Replicas, "and its machine has not moved")
	w.scaleTo(6)
	w.settle(50)
	require.EqualValues(t, 2, w.set("c2").Spec.Replicas, "what is missing is created by the new set")
	w.d.Spec.Paused = false
	w.settle(150)
	w.mustBeUpdated()
}

func TestInPlaceAMachineWhoseNodeVanishesIsReplaced(t *testing.T) {
	w := rolled(t, 2, updDeployment(4, "0", "1", false))
	w.lenient = true
	w.until("one is being updated", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdating) == 1 })
	w.remove(machine.KindNode, "nm02")
	w.remove(machine.KindNode, "nm04")
	w.settle(150)
	w.mustBeUpdated()
}

func TestInPlaceAnotherStrategyAcknowledgesWhatHasMoved(t *testing.T) {
	w := rolled(t, 2, updDeployment(4, "1", "1", false))
	w.until("one has moved", func() bool { return w.set("c2").Status.Replicas > 1 })
	w.d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type:          v1alpha1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: w.d.Spec.Strategy.InPlaceUpdate.UpdateConfiguration},
	}
	w.rolling = true
	w.settle(150)
	w.mustBeUpdated()
}
