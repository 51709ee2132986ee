// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func updNode(step string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	if step != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Status: "True", Reason: step}}
	}
	return n
}

func updMachine(phase v1alpha1.MachinePhase, step string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m", Labels: map[string]string{v1alpha1.NodeLabelKey: "n"}}}
	m.Status.CurrentStatus.Phase = phase
	if step != "" {
		m.Status.Conditions = updNode(step).Status.Conditions
	}
	return m
}

func TestTheStageOfAnUpdateFollowsFromLabelsPhasesAndConditions(t *testing.T) {
	const (
		candidate = v1alpha1.LabelKeyNodeCandidateForUpdate
		chosen    = v1alpha1.LabelKeyNodeSelectedForUpdate
		result    = v1alpha1.LabelKeyNodeUpdateResult
	)
	moved := updMachine(v1alpha1.MachineRunning, v1alpha1.UpdateSuccessful)
	moved.Labels[result] = "successful"
	for _, tt := range []struct {
		name string
		m    *v1alpha1.Machine
		node *corev1.Node
		want deployment.UpdateStage
	}{
		{"no machine", nil, updNode(""), deployment.NotUpdating},
		{"a Node that is not known", updMachine(v1alpha1.MachineRunning, ""), nil, deployment.NotUpdating},
		{"nothing has begun", updMachine(v1alpha1.MachineRunning, ""), updNode(""), deployment.NotUpdating},
		{"a candidate", updMachine(v1alpha1.MachineRunning, ""), updNode("CandidateForUpdate", candidate, "true"), deployment.UpdateCandidate},
		{"selected, and nothing has come of it", updMachine(v1alpha1.MachineRunning, ""), updNode("CandidateForUpdate", candidate, "true", chosen, "true"), deployment.UpdateCandidate},
		{"being drained", updMachine(v1alpha1.MachineRunning, ""), updNode("SelectedForUpdate", candidate, "true", chosen, "true"), deployment.UpdateStarted},
		{"drained, its Node not known", updMachine(v1alpha1.MachineInPlaceUpdating, "DrainSuccessful"), nil, deployment.UpdateStarted},
		{"the agent is done, the machine has not noticed", updMachine(v1alpha1.MachineInPlaceUpdating, "ReadyForUpdate"), updNode("ReadyForUpdate", result, "successful"), deployment.UpdateStarted},
		{"done", updMachine(v1alpha1.MachineInPlaceUpdateSuccessful, "UpdateSuccessful"), updNode("UpdateSuccessful", result, "successful"), deployment.UpdateDone},
		{"done and healthy", updMachine(v1alpha1.MachineRunning, "UpdateSuccessful"), updNode("UpdateSuccessful", result, "successful"), deployment.UpdateDone},
		{"failed", updMachine(v1alpha1.MachineInPlaceUpdateFailed, "UpdateFailed"), updNode("UpdateFailed", result, "failed"), deployment.UpdateFailed},
		{"took too long", updMachine(v1alpha1.MachineInPlaceUpdateFailed, "ReadyForUpdate"), updNode("ReadyForUpdate", chosen, "true"), deployment.UpdateFailed},
		{"moved, whatever its Node says", moved, updNode("UpdateSuccessful", result, "successful"), deployment.UpdateMoved},
		{"the condition of an earlier update", updMachine(v1alpha1.MachineRunning, "UpdateSuccessful"), updNode("UpdateSuccessful", candidate, "true"), deployment.UpdateCandidate},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, deployment.StageOf(tt.m, tt.node)) })
	}
}

func TestDS22AMoveKeepsForeignLabelsAndOwners(t *testing.T) {
	from := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old"}}
	from.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w", "hash": "1"}}
	to := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new"}}
	to.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w", "hash": "2"}}
	m := updMachine(v1alpha1.MachineRunning, "")
	m.Labels = map[string]string{"app": "w", "hash": "1", "mine": "x"}
	m.OwnerReferences = []metav1.OwnerReference{{UID: "a"}, {UID: "old", Controller: new(true)}, {UID: "b"}}
	before := m.DeepCopy()
	next := deployment.Move(m, from, to)
	require.Empty(t, cmp.Diff(before, m), "the machine is not changed")
	require.Equal(t, map[string]string{"app": "w", "hash": "2", "mine": "x", v1alpha1.LabelKeyNodeUpdateResult: "successful"}, next.Labels)
	require.Len(t, next.OwnerReferences, 3)
	require.EqualValues(t, "a", next.OwnerReferences[0].UID)
	require.Equal(t, "new", metav1.GetControllerOf(next).Name)
	require.EqualValues(t, "b", next.OwnerReferences[2].UID)
	require.Equal(t, next, deployment.Move(next, from, to), "a second move is none")
	require.Nil(t, deployment.Move(nil, from, to))
	require.NotNil(t, deployment.Move(&v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineSet{}))
}

