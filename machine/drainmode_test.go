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

func TestSection13_2And13_3TheOtherDrainsAreForcedByTheSameRules(t *testing.T) {
	t.Parallel()
	p := machine.DefaultPolicy()
	forceLabel := func(value string) change {
		return spec(func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyForceDrain] = value })
	}
	tainted := func(at *metav1.Time) change {
		return onNode(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule, TimeAdded: at}}
		})
	}
	bad := func(kind corev1.NodeConditionType, ago time.Duration) change {
		return onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
			})
		})
	}
	began := now.Add(-time.Minute) // of the phase, and of the condition
	for name, tc := range map[string]struct {
		changes []change
		started time.Time // of both, or of the one that is not zero
		other   time.Time
		force   time.Duration
		away    bool
	}{
		"two hours after it was wanted":                 {nil, began, began, 2 * time.Hour, false},
		"the machine may say how long":                  {[]change{config(&v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Second}})}, began, began, time.Second, false},
		"how often is not asked":                        {[]change{config(&v1alpha1.MachineConfiguration{MaxEvictRetries: new(int32(1))})}, began, began, 2 * time.Hour, false},
		"at once if the label says True":                {[]change{forceLabel("True")}, began, began, 0, false},
		"exactly that":                                  {[]change{forceLabel("true")}, began, began, 2 * time.Hour, false},
		"the label of deletions is another":             {[]change{spec(func(m *v1alpha1.Machine) { m.Labels[v1alpha1.LabelKeyForceDeletion] = "true" })}, began, began, 2 * time.Hour, false},
		"a Node out of reach for long":                  {[]change{bad("ReadonlyFilesystem", 6*time.Minute)}, began, began, 2 * time.Hour, true},
		"one out of reach for five minutes may be back": {[]change{bad("ReadonlyFilesystem", 5*time.Minute)}, began, began, 2 * time.Hour, false},
		"a taint may come later than the failure":       {[]change{tainted(&metav1.Time{Time: now})}, began, now, 2 * time.Hour, false},
		"or earlier":           {[]change{tainted(&metav1.Time{Time: now.Add(-time.Hour)})}, began, began, 2 * time.Hour, false},
		"or nobody knows when": {[]change{tainted(nil)}, began, began, 2 * time.Hour, false},
	} {
		in := living(v1alpha1.MachineFailed, append([]change{healthy, updates(v1alpha1.SelectedForUpdate)}, tc.changes...)...)
		m, n := in.Machine, in.Node.Node
		want := machine.DrainMode{Started: tc.started, ForceAt: tc.started.Add(tc.force), NodeUnreachable: tc.away}
		if tc.away {
			want.UnreachableSince = now.Add(-6 * time.Minute)
		}
		require.Equal(t, want, machine.DrainModeForUpdate(m, n, p, now), name)
		want = machine.DrainMode{Started: tc.other, ForceAt: tc.other.Add(tc.force), NodeUnreachable: tc.away, UnreachableSince: want.UnreachableSince, KeepSchedulable: true}
		require.Equal(t, want, machine.DrainModeForPreservation(m, n, p, now), name)
	}
}

func TestPodsMatterWhileTheNodeIsDrained(t *testing.T) {
	t.Parallel()
	of := func(p v1alpha1.MachinePhase, changes ...change) machine.Observation {
		return living(p, append([]change{healthy}, changes...)...)
	}
	said := func(message string) change {
		return onNode(func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodePreserved, Message: message})
		})
	}
	for name, tc := range map[string]struct {
		in   machine.Observation
		want bool
	}{
		"of a machine that runs they do not":     {of(v1alpha1.MachineRunning), false},
		"of one that goes they do":               {of(v1alpha1.MachineRunning, leaving), true},
		"also without Node":                      {living(v1alpha1.MachineRunning, leaving), true},
		"a candidate's do not":                   {of(v1alpha1.MachineRunning, updates(v1alpha1.CandidateForUpdate)), false},
		"once it is selected they do":            {of(v1alpha1.MachineRunning, updates(v1alpha1.SelectedForUpdate)), true},
		"until it is drained":                    {of(v1alpha1.MachineInPlaceUpdating, updates(v1alpha1.DrainSuccessful)), false},
		"a failed machine's do not":              {of(v1alpha1.MachineFailed), false},
		"one's that is preserved do":             {of(v1alpha1.MachineFailed, ending(time.Hour)), true},
		"not without a Node":                     {living(v1alpha1.MachineFailed, ending(time.Hour)), false},
		"also if pods could not be moved":        {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node could not be drained.")), true},
		"until it is drained for that":           {of(v1alpha1.MachineFailed, ending(time.Hour), said("Preserved node drained successfully. Machine preserved until x.")), false},
		"one's that is preserved and runs don't": {of(v1alpha1.MachineRunning, ending(time.Hour)), false},
	} {
		require.Equal(t, tc.want, machine.Drains(tc.in.Machine, tc.in.Node.Node), name)
	}
	require.False(t, machine.Drains(nil, nil))
}
