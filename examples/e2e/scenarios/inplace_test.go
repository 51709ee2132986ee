// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// mark sets labels and annotations of the Node of a machine, all at once; nil takes
// one away.
func mark(t *testing.T, s *env.Env, machine string, labels, annotations map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}})
	require.NoError(t, err)
	_, err = s.Client.CoreV1().Nodes().Patch(t.Context(), s.NodeName(machine), mergePatch, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// reportUpdate reports the result of an update in place, as the agent of the Node does. Without a
// problem it has succeeded.
func reportUpdate(t *testing.T, s *env.Env, machine, problem string) {
	t.Helper()
	result, reason := v1alpha1.LabelValueNodeUpdateSuccessful, any(nil)
	if problem != "" {
		result, reason = v1alpha1.LabelValueNodeUpdateFailed, problem
	}
	mark(t, s, machine, map[string]any{v1alpha1.LabelKeyNodeUpdateResult: result}, map[string]any{v1alpha1.AnnotationKeyMachineUpdateFailedReason: reason})
}

// step holds when the update in place of a machine's Node has come to a step.
func step(s *env.Env, machine, reason string) env.Condition {
	return reports(s, machine, v1alpha1.NodeInPlaceUpdate, corev1.ConditionTrue, reason)
}

// steps watches the Node of a machine, and returns what tells of all the steps that
// an update in place has taken there.
func steps(t *testing.T, s *env.Env, machine string) (taken func() []string) {
	t.Helper()
	n := node(t, s, machine)
	events, err := s.Client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name, ResourceVersion: n.ResourceVersion})
	require.NoError(t, err)
	var mu sync.Mutex
	var all []string
	var watching sync.WaitGroup
	watching.Go(func() {
		for e := range events.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				continue
			}
			mu.Lock()
			if c := conditionOf(n, v1alpha1.NodeInPlaceUpdate); c != nil && (len(all) == 0 || all[len(all)-1] != c.Reason) {
				all = append(all, c.Reason)
			}
			mu.Unlock()
		}
	})
	t.Cleanup(func() { events.Stop(); watching.Wait() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// took holds when an update in place has taken these steps.
func took(taken func() []string, want ...string) env.Condition {
	return func(context.Context) (string, error) {
		if have := taken(); !slices.Equal(have, want) {
			return fmt.Sprintf("it has taken the steps %v, not %v", have, want), nil
		}
		return "", nil
	}
}

const (
	candidate = v1alpha1.LabelKeyNodeCandidateForUpdate
	selected  = v1alpha1.LabelKeyNodeSelectedForUpdate
)

func TestInPlaceUpdate_ByUserAndController_Succeeds(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "inplace", fastOptions())
	s.StartManager(t, "manager")
	ctx := t.Context()
	require.NoError(t, s.Class(ctx, "small"))
	names := []string{"manual", "auto", "beside"}
	for _, name := range names {
		create(t, s, s.Machine(name, "small"))
	}
	for _, name := range names {
		s.Wait(t, patience, "it runs", running(s, name))
	}
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(ctx, s.ReplicaSet("app", 9), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pods are ready", ready(s, "app", 9))
	vms := s.Cloud.Snapshot().VMs
	auto, manual := steps(t, s, "auto"), steps(t, s, "manual")

	// A user selects a candidate when it suits him: until then nothing happens to it.
	mark(t, s, "manual", map[string]any{candidate: "true"}, nil)
	s.Wait(t, patience, "it is a candidate", took(manual, v1alpha1.CandidateForUpdate))
	// A controller selects what it has made a candidate.
	mark(t, s, "auto", map[string]any{candidate: "true", selected: "true"}, nil)
	s.Wait(t, patience, "the other is ready for the update", step(s, "auto", v1alpha1.ReadyForUpdate))
	reportUpdate(t, s, "auto", "")
	s.Wait(t, patience, "the other is updated", took(auto, v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate,
		v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate, v1alpha1.UpdateSuccessful))
	s.Wait(t, patience, "it runs again", running(s, "auto"))
	require.Empty(t, podsOn(t, s, s.NodeName("auto")), "it was drained")
	require.True(t, node(t, s, "auto").Spec.Unschedulable, "the client that asked for the update uncordons the Node")
	require.Equal(t, []string{v1alpha1.CandidateForUpdate}, manual())
	require.False(t, node(t, s, "manual").Spec.Unschedulable)
	s.Wait(t, patience, "its phases", went(s, machine(t, s, "manual").UID, "Pending", "Running"))
	mark(t, s, "auto", map[string]any{candidate: nil, selected: nil, v1alpha1.LabelKeyNodeUpdateResult: nil}, nil)
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, s.NodeName("auto"), mergePatch, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	mark(t, s, "manual", map[string]any{selected: "true"}, nil)
	s.Wait(t, patience, "it is ready for the update", step(s, "manual", v1alpha1.ReadyForUpdate))
	reportUpdate(t, s, "manual", "the disk is full")
	s.Wait(t, patience, "the agent gives up", took(manual, v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate,
		v1alpha1.DrainSuccessful, v1alpha1.ReadyForUpdate, v1alpha1.UpdateFailed))
	s.Wait(t, patience, "it has failed", in(s, "manual", v1alpha1.MachineInPlaceUpdateFailed))
	require.Empty(t, podsOn(t, s, s.NodeName("manual")), "it was drained")
	op := machine(t, s, "manual").Status.LastOperation
	require.Equal(t, v1alpha1.MachineOperationInPlaceUpdate, op.Type)
	require.Equal(t, v1alpha1.MachineStateFailed, op.State)
	require.Contains(t, op.Description, "failed to update dependencies: the disk is full")
	require.Contains(t, conditionOf(node(t, s, "manual"), v1alpha1.NodeInPlaceUpdate).Message, "the disk is full")
	reportUpdate(t, s, "manual", "") // the agent tries again
	s.Wait(t, patience, "it runs again", running(s, "manual"))

	s.Wait(t, patience, "its phases", went(s, machine(t, s, "auto").UID, "Pending", "Running", "InPlaceUpdating", "InPlaceUpdateSuccessful", "Running"))
	s.Wait(t, patience, "its phases", went(s, machine(t, s, "manual").UID, "Pending", "Running", "InPlaceUpdating", "InPlaceUpdateFailed", "InPlaceUpdateSuccessful", "Running"))
	s.Wait(t, patience, "its phases", went(s, machine(t, s, "beside").UID, "Pending", "Running"))
	after := s.Cloud.Snapshot().VMs
	require.Len(t, after, len(vms))
	for _, vm := range vms {
		require.True(t, slices.ContainsFunc(after, func(v drivertest.VM) bool { return v.ProviderID == vm.ProviderID }), "no VM is replaced")
	}
	require.Zero(t, podDeletions(t, s), "pods are evicted, not deleted")
	removeAll(t, s)
}

func TestInPlaceUpdate_Timeout_Fails(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "stuck", fastOptions())
	s.StartManager(t, "manager", "--machine-inplace-update-timeout=5s")
	require.NoError(t, s.Class(t.Context(), "small"))
	create(t, s, s.Machine("a", "small"))
	s.Wait(t, patience, "it runs", running(s, "a"))
	mark(t, s, "a", map[string]any{candidate: "true", selected: "true"}, nil)
	s.Wait(t, patience, "it is ready", step(s, "a", v1alpha1.ReadyForUpdate))
	s.Wait(t, patience, "it has failed", in(s, "a", v1alpha1.MachineInPlaceUpdateFailed))
	require.Contains(t, machine(t, s, "a").Status.LastOperation.Description, "failed to in-place update in 5s")
	removeAll(t, s)
}
