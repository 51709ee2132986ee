// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestBackoff_SecretCorrected_CallIsRepeatedAtOnce asserts that a call which failed because of the
// credentials or the class is repeated when they have changed, and other calls after their wait. A
// second failure waits again.
func TestBackoff_SecretCorrected_CallIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	failed := func(op driver.Operation, code codes.Code, version string) change {
		return func(in *machine.Observation) {
			failure(op, code, time.Second, machine.NotLooked)(in)
			in.VM.Failure.ClassVersion, in.VM.Failure.Attempts, in.Class.Version = "1/1", 9, version
		}
	}
	deletion := operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateFailed,
		"VM deletion failed due to - no quota. However, will re-try in the next resync. Initiate VM deletion", "")
	for _, code := range codes.All() {
		if code == codes.OK || code == codes.NotFound {
			continue
		}
		shared := code == codes.InvalidArgument || code == codes.PermissionDenied || code == codes.Unauthenticated
		for version, changed := range map[string]bool{"1/1": false, "1/2": true, "2/1": true, "": false} {
			in := after(withID, leaving, phase(v1alpha1.MachineTerminating), deletion, failed(driver.OpDeleteMachine, code, version), noTarget)
			d := lawful(t, in, machine.DefaultPolicy())
			require.Equal(t, shared && changed, d.Action == machine.CallDriver{Operation: driver.OpDeleteMachine}, "deletion, %s, version %q: %s", code, version, d)

			in = after(intended, failed(driver.OpCreateMachine, code, version))
			write(t, &in) // the failure
			d = machine.Decide(in, machine.DefaultPolicy(), now)
			require.Equal(t, (shared || code == codes.Unimplemented) && changed, d.Action == machine.CallDriver{Operation: driver.OpGetMachineStatus}, "creation, %s, version %q: %s", code, version, d)
		}
	}
	for version, asks := range map[string]bool{"1/1": false, "1/2": true} {
		in := after(withID, leaving, phase(v1alpha1.MachineTerminating), deletion, failed(driver.OpDeleteMachine, codes.Unauthenticated, version),
			node(ready(corev1.ConditionTrue)), onNode(func(n *corev1.Node) { unmark(n) }), byForce)
		in.VM.Named = machine.NamedVM{}
		d := lawful(t, in, machine.DefaultPolicy())
		require.Equal(t, asks, d.Action == machine.CallDriver{Operation: driver.OpGetMachineStatus}, "an unproven Node, version %q: %s", version, d)
	}
	view := machine.ViewClass(after().Class.Class, &corev1.Secret{}, errors.New("missing"))
	corrected := machine.ViewClass(after().Class.Class, &corev1.Secret{}, nil)
	corrected.Class.ResourceVersion = "7"
	require.NotEqual(t, view.Version, machine.ViewClass(corrected.Class, nil, nil).Version)

	failedAgain := machine.VMView{}.After(machine.CallResult{Operation: driver.OpDeleteMachine, Err: errors.New("no"), ClassVersion: "1/2"}, now, 0)
	require.Equal(t, "1/2", failedAgain.Failure.ClassVersion)
}
