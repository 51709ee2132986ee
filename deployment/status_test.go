// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecide_NewSet_HasAllOfTheDeployment(t *testing.T) {
	s := newScenario("rolling 3 +1 named=x want=c1; old 3/3/3 revision=6")
	d := s.in.Deployment
	d.Annotations["a"] = "b"
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	dec := s.decide()
	require.Equal(t, machinist.Reason("CreatingSet"), dec.Reason)
	set := decided.Creates[*v1alpha1.MachineSet](dec.Actions)[0]
	hash := deployment.TemplateHash(d.Spec.Template, nil)
	require.Equal(t, deployment.SetName("md", hash), set.Name)
	require.Equal(t, int32(1), set.Spec.Replicas)
	require.Equal(t, map[string]string{"app": "w", "machine-template-hash": hash}, set.Labels)
	require.Equal(t, set.Labels, set.Spec.Template.Labels)
	require.Equal(t, set.Labels, set.Spec.Selector.MatchLabels)
	require.Equal(t, map[string]string{"app": "w"}, d.Spec.Selector.MatchLabels, "the deployment is untouched")
	require.Equal(t, map[string]string{"a": "b", v1alpha1.RevisionAnnotation: "7", v1alpha1.DesiredReplicasAnnotation: "3", v1alpha1.MaxReplicasAnnotation: "4"}, set.Annotations)
	require.True(t, metav1.IsControlledBy(set, d))
	require.Equal(t, v1alpha1.NewMachineSetCreated, progressing(dec.Status).Reason)

	status, event := deployment.CreateFailed(d.Status, set.Name, errors.New("boom"), rollNow)
	require.Equal(t, v1alpha1.MachineSetCreateError, progressing(status).Reason)
	require.Equal(t, fmt.Sprintf("Warning MachineSetCreateError Failed to create new machine set %q: boom", set.Name), event.String())
}

func TestDecide_NameTaken_NextAttemptTakesAnother(t *testing.T) {
	s := newScenario("rolling 3 +1; old 0")
	first := decided.Creates[*v1alpha1.MachineSet](s.decide().Actions)[0]
	s.in.NameTakenBy = first.DeepCopy()
	dec := s.decide()
	require.Empty(t, dec.Actions, "it is ours, and will be seen")
	require.Nil(t, dec.Status.CollisionCount)
	require.Equal(t, []machinist.Reason{machinist.Reason("NameTaken")}, reasons(dec))

	s.in.NameTakenBy.OwnerReferences = nil
	dec = s.decide()
	require.Empty(t, dec.Actions)
	require.True(t, dec.WriteStatus)
	require.Equal(t, int32(1), *dec.Status.CollisionCount)
	require.False(t, dec.NextCheck.IsZero())

	s.in.Deployment.Status = dec.Status
	second := decided.Creates[*v1alpha1.MachineSet](s.decide().Actions)[0]
	require.NotEqual(t, first.Name, second.Name)
	s.in.NameTakenBy = &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: second.Name, Namespace: second.Namespace}}
	require.Equal(t, int32(2), *s.decide().Status.CollisionCount)
}

// TestDecide_SetsNotAtRest_RolloutIsNotComplete has two deployments that are complete by the
// counters of their status.
func TestDecide_SetsNotAtRest_RolloutIsNotComplete(t *testing.T) { checkScenes(t) }

// TestStatus_PassThatResizes_UnavailableReplicas asserts that a set that is created or grows counts
// with the size that it had, as in MCM.
func TestStatus_PassThatResizes_UnavailableReplicas(t *testing.T) { checkScenes(t) }

func TestDecide_RevisionBehindItsSet_DeploymentAndStatusAreWritten(t *testing.T) { checkScenes(t) }

func TestProgress_Pause_IsWrittenDown(t *testing.T) { checkScenes(t) }

func TestProgress_Deadline_IsWaitedForAndReported(t *testing.T) { checkScenes(t) }

func TestProgress_OldSetIsNewAgain_DeadlineRestarts(t *testing.T) { checkScenes(t) }

func TestProgress_SetNotCreatedYet_EndOfTheLastRolloutIsReplaced(t *testing.T) { checkScenes(t) }

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

