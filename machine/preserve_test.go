// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

const (
	preserveKey = v1alpha1.PreserveMachineAnnotationKey
	appliedKey  = v1alpha1.LastAppliedNodePreserveValueAnnotationKey
	disabledKey = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	oursKey     = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
)

// asks has the machine, the Node say something of preservation, and something
// noted that the Node said; "-" is nothing.
func asks(own, nodes, applied string) change {
	return func(in *machine.Observation) {
		in.Machine.Annotations = annotate(annotate(in.Machine.Annotations, preserveKey, own), appliedKey, applied)
		if in.Node.Node != nil {
			in.Node.Node.Annotations = annotate(in.Node.Node.Annotations, preserveKey, nodes)
		}
	}
}

// ending is a preservation that ends then.
func ending(in time.Duration) change {
	return spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(in)} })
}

func TestPreservation_NoTimeout_HasNoEnd(t *testing.T) {
	r := newWorld(living(running, healthy, copied, asks("now", "-", "-")))
	r.policy = machine.Policy{}
	r.mustRest(t)
	require.Equal(t, "9999-12-31T23:59:59Z", r.end().Format(time.RFC3339))
	require.Zero(t, r.last.NextCheck)
	require.Contains(t, r.last.String(), "waits for machine/m: Preserved: without end")
	config(&v1alpha1.MachineConfiguration{MachinePreserveTimeout: &metav1.Duration{Duration: time.Hour}})(&r.in)
	r.mustRest(t)
	require.Equal(t, 9999, r.end().Year(), "what has begun is not moved")
}

// TestPreservation_FailsAndRecovers plays the life of a preserved machine, with every action.
func TestPreservation_FailsAndRecovers(t *testing.T) {
	r := newWorld(living(v1alpha1.MachineRunning, healthy, copied, looked))
	stuck := machine.DrainView{Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}, NextCheck: now.Add(time.Hour)}
	r.drained = func(machine.DrainNode) machine.DrainView { return stuck }
	becomes := func(s corev1.ConditionStatus) func() {
		return func() { r.in.Node.Node.Status.Conditions[0].Status = s }
	}
	story := r.chapter(t, "nothing is asked for", func() {}) +
		r.chapter(t, "the Node says now", func() { annotate(r.in.Node.Node.Annotations, preserveKey, "now") }) +
		r.chapter(t, "the Node gets sick", becomes(corev1.ConditionUnknown)) +
		r.chapter(t, "and stays so", func() { r.pass(10 * time.Minute) }) +
		r.chapter(t, "pods stay for half a minute", func() { r.pass(30 * time.Second) }) +
		r.chapter(t, "then they go", func() { stuck = machine.DrainView{Done: true} }) +
		r.chapter(t, "the Node gets well", becomes(corev1.ConditionTrue)) +
		r.chapter(t, "the time is over", func() { r.now = *r.end() })
	golden(t, "preserved.txt", story)
}

func TestPreservation_FailedMachine_NodeIsDrained(t *testing.T) {
	r, rounds := newWorld(living(failed, sick, copied, asks("now", "-", "-"))), 0
	r.in.Node.Node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
	r.drained = func(a machine.DrainNode) machine.DrainView {
		require.True(t, r.tainted(), "the taint comes first")
		require.False(t, r.in.Node.Node.Spec.Unschedulable)
		require.True(t, a.Policy.EscalateFrom.Equal(now.Add(2*time.Hour)))
		rounds++
		return machine.DrainView{Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}}
	}
	for _, next := range []time.Duration{
		30 * time.Second,                // when the Node is told
		5*time.Minute + time.Nanosecond, // when it is out of reach for long
		2 * time.Hour,                   // when the drain is forced
	} {
		r.mustRest(t)
		require.Equal(t, now.Add(next), r.last.NextCheck.UTC(), r.log())
		r.now = now.Add(next)
	}
	r.mustRest(t)
	require.Equal(t, 4, rounds, "one round in each pass")
	require.Contains(t, r.condition(v1alpha1.NodePreserved).Message, "could not be drained")
}

