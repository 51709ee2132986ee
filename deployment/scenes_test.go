// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// denies is a gate that keeps the machines of these names.
func denies(names ...string) func(deployment.Choice) (bool, machinist.Hold) {
	return func(c deployment.Choice) (bool, machinist.Hold) {
		if slices.Contains(names, c.Machine.Name) {
			return false, machinist.Hold{Reason: "Keep", Message: "it holds data"}
		}
		return true, machinist.Hold{}
	}
}

func TestRolling_Surge(t *testing.T)            { checkScenes(t) }
func TestRolling_MinimumAvailable(t *testing.T) { checkScenes(t) }
func TestRolling_Victims(t *testing.T)          { checkScenes(t) }
func TestRecreate(t *testing.T)                 { checkScenes(t) }
func TestScaling(t *testing.T)                  { checkScenes(t) }

// TestRolling_MachinesNotSeen has machines that exist and were not observed. Machines with an early
// priority are deleted before them.
func TestRolling_MachinesNotSeen(t *testing.T) { checkScenes(t) }

func TestRolling_NoCapacity(t *testing.T) { checkScenes(t) }

// TestCreate_EveryStrategy_HasTheSurge asserts that a new set has the size that the bounds allow,
// for every strategy.
func TestCreate_EveryStrategy_HasTheSurge(t *testing.T) { checkScenes(t) }

func TestCut_ManyMachines_LimitedNames(t *testing.T) {
	in := large(rolling(1000, 0, 700), 1)
	in.Nodes, in.Sets = nil, append(in.Sets, rollSet(in.Deployment, "new", 0, 0, 0))
	d, old := in.Deployment, in.Sets[0]
	d.Spec.Template.Spec.Class.Name = "new"
	cut := func() deployment.Target {
		target, err := deployment.Decide(in, rollPolicy, rollNow).Target(old.UID)
		require.NoError(t, err)
		return target
	}
	require.Equal(t, int32(500), cut().To)
	require.Len(t, cut().Victims, members.MaxVictims)
	require.Contains(t, reasons(deployment.Decide(in, rollPolicy, rollNow)), machinist.Reason("BurstLimit"))

	d.Spec.Strategy = recreating(1000).Spec.Strategy
	require.Zero(t, cut().To, "none has to be named if all go")
	require.Len(t, cut().Victims, 1000)
	in.Machines = in.Machines[1:] // nor if one was not seen
	require.Zero(t, cut().To)
	for _, set := range decided.Writes[*v1alpha1.MachineSet](deployment.Decide(in, rollPolicy, rollNow).Actions) {
		require.Empty(t, members.Victims(set))
	}
	_, err := deployment.Decide(in, rollPolicy, rollNow).Target("other")
	require.ErrorContains(t, err, "no target for the set with UID ")
}

// TestCut_NamesDoNotFit_SetKeepsSize has a set whose annotations are full.
func TestCut_NamesDoNotFit_SetKeepsSize(t *testing.T) { checkScenes(t) }

func TestHolds_SetCannotCreate_ShortMessage(t *testing.T) {
	s := newScenario("rolling 3 +1; old 0; new 3/0/0")
	s.in.Sets[1].Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue, Message: "quota of objects\n" + strings.Repeat("é", 300)}}
	dec := s.decide()
	require.Len(t, dec.Holds, 1)
	require.Contains(t, dec.Holds[0].String(), "new: WaitingForMachines: 0 machines, 3 wanted: quota of objects éé")
	require.Less(t, len(dec.Holds[0].Message), 300)
}

// TestDecide_MinReadySecondsLeft_ChecksThen has a machine of the old set, so that
// no hold has the time.
func TestDecide_MinReadySecondsLeft_ChecksThen(t *testing.T) { checkScenes(t) }

