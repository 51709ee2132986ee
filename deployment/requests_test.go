// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func worldView(r *rollout) deployment.Observation {
	return deployment.Observation{Deployment: r.Deployment(), Sets: r.Sets(), Machines: r.Machines(), Complete: true}
}

// replacing is a world with a machine that is to be replaced.
func replacing(t *testing.T, surge int32) (r *rollout, name string) {
	t.Helper()
	r = newRollout(t, rolling(5, surge, 1), deploymenttest.Model{})
	return r, r.Machines()[2].Name
}

// replaceOnce carries out one step of a replacement.
func replaceOnce(t *testing.T, r *rollout, name string) deployment.Decision {
	t.Helper()
	d, err := deployment.Replace(worldView(r), name, r.Now())
	require.NoError(t, err)
	require.False(t, d.Reason != deployment.ReasonComplete && len(d.Actions)+len(d.Holds) == 0, "it says what it waits for")
	for _, a := range d.Actions {
		switch a := a.(type) {
		case machinist.Update:
			r.store(a.Object.(*v1alpha1.MachineDeployment))
		case machinist.Delete:
			require.NoError(t, r.DeleteMachine(a.Object.GetName()))
		default:
			require.Failf(t, "unknown action", "%s", a)
		}
	}
	return d
}

// store writes spec and annotations of a deployment.
func (r *rollout) store(next *v1alpha1.MachineDeployment) {
	next = next.DeepCopy()
	r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec, d.Annotations = next.Spec, next.Annotations })
}

func TestReplace_Surge_NeverFewerAvailable(t *testing.T) {
	for _, killed := range []int{-1, 0, 1, 2, 3} { // the program ends after so many steps, and is started again later
		r, name := replacing(t, 2)
		for step := 0; replaceOnce(t, r, name).Reason != deployment.ReasonComplete; step++ {
			if step == killed {
				r.Run(10 * time.Hour)
			}
			for range 3 {
				r.Step()
			}
			require.Less(t, step, 50)
		}
		require.Equal(t, 5, r.least)
		require.LessOrEqual(t, r.most, 7)
		r.rest()
		require.Nil(t, r.Machine(name))
		require.Len(t, r.Machines(), 5)
		require.EqualValues(t, 5, r.Deployment().Spec.Replicas)
		require.NotContains(t, r.Deployment().Annotations, "machinist.dev/replacing")
	}
}

func TestReplace_NoSurge_DeletesAndTheSetCreates(t *testing.T) {
	w, name := replacing(t, 0)
	d := replaceOnce(t, w, name)
	require.Equal(t, "delete machine "+name+": its set creates another one: the strategy of its deployment has no surge", d.Actions[0].String())
	w.Step()
	require.Equal(t, "it is being deleted", replaceOnce(t, w, name).Message)
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_NoCapacity_StopTakesTheReplicaBack(t *testing.T) {
	var r *rollout
	full := 5
	r = newRollout(t, rolling(5, 1, 1), deploymenttest.Model{Create: limit(&r, &full)})
	name := r.Machines()[2].Name
	replaceOnce(t, r, name)
	r.Run(time.Hour)
	require.Equal(t, "4 of 5 other machines available", replaceOnce(t, r, name).Message)
	next, stopped := deployment.StopReplacing(r.Deployment())
	require.True(t, stopped)
	r.store(next)
	r.rest()
	require.NotNil(t, r.Machine(name))
	require.Len(t, r.Machines(), 5)
	require.Equal(t, 5, r.least)
	for _, d := range []*v1alpha1.MachineDeployment{r.Deployment(), nil} {
		_, stopped = deployment.StopReplacing(d)
		require.False(t, stopped)
	}
}

func TestReplace_DeletedMeanwhile_TakesTheReplicaBack(t *testing.T) {
	w, name := replacing(t, 1)
	replaceOnce(t, w, name)
	require.NoError(t, w.DeleteMachine(name))
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "1 replica less, because machine "+name+" is deleted")
	w.Run(time.Hour)
	require.Equal(t, deployment.ReasonComplete, replaceOnce(t, w, name).Reason)
	require.Len(t, w.Machines(), 5)
}