// TestPreservation_MarksRemoved_ArePutBack asserts that marks of a preservation that a client
// removed are put back. Changes are written, and settled marks are not.
func TestPreservation_MarksRemoved_ArePutBack(t *testing.T) {
	ends := func(r *world) { r.in.Machine.Annotations[preserveKey] = "false" }
	disabled := func(r *world) bool { return r.in.Node.Node.Annotations[disabledKey] == "true" }
	reason := func(want string) func(*world) bool {
		return func(r *world) bool {
			c := r.condition(v1alpha1.NodePreserved)
			return c.Reason == want && c.LastTransitionTime.Time.Equal(now.Add(time.Hour))
		}
	}
	for name, tc := range map[string]struct {
		begin func(*corev1.Node)
		then  func(*world)
		want  func(*world) bool
	}{
		"the annotation is put back":      {nil, func(r *world) { delete(r.in.Node.Node.Annotations, disabledKey) }, disabled},
		"the annotation of a user stays":  {func(n *corev1.Node) { n.Annotations[disabledKey] = "true" }, ends, disabled},
		"the taint is put back":           {nil, func(r *world) { r.in.Node.Node.Spec.Taints = nil }, (*world).tainted},
		"the cordon of a user stays":      {func(n *corev1.Node) { n.Spec.Unschedulable = true }, ends, func(r *world) bool { return r.in.Node.Node.Spec.Unschedulable }},
		"a new reason is written":         {nil, func(r *world) { r.in.Machine.Annotations[preserveKey] = "now" }, reason("Preserved by user.")},
		"the end is written, with a time": {nil, ends, reason("Preservation stopped.")},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(failed, sick, copied, asks("auto-preserved", "-", "-"))
			if tc.begin != nil {
				tc.begin(in.Node.Node)
			}
			r := newWorld(in)
			r.mustRest(t)
			require.Zero(t, r.mustRest(t))
			require.Equal(t, "Preserved by MCM.", r.condition(v1alpha1.NodePreserved).Reason)
			r.pass(time.Hour)
			tc.then(r)
			require.NotZero(t, r.mustRest(t))
			require.True(t, tc.want(r), r.log())
		})
	}
	r := newWorld(living(running, healthy, copied, asks("false", "now", "now")))
	r.mustRest(t)
	require.Equal(t, map[string]string{appliedKey: "now"}, r.in.Machine.Annotations, "the request of the machine besides its Node is removed")
	require.NotNil(t, r.end())
}

// TestPreservation_EndLost_MarksAreRemoved has a preservation whose recorded end was lost: its
// marks on the Node are removed.
func TestPreservation_EndLost_MarksAreRemoved(t *testing.T) {
	for _, value := range []string{"-", "false", "when-failed", "auto-preserved"} {
		r := newWorld(living(failed, sick, copied, asks("now", "-", "-")))
		r.mustRest(t)
		r.in.Machine.Status.CurrentStatus.Phase = unknown
		r.in.Machine.Status.CurrentStatus.PreserveExpiryTime = nil
		asks(value, "-", "-")(&r.in)
		r.mustRest(t)
		require.NoError(t, r.atRest(), value)
		require.NotContains(t, r.in.Node.Node.Annotations, disabledKey, value)
		require.Equal(t, "Preservation stopped.", r.condition(v1alpha1.NodePreserved).Reason, value)
	}
}

func TestPreservation_End_IsTheNextCheck(t *testing.T) {
	for name, in := range map[string]machine.Observation{
		"Running":         living(v1alpha1.MachineRunning, healthy, copied, asks("now", "-", "-")),
		"Failed":          living(v1alpha1.MachineFailed, sick, copied, asks("when-failed", "-", "-")),
		"without Node":    living(v1alpha1.MachineFailed, asks("auto-preserved", "-", "-")),
		"of another":      living(v1alpha1.MachineFailed, healthy, ofAnother, asks("now", "-", "-")),
		"without cluster": living(v1alpha1.MachineFailed, noTarget, asks("now", "-", "-")),
	} {
		r := newWorld(in)
		r.mustRest(t)
		require.Equal(t, now.Add(96*time.Hour), r.last.NextCheck.UTC(), name)
		r.now = r.last.NextCheck
		r.mustRest(t)
		require.Nil(t, r.end(), name)
		require.Empty(t, r.in.Machine.Annotations, name)
	}
}

