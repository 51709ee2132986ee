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

// labeled sets labels on the Node: candidate, replace, selected, successful, failed.
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

// updates sets the step of an in-place update, a minute ago, on the Node and the machine.
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

// anyUpdate sets random labels and a random step of an in-place update on a Node. at returns the time
// of its condition.
func anyUpdate(r *rand.Rand, n *corev1.Node, at func(*rand.Rand) time.Time) {
	for _, key := range []string{candidateLabel, selectedLabel} {
		n.Labels = annotate(n.Labels, key, pick(r, "-", "-", "true"))
	}
	n.Labels = annotate(n.Labels, resultLabel, pick(r, "-", "-", "successful", "failed", "strange"))
	if r.IntN(2) == 0 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(r)),
			Reason: pick(r, v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful,
				v1alpha1.ReadyForUpdate, v1alpha1.UpdateSuccessful, v1alpha1.UpdateFailed, "Strange"),
		})
	}
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
	const (
		news     = "Initiate node drain; waits for pod/a/b: Budget"
		selected = "candidate selected"
		ready    = "nothing (InPlaceUpdate: it is ready for its in-place update); waits for node/n: InPlaceUpdate: it is ready for its in-place update"
		open     = "nothing (InPlaceUpdate: its in-place update is in progress); waits for node/n: InPlaceUpdate: its in-place update is in progress"
		drain    = "drain node n, by force from 2026-03-01T13:59:00Z (Draining: for its in-place update)"
	)
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"candidate: waits to be selected":                     {of(running, "candidate", v1alpha1.CandidateForUpdate), "nothing (InPlaceUpdate: it waits to be selected for its in-place update); waits for node/n: InPlaceUpdate: it waits to be selected for its in-place update"},
		"draining for less than 30s: waits":                   {of(running, selected, v1alpha1.SelectedForUpdate, waits, onNode(func(n *corev1.Node) { n.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now) })), "nothing (Draining); waits for pod/a/b: Budget"},
		"drain of another start: drained again":               {of(running, selected, v1alpha1.SelectedForUpdate, func(in *machine.Observation) { in.Drain = machine.DrainView{Started: now, Round: now, Done: true} }), drain},
		"drained: phase InPlaceUpdating":                      {of(running, selected, v1alpha1.SelectedForUpdate, done), `update status of machine m: phase "InPlaceUpdating", InPlaceUpdate Processing (Drained: Machine m is undergoing an in-place update)`},
		"ReadyForUpdate, preserve annotation: preserved":      {of(updating, selected, v1alpha1.ReadyForUpdate, asks("now", "-", "-")), `update status of machine m: phase "InPlaceUpdating",   (Preserved: until 2026-03-05T12:00:00Z)`},
		"successful after a failure: InPlaceUpdateSuccessful": {of(failed, "candidate selected successful", v1alpha1.UpdateSuccessful), `update status of machine m: phase "InPlaceUpdateSuccessful", InPlaceUpdate Successful (UpdateSucceeded: Machine m successfully updated dependencies)`},
		"failed and recorded: waits":                          {of(failed, "candidate selected failed", v1alpha1.UpdateFailed), "nothing (UpdateFailed: the in-place update has failed); waits for node/n: UpdateFailed: the in-place update has failed"},
		"timeout: InPlaceUpdateFailed":                        {of(updating, selected, v1alpha1.ReadyForUpdate, entered(20*time.Minute)), `update status of machine m: phase "InPlaceUpdateFailed", InPlaceUpdate Failed (UpdateTimeout: Machine m failed to in-place update in 20m0s.)`},
		"phase without time: begins now":                      {of(updating, "", v1alpha1.UpdateFailed, spec(func(m *v1alpha1.Machine) { m.Status.CurrentStatus.LastUpdateTime = metav1.Time{} })), `update status of machine m: phase "InPlaceUpdating",   (InPlaceUpdate)`},
	})
	in := of(updating, selected, v1alpha1.ReadyForUpdate)
	require.Equal(t, now.Add(19*time.Minute), lawful(t, in, machine.DefaultPolicy()).NextCheck)
	require.Zero(t, lawful(t, in, machine.Policy{}).NextCheck, "zero policy: no timeout")
	in = of(running, selected, v1alpha1.SelectedForUpdate, waits, operationAgo(29*time.Second, v1alpha1.MachineOperationDrainNode, v1alpha1.MachineStateProcessing, "other"))
	require.Equal(t, now.Add(time.Second), lawful(t, in, machine.DefaultPolicy()).NextCheck, "when the holds are recorded")
}

func TestInPlaceUpdate_Preserved_KeepsTheEnd(t *testing.T) {
	r := newWorld(living(v1alpha1.MachineRunning, healthy, copied, asks("now", "-", "-")))
	r.mustRest(t)
	end := *r.end()
	update(t, r, "successful")
	require.Equal(t, v1alpha1.MachineRunning, r.in.Machine.Status.CurrentStatus.Phase)
	require.Equal(t, end, *r.end())
}

// update simulates the user, the pods and the agent of an in-place update, and returns the
// decisions.
func update(t *testing.T, r *world, result string) string {
	t.Helper()
	label := func(key, value string) func() {
		return func() { annotate(r.in.Node.Node.Labels, key, value) }
	}
	story := r.chapter(t, "the Node becomes a candidate", label(candidateLabel, "true")) +
		r.chapter(t, "the Node is selected", label(selectedLabel, "true")) +
		r.chapter(t, "the pods are evicted", func() { r.drained = nil }) +
		r.chapter(t, "the agent reports: "+result, label(resultLabel, result))
	if result == v1alpha1.LabelValueNodeUpdateFailed {
		story += r.chapter(t, "a retry succeeds", label(resultLabel, v1alpha1.LabelValueNodeUpdateSuccessful))
	}
	return story + r.chapter(t, "the labels are removed", func() {
		for _, key := range []string{candidateLabel, selectedLabel, resultLabel} {
			delete(r.in.Node.Node.Labels, key)
		}
	})
}

// TestInPlaceUpdate_EachStep_Decision simulates an update that succeeds, and one that succeeds after a failure.
func TestInPlaceUpdate_EachStep_Decision(t *testing.T) {
	for _, result := range []string{"successful", "failed"} {
		r := newWorld(living(v1alpha1.MachineRunning, healthy, copied))
		r.drained = func(machine.DrainNode) machine.DrainView {
			return machine.DrainView{Holds: []machinist.Hold{{Subject: "pod/a/b", Reason: "Budget"}}, NextCheck: r.now.Add(time.Hour)}
		}
		golden(t, "update-"+result+".txt", update(t, r, result))
		r.pass(24 * time.Hour)
		require.Zero(t, r.mustRest(t))
	}
}

func TestInPlaceUpdate_SickCandidate_IsUpdated(t *testing.T) {
	r := newWorld(living(v1alpha1.MachineUnknown, sick, copied, looked, labeled("candidate selected")))
	r.mustRest(t)
	require.Equal(t, v1alpha1.MachineInPlaceUpdating, r.in.Machine.Status.CurrentStatus.Phase)
}
