// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// What the reference system makes of a value of the annotation, by phase (Failed
// or not) and recorded end (none, future, past): S starts, K keeps, X stops, XR
// stops and removes the annotations, . does nothing. A number of a defect behind
// a cell says that we differ there, and how follows from it.
const (
	onMachine = `
absent         | .     | X     | X     | .     | X     | X
empty          | .     | X     | X     | .     | X     | X
now            | S     | K     | XR    | S     | K     | XR
when-failed    | .     | X     | XR    | S     | K     | XR
auto-preserved | .DM41 | XR    | XR    | S     | K     | XR
false          | .     | X     | X     | .     | X     | X
bogus          | .     | X     | X     | .     | X     | X`
	// The machine is annotated, and a value of the Node was once acted on that it
	// has no more: what is there counts as nothing, and is removed.
	onMachineApplied = `
absent         | .     | X     | X     | .     | X     | X
empty          | .     | X     | X     | .     | X     | X
now            | .     | X     | X     | .     | X     | X
when-failed    | .     | X     | X     | .     | X     | X
auto-preserved | .     | X     | X     | .     | X     | X
false          | .     | X     | X     | .     | X     | X
bogus          | .     | X     | X     | .     | X     | X`
	onNodeAlone = `
absent         | .     | X     | X     | .     | X     | X
empty          | .DM15 | .DM15 | .DM15 | .DM15 | .DM15 | .DM15
now            | S     | K     | XR    | S     | K     | XR
when-failed    | .     | X     | XR    | S     | K     | XR
auto-preserved | .DM41 | XR    | XR    | S     | K     | XR
false          | .     | X     | X     | .     | X     | X
bogus          | .DM15 | .DM15 | .DM15 | .DM15 | .DM15 | .DM15`
)

// preserveCell is one of the 252 combinations.
type preserveCell struct {
	value      string
	phase      v1alpha1.MachinePhase
	end        string
	applied    bool
	annotated  string
	theirs     string
	difference string
}

func (c preserveCell) String() string {
	applied := "nothing applied"
	if c.applied {
		applied = "now applied"
	}
	return fmt.Sprintf("%s on %s, %s, end %s, %s", c.value, c.annotated, c.phase, c.end, applied)
}

// preserveCells reads a table.
func preserveCells(t *testing.T, table, annotated string, applied bool) []preserveCell {
	t.Helper()
	var all []preserveCell
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		f := strings.Fields(strings.ReplaceAll(line, "|", " "))
		require.Len(t, f, 7, line)
		for i, theirs := range f[1:] {
			theirs, difference, _ := strings.Cut(theirs, "DM")
			phases := []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineUnknown}
			if i >= 3 {
				phases = []v1alpha1.MachinePhase{v1alpha1.MachineFailed}
			}
			for _, p := range phases {
				end := []string{"none", "future", "past"}[i%3]
				all = append(all, preserveCell{f[0], p, end, applied, annotated, theirs, difference})
			}
		}
	}
	return all
}

// The whole matrix of section 28.2.
func TestSection28_2Preservation(t *testing.T) {
	t.Parallel()
	all := preserveCells(t, onMachine, "the machine", false)
	all = append(all, preserveCells(t, onMachineApplied, "the machine", true)...)
	all = append(all, preserveCells(t, onNodeAlone, "the Node", false)...)
	all = append(all, preserveCells(t, onNodeAlone, "the Node", true)...)
	require.Len(t, all, 252)
	for _, c := range all {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// world is the cell as a world.
func (c preserveCell) world() *world {
	nodeIs := corev1.ConditionUnknown
	if c.phase == v1alpha1.MachineRunning {
		nodeIs = corev1.ConditionTrue
	}
	in := living(c.phase, node(ready(nodeIs)), copied)
	m, value := in.Machine, c.value
	switch value {
	case "absent":
		value = "-"
	case "empty":
		value = ""
	}
	if c.annotated == "the machine" {
		m.Annotations = annotate(m.Annotations, v1alpha1.PreserveMachineAnnotationKey, value)
	} else {
		annotate(in.Node.Node.Annotations, v1alpha1.PreserveMachineAnnotationKey, value)
	}
	if c.applied {
		m.Annotations = annotate(m.Annotations, v1alpha1.LastAppliedNodePreserveValueAnnotationKey, v1alpha1.PreserveMachineAnnotationValueNow)
	}
	switch c.end {
	case "future":
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Hour)}
	case "past":
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(-time.Second)}
	}
	return newWorld(in)
}

