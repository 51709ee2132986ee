// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestRollbackFindsTheRevision(t *testing.T) {
	for name, c := range map[string]struct {
		revision int64
		class    string // of the template afterwards
		reason   string
		message  string
	}{
		"a revision is found":                  {1, "a", "DeploymentRollback", `Rolled back deployment "w" to revision 1`},
		"no revision means the one before":     {0, "b", "DeploymentRollback", `Rolled back deployment "w" to revision 2`},
		"the present revision changes nothing": {3, "c", "DeploymentRollbackTemplateUnchanged", `The rollback revision contains the same template as current deployment "w"`},
		"an unknown revision is not found":     {7, "c", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."},
		"a revision below zero is not found":   {-1, "c", "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."},
	} {
		t.Run(name, func(t *testing.T) {
			w := rollbackWorld()
			w.d.Spec.RollbackTo.Revision = c.revision
			before := w.d.DeepCopy()
			dec := w.plan(deployment.Policy{})
			require.Empty(t, cmp.Diff(before, w.d))
			i := slices.IndexFunc(dec.Actions, func(a deployment.Action) bool { _, ok := a.(deployment.WriteDeployment); return ok })
			next, event := dec.Actions[i].(deployment.WriteDeployment).Deployment, dec.Actions[i].Event()
			require.EqualValues(t, c.reason, event.Reason)
			require.Equal(t, c.message, event.Message)
			require.Equal(t, c.class, next.Spec.Template.Spec.Class.Name)
			require.Nil(t, next.Spec.RollbackTo)
			require.NotContains(t, next.Spec.Template.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
			next.Spec.Template.Labels["app"] = "changed"
			require.Equal(t, "w", w.sets[0].Spec.Template.Labels["app"], "nothing is shared")
		})
	}
}

// rollbackWorld has sets of the classes a, b and c, with revisions 1, 2 and 3.
func rollbackWorld() *marksWorld {
	w := newMarksWorld(3)
	w.addSet("b", 0)
	w.addSet("c", 0)
	w.d.Spec.Template.Spec.Class.Name = "c"
	w.d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: 1}
	return w
}

func TestRollbackTakesTheAnnotationsOfTheRevision(t *testing.T) {
	const scaled = v1alpha1.LastDeploymentReplicaChangeByScalerTime
	w := rollbackWorld()
	w.d.Annotations = map[string]string{
		"cause": "third", "only": "here", v1alpha1.RevisionAnnotation: "3", scaled: "2026-02-01T00:00:00Z", v1alpha1.UnfreezeAnnotation: "1",
	}
	w.sets[0].Annotations = map[string]string{
		"cause": "first", v1alpha1.RevisionAnnotation: "1", scaled: "2025-02-01T00:00:00Z",
		v1alpha1.DesiredReplicasAnnotation: "9", v1alpha1.PreferNoScheduleKey: "True", "machinist.dev/delete-first": "m",
	}
	w.run(t, deployment.Policy{})
	require.Equal(t, map[string]string{
		"cause": "first", v1alpha1.RevisionAnnotation: "3", scaled: "2026-02-01T00:00:00Z", v1alpha1.UnfreezeAnnotation: "1",
	}, w.d.Annotations)
}

func TestDS16ATemplateThatIsGivenUpGetsNoSet(t *testing.T) {
	w := rollbackWorld()
	w.d.Spec.Template.Spec.Class.Name = "unwanted"
	dec := w.run(t, deployment.Policy{})
	require.Equal(t, deployment.ReasonRollingBack, dec.Reason)
	for _, a := range dec.Actions {
		require.NotContains(t, fmt.Sprintf("%T", a), "CreateSet")
	}
	require.Equal(t, "a", w.d.Spec.Template.Spec.Class.Name)
	require.Nil(t, w.d.Spec.RollbackTo)
	w.rest(t, deployment.Policy{})
	require.Len(t, w.sets, 3, "no set was made on the way")
}

func TestRollBackReportsWithItsWriteAndOnlyOnce(t *testing.T) {
	w := rollbackWorld()
	dec := w.plan(deployment.Policy{})
	require.Equal(t, dec, w.plan(deployment.Policy{}))
	var events []string
	for _, a := range dec.Actions {
		if e := a.Event(); e != nil {
			events = append(events, e.String())
		}
	}
	require.Equal(t, []string{`Normal DeploymentRollback Rolled back deployment "w" to revision 1`}, events)
	require.Empty(t, dec.Events)
	w.apply(t, dec, len(dec.Actions))
	for _, a := range w.plan(deployment.Policy{}).Actions {
		if e := a.Event(); e != nil {
			require.NotContains(t, e.Reason, "Rollback")
		}
	}
}

func TestARollBackThatIsAskedForIsNotTakenForComplete(t *testing.T) {
	w := rollbackWorld()
	w.d.Generation, w.d.Spec.Replicas = 8, 3
	up := v1alpha1.MachineDeploymentStatus{ObservedGeneration: 8, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	require.False(t, deployment.Complete(w.d, up))
	w.d.Status.ObservedGeneration = 7
	require.EqualValues(t, 7, w.plan(deployment.Policy{}).Status.ObservedGeneration, "should the deployment not be written, its status must not say that the request was taken in")
	w.d.Spec.RollbackTo = nil
	require.True(t, deployment.Complete(w.d, up))
}

func TestRollBackThatIsNotPossibleIsHeldAndClearedAway(t *testing.T) {
	w := rollbackWorld()
	w.d.Spec.RollbackTo.Revision = 99
	dec := w.run(t, deployment.Policy{})
	require.Equal(t, deployment.ReasonRollingBack, dec.Reason)
	require.Contains(t, dec.String(), "NoRollback: Unable to find the revision to rollback to.")
	require.Nil(t, w.d.Spec.RollbackTo)
	require.Equal(t, "c", w.d.Spec.Template.Spec.Class.Name)
}

func TestDS04ASetThatIsRolledBackToMayGrowAndIsWelcomeAgain(t *testing.T) {
	w := rollbackWorld()
	to := w.sets[0]
	to.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	to.Annotations[v1alpha1.PreferNoScheduleKey] = "True"
	for _, n := range w.nodes {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	w.run(t, deployment.Policy{})
	require.NotContains(t, w.sets[0].Annotations, v1alpha1.PreferNoScheduleKey)
	for _, n := range w.nodes {
		require.Empty(t, marksTaint(n))
	}
	w.report(w.sets[0])
	w.run(t, deployment.Policy{}) // it is the new set now
	require.NotContains(t, w.sets[0].Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
}

func TestDS04ASetThatIsTheNewOneAgainMayGrow(t *testing.T) {
	w, _, _ := midRoll(t)
	w.sets[0].Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
	w.d.Spec.Template.Spec.Class.Name = "a" // by an edit of the template
	w.d.Spec.Paused = true                  // whatever else is going on
	w.run(t, deployment.Policy{})
	require.NotContains(t, w.sets[0].Labels, v1alpha1.LabelKeyMachineSetScaleUpDisabled)
}
