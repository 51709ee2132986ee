// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestScaleDown_NamesAndReplicas_AreOneWrite(t *testing.T) {
	d := rolling(5, 1, 0)
	d.ResourceVersion = "1"
	before := d.DeepCopy()
	next, err := deployment.ScaleDown(d, []string{"m2", "m4", "m2"}, rollNow)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(before, d))
	require.Equal(t, int32(3), next.Spec.Replicas)
	require.Equal(t, "m2~2026-03-01T12:00:00Z,m4~2026-03-01T12:00:00Z", next.Annotations[namesKey])
	require.Equal(t, "2026-03-01T12:00:00Z", next.Annotations[scaledKey])
	require.Equal(t, "1", next.ResourceVersion, "the write fails if the deployment has changed")

	again, err := deployment.ScaleDown(next, []string{"m4"}, rollNow.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(next, again), "asking twice is asking once")

	more, err := deployment.ScaleDown(next, []string{"m4", "m5"}, rollNow.Add(-time.Hour))
	require.NoError(t, err)
	require.Equal(t, int32(2), more.Spec.Replicas)
	require.Equal(t, "2026-03-01T12:00:00Z", more.Annotations[scaledKey], "the time of the last change does not go back")
}

func TestScaleDown_InvalidNames_Error(t *testing.T) {
	for _, names := range [][]string{{""}, {"a,b"}, {"a~b"}, {"a", "b"}} {
		next, err := deployment.ScaleDown(rolling(1, 1, 0), names, rollNow)
		require.ErrorIs(t, err, deployment.ErrScaleDown, "%q", names)
		require.Nil(t, next)
	}
	_, err := deployment.ScaleDown(nil, nil, rollNow)
	require.ErrorIs(t, err, deployment.ErrScaleDown)
}

func TestNamed_Machines_AreMarkedAndFinishedNamesForgotten(t *testing.T) {
	s := newScenario("rolling 4 scaled; new 4: a.early b.failed c.leaving d")
	foreign, orphan := s.of("d").DeepCopy(), s.of("d").DeepCopy()
	foreign.Name, foreign.UID, foreign.OwnerReferences[0].UID = "foreign", "foreign", "another set"
	orphan.Name, orphan.UID, orphan.OwnerReferences = "orphan", "orphan", nil
	s.in.Machines = append(s.in.Machines, foreign, orphan, nil)
	s.of("a").Annotations[prioKey] = "7"
	s.in.Deployment.Annotations[namesKey] = "a,b,c,foreign,orphan,none,d~?"
	dec := s.decide()
	require.Equal(t, "a~"+ago+",orphan~"+ago, decided.Writes[*v1alpha1.MachineDeployment](dec.Actions)[0].Annotations[namesKey])
	marked := decided.Writes[*v1alpha1.Machine](dec.Actions)
	require.Len(t, marked, 1)
	require.Equal(t, map[string]string{prioKey: "1", markKey: ago, deployment.NamedAnnotation: "7"}, marked[0].Annotations)
	for _, text := range []string{
		"b: NotRemoved: it is named for deletion and has failed", `md: NotRemoved: "d~?" in`,
		"foreign: NotRemoved: it is named for deletion, but this deployment does not own it", "orphan: NotRemoved: it is named for deletion, but this deployment does not own it",
	} {
		require.Contains(t, dec.String(), text)
	}
	require.NotContains(t, dec.String(), "none")
}

func TestNamed_MarksOfAMachine(t *testing.T) {
	type marks map[string]string
	own := func(before string, others marks) marks {
		others[deployment.NamedAnnotation] = before
		return others
	}
	for name, c := range map[string]struct {
		named  bool
		phase  v1alpha1.MachinePhase
		before marks
		after  marks // nil: it is not written
	}{
		"the first mark stays, and the priority of before": {true, "", own("7", marks{prioKey: "9", markKey: ago}), own("7", marks{prioKey: "1", markKey: ago})},
		"what is marked is not written again":              {true, "", own("", marks{prioKey: "1", markKey: ago}), nil},
		"a name that is withdrawn":                         {false, "", own("", marks{prioKey: "1", markKey: ago}), marks{}},
		"a priority of before comes back":                  {false, "", own("3", marks{prioKey: "1", markKey: ago}), marks{prioKey: "3"}},
		"a priority that was written meanwhile stays":      {false, "", own("3", marks{prioKey: "7", markKey: ago}), marks{prioKey: "7"}},
		"marks of others stay":                             {false, "", marks{prioKey: "1", markKey: ago}, nil},
		"a machine that has failed keeps them":             {false, v1alpha1.MachineFailed, own("", marks{prioKey: "1", markKey: ago}), nil},
		"a machine that is leaving keeps them":             {false, v1alpha1.MachineTerminating, own("", marks{prioKey: "1", markKey: ago}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("rolling 2; new 2: a b")
			s.of("a").Annotations = c.before
			if c.phase != "" {
				s.of("a").Status.CurrentStatus.Phase = c.phase
			}
			if c.named {
				s.in.Deployment.Annotations = map[string]string{namesKey: "a~" + ago, scaledKey: "2026-01-01T00:00:00Z"}
			}
			var after marks
			for _, m := range decided.Writes[*v1alpha1.Machine](s.decide().Actions) {
				after = m.Annotations
			}
			require.Equal(t, c.after, after)
		})
	}
}

