// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestVanishedAndDrainDoNotOverwriteEachOther(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(now.Add(-2 * time.Minute))
	selected := corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: "True", Reason: v1alpha1.SelectedForUpdate, LastTransitionTime: since}
	notReady := ready("Unknown")
	notReady.LastTransitionTime = since
	in := after(withID, phase(v1alpha1.MachineUnknown), node(notReady, selected), copied, onNode(func(n *corev1.Node) {
		n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate], n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true", "true"
	}), vm(machine.VMView{Sighting: machine.Absent, SeenAt: now}))
	in.Drain = machine.DrainView{Started: since.Time, Round: now, Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Terminating"}}, NextCheck: now.Add(time.Minute)}
	for range 4 {
		u, ok := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.UpdateStatus)
		if !ok {
			return
		}
		in.Machine = u.Machine
	}
	t.Fatal("it writes for ever")
}

func TestARunningMachineThatLostItsProviderIDIsNotFailed(t *testing.T) {
	t.Parallel()
	in := after(withID, old, spec(func(m *v1alpha1.Machine) { m.Spec.ProviderID = "" }), phase(v1alpha1.MachineRunning), node(ready("True")), copied)
	require.Equal(t, "look for the VM (LookFirst)", machine.Decide(in, machine.DefaultPolicy(), now).String())
	in.Machine.CreationTimestamp = metav1.NewTime(now.Add(-5 * time.Minute))
	intended(&in)
	in.VM = machine.VMView{Sighting: machine.Absent, SeenAt: now}
	_, creates := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.CreateVM)
	require.False(t, creates)
}

func TestADrainWakesUpWhenItsNodeCountsAsUnreachable(t *testing.T) {
	t.Parallel()
	nr := ready("Unknown")
	nr.LastTransitionTime = metav1.NewTime(now.Add(-4 * time.Minute))
	term := corev1.NodeCondition{Type: v1alpha1.NodeTerminationCondition, Status: "True", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
	in := after(withID, leaving, phase(v1alpha1.MachineTerminating), node(nr, term), operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.InitiateDrain+"; waits for pod/a/b: Terminating", ""))
	in.Drain = machine.DrainView{Started: in.Machine.DeletionTimestamp.Time, Round: now, Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Terminating"}}}
	d := machine.Decide(in, machine.DefaultPolicy(), now)
	require.False(t, d.NextCheck.After(now.Add(time.Minute+time.Second)), d.NextCheck)
}

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

func TestAfterAnUpdateInPlaceAMachineMayBecomeUnknown(t *testing.T) {
	t.Parallel()
	bad := after(withID, old, phase(v1alpha1.MachineInPlaceUpdateSuccessful), node(ready("False")), copied)
	gone := after(withID, old, phase(v1alpha1.MachineInPlaceUpdateSuccessful))
	for _, in := range []machine.Observation{bad, gone} {
		d := machine.Decide(in, machine.DefaultPolicy(), now)
		require.True(t, d.Do != nil || !d.NextCheck.IsZero(), d.String())
	}
}

func TestAMachineWhoseClassNeverWasCanGo(t *testing.T) {
	t.Parallel()
	in := after(old, noClass)
	for range 3 {
		if u, ok := machine.Decide(in, machine.DefaultPolicy(), now).Do.(machine.UpdateStatus); ok {
			in.Machine = u.Machine
		}
	}
	in.Machine.DeletionTimestamp = &metav1.Time{Time: now}
	for range 5 {
		switch a := machine.Decide(in, machine.DefaultPolicy(), now).Do.(type) {
		case machine.UpdateStatus:
			in.Machine = a.Machine
		case machine.UpdateMachine:
			require.Empty(t, a.Machine.Finalizers)
			return
		}
	}
	t.Fatal("it waits for ever: " + in.Machine.Status.LastOperation.Description)
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
