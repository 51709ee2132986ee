// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

const day = 24 * time.Hour

// settled is a world in which all machines have come up.
func settled(t testing.TB, d *v1alpha1.MachineDeployment, m deploymenttest.Model) *deploymenttest.World {
	t.Helper()
	w, err := deploymenttest.New(d, m)
	require.NoError(t, err)
	_, rest := w.Run(day)
	require.True(t, rest)
	return w
}

func class(name string) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = name }
}

func size(replicas int32, surge string) *v1alpha1.MachineDeployment {
	d := ofThree()
	more := intstr.Parse(surge)
	d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxSurge = replicas, &more
	return d
}

func complete(t testing.TB, w *deploymenttest.World) {
	t.Helper()
	_, rest := w.Run(10 * day)
	require.True(t, rest)
	require.Equal(t, deployment.ReasonComplete, w.Decision().Reason, "%s", w.Decision())
}

// roll plays a rollout of another class to its end.
func roll(t testing.TB, w *deploymenttest.World) {
	t.Helper()
	require.NoError(t, w.Edit(class("large")))
	complete(t, w)
}

func TestNew_Deployment_IsCopiedOrRefused(t *testing.T) {
	invalid := ofThree()
	invalid.Spec.Replicas = -1
	for _, d := range []*v1alpha1.MachineDeployment{nil, {}, invalid} {
		_, err := deploymenttest.New(d, deploymenttest.Model{})
		require.ErrorContains(t, err, "the deployment cannot be simulated: ")
	}
	d := ofThree()
	d.Name, d.Namespace = "", ""
	before := d.DeepCopy()
	w := settled(t, d, deploymenttest.Model{})
	roll(t, w)
	require.Equal(t, before, d)
	for _, made := range []string{w.Deployment().Name, w.Deployment().Namespace, string(w.Deployment().UID)} {
		require.NotEmpty(t, made)
	}
}

func TestWorld_Writes_CheckedAsByAPIServer(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	name := w.Machines()[0].Name
	for what, write := range map[string]func(*v1alpha1.Machine){
		"another version": func(m *v1alpha1.Machine) { m.ResourceVersion = "1" },
		"another UID":     func(m *v1alpha1.Machine) { m.UID = "other" },
	} {
		require.True(t, apierrors.IsConflict(w.EditMachine(name, write)), what)
	}
	for what, err := range map[string]error{
		"delete": w.DeleteMachine("none"), "phase": w.SetPhase("none", v1alpha1.MachineFailed), "vanish": w.Vanish("none"),
		"delete set": w.DeleteSet("none"), "edit set": w.EditSet("none", func(*v1alpha1.MachineSet) {}),
		"edit Node": w.EditNode("none", func(*corev1.Node) {}),
	} {
		require.True(t, apierrors.IsNotFound(err), what)
	}
	before := w.Deployment()
	require.NoError(t, w.Edit(func(*v1alpha1.MachineDeployment) {}))
	require.Equal(t, before.ResourceVersion, w.Deployment().ResourceVersion, "what changes nothing is no write")
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"a": "b"} }))
	require.Equal(t, before.Generation, w.Deployment().Generation)
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.MinReadySeconds = 1 }))
	require.Equal(t, before.Generation+1, w.Deployment().Generation)
	failed := func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed }
	require.NoError(t, w.EditMachine(name, failed))
	require.Equal(t, v1alpha1.MachineRunning, w.Machine(name).Status.CurrentStatus.Phase, "an update leaves the status")

	require.NoError(t, w.DeleteMachine(name))
	require.NotNil(t, w.Machine(name).DeletionTimestamp)
	another := func(m *v1alpha1.Machine) { m.Finalizers = append(m.Finalizers, "another") }
	require.True(t, apierrors.IsForbidden(w.EditMachine(name, another)), "it is being deleted")
	require.NoError(t, w.EditMachine(name, func(m *v1alpha1.Machine) { m.Finalizers = nil }))
	require.Nil(t, w.Machine(name), "it is there until the last finalizer is removed")
	complete(t, w)
	require.Len(t, w.Machines(), 3)
}

func TestWorld_DeploymentDeleted_DeletesEverything(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	require.Len(t, w.Nodes(), 3)
	require.NoError(t, w.Delete())
	_, rest := w.Run(day)
	require.True(t, rest)
	require.Nil(t, w.Deployment())
	require.Empty(t, w.Sets())
	require.Empty(t, w.Machines())
	require.Empty(t, w.Nodes())
	require.True(t, apierrors.IsNotFound(w.Edit(class("large"))))
}