func TestReplace_ReplicaTakenBackByAnother_BeginsAgain(t *testing.T) {
	w, name := replacing(t, 1)
	replaceOnce(t, w, name)
	w.scale(5)
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "another client has taken back the replica")
	require.EqualValues(t, 5, w.Deployment().Spec.Replicas, "and no other one")
	require.Contains(t, replaceOnce(t, w, name).Actions[0].String(), "from 5 to 6 replicas")
}

func TestReplace_Impossible_Error(t *testing.T) {
	w, name := replacing(t, 1)
	other := w.Machines()[1].Name
	with := func(change func(*v1alpha1.MachineDeployment)) deployment.Observation {
		in := worldView(w)
		in.Deployment = in.Deployment.DeepCopy()
		change(in.Deployment)
		return in
	}
	foreign := worldView(w)
	foreign.Sets = nil
	for says, in := range map[string]deployment.Observation{
		"no deployment": {}, "does not own it": foreign,
		"wants no machines": with(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 0 }),
		"strategy":          with(func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.Type = "Hope" }),
		"machine " + other + " of machinedeployment": with(func(d *v1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{"machinist.dev/replacing": other + "~5"}
		}),
	} {
		_, err := deployment.Replace(in, name, w.Now())
		require.ErrorContains(t, err, says)
	}
	partial := worldView(w)
	partial.Machines, partial.Complete = nil, false
	d, err := deployment.Replace(partial, name, w.Now())
	require.NoError(t, err)
	require.Empty(t, d.Actions)
	require.Len(t, d.Holds, 1)
}

// rolledThrice is a world with the revisions 1, 2 and 3.
func rolledThrice(t *testing.T) *rollout {
	t.Helper()
	r := newRollout(t, rolling(5, 1, 1), deploymenttest.Model{})
	for _, class := range []string{"medium", "large"} {
		r.class(class)
		r.complete()
	}
	return r
}

func TestRollBack_Revision_IsRestored(t *testing.T) {
	for to, reached := range map[int64]string{0: "medium", 1: "c1", 2: "medium"} {
		r := rolledThrice(t)
		next, err := deployment.RollBack(r.Deployment(), r.Sets(), to)
		require.NoError(t, err)
		r.edit(func(d *v1alpha1.MachineDeployment) { d.Spec = next.Spec })
		r.complete()
		require.Equal(t, reached, r.Deployment().Spec.Template.Spec.Class.Name)
	}
}

func TestRollBack_Impossible_Error(t *testing.T) {
	w := rolledThrice(t)
	paused := w.Deployment().DeepCopy()
	paused.Spec.Paused = true
	for _, c := range []struct {
		d    *v1alpha1.MachineDeployment
		sets []*v1alpha1.MachineSet
		to   int64
		says string
	}{
		{nil, nil, 0, "no deployment"},
		{paused, w.Sets(), 0, "is paused"},
		{w.Deployment(), w.Sets(), -1, "revision -1 is negative"},
		{w.Deployment(), w.Sets(), 7, "has no revision 7, but 1, 2, 3"},
		{w.Deployment(), w.Sets(), 3, "has the template of revision 3 already"},
		{w.Deployment(), nil, 0, "has no earlier revision"},
	} {
		_, err := deployment.RollBack(c.d, c.sets, c.to)
		require.ErrorContains(t, err, c.says)
	}
}

func TestRevisions_Sets_InOrderAndCurrent(t *testing.T) {
	w := rolledThrice(t)
	odd := w.Sets()[0].DeepCopy()
	odd.Annotations[v1alpha1.RevisionAnnotation] = "x"
	all := deployment.Revisions(w.Deployment(), append(w.Sets(), nil, odd))
	require.Len(t, all, 3)
	for i, r := range all {
		require.EqualValues(t, i+1, r.Number)
		require.Equal(t, []string{"c1", "medium", "large"}[i], r.Set.Spec.Template.Spec.Class.Name)
		require.Equal(t, i == 2, r.Current)
	}
}

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
