// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	candidateLabel = v1alpha1.LabelKeyNodeCandidateForUpdate
	selectedLabel  = v1alpha1.LabelKeyNodeSelectedForUpdate
	resultLabel    = v1alpha1.LabelKeyNodeUpdateResult
)

// labeled puts labels on the Node: some of candidate, selected, successful,
// failed.
func labeled(words string) change {
	return onNode(func(n *corev1.Node) {
		for word := range strings.FieldsSeq(words) {
			switch word {
			case "candidate":
				n.Labels[candidateLabel] = "true"
			case "selected":
				n.Labels[selectedLabel] = "true"
			case "replace":
				n.Labels[candidateLabel] = v1alpha1.LabelValueNodeCandidateForReplacement
			default:
				n.Labels[resultLabel] = word
				n.Annotations[v1alpha1.AnnotationKeyMachineUpdateFailedReason] = "disk full"
			}
		}
	})
}

// updates is how far the Node has come since a minute, which is copied.
func updates(step string) change {
	return func(in *machine.Observation) {
		if step != "" {
			in.Node.Node.Status.Conditions = append(in.Node.Node.Status.Conditions, corev1.NodeCondition{
				Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: step, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
			})
		}
		copied(in)
	}
}

// anyUpdate puts a Node anywhere into an update in place.
func anyUpdate(r *rand.Rand, n *corev1.Node) {
	for _, key := range []string{candidateLabel, selectedLabel} {
		annotate(n.Labels, key, pick(r, "-", "-", "true"))
	}
	annotate(n.Labels, resultLabel, pick(r, "-", "-", "successful", "failed", "strange"))
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue,
			Reason: pick(r, v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful,
				v1alpha1.ReadyForUpdate, v1alpha1.UpdateSuccessful, v1alpha1.UpdateFailed, "Strange"),
		})
	}
}

func TestUpdateCondition_LabelsAndStep_NextStep(t *testing.T) {
	const none = ""
	for _, tc := range []struct{ labels, step, want string }{
		{"", none, none},
		{"selected", none, none},
		{"successful", v1alpha1.ReadyForUpdate, none},
		{"candidate", none, v1alpha1.CandidateForUpdate},
		{"replace selected", none, none},
		{"replace selected", v1alpha1.CandidateForUpdate, none},
		{"candidate", v1alpha1.UpdateSuccessful, v1alpha1.CandidateForUpdate},
		{"candidate", v1alpha1.UpdateFailed, none},
		{"candidate", v1alpha1.CandidateForUpdate, none},
		{"candidate selected", v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate},
		{"candidate selected", v1alpha1.SelectedForUpdate, none},
		{"candidate", v1alpha1.SelectedForUpdate, none},
		{"candidate successful", v1alpha1.SelectedForUpdate, v1alpha1.UpdateSuccessful},
		{"candidate selected", v1alpha1.ReadyForUpdate, none},
		{"candidate selected successful", v1alpha1.ReadyForUpdate, v1alpha1.UpdateSuccessful},
		{"candidate selected successful", v1alpha1.UpdateFailed, v1alpha1.UpdateSuccessful},
		{"candidate selected successful", v1alpha1.UpdateSuccessful, none},
		{"candidate selected failed", v1alpha1.ReadyForUpdate, v1alpha1.UpdateFailed},
		{"candidate selected failed", v1alpha1.UpdateFailed, none},
	} {
		n := after(withID, healthy, labeled(tc.labels), updates(tc.step)).Node.Node
		c, due := machine.UpdateCondition(n, now)
		require.Equal(t, tc.want != none, due, "%+v", tc)
		require.Equal(t, tc.want, c.Reason, "%+v", tc)
	}
	_, due := machine.UpdateCondition(nil, now)
	require.False(t, due)
}