func TestWorld_NoCluster_HasNoNodes(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{NoCluster: true})
	roll(t, w)
	require.Empty(t, w.Nodes())
	for _, m := range w.Machines() {
		require.Equal(t, v1alpha1.MachineAvailable, m.Status.CurrentStatus.Phase)
		require.Nil(t, w.Node(m))
	}
	require.Nil(t, w.Node(nil))
}

func TestWorld_MachineFails_IsReplaced(t *testing.T) {
	for name, harm := range map[string]func(*deploymenttest.World, string) error{
		"failed":   func(w *deploymenttest.World, name string) error { return w.SetPhase(name, v1alpha1.MachineFailed) },
		"deleted":  (*deploymenttest.World).DeleteMachine,
		"vanished": (*deploymenttest.World).Vanish,
	} {
		w := settled(t, ofThree(), deploymenttest.Model{})
		first := w.Machines()[0].Name
		require.NoError(t, harm(w, first))
		complete(t, w)
		require.Nil(t, w.Machine(first), name)
		require.Len(t, w.Machines(), 3, name)
	}
}

func TestWorld_MachineDoesNotJoin_IsReplacedAfterTheTimeout(t *testing.T) {
	first := ""
	w := settled(t, size(1, "1"), deploymenttest.Model{
		CreationTimeout: 20 * time.Minute,
		Join: func(m *v1alpha1.Machine) (time.Duration, bool) {
			if first == "" {
				first = m.Name
			}
			return time.Minute, m.Name != first
		},
	})
	require.Nil(t, w.Machine(first))
	require.Len(t, w.Machines(), 1)
	require.Equal(t, 21*time.Minute, w.Now().Sub(w.Deployment().CreationTimestamp.Time), "it times out, and the other one takes its place")
}

func TestWorld_ProviderFails_Retried(t *testing.T) {
	for code, answer := range map[codes.Code]error{
		codes.ResourceExhausted: status.Error(codes.ResourceExhausted, "no capacity"), codes.Unknown: errors.New("no code"),
	} {
		w := settled(t, ofThree(), deploymenttest.Model{Create: func(*v1alpha1.Machine) error { return answer }})
		for _, m := range w.Machines() {
			require.Equal(t, v1alpha1.MachineCrashLoopBackOff, m.Status.CurrentStatus.Phase)
			require.Equal(t, code.String(), m.Status.LastOperation.ErrorCode)
		}
		require.NotEqual(t, deployment.ReasonComplete, w.Decision().Reason)
		answer = nil
		complete(t, w)
	}
}

// troubled reports whether the model causes any trouble.
func troubled() deploymenttest.Model {
	calls, turns := 0, 0
	return deploymenttest.Model{
		Lag:  func(_ string, k string) int { turns++; return turns % (2 + len(k)%3) },
		Idle: func(string) bool { turns++; return turns%5 == 0 },
		Call: func(_, _, _, _ string) deploymenttest.Outcome {
			if calls++; calls%7 == 0 {
				return deploymenttest.Outcome(1 + calls/7%4)
			}
			return deploymenttest.Done
		},
	}
}

func TestWorld_TwoRuns_AreTheSame(t *testing.T) {
	tell := func() (out []string) {
		model := troubled()
		model.OnWrite = func(c deploymenttest.Change) { out = append(out, fmt.Sprint(c.At, c.By, c.Kind, c.Name)) }
		w := settled(t, size(4, "2"), model)
		require.NoError(t, w.Edit(class("large")))
		for f, ok := w.Step(); ok; f, ok = w.Step() {
			out = append(out, fmt.Sprint(f.At, f.Events, f.Sets, f.Decision, f.Sizes))
		}
		return out
	}
	require.Equal(t, tell(), tell())
}

// TestWorld_OnWrite_CalledForEachWrite asserts that what is watched is what happens, and in its order.
func TestWorld_OnWrite_CalledForEachWrite(t *testing.T) {
	created, gone, plans, setPlans := 0, 0, 0, 0
	model := deploymenttest.Model{}
	version := map[string]string{}
	model.OnWrite = func(c deploymenttest.Change) {
		key, now := c.Kind+"/"+c.Name, ""
		if c.After != nil {
			now = c.After.GetResourceVersion()
		}
		before := ""
		if c.Before != nil {
			before = c.Before.GetResourceVersion()
		}
		require.Equal(t, version[key], before, "%s: a write is missing", key)
		version[key] = now
		switch {
		case c.Kind == v1alpha1.MachineKind && before == "":
			created++
		case c.Kind == v1alpha1.MachineKind && now == "":
			gone++
		}
	}
	model.OnDecision = func(in deployment.Observation, _ deployment.Decision) { plans++; require.NotNil(t, in.Deployment) }
	model.OnSetDecision = func(in machineset.Observation, _ machineset.Decision) { setPlans++; require.NotNil(t, in.Set) }
	w := settled(t, ofThree(), model)
	roll(t, w)
	require.Equal(t, 6, created)
	require.Equal(t, 3, gone)
	require.Positive(t, plans)
	require.Positive(t, setPlans)
}

