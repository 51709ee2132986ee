// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestNothingIsDoneWithoutACompleteView(t *testing.T) {
	dec := deployment.Decide(deployment.Observation{}, rollPolicy, rollNow)
	require.Empty(t, dec.Actions)
	require.False(t, dec.WriteStatus)
	require.Equal(t, deployment.ReasonViewIncomplete, dec.Reason)

	d := rolling(3, 1, 0)
	d.DeletionTimestamp = new(metav1.NewTime(rollNow))
	for _, d := range []*v1alpha1.MachineDeployment{rolling(3, 1, 0), d, {}} {
		dec = deployment.Decide(deployment.Observation{Deployment: d}, rollPolicy, rollNow)
		require.Empty(t, dec.Actions)
		require.False(t, dec.WriteStatus)
		require.Equal(t, deployment.ReasonViewIncomplete, dec.Reason)
	}
}

func TestTheFinalizerComesFirst(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Finalizers = nil
	dec := rollPlan(d, rollSet(d, "c0", 3, 3, 3))
	require.Len(t, dec.Actions, 1)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, dec.Actions[0].(deployment.WriteDeployment).Deployment.Finalizers)
	require.Equal(t, rollNow.Add(30*time.Second), dec.NextCheck)
}

func TestTheNewSetIsComplete(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Annotations = map[string]string{"a": "b", v1alpha1.TriggerDeletionByMCM: "x"}
	old := rollSet(d, "c0", 3, 3, 3)
	old.Annotations[v1alpha1.RevisionAnnotation] = "6"
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	dec := rollPlan(d, old)
	require.Equal(t, deployment.ReasonNewSet, dec.Reason)
	s := dec.Actions[len(dec.Actions)-1].(deployment.CreateSet).Set
	hash := deployment.TemplateHash(d.Spec.Template, nil)
	require.Equal(t, deployment.SetName("md", hash), s.Name)
	require.Equal(t, int32(1), s.Spec.Replicas)
	require.Equal(t, map[string]string{"app": "w", "machine-template-hash": hash}, s.Labels)
	require.Equal(t, s.Labels, s.Spec.Template.Labels)
	require.Equal(t, s.Labels, s.Spec.Selector.MatchLabels)
	require.Equal(t, map[string]string{"app": "w"}, d.Spec.Selector.MatchLabels, "the deployment is untouched")
	require.Equal(t, map[string]string{"a": "b", v1alpha1.RevisionAnnotation: "7", v1alpha1.DesiredReplicasAnnotation: "3", v1alpha1.MaxReplicasAnnotation: "4"}, s.Annotations)
	require.True(t, metav1.IsControlledBy(s, d))
	cond := deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing)
	require.Equal(t, v1alpha1.NewMachineSetCreated, cond.Reason)

	status, event := deployment.CreateFailed(d.Status, s.Name, errors.New("boom"), rollNow)
	require.Equal(t, v1alpha1.MachineSetCreateError, deployment.ConditionOf(status, v1alpha1.MachineDeploymentProgressing).Reason)
	require.Equal(t, fmt.Sprintf("Warning MachineSetCreateError Failed to create new machine set %q: boom", s.Name), event.String())
}

func TestATakenNameLeadsToAnotherOne(t *testing.T) {
	d := rolling(3, 1, 0)
	first := rollPlan(d).Actions[0].(deployment.CreateSet).Set
	in := deployment.Observation{Deployment: d, Complete: true, NameTakenBy: first.DeepCopy()}

	dec := deployment.Decide(in, rollPolicy, rollNow)
	require.Empty(t, dec.Actions, "it is ours, and will be seen")
	require.Nil(t, dec.Status.CollisionCount)
	require.Equal(t, []machinist.Reason{deployment.ReasonNameTaken}, rollReasons(dec))

	in.NameTakenBy.OwnerReferences = nil
	dec = deployment.Decide(in, rollPolicy, rollNow)
	require.Empty(t, dec.Actions)
	require.True(t, dec.WriteStatus)
	require.Equal(t, int32(1), *dec.Status.CollisionCount)
	require.False(t, dec.NextCheck.IsZero())

	d.Status = dec.Status
	dec = deployment.Decide(in, rollPolicy, rollNow)
	require.Len(t, dec.Actions, 1)
	second := dec.Actions[0].(deployment.CreateSet).Set
	require.NotEqual(t, first.Name, second.Name)

	in.NameTakenBy = &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: second.Name, Namespace: second.Namespace}}
	require.Equal(t, int32(2), *deployment.Decide(in, rollPolicy, rollNow).Status.CollisionCount)
}

