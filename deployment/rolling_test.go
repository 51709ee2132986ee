// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// rollEnds runs a world until its roll-out is complete.
func rollEnds(t *testing.T, w *rollWorld) {
	t.Helper()
	w.run(200)
	require.Equal(t, deployment.ReasonComplete, w.last.Reason, w.log.String())
	require.Len(t, w.all, int(w.d.Spec.Replicas))
	for _, m := range w.all {
		require.Equal(t, w.d.Spec.Template.Spec.Class.Name, m.Spec.Class.Name)
	}
}

func TestARollingUpdateKeepsItsBounds(t *testing.T) {
	bounds := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("25%"), intstr.FromString("300%")}
	for _, replicas := range []int32{0, 1, 3, 10} {
		for _, surge := range bounds {
			for _, unavailable := range bounds {
				d := rollDeployment(replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType, surge, unavailable)
				b, err := deployment.Normalise(d)
				require.NoError(t, err)
				w := newRollWorld(t, d)
				w.template("c2")
				rollEnds(t, w)
				require.LessOrEqual(t, w.most, int(b.Desired+b.Surge), w.log.String())
				require.GreaterOrEqual(t, w.least, int(b.Desired-b.Unavailable), w.log.String())
			}
		}
	}
}

func TestR2ARolloutWhoseNewMachinesNeverBecomeAvailableStops(t *testing.T) {
	d := rolling(10, 3, 2)
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	w := newRollWorld(t, d)
	grow := w.grow
	w.grow = func(m *v1alpha1.Machine) {
		if m.Spec.Class.Name != "bad" {
			grow(m)
			return
		}
		m.Status.CurrentStatus.Phase = v1alpha1.MachineCrashLoopBackOff
		m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: "Internal", Description: "no such image"}
	}
	w.template("bad")
	w.run(60)
	for range 60 {
		w.step() // the deadline passes
	}
	require.Equal(t, 8, w.least, "never below the floor")
	require.Equal(t, 13, w.most)
	require.Empty(t, w.last.Actions)
	require.Contains(t, rollReasons(w.last), deployment.ReasonNewUnavailable)
	require.Contains(t, rollReasons(w.last), deployment.ReasonProgressDeadline)
	require.Contains(t, w.last.String(), "bad-013: NewMachinesUnavailable: CrashLoopBackOff, Create failed with Internal: no such image")

	w.template("good") // the bad ones are not in the way of the next generation
	rollEnds(t, w)
	require.Equal(t, 8, w.least)
	require.Equal(t, 13, w.most)
}

func TestR2OldMachinesThatAreAllBrokenDoNotBlockARollout(t *testing.T) {
	for _, bounds := range [][2]int32{{1, 0}, {0, 1}, {2, 2}} {
		w := newRollWorld(t, rolling(4, bounds[0], bounds[1]))
		for _, m := range w.all {
			w.become(m, v1alpha1.MachineUnknown)
		}
		grow := w.grow
		w.grow = func(m *v1alpha1.Machine) {
			if m.Spec.Class.Name != "c1" {
				grow(m)
			}
		}
		w.template("c2")
		rollEnds(t, w)
		require.LessOrEqual(t, w.most, int(4+bounds[0]))
	}
}

func TestR2OldMachinesThatAreBrokenGoFirstAndCostNoAvailability(t *testing.T) {
	w := newRollWorld(t, rolling(5, 1, 0))
	sick := w.all[3]
	w.become(sick, v1alpha1.MachineUnknown)
	grow := w.grow
	w.grow = func(m *v1alpha1.Machine) {
		if m != sick {
			grow(m)
		}
	}
	w.least = 4
	w.template("c2")
	rollEnds(t, w)
	require.Equal(t, sick.Name, w.left[0])
	require.Equal(t, 4, w.least)
}

