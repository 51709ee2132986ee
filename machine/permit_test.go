// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// aboutToFail are machines that are failed because of a timeout once they may be, and why.
var aboutToFail = map[string]struct {
	why machinist.Reason
	in  func() machine.Observation
}{
	"unknown": {machine.ReasonHealthTimeout, func() machine.Observation { return living(v1alpha1.MachineUnknown, longUnknown, sick, copied) }},
	"update in place has failed": {machine.ReasonHealthTimeout, func() machine.Observation {
		return living(v1alpha1.MachineInPlaceUpdateFailed, longUnknown, sick, withResult("failed"), copied)
	}},
	"Node never joined": {machine.ReasonCreationTimeout, func() machine.Observation { return living(v1alpha1.MachinePending, old, looked) }},
	"Node not ready":    {machine.ReasonCreationTimeout, func() machine.Observation { return living(v1alpha1.MachinePending, old, sick, copied, looked) }},
	"no VM":             {machine.ReasonCreationTimeout, func() machine.Observation { return after(intended, old) }},
	"call has failed": {machine.ReasonCreationTimeout, func() machine.Observation {
		return after(intended, old, withID, failure(driver.OpInitializeMachine, codes.ResourceExhausted, time.Second, machine.NotLooked))
	}},
}

var refusedForLong = machinist.Hold{Subject: "machinedeployment/pool", Reason: "Held", Message: "all at once", Until: now.Add(time.Hour)}

func refuse(h machinist.Hold) change { return permit(machine.PermitView{Asked: true, Refused: h}) }

// TestTakePermit_AnyTimeout_BeforeFailing asserts that no way to phase
// Failed because of a timeout goes past the one question.
func TestTakePermit_AnyTimeout_BeforeFailing(t *testing.T) {
	for name, tc := range aboutToFail {
		t.Run(name, func(t *testing.T) {
			in := tc.in()
			d := lawfulOnce(t, in, machine.DefaultPolicy())
			asks, ok := d.Action.(machine.TakePermit)
			require.True(t, ok, d.String())
			require.Equal(t, machine.TakePermit{Holder: "uid-m", Why: tc.why, VMGone: false}, asks)

			d = lawful(t, in, machine.DefaultPolicy())
			m := statusOf(d.Action)
			require.NotNil(t, m, d.String())
			require.Equal(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, d.String())
		})
	}
}

// TestTakePermit_Refused_NothingFails asserts that a refusal stands in the
// decision as it is, is asked for again within a minute, and does not stop a machine from
// arriving.
func TestTakePermit_Refused_NothingFails(t *testing.T) {
	for name, tc := range aboutToFail {
		t.Run(name, func(t *testing.T) {
			in := after(func(in *machine.Observation) { *in = tc.in() }, refuse(refusedForLong))
			d, acted := machine.Decision{}, 0
			for range 12 {
				d = lawfulOnce(t, in, machine.DefaultPolicy())
				if m := statusOf(d.Action); m != nil {
					require.NotEqual(t, v1alpha1.MachineFailed, m.Status.CurrentStatus.Phase, d.String())
				}
				if !carriedOut(&in, d.Action) {
					break
				}
				acted++
			}
			if d.Action != nil { // it goes on to look for its VM
				require.Equal(t, driver.OpGetMachineStatus, operationOf(d.Action), "after %d writes", acted)
				return
			}
			require.Contains(t, d.Holds, refusedForLong)
			require.Equal(t, machinist.Reason("Held"), d.Reason)
			require.LessOrEqual(t, d.NextCheck.Sub(now), time.Minute)
		})
	}
}

func TestTakePermit_RefusedBeforeVM_VMIsCreated(t *testing.T) {
	in := after(intended, old, seen(machine.Absent), func(in *machine.Observation) { in.VM.ProviderID = "" }, refuse(refusedForLong))
	require.Equal(t, driver.OpCreateMachine, operationOf(lawfulOnce(t, in, machine.DefaultPolicy()).Action), "a provider that recovers gets the machine to join")
	refuse(machinist.Hold{Subject: "s", Reason: "Held", Until: now})(&in)
	d := lawfulOnce(t, in, machine.DefaultPolicy())
	require.Nil(t, d.Action, "the end of the hold has come: it is asked again in the next pass")
	require.Equal(t, now.Add(5*time.Second), d.NextCheck)
}

