// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func updNode(step string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	if step != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeInPlaceUpdate, Status: "True", Reason: step}}
	}
	return n
}

func updMachine(phase v1alpha1.MachinePhase, step string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "m", Labels: map[string]string{v1alpha1.NodeLabelKey: "n"}}}
	m.Status.CurrentStatus.Phase = phase
	if step != "" {
		m.Status.Conditions = updNode(step).Status.Conditions
	}
	return m
}

func TestTheStageOfAnUpdateFollowsFromLabelsPhasesAndConditions(t *testing.T) {
	const (
		candidate = v1alpha1.LabelKeyNodeCandidateForUpdate
		chosen    = v1alpha1.LabelKeyNodeSelectedForUpdate
		result    = v1alpha1.LabelKeyNodeUpdateResult
	)
	moved := updMachine(v1alpha1.MachineRunning, v1alpha1.UpdateSuccessful)
	moved.Labels[result] = "successful"
	for _, tt := range []struct {
		name string
		m    *v1alpha1.Machine
		node *corev1.Node
		want string
	}{
		{"a Node that is not known", updMachine(v1alpha1.MachineRunning, ""), nil, ""},
		{"nothing has begun", updMachine(v1alpha1.MachineRunning, ""), updNode(""), ""},
		{"a candidate", updMachine(v1alpha1.MachineRunning, ""), updNode("CandidateForUpdate", candidate, "true"), "Candidate"},
		{"selected, and nothing has come of it", updMachine(v1alpha1.MachineRunning, ""), updNode("CandidateForUpdate", candidate, "true", chosen, "true"), "Candidate"},
		{"being drained", updMachine(v1alpha1.MachineRunning, ""), updNode("SelectedForUpdate", candidate, "true", chosen, "true"), "Started"},
		{"drained, its Node not known", updMachine(v1alpha1.MachineInPlaceUpdating, "DrainSuccessful"), nil, "Started"},
		{"the agent is done, the machine has not noticed", updMachine(v1alpha1.MachineInPlaceUpdating, "ReadyForUpdate"), updNode("ReadyForUpdate", result, "successful"), "Started"},
		{"done", updMachine(v1alpha1.MachineInPlaceUpdateSuccessful, "UpdateSuccessful"), updNode("UpdateSuccessful", result, "successful"), "Done"},
		{"done and healthy", updMachine(v1alpha1.MachineRunning, "UpdateSuccessful"), updNode("UpdateSuccessful", result, "successful"), "Done"},
		{"failed", updMachine(v1alpha1.MachineInPlaceUpdateFailed, "UpdateFailed"), updNode("UpdateFailed", result, "failed"), "Failed"},
		{"took too long", updMachine(v1alpha1.MachineInPlaceUpdateFailed, "ReadyForUpdate"), updNode("ReadyForUpdate", chosen, "true"), "Failed"},
		{"moved, whatever its Node says", moved, updNode("UpdateSuccessful", result, "successful"), "Moved"},
		{"the condition of an earlier update", updMachine(v1alpha1.MachineRunning, "UpdateSuccessful"), updNode("UpdateSuccessful", candidate, "true"), "Candidate"},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, string(deployment.StageOf(tt.m, tt.node))) })
	}
}

func TestDS22AMoveKeepsForeignLabelsAndOwners(t *testing.T) {
	from := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old"}}
	from.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w", "hash": "1"}}
	to := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new"}}
	to.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w", "hash": "2"}}
	m := updMachine(v1alpha1.MachineRunning, "")
	m.Labels = map[string]string{"app": "w", "hash": "1", "mine": "x"}
	m.OwnerReferences = []metav1.OwnerReference{{UID: "a"}, {UID: "old", Controller: new(true)}, {UID: "b"}}
	before := m.DeepCopy()
	next := deployment.MovedMachine(m, from, to)
	require.Empty(t, cmp.Diff(before, m), "the machine is not changed")
	require.Equal(t, map[string]string{"app": "w", "hash": "2", "mine": "x", v1alpha1.LabelKeyNodeUpdateResult: "successful"}, next.Labels)
	require.Len(t, next.OwnerReferences, 3)
	require.EqualValues(t, "a", next.OwnerReferences[0].UID)
	require.Equal(t, "new", metav1.GetControllerOf(next).Name)
	require.EqualValues(t, "b", next.OwnerReferences[2].UID)
	require.Equal(t, next, deployment.MovedMachine(next, from, to), "a second move is none")
	require.NotNil(t, deployment.MovedMachine(&v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineSet{}))
}

func TestWithoutAClusterNothingIsUpdatedInPlace(t *testing.T) {
	d := updating(2, 0, 1)
	dec := deployment.Decide(deployment.Observation{Deployment: d, Complete: true, NoCluster: true}, deployment.Policy{}, time.Unix(0, 0))
	require.Equal(t, machinist.Reason("NoCluster"), dec.Reason)
	require.Empty(t, dec.Actions)
}

func ExampleStageOf() {
	m := &v1alpha1.Machine{}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelKeyNodeCandidateForUpdate: "true"}}}
	fmt.Println(deployment.StageOf(m, node))
	m.Status.CurrentStatus.Phase = v1alpha1.MachineInPlaceUpdating
	fmt.Println(deployment.StageOf(m, node))
	// Output:
	// Candidate
	// Started
}
