// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	offKey  = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	ourKey  = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
	candKey = v1alpha1.LabelKeyNodeCandidateForUpdate
	selKey  = v1alpha1.LabelKeyNodeSelectedForUpdate
)

// midRoll has three machines of the old class and one of the new.
func midRoll(t *testing.T) (w *marksWorld, old, next *v1alpha1.MachineSet) {
	t.Helper()
	w = newMarksWorld(3)
	w.d.Spec.Template.Spec.Class.Name = "b"
	w.addSet("b", 1)
	return w, w.sets[0], w.sets[1]
}

func TestMarkDiscouragesOldNodesByPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		discourage deployment.Discourage
		strategy   v1alpha1.MachineDeploymentStrategyType
		want       corev1.TaintEffect
	}{
		"by default pods should go elsewhere":        {"", v1alpha1.RollingUpdateMachineDeploymentStrategyType, corev1.TaintEffectPreferNoSchedule},
		"pods should go elsewhere":                   {deployment.DiscouragePreferNoSchedule, v1alpha1.RollingUpdateMachineDeploymentStrategyType, corev1.TaintEffectPreferNoSchedule},
		"pods have to go elsewhere":                  {deployment.DiscourageNoSchedule, v1alpha1.RollingUpdateMachineDeploymentStrategyType, corev1.TaintEffectNoSchedule},
		"pods may come":                              {deployment.DiscourageNone, v1alpha1.RollingUpdateMachineDeploymentStrategyType, ""},
		"a Recreate discourages nobody":              {"", v1alpha1.RecreateMachineDeploymentStrategyType, ""},
		"an unknown policy is that of the reference": {"?", v1alpha1.RollingUpdateMachineDeploymentStrategyType, corev1.TaintEffectPreferNoSchedule},
	} {
		t.Run(name, func(t *testing.T) {
			w, old, next := midRoll(t)
			w.d.Spec.Strategy.Type = c.strategy
			oldMachines := w.of(old)
			w.run(t, deployment.Policy{Discourage: c.discourage})
			for _, m := range oldMachines {
				require.Equal(t, c.want, marksTaint(w.node(m)))
			}
			for _, m := range w.of(next) {
				require.Empty(t, marksTaint(w.node(m)))
			}
			_, marked := w.sets[0].Annotations[v1alpha1.PreferNoScheduleKey]
			require.Equal(t, c.want != "", marked, "the annotation of the set says the same")
		})
	}
}

func TestMarkTaintHasTheValueOfTheReference(t *testing.T) {
	w, old, _ := midRoll(t)
	w.node(w.of(old)[0]).Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}, {Key: v1alpha1.PreferNoScheduleKey, Value: "?", Effect: corev1.TaintEffectNoSchedule}}
	w.run(t, deployment.Policy{})
	require.Equal(t, []corev1.Taint{
		{Key: "other", Effect: corev1.TaintEffectNoExecute},
		{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule},
	}, w.node(w.of(old)[0]).Spec.Taints)
	require.Equal(t, "True", w.sets[0].Annotations[v1alpha1.PreferNoScheduleKey])
}

func TestDS18NodesThatJoinAnOldSetLateAreMarked(t *testing.T) {
	w, old, _ := midRoll(t)
	w.run(t, deployment.Policy{})
	w.report(w.sets[0])
	late := w.addMachine(old)
	w.sets[0].Spec.Replicas++
	w.report(w.sets[0])
	w.run(t, deployment.Policy{})
	require.Equal(t, corev1.TaintEffectPreferNoSchedule, marksTaint(w.node(late)))
}

