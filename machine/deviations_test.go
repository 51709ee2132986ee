// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestPreservation_FailsAgainAfterRecovery_IsDrainedAgain(t *testing.T) {
	r := newWorld(living(v1alpha1.MachineFailed, sick, copied, asks("now", "-", "-")))
	drains := 0
	r.drained = func(machine.DrainNode) machine.DrainView {
		drains++
		return machine.DrainView{Done: true}
	}
	becomes := func(s corev1.ConditionStatus, after time.Duration) {
		r.in.Node.Node.Status.Conditions[0].Status = s
		r.in.Node.Node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(r.now)
		r.mustRest(t)
		r.pass(after)
		r.mustRest(t)
	}
	r.mustRest(t)
	require.Equal(t, 1, drains)
	require.Contains(t, r.condition(v1alpha1.NodePreserved).Message, "drained successfully")
	becomes(corev1.ConditionTrue, time.Minute)
	require.Equal(t, v1alpha1.MachineRunning, r.in.Machine.Status.CurrentStatus.Phase)
	require.NotContains(t, r.condition(v1alpha1.NodePreserved).Message, "drained")
	becomes(corev1.ConditionUnknown, 11*time.Minute)
	require.Equal(t, v1alpha1.MachineFailed, r.in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, 2, drains)
	require.Contains(t, r.condition(v1alpha1.NodePreserved).Message, "drained successfully")
}

func TestDrain_ReadOnlyFilesystem_IsUnreachableAfterFiveMinutes(t *testing.T) {
	for ago, unreachable := range map[time.Duration]bool{4*time.Minute + 59*time.Second: false, 5*time.Minute + time.Second: true} {
		in := terminating(node(marked), onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: "ReadonlyFilesystem", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
			})
		}))
		a, ok := machine.Decide(in, machine.DefaultPolicy(), now).Action.(machine.DrainNode)
		require.True(t, ok)
		require.Equal(t, unreachable, a.Reachability != (drain.NodeReachability{}), ago)
	}
}

func TestHealth_NodeGoneBeforeConditions_Unknown(t *testing.T) {
	in := living(v1alpha1.MachineRunning)
	in.Machine.Status.Conditions = nil
	require.Equal(t, "Unknown HealthCheck Processing false", nextStatus(t, in))
}