func TestDS10PrioritiesAndPreservationsCostNoAvailability(t *testing.T) {
	w := newRollWorld(t, rolling(5, 1, 0))
	w.all[0].Annotations = map[string]string{v1alpha1.MachinePriority: "1"} // goes first by the order of its set
	kept := w.all[1]
	w.become(kept, v1alpha1.MachineFailed)
	kept.Status.CurrentStatus.PreserveExpiryTime = new(metav1.NewTime(w.now.Add(96 * time.Hour)))
	sick := w.all[2]
	w.become(sick, v1alpha1.MachineUnknown)
	grow := w.grow
	w.grow = func(m *v1alpha1.Machine) {
		if m != sick && m != kept {
			grow(m)
		}
	}
	w.least = 3
	w.template("c2")
	rollEnds(t, w)
	require.Equal(t, 3, w.least, "no available machine went while there were too few")
	require.Equal(t, sick.Name, w.left[0], w.log.String())
}

func TestDS10PreservedMachinesGoWithTheLastOfTheirSet(t *testing.T) {
	w := newRollWorld(t, rolling(4, 1, 1))
	kept := w.all[0]
	w.become(kept, v1alpha1.MachineFailed)
	kept.Status.CurrentStatus.PreserveExpiryTime = new(metav1.NewTime(w.now.Add(96 * time.Hour)))
	grow := w.grow
	w.grow = func(m *v1alpha1.Machine) {
		if m != kept {
			grow(m)
		}
	}
	w.template("c2")
	rollEnds(t, w)
	require.Equal(t, kept.Name, w.left[len(w.left)-1], w.log.String())
	require.Equal(t, 3, w.least)
}

func TestDS1TheSurgeIsAHardBound(t *testing.T) {
	t.Run("however often it is decided before a set has reported", func(t *testing.T) {
		w := newRollWorld(t, rolling(10, 1, 0))
		w.template("c2")
		for range 20 {
			for _, a := range deployment.Plan(w.see(), rollPolicy, w.now).Actions {
				w.act(a)
			}
			asked := int32(0)
			for _, s := range w.sets {
				asked += s.Spec.Replicas
			}
			require.LessOrEqual(t, asked, int32(11))
		}
	})
	t.Run("though machines take long to leave", func(t *testing.T) {
		d := rolling(3, 1, 1)
		old, newSet := rollSet(d, "c0", 1, 3, 1), rollSet(d, "c1", 1, 1, 1)
		in := rollSee(d, old, newSet)
		for _, m := range in.Machines[1:3] { // they count, though their set is smaller
			m.DeletionTimestamp = new(metav1.NewTime(rollNow))
		}
		old.Status.Replicas = 1 // as a set of the reference may say
		dec := deployment.Plan(in, rollPolicy, rollNow)
		require.Empty(t, rollLines(dec))
		require.Contains(t, dec.String(), "4 machines >= 3 replicas + 1 max surge")
	})
}

func TestDS14NegativeBoundsAreReadAsZeroAndRefused(t *testing.T) {
	d := rolling(3, -1, -2)
	b, err := deployment.Normalise(d)
	require.NoError(t, err)
	require.Equal(t, deployment.Bounds{Desired: 3, Surge: 0, Unavailable: 1}, b)
	dec := rollPlan(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 0, 0, 0))
	require.Equal(t, deployment.ReasonInvalid, dec.Reason)
	require.Empty(t, dec.Actions)
	require.Contains(t, dec.Holds[0].Message, `spec.strategy.rollingUpdate.maxSurge: Invalid value: "-1": must not be negative`)
	require.Contains(t, dec.Holds[0].Message, `spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "-2": must not be negative`)
}

func TestDS15ARolloutIsCompleteByWhatTheSetsSayNow(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	d.Status.Replicas, d.Status.UpdatedReplicas = 4, 1 // as stored by the last pass
	dec := rollPlan(d, rollSet(d, "c0", 0, 0, 0), rollSet(d, "c1", 3, 3, 3))
	require.Equal(t, deployment.ReasonComplete, dec.Reason)
	require.Equal(t, int32(3), dec.Status.UpdatedReplicas)
}