func TestInPlaceUpdate_Steps_InOrder(t *testing.T) {
	const running, updating, failed = v1alpha1.MachineRunning, v1alpha1.MachineInPlaceUpdating, v1alpha1.MachineInPlaceUpdateFailed
	of := func(p v1alpha1.MachinePhase, labels, step string, more ...change) machine.Observation {
		return living(p, append([]change{healthy, looked, labeled(labels), updates(step)}, more...)...)
	}
	done := func(in *machine.Observation) { in.Drain = machine.DrainView{Round: now, Done: true} }
	waits := func(in *machine.Observation) {
		in.Drain = machine.DrainView{Round: now, NextCheck: now.Add(time.Hour), Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}}
	}
	since := func(ago time.Duration) change {
		return spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-ago)) })
	}
	const (
		news     = "Drain failed due to - waits for pod/a/b: Budget. Will retry in next sync. Initiate node drain"
		selected = "candidate selected"
		ready    = "nothing (InPlaceUpdate: it is ready for its in-place update); waits for node/n: InPlaceUpdate: it is ready for its in-place update"
		open     = "nothing (InPlaceUpdate: its in-place update is in progress); waits for node/n: InPlaceUpdate: its in-place update is in progress"
		drain    = "drain node n, by force from 2026-03-01T13:59:00Z (Draining: for its in-place update)"
	)
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a candidate lives on until it is selected":      {of(running, "candidate", v1alpha1.CandidateForUpdate), "nothing (InPlaceUpdate: it waits to be selected for its in-place update); waits for node/n: InPlaceUpdate: it waits to be selected for its in-place update"},
		"a Node that is selected is drained":             {of(running, selected, v1alpha1.SelectedForUpdate), drain},
		"which takes its time":                           {of(running, selected, v1alpha1.SelectedForUpdate, waits, onNode(func(n *corev1.Node) { n.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now) })), "nothing (Draining); waits for pod/a/b: Budget"},
		"what it waits for is told after a while":        {of(running, selected, v1alpha1.SelectedForUpdate, waits), `record phase "Running", DrainNode Processing (Draining: ` + news + ")"},
		"the drain of another reason counts for nothing": {of(running, selected, v1alpha1.SelectedForUpdate, func(in *machine.Observation) { in.Drain = machine.DrainView{Started: now, Round: now, Done: true} }), drain},
		"once drained the phase tells":                   {of(running, selected, v1alpha1.SelectedForUpdate, done), `record phase "InPlaceUpdating", InPlaceUpdate Processing (Drained: Machine m is undergoing an in-place update)`},
		"then the Node":                                  {of(updating, selected, v1alpha1.SelectedForUpdate, done), "set condition InPlaceUpdate=True (DrainSuccessful) on node n (InPlaceUpdate)"},
		"after a crash it is drained again":              {of(updating, selected, v1alpha1.SelectedForUpdate), drain},
		"then it is ready":                               {of(updating, selected, v1alpha1.DrainSuccessful), "set condition InPlaceUpdate=True (ReadyForUpdate) on node n (InPlaceUpdate)"},
		"and waits for its agent":                        {of(updating, selected, v1alpha1.ReadyForUpdate), ready},
		"without labels an update is still to end":       {of(updating, "", v1alpha1.UpdateFailed), open},
		"nothing else waits":                             {of(updating, selected, v1alpha1.ReadyForUpdate, asks("now", "-", "-")), `record phase "InPlaceUpdating",   (Preserved: until 2026-03-05T12:00:00Z)`},
		"also after a failure (H5)":                      {of(failed, "candidate selected successful", v1alpha1.UpdateSuccessful), `record phase "InPlaceUpdateSuccessful", InPlaceUpdate Successful (UpdateSucceeded: Machine m successfully updated dependencies)`},
		"the Node tells before the machine":              {of(updating, "candidate selected successful", v1alpha1.ReadyForUpdate), "set condition InPlaceUpdate=True (UpdateSuccessful) on node n (InPlaceUpdate)"},
		"once (H6)":                                      {of(failed, "candidate selected failed", v1alpha1.UpdateFailed), "nothing (UpdateFailed: the in-place update has failed); waits for node/n: UpdateFailed: the in-place update has failed"},
		"an update takes no longer than its timeout":     {of(updating, selected, v1alpha1.ReadyForUpdate, since(20*time.Minute)), `record phase "InPlaceUpdateFailed", InPlaceUpdate Failed (UpdateTimeout: Machine m failed to in-place update in 20m0s.)`},
		"also without a label":                           {of(updating, "", v1alpha1.UpdateFailed, since(time.Hour)), `record phase "InPlaceUpdateFailed", InPlaceUpdate Failed (UpdateTimeout: Machine m failed to in-place update in 20m0s.)`},
		"a phase without a known begin begins now":       {of(updating, "", v1alpha1.UpdateFailed, spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.Time{} })), `record phase "InPlaceUpdating",   (InPlaceUpdate)`},
		"nor is the Node of another":                     {of(v1alpha1.MachineRunning, selected, v1alpha1.SelectedForUpdate, onNode(func(n *corev1.Node) { n.Labels[v1alpha1.MachineNameLabelKey] = "other" })), `record phase "Unknown", HealthCheck Processing (NodeGone: Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown)`},
	})
	in := of(updating, selected, v1alpha1.ReadyForUpdate)
	require.Equal(t, now.Add(19*time.Minute), lawful(t, in, machine.DefaultPolicy()).NextCheck)
	require.Zero(t, lawful(t, in, machine.Policy{}).NextCheck, "the zero policy waits for ever")
	in = of(running, selected, v1alpha1.SelectedForUpdate, waits, news29("other"))
	require.Equal(t, now.Add(time.Second), lawful(t, in, machine.DefaultPolicy()).NextCheck, "when there is news to tell")
}

// news29 is something that a drain was told to wait for 29 seconds ago.
func news29(what string) change {
	return spec(func(m *v1alpha1.Machine) {
		m.Status.LastOperation = v1alpha1.LastOperation{
			Type: v1alpha1.MachineOperationDrainNode, State: v1alpha1.MachineStateProcessing, Description: what,
			LastUpdateTime: metav1.NewTime(now.Add(-29 * time.Second)),
		}
	})
}