// ours is what we make of the cell: what they do, but for the defects.
func (c preserveCell) ours(t *testing.T) string {
	t.Helper()
	switch {
	case c.difference == "":
		return c.theirs
	case c.difference == "15" && c.end == "none": // an empty value of the Node stops, another that is none is none
		return "."
	case c.difference == "15":
		return "X"
	case c.difference == "41": // the request of a machine that recovered is taken back
		return "R"
	}
	t.Fatalf("a difference that nobody knows: %q", c.difference)
	return ""
}

func (c preserveCell) check(t *testing.T) {
	r, want := c.world(), c.ours(t)
	before := deepCopy(r.in)
	_, err := r.rest()
	require.NoError(t, err)
	m, n := r.in.Machine, r.in.Node.Node

	switch want {
	case "S":
		require.Equal(t, new(now.Add(96*time.Hour)), r.end())
	case "K":
		require.Equal(t, new(now.Add(time.Hour)), r.end(), "the end is moved")
	default:
		require.Nil(t, r.end())
	}
	kept := want == "S" || want == "K"
	require.Equal(t, kept, n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey] == "true")
	require.Equal(t, kept, n.Annotations[v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey] == "true")
	require.Equal(t, kept && c.phase == v1alpha1.MachineFailed, r.tainted())
	require.Equal(t, c.condition(want, r.end()), c.seen(r))

	forgets := want == "XR" || want == "R"
	own, hasOwn := m.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	wasOwn, hadOwn := before.Machine.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	if forgets || c.applied {
		hadOwn, wasOwn = false, ""
	}
	require.Equal(t, hadOwn, hasOwn, "the annotation of the machine")
	require.Equal(t, wasOwn, own)
	_, asks := n.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	_, asked := before.Node.Node.Annotations[v1alpha1.PreserveMachineAnnotationKey]
	require.Equal(t, asked && !forgets, asks, "the annotation of the Node")

	applied, has := m.Annotations[v1alpha1.LastAppliedNodePreserveValueAnnotationKey]
	require.Equal(t, c.lastApplied(forgets), applied)
	require.Equal(t, applied != "", has, "a key that says nothing (DM-41)")

	require.Equal(t, before.Machine.Status.CurrentStatus.Phase, m.Status.CurrentStatus.Phase)
	require.True(t, before.Machine.Status.CurrentStatus.LastUpdateTime.Equal(&m.Status.CurrentStatus.LastUpdateTime), "the health clock is reset (DM-41)")

	r.crash()
	effects, err := r.rest()
	require.NoError(t, err)
	require.Zero(t, effects, "no rest:\n%s", r.story())
}

// seen renders the condition of the Node.
func (c preserveCell) seen(r *world) string {
	have := r.condition(v1alpha1.NodePreserved)
	if have == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s %s", have.Status, have.Reason, have.Message)
}

// condition is what the Node should say in the end.
func (c preserveCell) condition(want string, end *time.Time) string {
	switch want {
	case "X", "XR":
		return "False Preservation stopped. "
	case ".", "R":
		return "none"
	}
	reason, text := "Preserved by user.", fmt.Sprintf("Machine preserved until %s.", end)
	if c.value == v1alpha1.PreserveMachineAnnotationValuePreservedByMCM {
		reason = "Preserved by MCM."
	}
	if c.phase == v1alpha1.MachineFailed {
		text = "Preserved node drained successfully. " + text
	}
	return "True " + reason + " " + text
}

// lastApplied is what is noted of the Node in the end.
func (c preserveCell) lastApplied(forgets bool) string {
	understood := map[string]bool{"now": true, "when-failed": true, "auto-preserved": true, "false": true}
	if c.annotated == "the Node" && understood[c.value] && !forgets {
		return c.value
	}
	return ""
}

// Where the Node does not exist, the machine speaks for itself.
func TestSection11_5AnExpiredPreservationEndsWithoutANodeToo(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]change{
		"a Node that is gone":       withID,
		"a machine that names none": spec(func(m *v1alpha1.Machine) { m.Labels = nil }),
		"no cluster to join":        noTarget,
		"a Node of another machine": func(in *machine.Observation) { node()(in); in.Node.Node.Labels[v1alpha1.MachineNameLabelKey] = "other" },
	} {
		in := living(v1alpha1.MachineFailed, gone, looked)
		in.Machine.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: "now"}
		in.Machine.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now}
		r := newWorld(in)
		_, err := r.rest()
		require.NoError(t, err, name)
		require.Nil(t, r.end(), name)
		require.Empty(t, r.in.Machine.Annotations, name)
		if n := r.in.Node.Node; n != nil {
			require.Empty(t, n.Status.Conditions, name)
		}
	}
}