func TestDS20MachinesCountOnceTheyHaveBeenAvailableForLongEnough(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.MinReadySeconds = 300
	w := newRollWorld(t, d)
	w.run(20)
	w.template("c2")
	rollEnds(t, w)
	require.Equal(t, 3, w.least)
	require.Equal(t, 4, w.most)
	require.Greater(t, w.now.Sub(rollNow), 15*time.Minute, "each new machine takes five minutes")

	old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 1, 0)
	in := rollSee(d, old, newSet)
	in.Machines[3].Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineRunning, LastUpdateTime: metav1.NewTime(rollNow.Add(-time.Minute))}
	dec := deployment.Plan(in, rollPolicy, rollNow)
	require.Empty(t, rollLines(dec))
	hold := dec.Holds[len(dec.Holds)-1]
	require.Equal(t, "md-c1-00", hold.Subject)
	require.Equal(t, rollNow.Add(4*time.Minute), hold.Until)
}

func TestACutNamesOnlySoManyMachines(t *testing.T) {
	d := rolling(1000, 0, 700)
	old, newSet := rollSet(d, "c0", 1000, 0, 0), rollSet(d, "c1", 0, 0, 0)
	in := rollSee(d, old, newSet)
	for i := range 1000 {
		in.Machines = append(in.Machines, rollMachine(old, fmt.Sprintf("m-%04d", i), v1alpha1.MachineRunning))
	}
	old.Status.Replicas, old.Status.AvailableReplicas = 1000, 1000
	dec := deployment.Plan(in, rollPolicy, rollNow)
	target, err := dec.Target(old.UID)
	require.NoError(t, err)
	require.Equal(t, int32(500), target.To)
	require.Len(t, target.Victims, machineset.MaxVictims)
	require.Contains(t, rollReasons(dec), deployment.ReasonBurst)

	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	dec = deployment.Plan(in, rollPolicy, rollNow)
	target, err = dec.Target(old.UID)
	require.NoError(t, err)
	require.Equal(t, int32(0), target.To, "nobody has to be named if all go")
	require.Len(t, target.Victims, 1000)
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok {
			require.Empty(t, machineset.Victims(a.Set))
		}
	}
}

func TestARolloutTellsWhatItWaitsFor(t *testing.T) {
	d := rolling(3, 1, 0)
	old, newSet := rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 1, 0, 0)
	newSet.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue, Message: "quota of objects\n" + strings.Repeat("é", 300)}}
	old.Spec.Replicas = 0
	old.Status.Replicas, old.Status.AvailableReplicas = 0, 0
	newSet.Spec.Replicas = 3
	dec := rollPlan(d, old, newSet)
	require.Len(t, dec.Holds, 1)
	require.Contains(t, dec.Holds[0].String(), "md-c1: WaitingForMachines: 0 machines exist, 3 are wanted: quota of objects éé")
	require.Less(t, len(dec.Holds[0].Message), 300)
}

// Whatever takes the labels off sets makes the deployment create them for ever, each with
// all replicas; base: 7 sets and 21 machines for 3 replicas, "Complete", no hold.
func TestSetsThatLoseTheirLabelsAreNotReplacedForEver(t *testing.T) {
	w, err := deploymenttest.New(rolling(3, 1, 0), deploymenttest.Model{})
	require.NoError(t, err)
	w.Run(time.Hour)
	for range 6 {
		for _, s := range w.Sets() {
			if len(s.OwnerReferences) > 0 {
				require.NoError(t, w.EditSet(s.Name, func(s *v1alpha1.MachineSet) { delete(s.Labels, "app") }))
			}
		}
		w.Run(time.Hour)
	}
	require.LessOrEqual(t, len(w.Machines()), 12)
	require.Equal(t, deployment.ReasonReleased, w.Decision().Holds[0].Reason)
	require.False(t, w.Decision().NextCheck.IsZero(), "nobody tells of sets that are not its own")
}