func TestWorld_Wait_OnlyMovesForward(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{Start: time.Unix(1000, 0)})
	now := w.Now()
	require.True(t, now.After(time.Unix(1000, 0)))
	w.Wait(time.Hour)
	w.Wait(-time.Hour)
	require.Equal(t, now.Add(time.Hour), w.Now())
	require.NoError(t, w.Edit(class("large")))
	f, ok := w.Step()
	require.True(t, ok)
	require.Equal(t, now.Add(time.Hour), f.At)
}

func TestWorld_At_CalledAtItsTime(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	var told []string
	begin := w.Now()
	tell := func(text string) func(*deploymenttest.World) {
		return func(w *deploymenttest.World) { told = append(told, fmt.Sprint(text, w.Now().Sub(begin))) }
	}
	w.At(begin.Add(5*time.Hour), tell("third "))
	w.At(begin.Add(time.Minute), tell("second "))
	w.At(begin.Add(-time.Minute), tell("first "))
	w.At(begin, nil)
	_, rest := w.Run(day)
	require.True(t, rest)
	require.Equal(t, []string{"first 0s", "second 1m0s", "third 5h0m0s"}, told)
}

func TestWorld_Run_EndsAtItsLimit(t *testing.T) {
	w, err := deploymenttest.New(ofThree(), deploymenttest.Model{})
	require.NoError(t, err)
	_, rest := w.Run(time.Minute)
	require.False(t, rest)
	require.Equal(t, time.Minute, w.Now().Sub(w.Deployment().CreationTimestamp.Time))
	require.NotEqual(t, deployment.ReasonComplete, w.Decision().Reason)
}

// BenchmarkRollout rolls 5,000 machines.
func BenchmarkRollout(b *testing.B) {
	for _, surge := range []string{"10%", "25%"} {
		b.Run("5000 machines, surge "+surge, func(b *testing.B) {
			for b.Loop() {
				w := settled(b, size(5000, surge), deploymenttest.Model{})
				roll(b, w)
			}
		})
	}
}

func TestWorld_SetDeleted_RecreatedAfterItsMachines(t *testing.T) {
	w := settled(t, ofThree(), deploymenttest.Model{})
	set, machines := w.Sets()[0], w.Machines()
	require.NoError(t, w.DeleteSet(set.Name))
	require.NotNil(t, w.Sets()[0].DeletionTimestamp)
	complete(t, w)
	require.Len(t, w.Sets(), 1)
	require.NotEqual(t, set.UID, w.Sets()[0].UID)
	require.Len(t, w.Machines(), len(machines))
	for _, m := range machines {
		require.Nil(t, w.Machine(m.Name))
	}
}

// TestWorld_TerminatingWithoutDeletion_RolloutEnds asserts that such a machine, as a restored backup
// has it, does not take the place of the surge for ever.
func TestWorld_TerminatingWithoutDeletion_RolloutEnds(t *testing.T) {
	for name, c := range map[string]struct {
		joined bool
		wait   time.Duration
	}{
		"with a Node": {true, 0}, "without a Node": {false, time.Second}, "after its timeout": {false, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, ofThree(), deploymenttest.Model{CreationTimeout: 20 * time.Minute, Join: slow})
			if !c.joined { // a machine that is created now
				require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 }))
				w.Step()
				w.Step()
			}
			ghost := w.Machines()[len(w.Machines())-1].Name
			require.NoError(t, w.SetPhase(ghost, v1alpha1.MachineTerminating))
			w.Wait(c.wait)
			roll(t, w)
			require.Nil(t, w.Machine(ghost))
		})
	}
}

// TestWorld_CreationTimeoutPassesInAnotherPhase_FailsWhenResumed has a world that was at rest while a machine was
// Unknown. Its creation is resumed, it never joins, and it is replaced.
func TestWorld_CreationTimeoutPassesInAnotherPhase_FailsWhenResumed(t *testing.T) {
	stuck := ""
	join := func(m *v1alpha1.Machine) (time.Duration, bool) { return time.Minute, m.Name != stuck }
	w := settled(t, ofThree(), deploymenttest.Model{CreationTimeout: 20 * time.Minute, Join: join})
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 }))
	w.Step()
	w.Step()
	stuck = w.Machines()[3].Name
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachineTerminating} {
		require.NoError(t, w.SetPhase(stuck, phase))
		w.Run(24 * time.Hour)
	}
	require.Nil(t, w.Machine(stuck))
	require.True(t, deployment.Complete(w.Deployment(), w.Deployment().Status))
}

