// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMachineSet_FailedMachineWithThePreservedNodeOfAnother_IsReplaced has a machine whose label
// names the Node of another machine. The preserve annotation of that Node does not apply to it.
func TestMachineSet_FailedMachineWithThePreservedNodeOfAnother_IsReplaced(t *testing.T) {
	t.Parallel()
	s := scenario{name: "label names another Node", joins: true, deployment: true, rollout: rolling(2, 1, 0)}
	w := newWorld(s, nil, noFaults, false)
	w.run()
	require.NoError(t, w.result())
	machines := all[*v1alpha1.Machine](w.control, "machines")
	require.Len(t, machines, 2)
	astray, other := machines[0], machines[1]
	node := other.Labels[v1alpha1.NodeLabelKey]

	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{v1alpha1.NodeLabelKey: node}}})
	require.NoError(t, err)
	_, err = w.machines.MachineV1alpha1().Machines(ns).Patch(ofOthers, astray.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	w.patchNode(node, map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.PreserveMachineAnnotationKey: "now"}}})
	w.collect(others)
	var preserved, replaced bool
	w.later(preserveTime-time.Minute, func() {
		expiry := w.machine(other.Name).Status.CurrentStatus.PreserveExpiryTime
		preserved, replaced = expiry != nil && expiry.After(w.clock.Now()), w.machine(astray.Name) == nil
	})
	w.run()

	require.True(t, preserved)
	require.True(t, replaced, "it waits for the preservation of another machine to end")
	require.NotNil(t, w.machine(other.Name))
	d := w.deployment()
	require.True(t, deployment.Complete(d, d.Status))
	require.Len(t, all[*v1alpha1.Machine](w.control, "machines"), 2)
}