// updUntil runs a world until something holds.
func (w *updWorld) until(what string, holds func() bool) {
	w.t.Helper()
	for range 80 {
		if holds() {
			return
		}
		w.now = w.now.Add(time.Minute)
		w.round()
	}
	w.fail("never: %s", what)
}

func (w *updWorld) phases(p v1alpha1.MachinePhase) int {
	n := 0
	for _, m := range w.live.machines {
		if m.Status.CurrentStatus.Phase == p {
			n++
		}
	}
	return n
}

func (w *updWorld) set(class string) *v1alpha1.MachineSet {
	for _, s := range w.live.sets {
		if s.Spec.Template.Spec.Class.Name == class {
			return s
		}
	}
	return &v1alpha1.MachineSet{}
}

func TestDS3AChangeOfTheReplicasDoesNotStopAnUpdate(t *testing.T) {
	for _, to := range []int{8, 3, 1} {
		for _, manual := range []bool{false, true} {
			t.Run(fmt.Sprintf("5 to %d, by hand %v", to, manual), func(t *testing.T) {
				w := rolled(t, 3, updDeployment(5, "0", "1", manual))
				w.until("some are updated", func() bool { w.selectByHand(); return w.set("c2").Spec.Replicas == 2 })
				w.scaleTo(to)
				w.settleByHand(150)
				w.mustBeUpdated()
				for _, s := range w.live.sets {
					if s.Spec.Replicas > 0 {
						require.Equal(t, fmt.Sprint(to), s.Annotations[v1alpha1.DesiredReplicasAnnotation])
					}
				}
			})
		}
	}
}

func TestDS4ASetThatIsTheNewOneAgainMayGrow(t *testing.T) {
	w := rolled(t, 4, updDeployment(4, "0", "1", false))
	w.until("half is updated", func() bool { return w.set("c2").Spec.Replicas == 2 })
	require.True(t, machineset.ScaleUpDisabled(w.set("c1")))
	w.template("c1")
	w.settle(150)
	w.mustBeUpdated()
	w.scaleTo(6)
	w.settle(50)
	require.EqualValues(t, 6, w.set("c1").Status.Replicas)
}

func TestDS5EachMachineIsCountedOnce(t *testing.T) {
	t.Run("all that may be unavailable are updated at a time", func(t *testing.T) {
		w := rolled(t, 5, updDeployment(8, "0", "4", false))
		w.until("updates have begun", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdating) > 0 })
		w.round()
		require.Equal(t, 4, w.phases(v1alpha1.MachineInPlaceUpdating))
	})
	t.Run("an update that failed for good does not stop the others", func(t *testing.T) {
		w := rolled(t, 5, updDeployment(4, "0", "2", false))
		w.forever = true
		w.fails = func(m *v1alpha1.Machine) bool { return m.Name == "m02" }
		w.settle(150)
		require.EqualValues(t, 3, w.set("c2").Spec.Replicas)
		require.EqualValues(t, 3, w.set("c2").Status.AvailableReplicas)
		require.Equal(t, 1, w.phases(v1alpha1.MachineInPlaceUpdateFailed))
	})
	t.Run("one that is replaced is replaced in the new set", func(t *testing.T) {
		w := rolled(t, 5, updDeployment(4, "0", "1", false))
		w.fails = func(m *v1alpha1.Machine) bool { return m.Name == "m02" }
		w.settle(150)
		w.mustBeUpdated()
		require.Nil(t, w.live.machines["m02"])
	})
}

func TestDS6AMachineWithoutANodeHoldsOnlyItself(t *testing.T) {
	w := rolled(t, 6, updDeployment(4, "0", "1", false))
	w.see("deployment", true)
	w.hidden = "nm03"
	w.settle(150)
	require.EqualValues(t, 3, w.set("c2").Spec.Replicas, "all but the one whose Node nobody has looked at")
	require.Contains(t, w.last.String(), "NodeUnknown")
	w.hidden = ""
	w.settle(150)
	w.mustBeUpdated()
}