// TestTakePermit_VMNotFound_HasVMGone asserts that the question reports whether anything would
// be destroyed, and that this is looked for also while the machine is held.
func TestTakePermit_VMNotFound_HasVMGone(t *testing.T) {
	vanished := vm(machine.VMView{Presence: machine.Absent, Asked: driver.OpGetMachineStatus, SeenAt: now.Add(-time.Second)})
	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineUnknown, v1alpha1.MachinePending} {
		in := living(phase, old, longUnknown, vanished)
		asks, ok := lawfulOnce(t, in, machine.DefaultPolicy()).Action.(machine.TakePermit)
		require.True(t, ok)
		require.True(t, asks.VMGone, phase)
	}
	in := living(v1alpha1.MachineUnknown, longUnknown, sick, copied, refuse(refusedForLong))
	require.Equal(t, machine.CallDriver{Operation: driver.OpGetMachineStatus}, lawfulOnce(t, in, machine.DefaultPolicy()).Action)
}

func TestFailingSince_ByPhase(t *testing.T) {
	entered, silent := now.Add(-time.Minute), now.Add(-2*time.Minute)
	ready := func(status corev1.ConditionStatus, at time.Time) change {
		return spec(func(m *v1alpha1.Machine) {
			m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(at)}}
		})
	}
	deleted := func(at time.Time) change {
		return spec(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: at} })
	}
	sinceSilent := ready(corev1.ConditionUnknown, silent)
	none := time.Time{}
	for name, tc := range map[string]struct {
		phase   v1alpha1.MachinePhase
		changes []change
		want    time.Time
	}{
		"running":                           {v1alpha1.MachineRunning, []change{sinceSilent}, none},
		"unknown, since the Node is silent": {v1alpha1.MachineUnknown, []change{sinceSilent}, silent},
		"unknown, Node is Ready":            {v1alpha1.MachineUnknown, []change{ready(corev1.ConditionTrue, silent)}, entered},
		"unknown, silent later":             {v1alpha1.MachineUnknown, []change{ready(corev1.ConditionFalse, now)}, entered},
		"unknown, no condition":             {v1alpha1.MachineUnknown, nil, entered},
		"update in place failed":            {v1alpha1.MachineInPlaceUpdateFailed, []change{sinceSilent}, silent},
		"failed":                            {v1alpha1.MachineFailed, []change{sinceSilent}, silent},
		"failed, never joined":              {v1alpha1.MachineFailed, nil, entered},
		"updating in place":                 {v1alpha1.MachineInPlaceUpdating, []change{sinceSilent}, none},
		"available":                         {v1alpha1.MachineAvailable, nil, none},
		"pending in time":                   {v1alpha1.MachinePending, nil, none},
		"pending too long":                  {v1alpha1.MachinePending, []change{old}, after(old).Machine.CreationTimestamp.Add(20 * time.Minute)},
		"no VM for too long":                {v1alpha1.MachineCrashLoopBackOff, []change{old}, after(old).Machine.CreationTimestamp.Add(20 * time.Minute)},
		"new":                               {"", nil, none},
		"deleted while it was silent":       {v1alpha1.MachineTerminating, []change{sinceSilent, deleted(entered)}, silent},
		"deleted while it ran":              {v1alpha1.MachineTerminating, []change{ready(corev1.ConditionUnknown, now), deleted(entered)}, none},
		"deleted before it joined":          {v1alpha1.MachineTerminating, []change{deleted(entered)}, none},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(tc.phase, append([]change{spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(entered) })}, tc.changes...)...)
			require.Equal(t, tc.want, machine.FailingSince(in.Machine, machine.DefaultPolicy(), now))
		})
	}
	require.Zero(t, machine.FailingSince(nil, machine.DefaultPolicy(), now))
	require.Zero(t, machine.FailingSince(living(v1alpha1.MachinePending, old).Machine, machine.Policy{}, now), "the zero policy waits for ever")
}