func TestARolloutIsNotCompleteBeforeItsSetsAreAtRest(t *testing.T) {
	d := rolling(3, 1, 0)
	tests := map[string]func(s *v1alpha1.MachineSet){
		"the set has not reported":                func(s *v1alpha1.MachineSet) { s.Generation = 2 },
		"the set was told to shrink, and did not": func(s *v1alpha1.MachineSet) { s.Spec.Replicas = 2 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := rollSet(d, "c1", 3, 3, 3)
			d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1"}
			require.Equal(t, deployment.ReasonComplete, rollPlan(d, s).Reason)
			change(s)
			dec := rollPlan(d, s)
			require.True(t, deployment.Complete(d, dec.Status), "by the counters it is")
			require.Equal(t, deployment.ReasonRollingOut, dec.Reason)
			require.NotEqual(t, v1alpha1.NewMachineSetAvailable, deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason)
			require.NotEmpty(t, dec.Holds)
		})
	}
}

func TestAPauseIsWrittenDown(t *testing.T) {
	d := rolling(3, 1, 0)
	s := rollSet(d, "c0", 3, 3, 3)
	reason := func() string {
		d.Status = rollPlan(d, s).Status
		c := deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentProgressing)
		return string(c.Status) + " " + c.Reason
	}
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	d.Spec.Paused = true
	require.Equal(t, "Unknown DeploymentPaused", reason())
	d.Spec.Paused, d.Spec.Template.Spec.Class.Name = false, "c0"
	d.Spec.Replicas = 4 // scaled first, so that nothing else is written
	require.Equal(t, "Unknown DeploymentResumed", reason())
}

func TestTheProgressDeadlineIsWaitedForAndReported(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.ProgressDeadlineSeconds = new(int32(60))
	old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0)
	newSet.Annotations[v1alpha1.RevisionAnnotation] = "2"
	sets := []*v1alpha1.MachineSet{old, newSet}
	d.Status = rollPlan(d, sets...).Status
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	dec := rollPlan(d, sets...)
	require.Equal(t, rollNow.Add(61*time.Second), dec.NextCheck)
	in := deployment.Observation{Deployment: d, Sets: sets, Complete: true}
	dec = deployment.Decide(in, rollPolicy, dec.NextCheck)
	require.Equal(t, v1alpha1.ProgressDeadlineExceeded, deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason)
	require.Contains(t, rollReasons(dec), deployment.ReasonProgressDeadline)
	require.True(t, dec.NextCheck.IsZero(), "only a change can help")
}

func TestTheProgressDeadlineRunsAnewWhenASetOfBeforeBecomesTheNewOne(t *testing.T) {
	for _, reason := range []string{v1alpha1.NewMachineSetAvailable, v1alpha1.ProgressDeadlineExceeded} {
		d := rolling(3, 1, 0)
		d.Spec.ProgressDeadlineSeconds = new(int32(60))
		old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 0, 0, 0)
		newSet.Annotations[v1alpha1.RevisionAnnotation] = "3"
		newSet.Labels[v1alpha1.FreezeLabelKey] = "True" // so that nothing comes of it
		d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3, 3
		d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{
			Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, Reason: reason,
			LastUpdateTime: metav1.NewTime(rollNow.Add(-time.Hour)),
		}}
		progressing := func(now time.Time) string {
			dec := deployment.Decide(rollSee(d, old, newSet), rollPolicy, now)
			for _, a := range dec.Actions {
				if w, ok := a.(deployment.WriteDeployment); ok {
					d = w.Deployment
				}
			}
			d.Status = dec.Status
			return deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason
		}
		require.Equal(t, v1alpha1.FoundNewMachineSet, progressing(rollNow))
		require.Equal(t, v1alpha1.FoundNewMachineSet, progressing(rollNow.Add(time.Minute)))
		require.Equal(t, v1alpha1.ProgressDeadlineExceeded, progressing(rollNow.Add(2*time.Minute)))
		require.Equal(t, v1alpha1.ProgressDeadlineExceeded, progressing(rollNow.Add(3*time.Minute)))
	}
}