func TestGate_Refusals_AskedOnceAndCounted(t *testing.T) {
	s := newScenario("rolling 50 +5 revision=2; old 50/50/50; new 5/5/5")
	asked, until := map[string]int{}, map[string]time.Time{"old-7": rollNow.Add(time.Minute), "old-8": rollNow.Add(time.Hour)}
	s.policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){func(c deployment.Choice) (bool, machinist.Hold) {
		asked[c.Machine.Name]++
		return c.Machine.Name == "old-9", machinist.Hold{Until: until[c.Machine.Name]}
	}}
	text, dec := s.result()
	require.Equal(t, "old 50>49 without old-9; new 5; names old[old-9]", text, "the only one that is allowed")
	require.Len(t, asked, 50)
	for name, n := range asked {
		require.Equal(t, 1, n, name)
	}
	gates := slices.DeleteFunc(dec.Holds, func(h machinist.Hold) bool { return h.Reason != machinist.Reason("Gate") })
	require.Len(t, gates, 21)
	require.Equal(t, machinist.Hold{Subject: "machinedeployment/md", Reason: machinist.Reason("Gate"), Message: "gates keep 29 more machines", Until: until["old-7"]}, gates[20])
	s = newScenario("rolling 3 +1 revision=2; old 3/3/3; new 1/1/1")
	s.policy.Gates = []func(deployment.Choice) (bool, machinist.Hold){func(deployment.Choice) (bool, machinist.Hold) {
		return false, machinist.Hold{Until: rollNow.Add(time.Minute)}
	}}
	require.Equal(t, rollNow.Add(time.Minute), s.decide().NextCheck)
}

// TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne has scale-downs that are shared among
// sets (kubernetes#119536).
func TestScale_UnavailableOfAnotherSet_GoesBeforeAnAvailableOne(t *testing.T) { checkScenes(t) }

// TestScale_PriorityBeforeHealth_AsFromASetAlone asserts one order: a machine that a user marks goes
// before an unhealthy one, through a deployment and from a set alone.
func TestScale_PriorityBeforeHealth_AsFromASetAlone(t *testing.T) {
	for name, c := range map[string]struct{ machines, want, by string }{
		"marked and unhealthy":            {"a.early b bad.unknown", "a", "Priority"},
		"unhealthy":                       {"a b bad.unknown", "bad", "Availability"},
		"unhealthy and marked":            {"a b bad.unknown.early", "bad", "Priority"},
		"marked, and preserved unhealthy": {"a.early b bad.preserved", "a", "Priority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("rolling 2 +1 -0 want=old; old 3/3/2 sized=3: " + c.machines)
			d := s.decide()
			require.Len(t, d.Targets[0].Victims, 1)
			require.Equal(t, c.want, d.Targets[0].Victims[0].Machine.Name)
			require.Equal(t, c.by, d.Targets[0].Victims[0].By)

			alone := s.in.Sets[0].DeepCopy()
			alone.Spec.Replicas, alone.OwnerReferences = 2, nil
			in := machineset.Observation{Set: alone, Machines: s.in.Machines, Complete: true, Proven: true}
			deleted := decided.Deletes(machineset.Decide(in, machineset.Policy{}, rollNow).Actions)
			require.Equal(t, []string{c.want}, deleted)
		})
	}
}

// TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable plays random scale-downs of paused rollouts.
func TestScale_RandomPausedSets_NoAvailableBeforeAnUnavailable(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 31))
		all, names := 0, []string{"oldest", "older", "old", "new"}
		var sets []string
		for _, set := range names[r.IntN(3):] {
			var machines []string
			up, n := 0, r.IntN(5)
			for i := range n {
				state := chosen(chance{r}, "", "", ".unknown", ".pending", ".nocapacity")
				if state == "" {
					up++
				}
				machines = append(machines, fmt.Sprint(set, i, state))
			}
			all += n
			sets = append(sets, fmt.Sprintf("%s %d/%d/%d sized=SIZE: %s", set, n, n, up, strings.Join(machines, " ")))
		}
		text := fmt.Sprintf("rolling %d +%d -%d paused; %s", r.IntN(all+1), r.IntN(2), r.IntN(4), strings.Join(sets, "; "))
		s := newScenario(strings.ReplaceAll(text, "SIZE", fmt.Sprint(all)))
		lost, available := map[string]bool{}, ""
		for _, target := range s.decide().Targets {
			for _, v := range target.Victims {
				lost[v.Machine.Name] = true
				if v.Machine.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
					available = v.Machine.Name
				}
			}
		}
		if available == "" {
			continue
		}
		cuts++
		for _, m := range s.in.Machines {
			require.True(t, lost[m.Name] || m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning,
				"seed %d: %s goes, and the unavailable %s stays: %s", seed, available, m.Name, s.text)
		}
	}
	require.Greater(t, cuts, 500)
}

