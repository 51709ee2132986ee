// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// skews are by how much the clock that recorded a time is ahead of that which reads it.
var skews = []time.Duration{-time.Hour, 0, 3 * time.Second, 30 * time.Minute, 100 * 365 * 24 * time.Hour}

// recordedAt returns a Progressing condition, all its times recorded then.
func recordedAt(status v1alpha1.ConditionStatus, reason string, at time.Time) []v1alpha1.MachineDeploymentCondition {
	t := metav1.NewTime(at.Truncate(time.Second))
	return []v1alpha1.MachineDeploymentCondition{{
		Type: v1alpha1.MachineDeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: t, LastTransitionTime: t,
	}}
}

// stored is a status as the API server keeps it, without fractions of a second.
func stored(s v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	s = *s.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastUpdateTime.Time = s.Conditions[i].LastUpdateTime.Truncate(time.Second)
		s.Conditions[i].LastTransitionTime.Time = s.Conditions[i].LastTransitionTime.Truncate(time.Second)
	}
	return s
}

// Whatever was recorded by another clock, one pass writes the status, the next one at
// the same time does not, and each says when it wants to be asked again, within the
// progress deadline.
func TestPlan_TimesRecordedByAnotherClock_NoLoopAndNoLateDeadline(t *testing.T) {
	now := rollNow.Add(300 * time.Millisecond)
	for reason, status := range map[string]v1alpha1.ConditionStatus{
		v1alpha1.MachineSetUpdated: v1alpha1.ConditionTrue, v1alpha1.NewMachineSetCreated: v1alpha1.ConditionTrue,
		v1alpha1.NewMachineSetAvailable: v1alpha1.ConditionTrue, v1alpha1.DeploymentResumed: v1alpha1.ConditionUnknown,
		v1alpha1.ProgressDeadlineExceeded: v1alpha1.ConditionFalse, string(deployment.ReasonInvalid): v1alpha1.ConditionFalse,
	} {
		for _, skew := range skews {
			t.Run(fmt.Sprint(reason, skew), func(t *testing.T) {
				d := rolling(3, 1, 0)
				d.Spec.ProgressDeadlineSeconds = new(int32(600))
				old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0)
				d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: newSet.Annotations[v1alpha1.RevisionAnnotation]}
				in := rollSee(d, old, newSet)
				d.Status = stored(deployment.Decide(in, rollPolicy, now).Status) // no counter tells of progress
				d.Status.Conditions = recordedAt(status, reason, now.Add(skew))
				for _, m := range in.Machines {
					m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(skew))
				}
				for pass := range 3 {
					dec := deployment.Decide(in, rollPolicy, now)
					require.Empty(t, dec.Events)
					require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(now))
					cond := deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing)
					if cond.Reason != v1alpha1.ProgressDeadlineExceeded && cond.Reason != v1alpha1.NewMachineSetAvailable {
						require.False(t, dec.NextCheck.IsZero())
						require.False(t, dec.NextCheck.After(now.Add(601*time.Second)), "%s", dec.NextCheck.Sub(now))
					}
					if pass > 1 {
						require.False(t, dec.WriteStatus, "pass %d writes again", pass)
					}
					d.Status = stored(dec.Status)
				}
			})
		}
	}
}

// A write whose cache is late is looked for at once if the clock has gone back since.
func TestPlan_WriteRecordedInTheFuture_IsLookedForAtOnce(t *testing.T) {
	d := rolling(3, 1, 0)
	set := rollSet(d, "c0", 3, 3, 3)
	set.ResourceVersion = "5"
	written := set.DeepCopy()
	written.ResourceVersion = "7"
	in := rollSee(d, set)
	in.Expectations = machine.Expectations{}.Updated(written, rollNow.Add(time.Hour))
	dec := deployment.Decide(in, rollPolicy, rollNow)
	require.Equal(t, []deployment.Action{deployment.Look{Kind: machine.KindSet, Name: set.Name}}, dec.Actions)
	in.Expectations = in.Expectations.Looked(machine.KindSet, set.Name, set, rollNow)
	dec = deployment.Decide(in, rollPolicy, rollNow)
	for _, a := range dec.Actions {
		_, look := a.(deployment.Look)
		require.False(t, look, "it was looked at just now")
	}
	require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(rollNow))
}
