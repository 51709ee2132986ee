// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	rolledBackTo = "Normal DeploymentRollback Rolled back deployment \"md\" to revision "
	unchanged    = "Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment \"md\""
	notFound     = "Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to."
)

func TestRollback_Revision_TemplateAndEvent(t *testing.T) {
	for scene, want := range map[string]struct{ class, event string }{
		"rolling 3 +1 want=c rollback=1; a 3/3/3; b 0; c 0":             {"a", rolledBackTo + "1"},
		"rolling 3 +1 want=c rollback=0; a 3/3/3; b 0; c 0":             {"b", rolledBackTo + "2"},
		"rolling 3 +1 want=c rollback=3; a 3/3/3; b 0; c 0":             {"c", unchanged},
		"rolling 3 +1 want=c rollback=7; a 3/3/3; b 0; c 0":             {"c", notFound},
		"rolling 3 +1 want=c rollback=-1; a 3/3/3; b 0; c 0":            {"c", notFound},
		"rolling 3 +1 want=unwanted rollback=1; a 3/3/3; b 0; c 0":      {"a", rolledBackTo + "1"},
		"rolling 3 +1 want=c rollback=2; a 3/3/3 revision=2; b 0; c 0":  {"a", rolledBackTo + "2"},
		"inplace 3 +1 want=c rollback=1; a 3/3/3; b 0; c 0 discouraged": {"a", rolledBackTo + "1"},
	} {
		t.Run(scene, func(t *testing.T) {
			s := newScenario(scene)
			dec := s.decide()
			require.Empty(t, creates(dec), "a template that is given up gets no set")
			var events string
			next := s.in.Deployment
			for _, u := range actions[machinist.Update](dec) {
				d, ok := u.Object.(*v1alpha1.MachineDeployment)
				if !ok {
					continue
				}
				next = d
				require.Nil(t, next.Spec.RollbackTo)
				require.NotContains(t, next.Spec.Template.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
				if u.Report != nil {
					events += u.Report.String()
				}
			}
			require.Equal(t, want.event, events)
			require.Equal(t, want.class, next.Spec.Template.Spec.Class.Name)
			if want.event == notFound {
				require.Contains(t, dec.String(), "NoRollback: Unable to find the revision to rollback to.")
			}
			require.Equal(t, machinist.Reason("RollingBack"), dec.Reason)
			s.in.Deployment = next
			for _, u := range actions[machinist.Update](s.decide()) {
				_, ok := u.Object.(*v1alpha1.MachineDeployment)
				require.False(t, ok && u.Report != nil, "it is reported once")
			}
		})
	}
}

// TestRollback_Annotations_AreThoseOfTheRevision asserts that what belongs to one object alone
// stays, and so does the time of the last change of the replicas, which a roll-back does not
// change.
func TestRollback_Annotations_AreThoseOfTheRevision(t *testing.T) {
	s := newScenario("rolling 3 +1 want=b rollback=1 revision=2 scaled; a 3/3/3 scaled; b 0 scaled")
	own := map[string]string{v1alpha1.RevisionAnnotation: "2", scaledKey: "2026-02-01T00:00:00Z", v1alpha1.UnfreezeAnnotation: "1"}
	maps.Copy(s.in.Deployment.Annotations, own)
	s.in.Deployment.Annotations["cause"], s.in.Deployment.Annotations["only"] = "second", "here"
	s.in.Sets[0].Annotations["cause"], s.in.Sets[0].Annotations[v1alpha1.PreferNoScheduleKey] = "first", "True"
	s.in.Sets[0].Annotations["machinist.dev/delete-first"] = "m"
	own["cause"] = "first"
	require.Equal(t, own, writes[*v1alpha1.MachineDeployment](s.decide())[0].Annotations)
}

func TestRollback_Requested_NotComplete(t *testing.T) {
	s := newScenario("rolling 3 +1 want=c rollback=1; a 3/3/3; b 0; c 0")
	d := s.in.Deployment
	d.Generation, d.Status.ObservedGeneration = 8, 7
	up := v1alpha1.MachineDeploymentStatus{ObservedGeneration: 8, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	require.False(t, deployment.Complete(d, up))
	require.EqualValues(t, 7, s.decide().Status.ObservedGeneration, "should the deployment not be written, its status must not say that the request was taken in")
	d.Spec.RollbackTo = nil
	require.True(t, deployment.Complete(d, up))
}

func TestRollback_OldSetIsNewAgain_GrowsAndIsUnmarked(t *testing.T) {
	check(t, []scenarioCase{
		{"by a roll-back its marks go", "rolling 3 +1 taint want=c rollback=1; a 3 fixed discouraged: x.tainted y.tainted z.tainted; c 0", "a 3; c 0; welcomes a; untaints x y z", ""},
		{"it may grow as soon as it is the new one", "rolling 3 +1 want=a; a 3/3/3 fixed; b 1/1/0", "a 3; b 1>0 without b-0; frees a", ""},
		{"whatever else is going on", "rolling 3 +1 want=a paused; a 3/3/3 fixed; b 1/1/0", "a 3; b 1>0 without b-0; frees a", ""},
	})
}
