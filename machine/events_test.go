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

// aMachine returns a machine with a VM.
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
		{"no machine: none", aMachine(), nil, ""},
		{"new machine without phase: none", nil, &v1alpha1.Machine{}, ""},
		{"first observation: phase", nil, aMachine(phase("Running")), `Normal Running Phase is "Running"`},
		{"VM exists", aMachine(), aMachine(phase("Pending"), operation(create, doing, v1alpha1.CreatingMachine, "")), `Normal Pending Phase is "Pending": VM simulated:///1 exists, node n has to join`},
		{"VM exists, no target cluster", aMachine(), aMachine(phase("Available")), `Normal Available Phase is "Available": VM simulated:///1 exists`},
		{"Node joined", aMachine(phase("Pending")), aMachine(phase("Running"), operation(create, done, "joined in 8s", "")), `Normal Running Phase is "Running", was "Pending": joined in 8s`},
		{"Node unhealthy", aMachine(phase("Running")), aMachine(phase("Unknown"), operation(health, doing, "no node", "")), `Warning Unknown Phase is "Unknown", was "Running": no node`},
		{"health timeout: one Event", aMachine(phase("Unknown"), operation(health, doing, "", "")), aMachine(phase("Failed"), operation(health, failed, "too long", "")), `Warning Failed Phase is "Failed", was "Unknown": too long`},
		{"creation fails: phase and error", aMachine(), crash, "Warning CrashLoopBackOff Phase is \"CrashLoopBackOff\"\nWarning ResourceExhausted Create failed: no room"},
		{"creation fails again with the same code: none", crash, aMachine(phase("CrashLoopBackOff"), operation(create, failed, "request 2", "ResourceExhausted")), ""},
		{"creation fails with another code", crash, aMachine(phase("CrashLoopBackOff"), operation(create, failed, "who?", "Unauthenticated")), "Warning Unauthenticated Create failed: who?"},
		{"creation fails without a code", aMachine(), aMachine(operation(create, failed, "no class", "")), "Warning CreateFailed Create failed: no class"},
		{"code is not a valid reason", aMachine(), aMachine(operation("", failed, "x", "not a word")), "Warning Failed x"},
		{"phase is not a valid reason", aMachine(), aMachine(phase("on fire")), `Normal PhaseChanged Phase is "on fire"`},
		{"finalizer removed: none", aMachine(phase("Terminating"), leaving), aMachine(phase("Terminating"), leaving, unguarded), ""},
		{"later machine of the same name: phase", aMachine(phase("Running")), aMachine(phase("Running"), spec(func(m *v1alpha1.Machine) { m.UID = "2" })), `Normal Running Phase is "Running"`},
		{"texts and labels: none", aMachine(phase("Running"), operation(create, done, "a", "")), aMachine(phase("Running"), operation(create, done, "b", ""), spec(func(m *v1alpha1.Machine) { m.Labels = nil })), ""},
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