func TestInPlace_SizesFollowMachines(t *testing.T) { checkScenes(t) }
func TestInPlace_ScaleUpDisabled(t *testing.T)     { checkScenes(t) }
func TestInPlace_Moves(t *testing.T)               { checkScenes(t) }
func TestInPlace_Candidates(t *testing.T)          { checkScenes(t) }
func TestInPlace_Selection(t *testing.T)           { checkScenes(t) }
func TestInPlace_Acknowledgement(t *testing.T)     { checkScenes(t) }

// TestInPlace_Stages asserts that labels, phases and conditions give the stage of the update of m1.
func TestInPlace_Stages(t *testing.T) { checkScenes(t) }

// TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted has one available machine, which
// was updated and whose Node is still marked. The others are being updated, and the replicas
// decrease by one.
func TestInPlace_UpdatedMachineOnCordonedNode_NotDeleted(t *testing.T) { checkScenes(t) }

// TestInPlace_NamedMachines shrinks an old set, with and without machines that an autoscaler named.
func TestInPlace_NamedMachines(t *testing.T) { checkScenes(t) }

// TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged has a set with more machines than
// replicas, since some have moved to it.
func TestInPlace_MovedMachinesTooMany_AreChosenWhenAcknowledged(t *testing.T) { checkScenes(t) }

// TestInPlace_Move_KeepsForeignLabelsAndOwners asserts that other owners and labels stay. The
// labels that the old set selects are removed.
func TestInPlace_Move_KeepsForeignLabelsAndOwners(t *testing.T) {
	s := newScenario("inplace 3 -1; old 3: a.done b c; new 0")
	m := s.of("a")
	m.Labels["mine"], m.Labels["first"] = "x", "1"
	s.in.Sets[0].Spec.Selector.MatchLabels["first"] = "1"
	m.OwnerReferences = []metav1.OwnerReference{{UID: "first"}, m.OwnerReferences[0], {UID: "last"}}
	moved := decided.Writes[*v1alpha1.Machine](s.decide().Actions)
	require.Len(t, moved, 1)
	want := map[string]string{"mine": "x", resultKey: "successful", v1alpha1.NodeLabelKey: "node-a"}
	maps.Copy(want, s.in.Sets[1].Spec.Selector.MatchLabels)
	require.Equal(t, want, moved[0].Labels)
	owners := moved[0].OwnerReferences
	require.Len(t, owners, 3)
	require.EqualValues(t, "first", owners[0].UID)
	require.Equal(t, "new", metav1.GetControllerOf(moved[0]).Name)
	require.EqualValues(t, "last", owners[2].UID)
}

func TestInPlace_MovedMachine_NodeUnmarkedBeforeAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		label  string
		claims string // what another has recorded on the Node
		closed bool   // to pods, at the end
		awaits string // what removes the taint of critical components
	}{
		"a candidate":                            {candKey, "", false, ""},
		"one that is selected":                   {selKey, "", false, ""},
		"one with a result":                      {resultKey, "", false, ""},
		"a cordon of another stays":              {resultKey, `{"marks":["unschedulable"]}`, true, ""},
		"a taint of another is no cordon":        {resultKey, `{"marks":["taint:x=y:NoSchedule"]}`, false, ""},
		"Node of Gardener: awaits components":    {resultKey, "", false, "gardener"},
		"node template with the taint: the same": {resultKey, "", false, "template"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("inplace 1 -1; old 0; new 1: m.moved")
			n := s.in.Nodes["node-m"]
			n.Labels[c.label] = v1alpha1.LabelValueNodeUpdateSuccessful
			n.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason] = "an earlier attempt"
			if c.claims != "" {
				n.Annotations["cordon.machinist.dev/another"] = c.claims
			}
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule}}
			components := corev1.Taint{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}
			switch c.awaits {
			case "gardener":
				n.Labels["worker.gardener.cloud/pool"] = "a"
			case "template":
				s.of("m").Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{components}
				for _, template := range []*v1alpha1.MachineTemplateSpec{&s.in.Deployment.Spec.Template, &s.in.Sets[1].Spec.Template} {
					template.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{components}
				}
			}
			text, dec := s.result()
			require.NotContains(t, text, "acknowledges")
			back := decided.After(n, dec.Actions)
			require.NotSame(t, n, back, dec.String())
			delete(back.Labels, "worker.gardener.cloud/pool")
			require.Empty(t, back.Labels)
			require.NotContains(t, back.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
			require.Equal(t, c.awaits != "", slices.Contains(back.Spec.Taints, components))
			require.Len(t, back.Spec.Taints, map[bool]int{true: 1}[c.awaits != ""])
			require.Equal(t, c.closed, back.Spec.Unschedulable)
			s.in.Nodes["node-m"] = back
			text, _ = s.result()
			require.Contains(t, text, "acknowledges m")
		})
	}
}

