// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// aMachine returns a machine with a VM, in a phase and with a last operation.
func aMachine(phase v1alpha1.MachinePhase, op v1alpha1.LastOperation) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "1", Labels: map[string]string{v1alpha1.NodeLabelKey: "n"}}}
	m.Spec.ProviderID, m.Status.CurrentStatus.Phase, m.Status.LastOperation = "simulated:///1", phase, op
	return m
}

func with(m *v1alpha1.Machine, change func(*v1alpha1.Machine)) *v1alpha1.Machine {
	change(m)
	return m
}

func operation(t v1alpha1.MachineOperationType, s v1alpha1.MachineState, description, code string) v1alpha1.LastOperation {
	return v1alpha1.LastOperation{Type: t, State: s, Description: description, ErrorCode: code}
}

func TestEvents_EachChange_Texts(t *testing.T) {
	const (
		create = v1alpha1.MachineOperationCreate
		health = v1alpha1.MachineOperationHealthCheck
		remove = v1alpha1.MachineOperationDelete
		failed = v1alpha1.MachineStateFailed
		doing  = v1alpha1.MachineStateProcessing
		done   = v1alpha1.MachineStateSuccessful
	)
	none := v1alpha1.LastOperation{}
	exhausted := operation(create, failed, "no room", "ResourceExhausted")
	crash := aMachine("CrashLoopBackOff", exhausted)
	cases := []struct {
		name          string
		before, after *v1alpha1.Machine
		want          string
	}{
		{"no machine: none", aMachine("", none), nil, ""},
		{"new machine without phase: none", nil, &v1alpha1.Machine{}, ""},
		{"first observation: phase", nil, aMachine("Unknown", none), `Warning Unknown Phase is "Unknown"`},
		{"VM exists: none", aMachine("", none), aMachine("Pending", operation(create, doing, v1alpha1.CreatingMachine, "")), ""},
		{"VM exists, no target cluster: none", aMachine("", none), aMachine("Available", none), ""},
		{"Node joined: none", aMachine("Pending", none), aMachine("Running", operation(create, done, "joined in 8s", "")), ""},
		{"deletion: none", aMachine("Running", none), aMachine("Terminating", operation(remove, doing, "a", "")), ""},
		{"deletion of a failed machine: none", aMachine("Failed", none), aMachine("Terminating", operation(remove, doing, "a", "")), ""},
		{"deletion fails at once", aMachine("Running", none), aMachine("Terminating", operation(remove, failed, "who?", "")), "Warning DeleteFailed Delete failed: who?"},
		{"VM exists after failures", crash, aMachine("Pending", operation(create, doing, v1alpha1.CreatingMachine, "")), `Normal Pending Phase is "Pending", was "CrashLoopBackOff": VM simulated:///1 exists, node n has to join`},
		{"VM exists after failures, no target cluster", crash, aMachine("Available", none), `Normal Available Phase is "Available", was "CrashLoopBackOff": VM simulated:///1 exists`},
		{"Node healthy again", aMachine("Unknown", none), aMachine("Running", operation(health, done, "joined again", "")), `Normal Running Phase is "Running", was "Unknown": joined again`},
		{"Node unhealthy", aMachine("Running", none), aMachine("Unknown", operation(health, doing, "no node", "")), `Warning Unknown Phase is "Unknown", was "Running": no node`},
		{"health timeout: one Event", aMachine("Unknown", operation(health, doing, "", "")), aMachine("Failed", operation(health, failed, "too long", "")), `Warning Failed Phase is "Failed", was "Unknown": too long`},
		{"creation fails: phase and error", aMachine("", none), crash, "Warning CrashLoopBackOff Phase is \"CrashLoopBackOff\"\nWarning ResourceExhausted Create failed: no room"},
		{"creation fails again with the same code: none", crash, aMachine("CrashLoopBackOff", operation(create, failed, "request 2", "ResourceExhausted")), ""},
		{"creation fails with another code", crash, aMachine("CrashLoopBackOff", operation(create, failed, "who?", "Unauthenticated")), "Warning Unauthenticated Create failed: who?"},
		{"creation fails without a code", aMachine("", none), aMachine("", operation(create, failed, "no class", "")), "Warning CreateFailed Create failed: no class"},
		{"code is not a valid reason", aMachine("", none), aMachine("", operation("", failed, "x", "not a word")), "Warning Failed x"},
		{"phase is not a valid reason", aMachine("", none), aMachine("on fire", none), `Normal PhaseChanged Phase is "on fire"`},
		{"finalizer removed: none", aMachine("Terminating", none), with(aMachine("Terminating", none), func(m *v1alpha1.Machine) { m.Finalizers = []string{"x"} }), ""},
		{"later machine of the same name: phase", aMachine("Unknown", none), with(aMachine("Unknown", none), func(m *v1alpha1.Machine) { m.UID = "2" }), `Warning Unknown Phase is "Unknown"`},
		{"texts and labels: none", aMachine("Running", operation(create, done, "a", "")), with(aMachine("Running", operation(create, done, "b", "")), func(m *v1alpha1.Machine) { m.Labels = nil }), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range facts.Events(c.before, c.after) {
				got = append(got, e.String())
			}
			require.Equal(t, c.want, strings.Join(got, "\n"))
		})
	}
}

func TestEvents_RandomChanges_AreValid(t *testing.T) {
	camel := regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"", "Failed", "a b", "é" + strings.Repeat("ü", 600), "Running", "\x00", strings.Repeat("X", 200), "ResourceExhausted", "Processing"}
	pick := func() string { return pieces[r.IntN(len(pieces))] }
	random := func() *v1alpha1.Machine {
		return aMachine(v1alpha1.MachinePhase(pick()), operation(v1alpha1.MachineOperationType(pick()), v1alpha1.MachineState(pick()), pick(), pick()))
	}
	for range 1000 {
		before, after := random(), random()
		unchanged := fmt.Sprint(before, after)
		for _, e := range facts.Events(before, after) {
			require.Regexp(t, camel, e.Reason)
			require.Contains(t, []string{"Normal", "Warning"}, e.Type)
			require.LessOrEqual(t, len(e.Message), 1024)
			require.True(t, utf8.ValidString(e.Message))
		}
		require.Empty(t, facts.Events(before, before))
		require.Equal(t, unchanged, fmt.Sprint(before, after))
	}
}