func TestDS7NothingThatWasObservedIsChanged(t *testing.T) {
	w := rolled(t, 7, updDeployment(3, "0", "1", false))
	w.frozen = true
	w.settle(150)
	w.mustBeUpdated()
}

func TestDS8MoreMachinesThanAreWantedDoNotMove(t *testing.T) {
	w := rolled(t, 8, updDeployment(6, "0", "3", false))
	w.until("three are done", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdateSuccessful) == 3 })
	w.scaleTo(2)
	w.settle(150)
	w.mustBeUpdated()
}

func TestDS9TheWorstMachinesComeFirstAndMarksAreTakenBack(t *testing.T) {
	t.Run("by priority", func(t *testing.T) {
		w := rolled(t, 9, updDeployment(4, "0", "1", false))
		m := w.live.machines["m04"].DeepCopy()
		m.Annotations[v1alpha1.MachinePriority] = "1"
		w.write(machine.KindMachine, m)
		w.until("one is selected", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdating) == 1 })
		require.Equal(t, v1alpha1.MachineInPlaceUpdating, w.live.machines["m04"].Status.CurrentStatus.Phase)
	})
	t.Run("after a backtrack", func(t *testing.T) {
		w := rolled(t, 9, updDeployment(4, "0", "1", false))
		w.until("one is being updated", func() bool { return w.phases(v1alpha1.MachineInPlaceUpdating) == 1 })
		w.template("c1")
		w.settle(100)
		w.mustBeUpdated()
	})
}

func TestR8TheSameChoiceIsMadeToReplaceAndToUpdate(t *testing.T) {
	pick := func(inPlace bool) []string {
		var asked []string
		d := updDeployment(6, "0", "2", false)
		w := rolled(t, 10, d)
		for name, priority := range map[string]string{"m05": "1", "m03": "2"} {
			m := w.live.machines[name].DeepCopy()
			m.Annotations[v1alpha1.MachinePriority] = priority
			w.write(machine.KindMachine, m)
		}
		w.policy.Gates = []deployment.Gate{func(c deployment.Choice) deployment.Answer {
			require.Equal(t, inPlace, c.InPlace)
			if len(asked) == 0 || asked[len(asked)-1] != c.Machine.Name {
				asked = append(asked, c.Machine.Name)
			}
			return deployment.Answer{Verdict: deployment.Deny, Reason: "Test"}
		}}
		if !inPlace {
			w.d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
				Type:          v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: d.Spec.Strategy.InPlaceUpdate.UpdateConfiguration},
			}
		}
		for range 12 {
			w.now = w.now.Add(time.Second)
			if w.round(); len(asked) > 0 {
				break
			}
		}
		return asked[:6]
	}
	require.Equal(t, pick(false), pick(true))
	require.Equal(t, []string{"m05", "m03", "m02", "m04", "m06", "m07"}, pick(true))
}

func TestWithoutAClusterNothingIsUpdatedInPlace(t *testing.T) {
	d := updDeployment(2, "0", "1", false)
	dec := deployment.Plan(deployment.Observation{Deployment: d, Complete: true, NoCluster: true}, deployment.Policy{}, time.Unix(0, 0))
	require.Equal(t, deployment.ReasonNoCluster, dec.Reason)
	require.Empty(t, dec.Actions)
}

func ExampleStageOf() {
	m := &v1alpha1.Machine{}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelKeyNodeCandidateForUpdate: "true"}}}
	fmt.Println(deployment.StageOf(m, node))
	m.Status.CurrentStatus.Phase = v1alpha1.MachineInPlaceUpdating
	fmt.Println(deployment.StageOf(m, node))
	// Output:
	// Candidate
	// Started
}

func ExampleMove() {
	old, next := &v1alpha1.MachineSet{}, &v1alpha1.MachineSet{}
	old.UID, old.Spec.Selector = "1", &metav1.LabelSelector{MatchLabels: map[string]string{"hash": "a"}}
	next.UID, next.Spec.Selector = "2", &metav1.LabelSelector{MatchLabels: map[string]string{"hash": "b"}}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"hash": "a"}}}
	moved := deployment.Move(m, old, next)
	fmt.Println(moved.Labels["hash"], metav1.GetControllerOf(moved).UID, machineset.Transferred(moved))
	// Output: b 2 true
}