func TestInPlaceUpdate_Preserved_KeepsTheEnd(t *testing.T) {
	r := newWorld(living(v1alpha1.MachineRunning, healthy, copied, asks("now", "-", "-")))
	r.mustRest(t)
	end := *r.end()
	update(t, r, "successful")
	require.Equal(t, v1alpha1.MachineRunning, r.in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, end, *r.end())
}

// update plays the part of all others in an update, and returns what comes of it.
func update(t *testing.T, r *world, result string) string {
	t.Helper()
	label := func(key, value string) func() {
		return func() { annotate(r.in.Node.Node.Labels, key, value) }
	}
	story := r.chapter(t, "the Node becomes a candidate", label(candidateLabel, "true")) +
		r.chapter(t, "the Node is selected", label(selectedLabel, "true")) +
		r.chapter(t, "pods go", func() { r.drained = nil }) +
		r.chapter(t, "the agent is done: "+result, label(resultLabel, result))
	if result == v1alpha1.LabelValueNodeUpdateFailed {
		story += r.chapter(t, "but in the end it succeeds", label(resultLabel, v1alpha1.LabelValueNodeUpdateSuccessful))
	}
	return story + r.chapter(t, "the labels are taken away", func() {
		for _, key := range []string{candidateLabel, selectedLabel, resultLabel} {
			delete(r.in.Node.Node.Labels, key)
		}
	})
}

const updatedLife = `
-- the Node becomes a candidate
set condition InPlaceUpdate=True (CandidateForUpdate) on node n: Node is a candidate for in-place update
record phase "Running",  
waits for node/n (InPlaceUpdate)
-- the Node is selected
set condition InPlaceUpdate=True (SelectedForUpdate) on node n: Node is selected for in-place update
drain node n, by force from 2026-03-01T14:00:00Z
record phase "Running",  
waits for pod/a/b (Budget)
-- pods go
drain node n, by force from 2026-03-01T14:00:00Z
record phase "InPlaceUpdating", InPlaceUpdate Processing
set condition InPlaceUpdate=True (DrainSuccessful) on node n: Node draining successful
set condition InPlaceUpdate=True (ReadyForUpdate) on node n: Node is ready for in-place update
record phase "InPlaceUpdating", InPlaceUpdate Processing
waits for node/n (InPlaceUpdate)
`

const updateSucceeds = `-- the agent is done: successful
set condition InPlaceUpdate=True (UpdateSuccessful) on node n: Node in-place update successful
record phase "InPlaceUpdateSuccessful", InPlaceUpdate Successful
record phase "Running", HealthCheck Successful
waits for nothing
-- the labels are taken away
waits for nothing
`

const updateFailsFirst = `-- the agent is done: failed
set condition InPlaceUpdate=True (UpdateFailed) on node n: Node in-place update failed: 
record phase "InPlaceUpdateFailed", InPlaceUpdate Failed
waits for node/n (UpdateFailed)
-- but in the end it succeeds
set condition InPlaceUpdate=True (UpdateSuccessful) on node n: Node in-place update successful
record phase "InPlaceUpdateSuccessful", InPlaceUpdate Successful
record phase "Running", HealthCheck Successful
waits for nothing
-- the labels are taken away
waits for nothing
`

// TestInPlaceUpdate_EachStep_Decision plays both orchestrations. They differ in who selects the Node: the
// deployment controller (Auto) or a user (Manual).
func TestInPlaceUpdate_EachStep_Decision(t *testing.T) {
	for result, end := range map[string]string{"successful": updateSucceeds, "failed": updateFailsFirst} {
		r := newWorld(living(v1alpha1.MachineRunning, healthy, copied))
		r.drained = func(machine.DrainNode) machine.DrainView {
			return machine.DrainView{Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}, NextCheck: r.now.Add(time.Hour)}
		}
		require.Equal(t, strings.TrimPrefix(updatedLife, "\n")+end, update(t, r, result))
		r.pass(24 * time.Hour)
		require.Zero(t, r.mustRest(t))
	}
	t.Run("Manual: a candidate waits for a user, healthy or not", func(t *testing.T) {
		r := newWorld(living(v1alpha1.MachineRunning, healthy, copied, labeled("candidate")))
		r.mustRest(t)
		r.pass(24 * time.Hour)
		r.in.Node.Node.Status.Conditions[0].Status = corev1.ConditionFalse
		r.mustRest(t)
		require.Equal(t, v1alpha1.MachineUnknown, r.in.Machine.Status.CurrentStatus.Phase, "the health of a candidate is judged")
		r.in.Node.Node.Labels[selectedLabel] = "true"
		r.mustRest(t)
		require.Equal(t, v1alpha1.MachineInPlaceUpdating, r.in.Machine.Status.CurrentStatus.Phase)
	})
}