func TestDS09DS15ABacktrackTakesTheMarksFromTheNewSetAtOnce(t *testing.T) {
	w, old, next := midRoll(t)
	policy := deployment.Policy{}
	w.run(t, policy)
	for _, s := range w.sets {
		w.report(s)
	}
	w.node(w.of(old)[0]).Labels = map[string]string{selKey: "true"}
	w.node(w.of(old)[1]).Labels = map[string]string{candKey: "replace"}

	w.d.Spec.Template.Spec.Class.Name = "a" // back again
	w.run(t, policy)
	for _, m := range w.of(old) {
		require.Empty(t, marksTaint(w.node(m)))
		require.NotContains(t, w.node(m).Labels, candKey)
		require.NotContains(t, w.node(m).Labels, selKey, "it would be approved for the next roll-out")
	}
	require.NotContains(t, w.sets[0].Annotations, v1alpha1.PreferNoScheduleKey)
	for _, m := range w.of(next) {
		require.NotEmpty(t, marksTaint(w.node(m)))
	}
	require.Contains(t, w.sets[1].Annotations, v1alpha1.PreferNoScheduleKey)
}

func TestMarkCandidatesOnlyByPolicy(t *testing.T) {
	w, old, _ := midRoll(t)
	w.run(t, deployment.Policy{})
	require.NotContains(t, w.node(w.of(old)[0]).Labels, candKey)

	w, old, _ = midRoll(t)
	w.node(w.of(old)[0]).Labels = map[string]string{candKey: "true", selKey: "true"}
	w.run(t, deployment.Policy{})
	require.NotContains(t, w.node(w.of(old)[0]).Labels, candKey, "stale marks go")

	w, old, _ = midRoll(t)
	w.of(old)[0].Status.CurrentStatus.Phase = v1alpha1.MachineInPlaceUpdating
	w.node(w.of(old)[0]).Labels = map[string]string{candKey: "true", selKey: "true"}
	w.run(t, deployment.Policy{})
	require.Contains(t, w.node(w.of(old)[0]).Labels, candKey, "an update that is under way needs them")
}

func TestMarkHoldsTheAutoscalerDuringARollOut(t *testing.T) {
	w, old, next := midRoll(t)
	p := deployment.Policy{HoldAutoscaler: true}
	w.run(t, p)
	for _, s := range []*v1alpha1.MachineSet{old, next} {
		for _, m := range w.of(s) {
			require.Equal(t, "true", w.node(m).Annotations[offKey])
			require.Equal(t, "true", w.node(m).Annotations[ourKey])
		}
	}
	w.settle()
	w.rest(t, p)
	require.Len(t, w.machines, 3)
	for _, m := range w.machines {
		require.NotContains(t, w.node(m).Annotations, offKey)
		require.NotContains(t, w.node(m).Annotations, ourKey)
	}
}

func TestMarkLetsTheAutoscalerBeWithoutThePolicy(t *testing.T) {
	w, _, _ := midRoll(t)
	w.run(t, deployment.Policy{})
	for _, n := range w.nodes {
		require.Empty(t, n.Annotations)
	}
}

func TestDS37TheUsersOwnAnnotationIsNeitherChangedNorRemoved(t *testing.T) {
	for _, value := range []string{"true", "false", ""} {
		w, old, next := midRoll(t)
		mine := w.node(w.of(next)[0])
		mine.Annotations = map[string]string{offKey: value}
		w.node(w.of(old)[0]).Annotations = map[string]string{offKey: value, ourKey: "true"}
		p := deployment.Policy{HoldAutoscaler: true}
		w.run(t, p)
		require.Equal(t, value, w.node(w.of(old)[0]).Annotations[offKey], "whoever changed the value meant it")
		w.settle()
		w.rest(t, p)
		require.Equal(t, map[string]string{offKey: value}, w.nodes[mine.Name].Annotations)
	}
}

func TestDS38MarksAreTakenBackFromWhatTheViewShows(t *testing.T) {
	w := newMarksWorld(3)
	preserved, unknown, gone := w.machines[0], w.machines[1], w.machines[2]
	later := metav1.NewTime(marksNow)
	preserved.Status.CurrentStatus.PreserveExpiryTime = &later
	for _, n := range w.nodes {
		n.Annotations = map[string]string{offKey: "true", ourKey: "true"}
	}
	fourth := w.addMachine(w.sets[0])
	w.node(fourth).Annotations = map[string]string{offKey: "never", ourKey: "true"}
	w.d.Spec.Replicas, w.sets[0].Spec.Replicas = 4, 4
	w.sets[0].Annotations[v1alpha1.DesiredReplicasAnnotation] = "4"
	w.report(w.sets[0])
	delete(w.nodes, unknown.Labels[v1alpha1.NodeLabelKey])
	w.nodes[gone.Labels[v1alpha1.NodeLabelKey]] = nil
	dec := w.rest(t, deployment.Policy{})
	require.Equal(t, deployment.ReasonComplete, dec.Reason)
	require.Contains(t, w.node(preserved).Annotations, ourKey, "a preservation needs it")
	require.Equal(t, map[string]string{offKey: "never"}, w.node(fourth).Annotations)
}