func TestPreservation_NodeNotRead_Waits(t *testing.T) {
	lost := spec(func(m *v1alpha1.Machine) { m.Labels = nil })
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a Node that was not read may say the contrary": {
			living(v1alpha1.MachineRunning, unseen, asks("now", "-", "-")),
			"nothing (NotObserved: its preserve annotation was not read); waits for node/n: NotObserved: its preserve annotation was not read; waits for node/n: NotObserved",
		},
		"a lost name is not taken for a Node that says nothing": {
			living(v1alpha1.MachineRunning, lost, looked, asks("-", "-", "now"), ending(time.Hour), vm(machine.VMView{Presence: machine.Present, Asked: "GetMachineStatus", SeenAt: now})),
			"nothing (NotObserved: the name of the node, which may have the preserve annotation, is not known); waits for machine/m: NotObserved: the name of the node, which may have the preserve annotation, is not known; waits for machine/m: NotObserved: the name of its node is not known",
		},
		"a machine on its way is preserved too": {after(intended, asks("now", "-", "-")), `update status of machine m: phase "", Create Processing (Preserved: until 2026-03-05T12:00:00Z)`},
		"a deletion goes first (DM-29)":         {living(v1alpha1.MachineFailed, leaving, node(), asks("now", "-", "-")), "update status of node n: condition Terminating=True (Unhealthy) (Deleting)"},
	})
}

func TestPreservation_NodeTemplate_NoConflict(t *testing.T) {
	templated := func(key, value string) change {
		return func(in *machine.Observation) {
			in.Machine.Spec.NodeTemplateSpec.Annotations = annotate(in.Machine.Spec.NodeTemplateSpec.Annotations, key, value)
		}
	}
	taint := spec(func(m *v1alpha1.Machine) {
		m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule}}
	})
	for name, changes := range map[string][]change{
		"scale-down is allowed":   {templated(disabledKey, "false"), asks("now", "-", "-")},
		"the mark is not ours":    {templated(oursKey, "false"), asks("now", "-", "-")},
		"the mark stays":          {templated(oursKey, "true"), asks("false", "-", "-"), ending(time.Hour)},
		"all Nodes are preserved": {templated(preserveKey, "now")},
		"for ever anew":           {templated(preserveKey, "now"), asks("-", "now", "now"), ending(0)},
		"none is":                 {templated(preserveKey, "auto-preserved")},
		"the taint stays":         {taint, asks("false", "-", "-"), ending(time.Hour)},
		"the taint is of all":     {taint, asks("now", "-", "-")},
	} {
		for p, state := range map[v1alpha1.MachinePhase]change{running: healthy, failed: sick} {
			r := newWorld(living(p, append([]change{state, copied}, changes...)...))
			r.mustRest(t)
			require.Zero(t, r.mustRest(t), "%s: %s", name, r.log())
		}
	}
}

// preservedState is a machine and a Node in any state of a preservation.
func preservedState(r *rand.Rand) machine.Observation {
	values := []string{"-", "", "now", "when-failed", "auto-preserved", "false", "nwo"}
	in := living(pick(r, "", v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineUnknown, v1alpha1.MachineFailed, v1alpha1.MachineFailed,
		v1alpha1.MachineInPlaceUpdating, v1alpha1.MachineInPlaceUpdateFailed, v1alpha1.MachineInPlaceUpdateSuccessful),
		node(ready(pick(r, corev1.ConditionTrue, corev1.ConditionFalse))), looked, operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateProcessing, v1alpha1.CreatingMachine, ""))
	asks(pick(r, values...), pick(r, values...), pick(r, values...))(&in)
	in.Machine.Status.CurrentStatus.PreserveExpiryTime = pick(r, nil, &metav1.Time{Time: now.Add(time.Hour)}, &metav1.Time{Time: now}, &metav1.Time{Time: now.Add(-time.Hour)})
	n := in.Node.Node
	annotate(n.Annotations, disabledKey, pick(r, "-", "true", "false"))
	annotate(n.Annotations, oursKey, pick(r, "-", "true", "false"))
	if r.IntN(2) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintNodePreserved, Effect: corev1.TaintEffectNoSchedule, TimeAdded: pick(r, nil, &metav1.Time{Time: moment(r)})}}
	}
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodePreserved, Status: pick(r, corev1.ConditionTrue, corev1.ConditionFalse),
			Reason:  pick(r, v1alpha1.PreservedByUser, v1alpha1.PreservedByMCM, v1alpha1.PreservationStopped),
			Message: pick(r, "", "Preserved node drained successfully. Machine preserved until x.", "Preserved node could not be drained. Machine preserved until x."),
		})
	}
	stopped := func(c corev1.NodeCondition) bool {
		return c.Type != v1alpha1.NodePreserved || c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.PreservationStopped
	}
	if in.Machine.Status.CurrentStatus.PreserveExpiryTime == nil && len(n.Spec.Taints) == 0 && !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return !stopped(c) }) {
		delete(n.Annotations, oursKey) // without any trace of a preservation, it is of a roll-out
	}
	anyUpdate(r, n, func(*rand.Rand) time.Time { return time.Time{} })
	switch r.IntN(6) {
	case 0:
		in.Node.Node = nil
	case 1:
		in.Node = machine.NodeView{NoTarget: true}
	case 2:
		in.Machine.Labels = nil
		in.Node.Node = nil
	}
	return in
}

