// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// aMachine returns a machine whose VM exists, changed.
func aMachine(changes ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", UID: "1", Finalizers: []string{v1alpha1.MCMFinalizerName}, Labels: map[string]string{v1alpha1.NodeLabelKey: "n"},
		},
		Spec: v1alpha1.MachineSpec{ProviderID: "sim:///vm-1"},
	}
	for _, change := range changes {
		change(m)
	}
	return m
}

func inPhase(p v1alpha1.MachinePhase) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = p }
}

func lastly(t v1alpha1.MachineOperationType, s v1alpha1.MachineState, code, text string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{Type: t, State: s, ErrorCode: code, Description: text}
	}
}

func beingDeleted(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)} }

func released(m *v1alpha1.Machine) { m.Finalizers = nil }

func TestWhatAChangeOfAMachineTellsPeople(t *testing.T) {
	const (
		create = v1alpha1.MachineOperationCreate
		health = v1alpha1.MachineOperationHealthCheck
		failed = v1alpha1.MachineStateFailed
		doing  = v1alpha1.MachineStateProcessing
		done   = v1alpha1.MachineStateSuccessful
	)
	exhausted := lastly(create, failed, "ResourceExhausted", "no room")
	crash := aMachine(inPhase("CrashLoopBackOff"), exhausted)
	cases := []struct {
		name          string
		before, after *v1alpha1.Machine
		want          string
	}{
		{"nothing of no machine", aMachine(), nil, ""},
		{"nothing of a machine that is only there", nil, &v1alpha1.Machine{}, ""},
		{"a machine seen for the first time tells its phase", nil, aMachine(inPhase("Running")), `Normal Running Phase is "Running"`},
		{"that the VM exists", aMachine(), aMachine(inPhase("Pending"), lastly(create, doing, "", v1alpha1.CreatingMachine)), `Normal Pending Phase is "Pending": VM sim:///vm-1 exists, node n has to join`},
		{"that the VM exists and that is all", aMachine(), aMachine(inPhase("Available")), `Normal Available Phase is "Available": VM sim:///vm-1 exists`},
		{"that it has joined", aMachine(inPhase("Pending")), aMachine(inPhase("Running"), lastly(create, done, "", "joined in 8s")), `Normal Running Phase is "Running", was "Pending": joined in 8s`},
		{"that it is not well", aMachine(inPhase("Running")), aMachine(inPhase("Unknown"), lastly(health, doing, "", "no node")), `Warning Unknown Phase is "Unknown", was "Running": no node`},
		{"that it is given up, once", aMachine(inPhase("Unknown"), lastly(health, doing, "", "")), aMachine(inPhase("Failed"), lastly(health, failed, "", "too long")), `Warning Failed Phase is "Failed", was "Unknown": too long`},
		{"that it cannot be made, and why", aMachine(), crash, "Warning CrashLoopBackOff Phase is \"CrashLoopBackOff\"\nWarning ResourceExhausted Create failed: no room"},
		{"not that it fails again", crash, aMachine(inPhase("CrashLoopBackOff"), lastly(create, failed, "ResourceExhausted", "request 2")), ""},
		{"that it fails in another way", crash, aMachine(inPhase("CrashLoopBackOff"), lastly(create, failed, "Unauthenticated", "who?")), "Warning Unauthenticated Create failed: who?"},
		{"that it fails without a code", aMachine(), aMachine(lastly(create, failed, "", "no class")), "Warning CreateFailed Create failed: no class"},
		{"a code that is no word gives another reason", aMachine(), aMachine(lastly("", failed, "not a word", "x")), "Warning Failed x"},
		{"a phase that is no word gives another reason", aMachine(), aMachine(inPhase("on fire")), `Normal PhaseChanged Phase is "on fire"`},
		{"nothing of its end", aMachine(inPhase("Terminating"), beingDeleted), aMachine(inPhase("Terminating"), beingDeleted, released), ""},
		{"a later machine of the same name is another", aMachine(inPhase("Running")), aMachine(inPhase("Running"), func(m *v1alpha1.Machine) { m.UID = "2" }), `Normal Running Phase is "Running"`},
		{"nothing of texts and labels", aMachine(inPhase("Running"), lastly(create, done, "", "a")), aMachine(inPhase("Running"), lastly(create, done, "", "b"), func(m *v1alpha1.Machine) { m.Labels = nil }), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, strings.Join(texted(machine.Events(c.before, c.after)), "\n"))
		})
	}
}

func TestEventsAreSuchAsAnAPIServerTakes(t *testing.T) {
	camel := regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "Failed", "a b", "é" + strings.Repeat("ü", 600), "Running", "\x00", strings.Repeat("X", 200), "ResourceExhausted", "Processing"}
	pick := func() string { return pieces[r.IntN(len(pieces))] }
	random := func() *v1alpha1.Machine {
		return aMachine(inPhase(v1alpha1.MachinePhase(pick())), lastly(v1alpha1.MachineOperationType(pick()), v1alpha1.MachineState(pick()), pick(), pick()))
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
