// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// resized changes the replicas of a deployment, and those of its set, as soon as n machines were
// created or deleted since the first change. It returns the number of these creations or deletions.
func resized(t *testing.T, verb string, from, change, to int32, n int) int {
	t.Helper()
	s := scenario{name: "replicas change", joins: true, deployment: true, rollout: rolling(from, 1, 0)}
	w := newWorld(s, nil, noFaults, false)
	resize := func(size int32) {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size)
		sets, deployments := w.machines.MachineV1alpha1().MachineSets(ns), w.machines.MachineV1alpha1().MachineDeployments(ns)
		for _, set := range all[*v1alpha1.MachineSet](w.control, "machinesets") {
			_, err := sets.Patch(ofOthers, set.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			must(err)
		}
		_, err := deployments.Patch(ofOthers, "d", types.MergePatchType, patch, metav1.PatchOptions{})
		must(err)
	}
	count := 0
	w.onWrite = func(write draintest.Write) {
		m, isMachine := write.After.(*v1alpha1.Machine)
		before, _ := write.Before.(*v1alpha1.Machine)
		switch {
		case !isMachine, write.Subresource != "":
			return
		case verb == "create" && before != nil, verb == "delete" && (before == nil || before.DeletionTimestamp != nil || m.DeletionTimestamp == nil):
			return
		}
		if count++; count == n {
			resize(to)
			w.deliverAll() // the watch delivers before the next call
		}
	}
	if change != from {
		w.run()
		count = 0
		resize(change)
		w.collect(others)
	}
	w.run()
	w.checkRest()
	require.NoError(t, w.result())
	return count
}

func TestMachineSet_ScaledToZeroDuringABatch_CreatesNoFurtherMachine(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 20} {
		require.Equal(t, n, resized(t, "create", math.MaxInt32, math.MaxInt32, 0, n))
	}
}

func TestMachineSet_ScaledUpDuringABatch_DeletesNoFurtherMachine(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		require.Equal(t, n, resized(t, "delete", 6, 0, 6, n))
	}
}
