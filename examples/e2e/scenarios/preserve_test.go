// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// conditionOf returns a condition of a Node, or nil.
func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &n.Status.Conditions[i]
}

// reports holds when the Node of a machine has a condition of a status and a reason.
func reports(s *env.Env, machine string, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) env.Condition {
	return func(ctx context.Context) (string, error) {
		n, err := s.Client.CoreV1().Nodes().Get(ctx, s.NodeName(machine), metav1.GetOptions{})
		if err != nil {
			return "the node", err
		}
		if c := conditionOf(n, kind); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Sprintf("the node does not report %s=%s (%s) but %v", kind, status, reason, c), nil
		}
		return "", nil
	}
}

// expiry returns until when a machine is preserved; zero if it is not.
func expiry(t *testing.T, s *env.Env, name string) time.Time {
	t.Helper()
	if at := machine(t, s, name).Status.CurrentStatus.PreserveExpiryTime; at != nil {
		return at.Time
	}
	return time.Time{}
}

// unpreserved holds when nothing of a preservation is left on a machine and its
// Node, but a condition that says that it was.
func unpreserved(s *env.Env, name string) env.Condition {
	return func(ctx context.Context) (string, error) {
		m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "the machine", err
		}
		n, err := s.Client.CoreV1().Nodes().Get(ctx, s.NodeName(name), metav1.GetOptions{})
		if err != nil {
			return "the node", err
		}
		c := conditionOf(n, v1alpha1.NodePreserved)
		switch {
		case m.Status.CurrentStatus.PreserveExpiryTime != nil:
			return "the machine is preserved", nil
		case preservedTaint(n):
			return "the node is tainted", nil
		case protected(n):
			return "the autoscaler is kept away", nil
		case c == nil || c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.PreservationStopped:
			return fmt.Sprintf("the node says %v", c), nil
		default:
			return "", nil
		}
	}
}

func preservedTaint(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintNodePreserved && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// protected reports whether a Node keeps an autoscaler away for the manager.
func protected(n *corev1.Node) bool {
	return n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey] == "true" ||
		n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey] == "true"
}

func TestPreservation_RunningMachine_UntilReleasedOrExpired(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "preserved", fastOptions())
	s.StartManager(t, "manager")
	require.NoError(t, s.Class(t.Context(), "small"))
	for name, patient := range map[string]int{"let-go": 3600, "expires": 6} {
		m := s.Machine(name, "small")
		m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachinePreserveTimeout: seconds(patient)}
		create(t, s, m)
	}
	for name, patient := range map[string]time.Duration{"let-go": time.Hour, "expires": 6 * time.Second} {
		s.Wait(t, patience, "it runs", running(s, name))
		asked := time.Now()
		annotate(t, s, name, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueNow)
		s.Wait(t, patience, "it is preserved", reports(s, name, v1alpha1.NodePreserved, corev1.ConditionTrue, v1alpha1.PreservedByUser))
		require.WithinDuration(t, asked.Add(patient), expiry(t, s, name), 30*time.Second)
		n := node(t, s, name)
		require.Equal(t, "true", n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey])
		require.Equal(t, "true", n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey])
		require.False(t, n.Spec.Unschedulable)
		require.False(t, preservedTaint(n), "it takes pods as before")
		require.Equal(t, v1alpha1.MachineRunning, machine(t, s, name).Status.CurrentStatus.Phase)
	}
	s.Wait(t, patience, "its time is over", unpreserved(s, "expires"))
	require.NotContains(t, machine(t, s, "expires").Annotations, v1alpha1.PreserveMachineAnnotationKey, "otherwise it would begin again")

	require.False(t, expiry(t, s, "let-go").IsZero())
	annotate(t, s, "let-go", v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueFalse)
	s.Wait(t, patience, "it is let go", unpreserved(s, "let-go"))
	for _, name := range []string{"let-go", "expires"} {
		require.Equal(t, v1alpha1.MachineRunning, machine(t, s, name).Status.CurrentStatus.Phase)
	}
	removeAll(t, s)
}