// TestPreservation_InPlaceUpdate_BothEnd asserts that a machine and its Node in any state settle
// within thirty actions, twice, and that a machine that is not preserved has no marks of a
// preservation.
func TestPreservation_InPlaceUpdate_BothEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 11))
		r := newWorld(preservedState(rng))
		r.policy = pick(rng, machine.Policy{}, machine.DefaultPolicy())
		if rng.IntN(2) == 0 {
			stuck := rng.IntN(4)
			r.drained = func(machine.DrainNode) machine.DrainView {
				stuck--
				return machine.DrainView{Done: stuck < 0, Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}, NextCheck: r.now.Add(5 * time.Second)}
			}
		}
		for range 8 {
			_, err := r.rest()
			require.NoError(t, err, "seed %d", seed)
			if at := r.last.NextCheck; !at.IsZero() && at.Before(now.Add(40*time.Minute)) {
				r.now = at
			}
		}
		require.NoError(t, r.atRest(), "seed %d:\n%s", seed, r.log())
	}
}

// TestPreservation_AnnotationsOfARollout_Stay asserts that the annotations against the autoscaler
// stay on the Node of a machine that is not preserved: a rollout may have set them.
func TestPreservation_AnnotationsOfARollout_Stay(t *testing.T) {
	stopped := corev1.NodeCondition{Type: v1alpha1.NodePreserved, Status: corev1.ConditionFalse, Reason: v1alpha1.PreservationStopped}
	for name, state := range map[string]change{"never preserved": healthy, "not preserved since": node(ready(corev1.ConditionTrue), stopped)} {
		r := newWorld(living(running, state, copied))
		n := r.in.Node.Node
		n.Annotations[disabledKey], n.Annotations[oursKey] = "true", "true"
		r.mustRest(t)
		n = r.in.Node.Node
		require.Equal(t, "true", n.Annotations[disabledKey], "%s: %s", name, r.log())
		require.Equal(t, "true", n.Annotations[oursKey], "%s: %s", name, r.log())
	}
}

// atRest returns what is not as it should be when nothing is to be done.
func (w *world) atRest() error {
	m, n := w.in.Machine, w.in.Node.Node
	value, known := facts.PreserveValue(m, n, w.in.Node.Looked, w.in.Node.NoTarget)
	phase, kept := m.Status.CurrentStatus.Phase, w.end() != nil
	if !known {
		return nil
	}
	end := time.Time{}
	if kept {
		end = *w.end()
	}
	keep, forget := facts.JudgePreservation(value, phase, end, w.now)
	err := cmp.Or(promise(kept == keep, "a machine is preserved, and should not be, or the other way round"), promise(!forget, "the request is still there"))
	if err != nil || n == nil {
		return err
	}
	c := w.condition(v1alpha1.NodePreserved)
	tells := c != nil && c.Status == corev1.ConditionTrue
	stopped := c == nil || c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.PreservationStopped
	return cmp.Or(
		promise(!kept || phase != v1alpha1.MachineFailed || w.tainted(), "a preserved Node without taint"),
		promise(!w.tainted() || kept && phase != v1alpha1.MachineRunning, "a taint that should be gone"),
		promise(!kept || n.Annotations[disabledKey] == "true", "the autoscaler may remove the Node"),
		promise(kept || n.Annotations[oursKey] != "true", "the autoscaler may not remove the Node"),
		promise(!kept || tells, "a Node that does not tell that it is preserved"),
		promise(kept || stopped, "a Node that tells that it is preserved"))
}

