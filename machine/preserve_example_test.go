// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The Node speaks before the machine, also to stop.
func ExamplePreserveValue() {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name:        "m-1",
		Labels:      map[string]string{v1alpha1.NodeLabelKey: "n-1"},
		Annotations: map[string]string{v1alpha1.PreserveMachineAnnotationKey: "now"},
	}}
	node := &corev1.Node{}
	fmt.Println(machine.PreserveValue(m, machine.NodeView{}))
	fmt.Println(machine.PreserveValue(m, machine.NodeView{Looked: true, Node: node}))
	node.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: "false"}
	fmt.Println(machine.PreserveValue(m, machine.NodeView{Looked: true, Node: node}))
	// Output:
	// false
	// now true
	// false true
}

// A machine that is to be preserved when it fails.
func ExampleJudgePreservation() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	end := machine.PreserveEnd(now, 96*time.Hour)
	fmt.Println(machine.JudgePreservation("when-failed", v1alpha1.MachineRunning, time.Time{}, now))
	fmt.Println(machine.JudgePreservation("when-failed", v1alpha1.MachineFailed, time.Time{}, now))
	fmt.Println(machine.JudgePreservation("when-failed", v1alpha1.MachineFailed, end, now))
	fmt.Println(machine.JudgePreservation("when-failed", v1alpha1.MachineFailed, end, end))
	fmt.Println(end)
	// Output:
	// Stop
	// Keep
	// Keep
	// StopAndForget
	// 2026-03-05 12:00:00 +0000 UTC
}

// What the labels of a Node call for, step by step.
func ExampleUpdateCondition() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	for _, label := range []string{
		v1alpha1.LabelKeyNodeCandidateForUpdate, v1alpha1.LabelKeyNodeSelectedForUpdate,
	} {
		node.Labels[label] = "true"
		c, due := machine.UpdateCondition(node, now)
		fmt.Println(due, c.Reason)
		node.Status.Conditions = []corev1.NodeCondition{c}
	}
	_, due := machine.UpdateCondition(node, now)
	fmt.Println(due)
	// Output:
	// true CandidateForUpdate
	// true SelectedForUpdate
	// false
}

// A Node that is selected for an update has its drain timeout from then on.
func ExampleDrainModeForUpdate() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: v1alpha1.SelectedForUpdate,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}}}
	mode := machine.DrainModeForUpdate(&v1alpha1.Machine{}, node, machine.DefaultPolicy(), now)
	fmt.Println(mode.ForceAt.Sub(now))
	// Output: 1h0m0s
}

// The Node of a preserved machine that failed is drained without cordon.
func ExampleDrainModeForPreservation() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{
		Phase: v1alpha1.MachineFailed, LastUpdateTime: metav1.NewTime(now.Add(-time.Hour)),
	}}}
	mode := machine.DrainModeForPreservation(m, nil, machine.DefaultPolicy(), now)
	fmt.Println(mode.ForceAt.Sub(now), mode.KeepSchedulable)
	// Output: 1h0m0s true
}

// Whatever is written into the annotations, by whomever, a preservation comes to
// rest, and keeps nobody longer than it said.
func FuzzAPreservationComesToRest(f *testing.F) {
	f.Add("now", "-", "-", false, int64(0))
	f.Add("auto-preserved", "now", "false", true, int64(3600))
	f.Add("-", "", "now", true, int64(-1))
	f.Add("when-failed", "\x00", "-", true, int64(1<<40))
	f.Fuzz(func(t *testing.T, own, nodes, applied string, failed bool, end int64) {
		p, state := v1alpha1.MachineRunning, healthy
		if failed {
			p, state = v1alpha1.MachineFailed, sick
		}
		in := living(p, state, looked, asks(own, nodes, applied))
		if end != 0 {
			in.Machine.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Duration(end%(1<<33)) * time.Second)}
		}
		r := newWorld(in)
		_, err := r.rest()
		require.NoError(t, err)
		require.NoError(t, r.atRest())
		if last := r.end(); last != nil {
			require.True(t, last.After(r.now))
		}
	})
}