// TestWorld_OnlyStatusStored_SameDecisionAgain asserts that the world spares the decision
// after one that has only stored a status.
func TestWorld_OnlyStatusStored_SameDecisionAgain(t *testing.T) {
	for name, d := range played() {
		t.Run(name, func(t *testing.T) {
			var w *deploymenttest.World
			spared := 0
			m := deploymenttest.Model{Join: slow}
			m.OnDecision = func(in deployment.Observation, d deployment.Decision) {
				if w == nil || !d.WriteStatus || len(d.Actions) > 0 || slices.ContainsFunc(d.Holds, timed) {
					return
				}
				next := *in.Deployment
				next.Status = d.Status
				in.Deployment = &next
				again := deployment.Decide(in, m.Policy, w.Now())
				require.False(t, again.WriteStatus)
				d.WriteStatus, d.Events = false, nil
				require.Equal(t, d, again)
				spared++
			}
			w = settled(t, d, m)
			require.NoError(t, w.Edit(class("large")))
			w.Run(3 * time.Minute)
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas++ }))
			complete(t, w)
			require.Positive(t, spared)
		})
	}
}

func TestWorld_StatusStored_NoDecisionAgain(t *testing.T) {
	var w *deploymenttest.World
	var stored []*v1alpha1.Machine // seen by the last decision, if that has only stored a status
	m := deploymenttest.Model{}
	m.OnDecision = func(in deployment.Observation, d deployment.Decision) {
		if w == nil {
			return
		}
		seen := slices.Clone(in.Machines)
		require.False(t, stored != nil && slices.Equal(stored, seen), "at %s", w.Now())
		if stored = nil; len(d.Actions) == 0 && d.WriteStatus {
			stored = seen
		}
	}
	w = settled(t, ofThree(), m)
	roll(t, w)
}

func TestWorld_Sizes_MatchMachines(t *testing.T) {
	for name, d := range played() {
		t.Run(name, func(t *testing.T) {
			w := settled(t, d, deploymenttest.Model{Join: slow})
			require.NoError(t, w.Edit(class("large")))
			for range 40 {
				f, moving := w.Step()
				if !moving {
					return
				}
				require.Empty(t, cmp.Diff(counted(w), f.Sizes))
				w.Wait(31 * time.Second)
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "half a minute later")
				for _, m := range w.Machines()[:min(1, len(w.Machines()))] {
					require.NoError(t, w.Vanish(m.Name))
				}
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "without one machine")
				require.NoError(t, w.EditSet(w.Sets()[0].Name, func(s *v1alpha1.MachineSet) { s.Spec.Template.Spec.Class.Name += "x" }))
				require.Empty(t, cmp.Diff(counted(w), w.Sizes()), "with another set")
			}
		})
	}
}

// played are deployments of three machines.
func played() map[string]*v1alpha1.MachineDeployment {
	settling, recreated, inPlace := ofThree(), ofThree(), ofThree()
	settling.Spec.MinReadySeconds = 30
	recreated.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	inPlace.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: ofThree().Spec.Strategy.RollingUpdate.UpdateConfiguration, OrchestrationType: v1alpha1.OrchestrationTypeAuto,
		},
	}
	return map[string]*v1alpha1.MachineDeployment{"rolling": ofThree(), "settling": settling, "recreated": recreated, "in place": inPlace}
}

// slow has machines join at different times.
func slow(m *v1alpha1.Machine) (time.Duration, bool) {
	return time.Duration(m.Name[len(m.Name)-1]-'0'+1) * 10 * time.Second, true
}

func timed(h machinist.Hold) bool { return !h.Until.IsZero() }

// counted is what sizes have to be.
func counted(w *deploymenttest.World) []deploymenttest.Size {
	newSet, _ := rollout.FindSets(w.Deployment(), w.Sets())
	var sizes []deploymenttest.Size
	for _, s := range w.Sets() {
		machines, phases := w.MachinesOf(s), map[v1alpha1.MachinePhase]int{}
		for _, m := range machines {
			if members.Leaving(m) {
				phases[v1alpha1.MachineTerminating]++
			} else {
				phases[m.Status.CurrentStatus.Phase]++
			}
		}
		sizes = append(sizes, deploymenttest.Size{
			Name: s.Name, Class: s.Spec.Template.Spec.Class.Name, New: s == newSet, Spec: s.Spec.Replicas,
			Counts: members.Count(s, machines, nil, w.Now()), Phases: phases,
		})
	}
	return sizes
}

