// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// aMachine returns a machine whose VM exists, changed.
func aMachine(changes ...change) *v1alpha1.Machine {
	return after(append([]change{withID}, changes...)...).Machine
}

func TestEvents_EachChange_Texts(t *testing.T) {
	const (
		create = v1alpha1.MachineOperationCreate
		health = v1alpha1.MachineOperationHealthCheck
		failed = v1alpha1.MachineStateFailed
		doing  = v1alpha1.MachineStateProcessing
		done   = v1alpha1.MachineStateSuccessful
	)
	exhausted := operation(create, failed, "no room", "ResourceExhausted")
	crash := aMachine(phase("CrashLoopBackOff"), exhausted)
	cases := []struct {
		name          string
		before, after *v1alpha1.Machine
		want          string
	}{
		{"nothing of no machine", aMachine(), nil, ""},
		{"nothing of a machine that is only there", nil, &v1alpha1.Machine{}, ""},
		{"a machine seen for the first time tells its phase", nil, aMachine(phase("Running")), `Normal Running Phase is "Running"`},
		{"that the VM exists", aMachine(), aMachine(phase("Pending"), operation(create, doing, v1alpha1.CreatingMachine, "")), `Normal Pending Phase is "Pending": VM simulated:///1 exists, node n has to join`},
		{"that the VM exists and that is all", aMachine(), aMachine(phase("Available")), `Normal Available Phase is "Available": VM simulated:///1 exists`},
		{"that it has joined", aMachine(phase("Pending")), aMachine(phase("Running"), operation(create, done, "joined in 8s", "")), `Normal Running Phase is "Running", was "Pending": joined in 8s`},
		{"that it is not well", aMachine(phase("Running")), aMachine(phase("Unknown"), operation(health, doing, "no node", "")), `Warning Unknown Phase is "Unknown", was "Running": no node`},
		{"that it is given up, once", aMachine(phase("Unknown"), operation(health, doing, "", "")), aMachine(phase("Failed"), operation(health, failed, "too long", "")), `Warning Failed Phase is "Failed", was "Unknown": too long`},
		{"that it cannot be made, and why", aMachine(), crash, "Warning CrashLoopBackOff Phase is \"CrashLoopBackOff\"\nWarning ResourceExhausted Create failed: no room"},
		{"not that it fails again", crash, aMachine(phase("CrashLoopBackOff"), operation(create, failed, "request 2", "ResourceExhausted")), ""},
		{"that it fails in another way", crash, aMachine(phase("CrashLoopBackOff"), operation(create, failed, "who?", "Unauthenticated")), "Warning Unauthenticated Create failed: who?"},
		{"that it fails without a code", aMachine(), aMachine(operation(create, failed, "no class", "")), "Warning CreateFailed Create failed: no class"},
		{"a code that is no word gives another reason", aMachine(), aMachine(operation("", failed, "x", "not a word")), "Warning Failed x"},
		{"a phase that is no word gives another reason", aMachine(), aMachine(phase("on fire")), `Normal PhaseChanged Phase is "on fire"`},
		{"nothing of its end", aMachine(phase("Terminating"), leaving), aMachine(phase("Terminating"), leaving, unguarded), ""},
		{"a later machine of the same name is another", aMachine(phase("Running")), aMachine(phase("Running"), spec(func(m *v1alpha1.Machine) { m.UID = "2" })), `Normal Running Phase is "Running"`},
		{"nothing of texts and labels", aMachine(phase("Running"), operation(create, done, "a", "")), aMachine(phase("Running"), operation(create, done, "b", ""), spec(func(m *v1alpha1.Machine) { m.Labels = nil })), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, strings.Join(texted(machine.Events(c.before, c.after)), "\n"))
		})
	}
}

func TestEvents_RandomChanges_AreValid(t *testing.T) {
	camel := regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "Failed", "a b", "é" + strings.Repeat("ü", 600), "Running", "\x00", strings.Repeat("X", 200), "ResourceExhausted", "Processing"}
	pick := func() string { return pieces[r.IntN(len(pieces))] }
	random := func() *v1alpha1.Machine {
		return aMachine(phase(v1alpha1.MachinePhase(pick())), operation(v1alpha1.MachineOperationType(pick()), v1alpha1.MachineState(pick()), pick(), pick()))
	}
	for range 1000 {
		before, after := random(), random()
		unchanged := fmt.Sprint(before, after)
		for _, e := range machine.Events(before, after) {
			require.Regexp(t, camel, e.Reason)
			require.Contains(t, []string{"Normal", "Warning"}, e.Type)
			require.LessOrEqual(t, len(e.Message), 1024)
			require.True(t, utf8.ValidString(e.Message))
		}
		require.Empty(t, machine.Events(before, before))
		require.Equal(t, unchanged, fmt.Sprint(before, after))
	}
}