// TestProgress_TimesRecordedByAnotherClock_NoLoopAndNoLateDeadline asserts that whatever was
// recorded by another clock, one pass writes the status, the next one at the same time does not,
// and each says when it wants to be asked again, within the progress deadline.
func TestProgress_TimesRecordedByAnotherClock_NoLoopAndNoLateDeadline(t *testing.T) {
	now := rollNow.Add(300 * time.Millisecond)
	for reason, status := range map[string]v1alpha1.ConditionStatus{
		v1alpha1.MachineSetUpdated: v1alpha1.ConditionTrue, v1alpha1.NewMachineSetCreated: v1alpha1.ConditionTrue,
		v1alpha1.NewMachineSetAvailable: v1alpha1.ConditionTrue, v1alpha1.DeploymentResumed: v1alpha1.ConditionUnknown,
		v1alpha1.ProgressDeadlineExceeded: v1alpha1.ConditionFalse, string(deployment.ReasonInvalid): v1alpha1.ConditionFalse,
	} {
		for _, skew := range []time.Duration{-time.Hour, 0, 3 * time.Second, 30 * time.Minute, 100 * 365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(reason, skew), func(t *testing.T) {
				s := newScenario("rolling 3 +1 deadline=600 revision=2; old 3/3/3; new 1/1/0")
				d := s.in.Deployment
				d.Status = stored(deployment.Decide(s.in, s.policy, now).Status) // no counter tells of progress
				d.Status.Conditions = recordedAt(status, reason, now.Add(skew))
				for _, m := range s.in.Machines {
					m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(skew))
				}
				for pass := range 3 {
					dec := deployment.Decide(s.in, s.policy, now)
					for _, e := range dec.Events {
						require.Equal(t, machinist.Reason(v1alpha1.ProgressDeadlineExceeded), e.Reason)
						require.Zero(t, pass)
					}
					require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(now))
					if reason := progressing(dec.Status).Reason; reason != v1alpha1.ProgressDeadlineExceeded && reason != v1alpha1.NewMachineSetAvailable {
						require.False(t, dec.NextCheck.IsZero())
						require.False(t, dec.NextCheck.After(now.Add(601*time.Second)), "%s", dec.NextCheck.Sub(now))
					}
					require.False(t, pass > 1 && dec.WriteStatus, "pass %d writes again", pass)
					d.Status = stored(dec.Status)
				}
			})
		}
	}
}

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	set, machine, node := &v1alpha1.MachineSet{}, &v1alpha1.Machine{}, &corev1.Node{}
	set.Name, set.Spec.Replicas, machine.Name, node.Name = "small", 2, "small-0", "node-0"
	larger, old := set.DeepCopy(), &v1alpha1.MachineSet{}
	larger.Spec.Replicas, old.Name = 3, "old"
	d := &v1alpha1.MachineDeployment{}
	d.Name = "workers"
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decision{
		Reason: machinist.Reason("Progressing"), Message: "1 of 3 machines updated, 3 available",
		Targets: []deployment.Target{{
			Name: "small", UID: "1", From: 3, To: 2, Message: "3 machines available, minimum 3",
			Victims: []machineset.Victim{{Machine: machine, By: "Availability"}},
		}},
		Actions: []machinist.Action{
			machinist.Update{Object: d, Changes: []string{"revision is 2"}},
			machinist.Update{Object: machine, Changes: []string{"counted by its new set"}},
			machinist.Create{Object: set, Message: "2 replicas (3 machines, 4 allowed)"},
			machinist.Update{Before: larger, Object: set, Changes: []string{"from 3 to 2 replicas", "3 machines available, minimum 3"}},
			machinist.Update{Before: set, Object: set, Changes: []string{"annotations differ from the deployment"}},
			machinist.Delete{Object: old, Message: "the deployment is being deleted"},
			machinist.Update{Object: node, Changes: []string{"taint removed"}},
			machinist.Refresh{Kind: "MachineSet", Name: "small"},
			machinist.Refresh{Kind: "MachineSet"},
		},
		Holds:       []machinist.Hold{{Subject: "machine/large-0", Reason: deployment.ReasonNewUnavailable, Message: "Pending"}},
		Events:      []machinist.Event{{Type: "Normal", Reason: "ScalingMachineSet", Message: "Scaled down machine set small to 2"}},
		WriteStatus: true, NextCheck: at,
	}
	data, err := json.MarshalIndent(dec, "", "  ")
	require.NoError(t, err)
	golden(t, "testdata/decision.json", string(data)+"\n")

	data, err = json.Marshal(deployment.Decision{})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(data))
	for _, a := range []machinist.Action{machinist.Update{}, machinist.Create{}, machinist.Delete{}, machinist.Refresh{}} {
		_, err := json.Marshal(deployment.Decision{Actions: []machinist.Action{a}})
		require.NoError(t, err)
	}
}
