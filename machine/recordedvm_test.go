// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestRecordedVM_AfterTheWrites_SameTextAsWithTheAnswers applies the writes of decisions that know the
// answers of the provider until they wait. A report that knows only the result has the same text.
func TestRecordedVM_AfterTheWrites_SameTextAsWithTheAnswers(t *testing.T) {
	unusable := func(in *machine.Observation) { in.Class.Problem = "secret shop/small does not exist" }
	for name, in := range map[string]machine.Observation{
		"running":                     after(withID, phase(v1alpha1.MachineRunning), seen(machine.Present), named),
		"has not joined":              after(withID, phase(v1alpha1.MachinePending), seen(machine.Present), named),
		"no capacity":                 after(intended, failure(driver.OpCreateMachine, codes.ResourceExhausted, time.Second, machine.NotLooked)),
		"the request is wrong":        after(failure(driver.OpCreateMachine, codes.InvalidArgument, time.Second, machine.NotLooked)),
		"not initialized":             after(intended, withID, failure(driver.OpInitializeMachine, codes.Internal, time.Second, machine.Uninitialized)),
		"not deleted":                 terminating(failure(driver.OpDeleteMachine, codes.Internal, time.Second, machine.NotLooked)),
		"not deleted, bad class":      terminating(unusable, failure(driver.OpDeleteMachine, codes.Internal, time.Second, machine.NotLooked)),
		"VM vanished":                 after(withID, phase(v1alpha1.MachineUnknown), seen(machine.Absent)),
		"VM vanished before it joins": after(withID, phase(v1alpha1.MachinePending), seen(machine.Absent)),
	} {
		t.Run(name, func(t *testing.T) {
			d := machine.Decide(in, machine.DefaultPolicy(), now)
			for i := 0; i < 5 && d.Action != nil; i++ {
				in.Machine = written(d.Action)
				d = machine.Decide(in, machine.DefaultPolicy(), now)
			}
			require.Nil(t, d.Action, d)
			in.VM = machine.RecordedVM(in.Machine, in.Class, now)
			require.Equal(t, d.String(), machine.Decide(in, machine.DefaultPolicy(), now).String())
		})
	}
}

func TestRecordedVM_NoRecord_Zero(t *testing.T) {
	require.Zero(t, machine.RecordedVM(nil, machine.ClassView{}, now))
	require.Zero(t, machine.RecordedVM(after(intended).Machine, machine.ClassView{}, now))
}
