// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// readyAt is a Node that became Ready so long before now.
func readyAt(ago time.Duration) change {
	c := ready(corev1.ConditionTrue)
	c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
	return node(c)
}

// failedAt is when the machine failed.
func failedAt(at time.Time) change {
	return spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(at) })
}

func TestMachine_FailedAndNodeReadyAfterwards_RunsAgain(t *testing.T) {
	t.Parallel()
	again, minuteAgo := readyAt(30*time.Second), failedAt(now.Add(-time.Minute))
	creation := operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, "", "")
	withCondition := func(c corev1.NodeCondition) change {
		return onNode(func(n *corev1.Node) { n.Status.Conditions = append(n.Status.Conditions, c) })
	}
	for name, tc := range map[string]struct {
		changes []change
		want    string
	}{
		"it had failed for bad health":         {[]change{again, minuteAgo, healthLast}, "Running HealthCheck Successful false"},
		"it had failed to join in time":        {[]change{again, minuteAgo, creation}, "Running Create Successful false"},
		"Ready since before it failed":         {[]change{readyAt(2 * time.Minute), minuteAgo}, stays},
		"Ready in the second in which it did":  {[]change{readyAt(time.Minute), minuteAgo}, stays},
		"Ready since when is not known":        {[]change{node(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}), minuteAgo}, stays},
		"Ready by a clock that is ahead":       {[]change{readyAt(-time.Second), minuteAgo}, stays},
		"failed when is not known":             {[]change{again, failedAt(time.Time{})}, stays},
		"failed by a clock that is far behind": {[]change{again, failedAt(now.Add(time.Hour))}, stays},
		"not Ready":                            {[]change{node(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}), minuteAgo}, stays},
		"Ready, but bad otherwise":             {[]change{again, minuteAgo, withCondition(corev1.NodeCondition{Type: "KernelDeadlock", Status: corev1.ConditionTrue})}, stays},
		"Ready without critical components":    {[]change{again, minuteAgo, taint}, stays},
		"the Node belongs to another machine":  {[]change{again, minuteAgo, ofAnother}, stays},
		"the Node is updated in place":         {[]change{again, minuteAgo, withCondition(corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: v1alpha1.UpdateFailed})}, stays},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, nextStatus(t, living(v1alpha1.MachineFailed, append(tc.changes, copied)...)))
		})
	}
	t.Run("ahead by a second, it is looked at again then", func(t *testing.T) {
		t.Parallel()
		in := living(v1alpha1.MachineFailed, readyAt(-time.Second), minuteAgo, copied)
		require.Equal(t, now.Add(time.Second), lawful(t, in, machine.DefaultPolicy()).NextCheck)
		in = living(v1alpha1.MachineFailed, readyAt(-time.Hour), minuteAgo, copied)
		require.Zero(t, lawful(t, in, machine.DefaultPolicy()).NextCheck)
	})
	t.Run("a deleted machine goes", func(t *testing.T) {
		t.Parallel()
		in := living(v1alpha1.MachineFailed, again, minuteAgo, leaving)
		require.Zero(t, machine.ReadyAgain(in.Machine, in.Node, now))
		require.Zero(t, machine.ReadyAgain(nil, in.Node, now))
	})
}