// observed is what a world shows.
func observed(w *deploymenttest.World) deployment.Observation {
	in := deployment.Observation{Deployment: w.Deployment(), Sets: w.Sets(), Machines: w.Machines(), Complete: true, Nodes: map[string]*corev1.Node{}}
	for _, n := range w.Nodes() {
		in.Nodes[n.Name] = n
	}
	return in
}

func TestRestore_EachMomentOfARollout_EndsAsTheWorldDoes(t *testing.T) {
	for moment := time.Duration(0); moment < 9*time.Minute; moment += 20 * time.Second {
		w := settled(t, size(3, "1"), deploymenttest.Model{})
		require.NoError(t, w.Edit(class("large")))
		w.Run(moment)
		restored, err := deploymenttest.Restore(observed(w), deploymenttest.Model{Start: w.Now()})
		require.NoError(t, err)
		complete(t, w)
		complete(t, restored)
		require.WithinDuration(t, w.Now(), restored.Now(), time.Second, "restored after %s", moment)
		require.Len(t, restored.Machines(), 3)
		for _, m := range restored.Machines() {
			require.Equal(t, "large", m.Spec.Class.Name)
		}
	}
}

func TestRestore_NamesAndTimesOfAnotherCluster_GoOn(t *testing.T) {
	w := settled(t, size(3, "1"), deploymenttest.Model{})
	in := observed(w)
	for i, m := range in.Machines {
		m = m.DeepCopy()
		node := in.Nodes[m.Labels[v1alpha1.NodeLabelKey]]
		m.ResourceVersion, m.Labels[v1alpha1.NodeLabelKey] = "4711", "ip-10-0-0-"+m.Name
		in.Machines[i], in.Nodes[m.Labels[v1alpha1.NodeLabelKey]] = m, node
	}
	pending, unknown, leaving := in.Machines[0], in.Machines[1], in.Machines[2]
	pending.Status.CurrentStatus.Phase = v1alpha1.MachinePending
	pending.CreationTimestamp = metav1.NewTime(w.Now().Add(-time.Hour))
	in.Nodes[pending.Labels[v1alpha1.NodeLabelKey]] = nil
	unknown.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineUnknown, LastUpdateTime: metav1.NewTime(w.Now())}
	leaving.DeletionTimestamp = &metav1.Time{Time: w.Now()}
	restored, err := deploymenttest.Restore(in, deploymenttest.Model{Start: w.Now(), HealthTimeout: 10 * time.Minute, CreationTimeout: 2 * time.Hour})
	require.NoError(t, err)
	restored.Run(time.Minute)
	require.Nil(t, restored.Machine(leaving.Name))
	require.Equal(t, v1alpha1.MachineRunning, restored.Machine(pending.Name).Status.CurrentStatus.Phase)
	restored.Run(10 * time.Minute)
	require.Nil(t, restored.Machine(unknown.Name), "it failed and was replaced")
	complete(t, restored)
	require.Len(t, restored.Machines(), 3)
}

func TestRestore_NothingToRestore_Error(t *testing.T) {
	w := settled(t, size(3, "1"), deploymenttest.Model{})
	partial, deleted, invalid := observed(w), observed(w), observed(w)
	partial.Complete = false
	deleted.Deployment, invalid.Deployment = deleted.Deployment.DeepCopy(), deleted.Deployment.DeepCopy()
	deleted.Deployment.DeletionTimestamp = &metav1.Time{Time: w.Now()}
	invalid.Deployment.Spec.Replicas = -1
	for _, in := range []deployment.Observation{{}, {Complete: true}, partial, deleted, invalid} {
		_, err := deploymenttest.Restore(in, deploymenttest.Model{})
		require.ErrorContains(t, err, "cannot be simulated")
	}
}

func TestRestore_MachineDeletedDuringTheChange_IsReplaced(t *testing.T) {
	w := settled(t, size(5, "2"), deploymenttest.Model{})
	restored, err := deploymenttest.Restore(observed(w), deploymenttest.Model{Start: w.Now()})
	require.NoError(t, err)
	require.NoError(t, restored.Edit(class("large")))
	require.NoError(t, restored.DeleteMachine(restored.Machines()[0].Name))
	complete(t, restored)
	require.Len(t, restored.Machines(), 5)
}
