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

func TestForceDoesNotWaitForATokenThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	in := terminating(byForce)
	in.Machine.UID, in.Machine.DeletionTimestamp = "u", &metav1.Time{Time: now.Add(-time.Hour)}
	in.Machine.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-time.Hour))
	in.Tokens = machine.TokensView{Looked: true, Secrets: []*corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef", Labels: map[string]string{machine.TokenOwnerLabel: "u"}}, Type: corev1.SecretTypeBootstrapToken,
	}}}
	_, stuck := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.DeleteToken)
	require.False(t, stuck)
}

func TestAMachineWhoseClassNeverWasCanGo(t *testing.T) {
	t.Parallel()
	w := newWorld(after(old, noClass))
	w.mustRest(t)
	leaving(&w.in)
	require.Equal(t, stepRelease, w.run(t).did[len(w.did)-1])
}

func TestAForceThatForcesNothingIsShownWhileItMatters(t *testing.T) {
	t.Parallel()
	in := terminating(spec(func(m *v1alpha1.Machine) { m.Labels["force-deletion"] = "yes" }))
	u, ok := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.UpdateStatus)
	require.True(t, ok)
	require.Contains(t, u.Machine.Status.Conditions[0].Message, "neither true nor false")
}

func TestAnUnhealthyMachineWithoutItsLabelTimesOut(t *testing.T) {
	t.Parallel()
	in := after(withID, old, phase(v1alpha1.MachineUnknown), vm(machine.VMView{Sighting: machine.Absent, ProviderID: "simulated:///1", SeenAt: now}))
	in.Machine.Labels, in.Machine.Status.CurrentStatus.LastUpdateTime = nil, metav1.NewTime(now.Add(-24*time.Hour))
	require.IsType(t, machine.UpdateStatus{}, machine.Decide(in, machine.DefaultPolicy(), now).Do)
}

func TestANodeMarkedInTheSameSecondIsDrained(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(now.Add(-time.Minute))
	in := after(withID, leaving, phase(v1alpha1.MachineTerminating), node(ready("True"), corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: "True", LastTransitionTime: at}))
	in.Machine.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationDelete, State: v1alpha1.MachineStateFailed, Description: noClassText, LastUpdateTime: at}
	require.IsType(t, machine.DrainNode{}, machine.Decide(in, machine.DefaultPolicy(), now).Do)
}