// TestPreserveValue_SetAndMachine_Agree asserts that set and machine decide about a Failed machine
// by the same rules. A machine that the set keeps for its preservation is preserved, and one that
// the set deletes is not. An expired one may be either.
func TestPreserveValue_SetAndMachine_Agree(t *testing.T) {
	t.Parallel()
	values := []string{"-", "", "now", "when-failed", "auto-preserved", "false", "nwo"} // The last means nothing.
	for _, own := range values {
		for _, nodes := range values {
			for _, applied := range []string{"-", "now", "false"} {
				for name, end := range map[string]change{"none": func(*machine.Observation) {}, "future": ending(time.Hour), "past": ending(0)} {
					for which, change := range nodesOfFailed {
						in := living(v1alpha1.MachineFailed, sick, copied, asks(own, nodes, applied), end)
						change(&in)
						agree(t, in, fmt.Sprintf("machine %q, node %q (%s), applied %q, end %s", own, nodes, which, applied, name))
					}
				}
			}
		}
	}
}

// nodesOfFailed are the Nodes that the label of a Failed machine may name.
var nodesOfFailed = map[string]change{
	"its own":              func(*machine.Observation) {},
	"gone":                 func(in *machine.Observation) { in.Node.Node = nil },
	"of another machine":   ofAnother,
	"none":                 func(in *machine.Observation) { delete(in.Machine.Labels, v1alpha1.NodeLabelKey); in.Node.Node = nil },
	"none, and no cluster": noTarget,
	"older, of another VM": onNode(func(n *corev1.Node) {
		delete(unmark(n).Labels, v1alpha1.MachineNameLabelKey)
		n.CreationTimestamp, n.Spec.ProviderID = metav1.NewTime(now.Add(-10*365*24*time.Hour)), "simulated:///other"
	}),
}

func agree(t *testing.T, in machine.Observation, name string) {
	t.Helper()
	set := func(in machine.Observation) (bool, machinist.Reason) {
		return machineset.ReplaceFailed(in.Machine, in.Node, time.Time{}, now)
	}
	r := newWorld(in)
	r.mustRest(t)
	kept := func() bool { return members.Preserved(r.in.Machine, r.now) } // what has expired keeps no machine
	goes, why := set(in)
	require.False(t, goes && kept(), "the set lets it go (%s), the machine keeps it: %s", why, name)
	if _, known := facts.PreserveValue(r.in.Machine, r.in.Node.Node, r.in.Node.Looked, r.in.Node.NoTarget); known && goes {
		require.Nil(t, r.end(), "the set lets it go (%s), the machine has an end recorded: %s", why, name)
	}
	goes, why = set(r.in)
	require.Equal(t, !kept(), goes, "in the end the set says %s: %s", why, name)
	require.NotEqual(t, machineset.ReasonPreservationAsked, why, "the set waits for what never comes: %s", name)
}

// What MCM makes of a value of the annotation, by phase (Failed
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
	onNodeAlone = `
absent         | .     | X     | X     | .     | X     | X
empty          | .DM15 | .DM15 | .DM15 | .DM15 | .DM15 | .DM15
now            | S     | K     | XR    | S     | K     | XR
when-failed    | .     | X     | XR    | S     | K     | XR
auto-preserved | .DM41 | XR    | XR    | S     | K     | XR
false          | .     | X     | X     | .     | X     | X
bogus          | .DM15 | .DM15 | .DM15 | .DM15 | .DM15 | .DM15`
)

// ofNothing is the table of a machine that is annotated, and acted once on a value of
// the Node which it has no more: what is there counts as nothing, and is removed.
var ofNothing = regexp.MustCompile(`\|.*`).ReplaceAllString(onMachine, "| . | X | X | . | X | X")

// preserveCell is one of the 252 combinations.
type preserveCell struct {
	value, where, applied string
	phase                 v1alpha1.MachinePhase
	end, want             string
}

// ours is what we make of a cell: what they do, but for the defects.
func ours(theirs, end string) string {
	theirs, difference, _ := strings.Cut(theirs, "DM")
	switch {
	case difference == "15" && end != "none": // an empty value of the Node stops, another that is none is none
		return "X"
	case difference == "41": // the request of a machine that recovered is taken back
		return "R"
	}
	return theirs
}

// preserveCells reads a table.
func preserveCells(t *testing.T, table, where, applied string) []preserveCell {
	t.Helper()
	var all []preserveCell
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		f := strings.Fields(strings.ReplaceAll(line, "|", " "))
		require.Len(t, f, 7, line)
		value := strings.NewReplacer("absent", "-", "empty", "").Replace(f[0])
		for i, theirs := range f[1:] {
			phases := []v1alpha1.MachinePhase{v1alpha1.MachineRunning, v1alpha1.MachineUnknown}
			if i >= 3 {
				phases = []v1alpha1.MachinePhase{v1alpha1.MachineFailed}
			}
			for _, p := range phases {
				end := []string{"none", "future", "past"}[i%3]
				all = append(all, preserveCell{value, where, applied, p, end, ours(theirs, end)})
			}
		}
	}
	return all
}

