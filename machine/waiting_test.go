// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waitingOf returns the condition Waiting of a machine, or nil.
func waitingOf(m *v1alpha1.Machine) *corev1.NodeCondition {
	return facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
}

// heldFor has the holds of the last decision since a while.
func heldFor(since time.Duration, holds []machinist.Hold) change {
	return func(in *machine.Observation) {
		var waits machinist.Waits
		waits, _, _ = waits.Step(holds, nil, now.Add(-since))
		in.Waits = waits.Holds()
	}
}

func TestWaiting_TwoSeconds_IsInTheStatusUntilItEnds(t *testing.T) {
	limit := limited(1)
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, copied, looked, inPool, siblings(true, v1alpha1.MachineFailed))
	in.Machine.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationHealthCheck, State: v1alpha1.MachineStateProcessing, Description: "Machine m is unhealthy"}
	d := lawful(t, in, limit)
	require.Nil(t, d.Action, "it may end at once")
	require.Equal(t, now.Add(2*time.Second), d.NextCheck)

	heldFor(time.Second, d.Holds)(&in)
	require.Equal(t, now.Add(time.Second), lawful(t, in, limit).NextCheck)
	heldFor(2*time.Second, d.Holds)(&in)
	m := written(lawful(t, in, limit).Action)
	require.NotNil(t, m)
	c := waitingOf(m)
	require.Equal(t, "ReplacementLimit "+d.Holds[0].Subject, c.Message)
	require.Equal(t, now.Add(-2*time.Second), c.LastTransitionTime.Time)
	require.Equal(t, in.Machine.Status.LastOperation.LastUpdateTime, m.Status.LastOperation.LastUpdateTime, "the operation is the same")
	require.Contains(t, m.Status.LastOperation.Description, "Machine m is unhealthy; waits for "+d.Holds[0].String()+
		" (since 2026-03-01T11:59:58Z; another machine of the group has to be replaced first)")
	require.Equal(t, []machinist.Event{{Type: "Normal", Reason: "ReplacementLimit", Message: "Waits for " + d.Holds[0].String()}}, machine.Events(in.Machine, m))

	in.Machine = m
	require.Nil(t, lawful(t, in, limit).Action, "it is recorded")
	siblings(true, v1alpha1.MachineFailed, v1alpha1.MachineFailed)(&in)
	require.Nil(t, lawful(t, in, limit).Action, "other numbers are not worth a write of each machine")
	in.Waits = nil
	require.Nil(t, lawful(t, in, limit).Action, "also after a restart")
	require.Nil(t, machine.Events(m, m))

	healthy(&in)
	m = written(lawful(t, in, limit).Action)
	require.Equal(t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase)
	require.Nil(t, waitingOf(m), "the write of the phase removes it")
	require.NotContains(t, m.Status.LastOperation.Description, "waits for")
}

// TestWaiting_Quota_HasTheNextAttempt asserts that the text of a failed call has the time of the next
// attempt at once, and that a text of a provider which looks like that of a wait causes no loop.
func TestWaiting_Quota_HasTheNextAttempt(t *testing.T) {
	for _, said := range []string{"no quota", "no quota; waits for more", "x; waits for provider (since 2026)"} {
		in := after(intended)
		in.VM = in.VM.After(machine.CallResult{Operation: driver.OpCreateMachine, Err: status.New(codes.ResourceExhausted, said)}, now, 0)
		write(t, &in)
		d := lawful(t, in, machine.DefaultPolicy())
		require.Nil(t, d.Action, "%q is written once", said)
		text := in.Machine.Status.LastOperation.Description
		require.Contains(t, text, "; waits for provider (since 2026-03-01T12:00:00Z; next attempt at "+d.Holds[0].Until.Format(time.RFC3339)+")")
		require.Equal(t, 1, strings.Count(text, facts.WaitsMark), text)
		require.Equal(t, "ProviderFailed ResourceExhausted", waitingOf(in.Machine).Message)
	}
}

// TestWaiting_EachStepOfDeletion_MCMGoesOn asserts that the text of a wait hides no step of a deletion, and adds
// none, for MCM, which looks for a phrase anywhere in the text, and for this module.
func TestWaiting_EachStepOfDeletion_MCMGoesOn(t *testing.T) {
	steps := []string{
		v1alpha1.GetVMStatus, v1alpha1.InitiateDrain, v1alpha1.DelVolumesAttachments, v1alpha1.InitiateVMDeletion, v1alpha1.InitiateNodeDeletion, v1alpha1.InitiateFinalizerRemoval,
	}
	for _, step := range steps {
		in := living(leavesNow, healthy, copied, operationAgo(0, v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, step))
		plain := facts.TakeOver(in.Machine, in.Node.Node, now)
		hold := machinist.Hold{Subject: "machineclass/small", Reason: "ClassMissing", Message: "the VM cannot be deleted without it", Since: now}
		text := step + facts.WaitsMark + hold.String() + " (since x)"
		for _, other := range steps {
			require.Equal(t, other == step, strings.Contains(text, other), text)
		}
		in.Machine.Status.LastOperation.Description = text
		require.Equal(t, plain, facts.TakeOver(in.Machine, in.Node.Node, now), text)
	}
}

func TestRetryNow_FailedCall_IsRepeatedOnce(t *testing.T) {
	in := after(intended, failure(driver.OpCreateMachine, codes.ResourceExhausted, time.Second, machine.NotLooked))
	write(t, &in)
	require.Nil(t, lawful(t, in, machine.DefaultPolicy()).Action)

	metav1.SetMetaDataAnnotation(&in.Machine.ObjectMeta, v1alpha1.RetryNowAnnotation, "")
	frozen(&in)
	require.Nil(t, lawful(t, in, machine.DefaultPolicy()).Action, "nothing can be tried")
	in.Freeze.Frozen = false
	d := lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, "update machine m: no annotation machine.sapcloud.io/retry-now (RetryNow)", d.String())
	in.Machine, in.VM = written(d.Action), in.VM.RetryNow()
	require.Equal(t, driver.OpGetMachineStatus, operationOf(lawful(t, in, machine.DefaultPolicy()).Action), "the VM is looked up first")
}

// TestWaiting_Ended_IsRemoved asserts that a wait is removed from the status if nothing else is written,
// also before a call, which may take long.
func TestWaiting_Ended_IsRemoved(t *testing.T) {
	for description, in := range map[string]machine.Observation{
		"Joined":               living(running, healthy, copied),
		v1alpha1.InitiateDrain: terminating(noTarget),
	} {
		next := lawful(t, in, machine.DefaultPolicy())
		operation("x", "y", description+"; waits for pod/a/b: DisruptionBudget (since x)", "")(&in)
		in.Machine.Status.Conditions = append(in.Machine.Status.Conditions,
			corev1.NodeCondition{Type: v1alpha1.MachineWaiting, Status: corev1.ConditionTrue, Reason: "DisruptionBudget", Message: "DisruptionBudget pod/a/b"})
		write(t, &in)
		require.Nil(t, waitingOf(in.Machine))
		require.Equal(t, description, in.Machine.Status.LastOperation.Description)
		require.Equal(t, next.Action, lawful(t, in, machine.DefaultPolicy()).Action)
	}
}