func TestPreservation_FailedMachine_ReplacedAfterwards(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	var failed [2]v1alpha1.Machine
	o.Bounds.Excused = func(m *v1alpha1.Machine) bool { return m.UID == failed[0].UID || m.UID == failed[1].UID } // it is us who bring them down
	s := cluster.Set(t, "kept", o)
	s.StartManager(t, "manager")
	ctx := t.Context()
	d := s.Deployment("workers", "small", 3, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: seconds(3), MachinePreserveTimeout: seconds(45)}
	deploy(t, s, d)
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(ctx, s.ReplicaSet("app", 9), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pods are ready", ready(s, "app", 9))

	copy(failed[:], machines(t, s))
	for _, m := range failed {
		annotate(t, s, m.Name, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueWhenFailed)
	}
	s.Wait(t, patience, "they run on", in(s, failed[0].Name, v1alpha1.MachineRunning))
	require.True(t, expiry(t, s, failed[0].Name).IsZero(), "nothing has failed yet")
	for _, m := range failed {
		sick(t, s, m.Name, corev1.ConditionTrue)
	}
	for _, m := range failed { // a machine that is preserved is not being replaced, so that the other may fail meanwhile
		s.Wait(t, patience, "it fails", in(s, m.Name, v1alpha1.MachineFailed))
		s.Wait(t, patience, "it is preserved", reports(s, m.Name, v1alpha1.NodePreserved, corev1.ConditionTrue, v1alpha1.PreservedByUser))
		n := node(t, s, m.Name)
		require.Contains(t, conditionOf(n, v1alpha1.NodePreserved).Message, "drained successfully")
		require.True(t, preservedTaint(n), "no pods may come back")
		require.False(t, n.Spec.Unschedulable, "it is not cordoned")
		require.True(t, protected(n))
		require.Empty(t, podsOn(t, s, n.Name))
		require.Nil(t, machine(t, s, m.Name).DeletionTimestamp, "its set keeps it")
	}
	s.Wait(t, patience, "the pods are ready elsewhere", ready(s, "app", 9))
	uids := map[types.UID]bool{}
	for _, m := range machines(t, s) {
		uids[m.UID] = true
	}
	require.Len(t, uids, 3, "nothing is replaced")
	require.True(t, uids[failed[0].UID] && uids[failed[1].UID])

	annotate(t, s, failed[0].Name, v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueFalse)
	s.Wait(t, patience, "the one that is let go goes", gone(s, failed[0].Name))
	s.Wait(t, patience, "the one whose time is over goes", gone(s, failed[1].Name))
	s.Wait(t, patience, "both are replaced", s.Complete("workers"))
	for i := range failed {
		s.Wait(t, patience, "its phases", went(s, failed[i].UID, "Pending", "Running", "Unknown", "Failed", "Terminating"))
	}
	// The one that was let go was gone before the other's time was over.
	var released, over time.Time
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		switch {
		case !ok:
		case m.UID == failed[0].UID && m.DeletionTimestamp != nil && released.IsZero():
			released = m.DeletionTimestamp.Time
		case m.UID == failed[1].UID && m.DeletionTimestamp == nil && m.Status.CurrentStatus.PreserveExpiryTime != nil:
			over = m.Status.CurrentStatus.PreserveExpiryTime.Time
		case m.UID == failed[1].UID && m.DeletionTimestamp != nil:
			require.False(t, m.DeletionTimestamp.Time.Before(over), "%s is before %s", m.DeletionTimestamp, over)
		}
	}
	require.True(t, released.Before(over), "%s is not before %s", released, over)
	removeAll(t, s)
}

func TestPreservation_FailedMachineRecovers_IsRunning(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "recovered", fastOptions())
	s.StartManager(t, "manager")
	require.NoError(t, s.Class(t.Context(), "small"))
	for _, name := range []string{"recovers", "let-go"} {
		m := s.Machine(name, "small")
		m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: seconds(3)}
		m.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: v1alpha1.PreserveMachineAnnotationValueWhenFailed}
		create(t, s, m)
	}
	for _, name := range []string{"recovers", "let-go"} {
		s.Wait(t, patience, "it runs", running(s, name))
		sick(t, s, name, corev1.ConditionTrue)
	}
	for _, name := range []string{"recovers", "let-go"} {
		s.Wait(t, patience, "it fails", in(s, name, v1alpha1.MachineFailed))
		s.Wait(t, patience, "it is preserved", reports(s, name, v1alpha1.NodePreserved, corev1.ConditionTrue, v1alpha1.PreservedByUser))
		require.True(t, preservedTaint(node(t, s, name)))
		require.False(t, expiry(t, s, name).IsZero())
	}
	annotate(t, s, "let-go", v1alpha1.PreserveMachineAnnotationKey, v1alpha1.PreserveMachineAnnotationValueFalse)
	s.Wait(t, patience, "it is let go", unpreserved(s, "let-go"))
	require.Equal(t, v1alpha1.MachineFailed, machine(t, s, "let-go").Status.CurrentStatus.Phase, "it is not replaced")

	sick(t, s, "recovers", corev1.ConditionFalse)
	s.Wait(t, patience, "it runs again", running(s, "recovers"))
	s.Wait(t, patience, "nothing is left of it", unpreserved(s, "recovers"))
	removeAll(t, s)
}