func TestMarkNothingWhilePausedOrScaling(t *testing.T) {
	for name, change := range map[string]func(*marksWorld){
		"paused":  func(w *marksWorld) { w.d.Spec.Paused = true },
		"scaling": func(w *marksWorld) { w.d.Spec.Replicas = 5 },
	} {
		t.Run(name, func(t *testing.T) {
			w, old, next := midRoll(t)
			w.node(w.of(next)[0]).Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
			change(w)
			w.run(t, deployment.Policy{HoldAutoscaler: true})
			require.Empty(t, marksTaint(w.node(w.of(old)[0])))
			require.NotEmpty(t, marksTaint(w.node(w.of(next)[0])))
		})
	}
}

func TestMarkNothingBeforeThereIsANewSet(t *testing.T) {
	w := newMarksWorld(3)
	w.d.Spec.Template.Spec.Class.Name = "b"
	w.d.Labels = map[string]string{v1alpha1.FreezeLabelKey: "True"}
	w.run(t, deployment.Policy{HoldAutoscaler: true})
	for _, n := range w.nodes {
		require.Empty(t, marksTaint(n))
		require.Empty(t, n.Annotations)
	}
}

func TestMarkLeavesTheNodesOfMachinesThatGo(t *testing.T) {
	w, old, _ := midRoll(t)
	w.of(old)[0].DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.nodes["node-"+w.of(old)[1].Name].DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.run(t, deployment.Policy{})
	require.Empty(t, marksTaint(w.node(w.of(old)[0])))
	require.Empty(t, marksTaint(w.node(w.of(old)[1])))
	require.NotEmpty(t, marksTaint(w.node(w.of(old)[2])))
}

func TestMarkIsDoneOnce(t *testing.T) {
	w, _, _ := midRoll(t)
	p := deployment.Policy{HoldAutoscaler: true}
	w.run(t, p)
	for _, s := range w.sets {
		w.report(s)
	}
	for _, a := range w.plan(p).Actions {
		require.NotContains(t, []any{deployment.WriteNode{}, deployment.WriteMachine{}}, a)
		_, isNode := a.(deployment.WriteNode)
		require.False(t, isNode, "%v", a)
	}
}

func TestMarkLeavesAnEmptyOldSetAlone(t *testing.T) {
	w := newMarksWorld(2)
	w.addSet("old", 0)
	require.Equal(t, deployment.ReasonComplete, w.rest(t, deployment.Policy{}).Reason)
	require.NotContains(t, w.sets[1].Annotations, v1alpha1.PreferNoScheduleKey)
}

func TestMarkNothingWhileTheNewSetIsBeingDeleted(t *testing.T) {
	w, _, next := midRoll(t)
	next.DeletionTimestamp = new(metav1.NewTime(marksNow))
	w.run(t, deployment.Policy{HoldAutoscaler: true})
	for _, n := range w.nodes {
		require.Empty(t, marksTaint(n), "there is no other place to go")
		require.Empty(t, n.Annotations)
	}
}

func TestMarkKeepsTheLabelsOfAMachineThatWasUpdatedInPlace(t *testing.T) {
	w, _, next := midRoll(t)
	m := w.of(next)[0]
	m.Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateSuccessful
	w.node(m).Labels = map[string]string{candKey: "true", v1alpha1.LabelKeyNodeUpdateResult: v1alpha1.LabelValueNodeUpdateSuccessful}
	for _, a := range w.plan(deployment.Policy{}).Actions {
		if n, ok := a.(deployment.WriteNode); ok && n.Node.Name == w.node(m).Name {
			require.NotContains(t, n.String(), "no candidate")
		}
	}
}
