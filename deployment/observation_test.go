// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestNothingIsDoneInAWorldThatNobodyLookedAt(t *testing.T) {
	require.Empty(t, deployment.Decide(deployment.Observation{}, deployment.Policy{}, marksNow).Actions)
	in := newMarksWorld(3).in()
	in.Complete = false
	dec := deployment.Decide(in, deployment.Policy{}, marksNow)
	require.Empty(t, dec.Actions)
	require.Equal(t, deployment.ReasonViewIncomplete, dec.Reason)
	require.Equal(t, marksNow.Add(30*time.Second), dec.NextCheck, "no change of an object tells that the view is whole")
}

func TestASetOfAnotherDeploymentIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(s *v1alpha1.MachineSet){
		"controlled by another": func(s *v1alpha1.MachineSet) { s.OwnerReferences[0].UID = "another" },
		"in another namespace":  func(s *v1alpha1.MachineSet) { s.Namespace = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 0)
			foreign := rollSet(d, "c9", 3, 3, 3)
			change(foreign)
			dec := rollPlan(d, foreign, rollSet(d, "c1", 3, 3, 3))
			require.Empty(t, rollLines(dec))
			require.Equal(t, deployment.ReasonComplete, dec.Reason)
			require.Equal(t, []machinist.Reason{machinist.Reason("ControlledByAnother")}, rollReasons(dec))
			require.Len(t, dec.Targets, 1)

			d.DeletionTimestamp = new(metav1.NewTime(rollNow))
			require.Empty(t, rollLines(rollPlan(d, foreign)), "it is not deleted either")
		})
	}
}

func TestASetThatIsSeenTwiceCountsOnce(t *testing.T) {
	w := newMarksWorld(3)
	in := w.in()
	in.Sets = append(in.Sets, nil, w.sets[0], w.sets[0].DeepCopy())
	dec := deployment.Decide(in, deployment.Policy{}, marksNow)
	require.Len(t, dec.Targets, 1)
}

func TestANodeUnderAnotherNameIsNotKnown(t *testing.T) {
	w, old, _ := midRoll(t)
	for name := range w.nodes {
		w.nodes[name] = &corev1.Node{}
	}
	require.NotEmpty(t, w.of(old))
	for _, a := range w.plan(deployment.Policy{}).Actions {
		_, marks := a.(deployment.WriteNode)
		require.False(t, marks)
	}
}

// The machines of all sets are sorted out once, however many sets there are
// (DS-42).
func TestDS42TheCostOfAPassIsLinearInMachines(t *testing.T) {
	allocations := func(machines int32) float64 {
		w := newMarksWorld(machines)
		for i := range 9 {
			w.addSet(fmt.Sprint("x", i), 0)
		}
		in := w.in()
		return testing.AllocsPerRun(3, func() { deployment.Decide(in, deployment.Policy{}, marksNow) })
	}
	few, many := allocations(100), allocations(1000)
	require.Less(t, many, 12*few+1000)
}

func BenchmarkMarks(b *testing.B) {
	for _, n := range []int{500, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newMarksWorld(int32(n / 2))
			w.d.Spec.Template.Spec.Class.Name = "b"
			w.d.Spec.Replicas = int32(n)
			w.addSet("b", int32(n/2))
			for _, s := range w.sets {
				s.Annotations[v1alpha1.DesiredReplicasAnnotation] = fmt.Sprint(n)
			}
			in := w.in()
			for b.Loop() {
				deployment.Decide(in, deployment.Policy{HoldAutoscaler: true}, marksNow)
			}
		})
	}
}

// Of two views of one machine (same name and UID) the first met counts; package
// machineset takes the one that is leaving. The plan depends on the order of the list.
func TestOfTwoViewsOfAMachineTheLeavingOneCounts(t *testing.T) {
	d := rolling(3, 1, 1)
	in := rollSee(d, rollSet(d, "c0", 3, 3, 3), rollSet(d, "c1", 0, 0, 0))
	twin := in.Machines[0].DeepCopy()
	twin.Status.CurrentStatus.Phase = v1alpha1.MachineTerminating
	a, b := in, in
	a.Machines = append([]*v1alpha1.Machine{twin}, in.Machines...)
	b.Machines = append(append([]*v1alpha1.Machine{}, in.Machines...), twin)
	require.Equal(t, deployment.Decide(a, rollPolicy, rollNow).String(), deployment.Decide(b, rollPolicy, rollNow).String())
}

// The counters of Status are added up as int32: -2 here.
func TestCountersOfAStatusDoNotOverflow(t *testing.T) {
	const all = 2147483647
	d := rolling(all, all, 0)
	require.Positive(t, rollPlan(d, rollSet(d, "c0", all, all, all), rollSet(d, "c1", all, all, all)).Status.Replicas)
}
