// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

//go:generate go run ../tools/cmd/phases/main.go ..

// String returns the row in one line: "Running to Unknown: NodeGone".
func (t Transition) String() string {
	from := make([]string, len(t.From))
	for i, p := range t.From {
		from[i] = phaseName(p)
	}
	if t.From == nil {
		from = []string{"any phase"}
	}
	text := fmt.Sprintf("%s to %s: %s", strings.Join(from, ", "), phaseName(t.To), t.Trigger)
	if t.Guard != "" {
		text += ", if " + string(t.Guard)
	}
	return text
}

// phaseName returns the phase, with a name also for that of a new machine.
func phaseName(p v1alpha1.MachinePhase) string {
	if p == "" {
		return "new"
	}
	return string(p)
}

// PhaseDiagram draws a table of phases, such as that of [Transitions], as the
// source of a Mermaid state diagram. Rows that begin in any phase begin in a state
// of that name; those that end in the phase they begin in are left out. A note names
// the guards. The same table gives the same text.
func PhaseDiagram(table []Transition) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    state \"any phase\" as Any\n")
	var guarded []string
	for _, row := range table {
		from := row.From
		if from == nil {
			from = []v1alpha1.MachinePhase{"Any"}
		}
		for _, p := range from {
			if p == row.To {
				continue
			}
			fmt.Fprintf(&b, "    %s --> %s : %s\n", diagramState(p), diagramState(row.To), row.Trigger)
		}
		if row.Guard != "" {
			guarded = append(guarded, "        "+row.String())
		}
	}
	if len(guarded) > 0 {
		b.WriteString("    note right of Any\n" + strings.Join(guarded, "\n") + "\n    end note\n")
	}
	return b.String()
}

// diagramState is how Mermaid names a phase.
func diagramState(p v1alpha1.MachinePhase) string {
	if p == "" {
		return "[*]"
	}
	return string(p)
}