// TestInPlace_NoOtherUpdatePossible_SurgesAgain has a maxUnavailable of 0 and a new
// set that existed before, without a surge.
func TestInPlace_NoOtherUpdatePossible_SurgesAgain(t *testing.T) { checkScenes(t) }

func TestMark_NodesOfARollout(t *testing.T)      { checkScenes(t) }
func TestMark_AutoscalerOfARollout(t *testing.T) { checkScenes(t) }

func TestMark_Node_IsWrittenOnceWithAPrecondition(t *testing.T) {
	s := newScenario("rolling 3 +1 taint hold; old 3: a b c; new 1: d")
	n := s.in.Nodes["node-a"]
	n.ResourceVersion, n.Labels = "1", map[string]string{"keep": "1"}
	n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}, {Key: v1alpha1.PreferNoScheduleKey, Value: "?", Effect: corev1.TaintEffectNoSchedule}}
	_, dec := s.result()
	updates := slices.DeleteFunc(decided.Of[machinist.Update](dec.Actions), func(u machinist.Update) bool { return u.Object.GetName() != n.Name })
	require.Len(t, updates, 1)
	checkUpdate(t, updates[0])
	want := n.DeepCopy()
	want.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey], want.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey] = "true", "true"
	want.Spec.Taints[1] = corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	require.Equal(t, want, updates[0].Object)
}

func TestDecide_Actions_ShareNoMutableMemory(t *testing.T) {
	s := newScenario("rolling 3 +1 taint hold scaled named=old-0; old 3/3/3; new 1/1/1")
	before := copyOf(s.in)
	dec := s.decide()
	for _, n := range decided.Writes[*corev1.Node](dec.Actions) {
		n.Annotations["x"], n.Spec.Taints = "y", append(n.Spec.Taints[:0], corev1.Taint{Key: "z"})
	}
	for _, m := range decided.Writes[*v1alpha1.Machine](dec.Actions) {
		m.Annotations["x"], m.OwnerReferences[0].Name = "y", "z"
	}
	for _, set := range decided.Writes[*v1alpha1.MachineSet](dec.Actions) {
		set.Annotations["x"], set.Spec.Selector.MatchLabels["x"] = "y", "z"
	}
	require.Empty(t, cmp.Diff(before, s.in))
}

func TestDecide_Actions_MarksOfMachinesComeBeforeSetsShrink(t *testing.T) { checkScenes(t) }

func TestDecide_Actions_NodesAreWrittenLast(t *testing.T) { checkScenes(t) }

func TestDecide_SetDeleting_NotWritten(t *testing.T) { checkScenes(t) }

// TestDecide_BurstOfLargeDeployment_IsATenth asserts that a decision about many machines writes more objects.
func TestDecide_BurstOfLargeDeployment_IsATenth(t *testing.T) {
	for machines, burst := range map[int32]int{500: 100, 3000: 300} {
		in := large(rolling(machines, 1, 0), 1)
		in.Sets = append(in.Sets, rollSet(in.Deployment, "new", 0, 0, 0))
		in.Deployment.Spec.Template.Spec.Class.Name = "new"
		dec := deployment.Decide(in, deployment.Policy{}, rollNow)
		require.Len(t, decided.Writes[*corev1.Node](dec.Actions), burst)
	}
}

func TestDecide_Burst_LimitsWritesAndHolds(t *testing.T) { checkScenes(t) }