// TestPreservation_ValuePhaseAndEnd_Matrix tries every value of the annotation, on the machine or
// its Node, in every phase and with every end.
func TestPreservation_ValuePhaseAndEnd_Matrix(t *testing.T) {
	all := slices.Concat(preserveCells(t, onMachine, "machine", "-"), preserveCells(t, ofNothing, "machine", "now"),
		preserveCells(t, onNodeAlone, "node", "-"), preserveCells(t, onNodeAlone, "node", "now"))
	require.Len(t, all, 252)
	for _, c := range all {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			r := newWorld(c.observation())
			entered := r.in.Machine.Status.CurrentStatus.LastUpdateTime
			r.mustRest(t)
			require.Equal(t, c.wanted(), c.seen(r), r.log())
			require.NoError(t, r.atRest(), r.log())
			require.Equal(t, c.phase, r.in.Machine.Status.CurrentStatus.Phase)
			require.Equal(t, entered, r.in.Machine.Status.CurrentStatus.LastUpdateTime, "the health clock is reset (DM-41)")
			r.crash()
			require.Zero(t, r.mustRest(t), r.log())
		})
	}
}

func (c preserveCell) observation() machine.Observation {
	state, own, nodes := sick, c.value, "-"
	if c.phase == v1alpha1.MachineRunning {
		state = healthy
	}
	if c.where == "node" {
		own, nodes = "-", c.value
	}
	in := living(c.phase, state, copied, asks(own, nodes, c.applied))
	switch c.end {
	case "future":
		ending(time.Hour)(&in)
	case "past":
		ending(-time.Second)(&in)
	}
	return in
}

// seen says how a machine and its Node are in the end. Its marks are checked by atRest.
func (c preserveCell) seen(r *world) string {
	text := func(m map[string]string, key string) string {
		if value, found := m[key]; found {
			return value
		}
		return "-"
	}
	own, nodes := r.in.Machine.Annotations, r.in.Node.Node.Annotations
	return fmt.Sprintf("end %v, asks %s %s, applied %s", r.end(), text(own, preserveKey), text(nodes, preserveKey), text(own, appliedKey))
}

// wanted says how they should be.
func (c preserveCell) wanted() string {
	var end *time.Time
	switch c.want {
	case "S":
		end = ptr.To(now.Add(96 * time.Hour))
	case "K":
		end = ptr.To(now.Add(time.Hour)) // it is not moved
	}
	own, nodes, applied := c.value, "-", "-"
	if c.where == "node" {
		own, nodes = "-", c.value
		if slices.Contains([]string{"now", "when-failed", "auto-preserved", "false"}, c.value) {
			applied = c.value
		}
	} else if c.applied != "-" {
		own = "-" // what is there counts as nothing
	}
	if c.want == "XR" || c.want == "R" {
		own, nodes, applied = "-", "-", "-"
	}
	return fmt.Sprintf("end %v, asks %s %s, applied %s", end, own, nodes, applied)
}

// FuzzPreservation asserts that whatever any client writes into the annotations, a
// preservation comes to rest, and keeps no machine longer than it said.
func FuzzPreservation(f *testing.F) {
	f.Add("now", "-", "-", false, int64(0))
	f.Add("auto-preserved", "now", "false", true, int64(3600))
	f.Add("-", "", "now", true, int64(-1))
	f.Add("when-failed", "\x00", "-", true, int64(1<<40))
	f.Fuzz(func(t *testing.T, own, nodes, applied string, failed bool, end int64) {
		p, state := v1alpha1.MachineRunning, healthy
		if failed {
			p, state = v1alpha1.MachineFailed, sick
		}
		in := living(p, state, looked, asks(own, nodes, applied))
		if end != 0 {
			in.Machine.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Duration(end%(1<<33)) * time.Second)}
		}
		r := newWorld(in)
		_, err := r.rest()
		require.NoError(t, err)
		require.NoError(t, r.atRest())
		if last := r.end(); last != nil {
			require.True(t, last.After(r.now))
		}
	})
}