// scaleDown has an autoscaler take a machine.
func (r *rollout) scaleDown(names ...string) {
	next, err := deployment.ScaleDown(r.Deployment(), names, r.Now())
	require.NoError(r.t, err)
	r.edit(func(d *v1alpha1.MachineDeployment) { *d = *next })
}

// ofFive has machines that take an hour to leave.
func ofFive(t *testing.T) *rollout {
	return newRollout(t, rolling(5, 1, 0), deploymenttest.Model{Leave: func(*v1alpha1.Machine) time.Duration { return time.Hour }})
}

func TestScaleDown_TerminatingMachine_CountsOnce(t *testing.T) {
	r := ofFive(t)
	name := r.Machines()[0].Name
	r.scaleDown(name)
	r.At(r.Now().Add(30*time.Minute), func(*deploymenttest.World) {
		require.NotNil(t, r.Machine(name).DeletionTimestamp)
		require.NotContains(t, r.Deployment().Annotations, namesKey, "its name is done with")
		r.scaleDown(name)
	})
	r.Run(5 * time.Hour)
	require.EqualValues(t, 4, r.Deployment().Spec.Replicas)
	require.Len(t, r.Machines(), 4)
	require.NotContains(t, r.Deployment().Annotations, deployment.CountedAnnotation, "it is forgotten when it is gone")
}

func TestScaleDown_WithdrawnName_CountsAgain(t *testing.T) {
	r := ofFive(t)
	name := r.Machines()[0].Name
	r.scaleDown(name)
	r.edit(func(d *v1alpha1.MachineDeployment) {
		d.Spec.Replicas++
		delete(d.Annotations, namesKey)
	})
	r.Run(5 * time.Hour)
	require.Len(t, r.Machines(), 5)
	require.NotContains(t, r.Deployment().Annotations, deployment.CountedAnnotation)
	r.scaleDown(name)
	r.Run(5 * time.Hour)
	require.Len(t, r.Machines(), 4)
	require.Nil(t, r.Machine(name))
}

func FuzzRemovals(f *testing.F) {
	f.Add("a~2026-02-01T00:00:00Z,b", "2026-02-01T00:00:00Z")
	f.Add("~,~~,,a~x~y", "?")
	f.Fuzz(func(t *testing.T, text, scaled string) {
		s := newScenario("rolling 2; new 2: a b")
		s.in.Deployment.Annotations = map[string]string{namesKey: text, scaledKey: scaled}
		for pass := range 2 {
			for _, next := range decided.Writes[*v1alpha1.MachineDeployment](s.decide().Actions) {
				require.True(t, pass == 0 || next.Annotations[namesKey] == s.in.Deployment.Annotations[namesKey], "what is left is stable")
				s.in.Deployment = next
			}
		}
	})
}

func TestRetryNow_Deployment_PassesItOnToTheMachinesThatWait(t *testing.T) {
	s := newScenario("rolling 2 scaled; new 2: a b")
	s.of("a").Status.Conditions = append(s.of("a").Status.Conditions, corev1.NodeCondition{Type: v1alpha1.MachineWaiting, Status: corev1.ConditionTrue})
	s.in.Deployment.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: "x"}
	dec := s.decide()
	marked := decided.Writes[*v1alpha1.Machine](dec.Actions)
	require.Len(t, marked, 1)
	require.Equal(t, "a", marked[0].Name)
	require.Equal(t, "x", marked[0].Annotations[v1alpha1.RetryNowAnnotation])
	require.NotContains(t, decided.Writes[*v1alpha1.MachineDeployment](dec.Actions)[0].Annotations, v1alpha1.RetryNowAnnotation)
}
