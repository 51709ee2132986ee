// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// write sets the phase of all machines, as an older manager would.
func (w *world) write(phase v1alpha1.MachinePhase) {
	for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
		m := m.DeepCopy()
		m.Status.CurrentStatus.Phase, m.Status.CurrentStatus.LastUpdateTime = phase, metav1.NewTime(w.clock.Now())
		m.Status.LastOperation = v1alpha1.LastOperation{Type: v1alpha1.MachineOperationHealthCheck, State: v1alpha1.MachineStateFailed}
		_, err := w.machines.MachineV1alpha1().Machines(ns).UpdateStatus(context.Background(), m, metav1.UpdateOptions{})
		must(err)
	}
}

// TestTargetCluster_FailedDuringOutage_RunAgain fails all machines during an outage of the target
// cluster. Their Nodes become Ready during the outage, after it, or never.
func TestTargetCluster_FailedDuringOutage_RunAgain(t *testing.T) {
	t.Parallel()
	const silent, failed, returns = 5 * time.Minute, 7 * time.Minute, 20 * time.Minute
	for name, tc := range map[string]struct {
		ready time.Duration // zero means never
		late  time.Duration // how much later than requests the watches recover
		stay  bool
	}{
		"ready during the outage":              {10 * time.Minute, 0, true},
		"ready, and the watches come late":     {10 * time.Minute, 45 * time.Second, true},
		"ready, and the watches come too late": {10 * time.Minute, 3 * time.Minute, false},
		"ready just before it ends":            {returns - 5*time.Second, 0, true},
		"ready before they were failed":        {6 * time.Minute, 0, false},
		"never ready again":                    {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(scenario{
					name: name, joins: true, deployment: true,
					rollout: rolling(4, 0, 1),
					cloud:   drivertest.CloudOptions{BootTime: 20 * time.Second},
				}, nil, noFaults, true)
				begin := w.clock.Now()
				w.later(silent, func() { w.reportAll(corev1.ConditionUnknown) })
				w.later(failed, func() { w.write(v1alpha1.MachineFailed) })
				if tc.ready > 0 {
					w.later(tc.ready, func() { w.reportAll(corev1.ConditionTrue) })
				}
				deleted := map[string]bool{}
				look := func() {
					for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
						if m.DeletionTimestamp != nil {
							deleted[m.Name] = true
						}
					}
				}
				w.runUntil(begin.Add(silent+10*time.Second), look)
				w.recordFault(returns)
				w.target.hold(begin.Add(returns+tc.late), w.process.caches)
				w.target.outUntil = begin.Add(returns)
				w.runUntil(begin.Add(returns), look)
				require.Empty(t, deleted, strings.Join(tail(w.trace, 60), "\n"))
				w.runUntil(begin.Add(returns+10*time.Minute), look)
				w.process.cancel()
				require.Empty(t, w.violations)
				if !tc.stay {
					require.Len(t, deleted, 4, "all are replaced")
					return
				}
				require.Empty(t, slices.Collect(maps.Keys(deleted)), strings.Join(tail(w.trace, 60), "\n"))
				for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
					require.Equal(t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase)
				}
			})
		})
	}
}

// TestMachineSet_MachineRunsAgainBeforeItsDeletion_IsNotDeleted lets a Failed machine recover after
// its set has decided to delete it.
func TestMachineSet_MachineRunsAgainBeforeItsDeletion_IsNotDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		armed, calls := false, 0
		w = newWorld(scenario{
			name: "machine recovers", joins: true, deployment: true,
			rollout: rolling(1, 0, 1),
			cloud:   drivertest.CloudOptions{BootTime: 20 * time.Second},
		}, nil, func(a simCall) fault {
			if armed && a.verb == "get" && a.resource == "nodes" {
				armed = false
				w.write(v1alpha1.MachineRunning)
				w.collect(others)
			}
			if a.verb == "delete" && a.resource == "machines" {
				calls++
			}
			return fault{}
		}, true)
		begin := w.clock.Now()
		w.later(5*time.Minute, func() {
			armed = true
			w.write(v1alpha1.MachineFailed)
		})
		w.runUntil(begin.Add(20*time.Minute), func() {})
		w.process.cancel()
		require.Empty(t, w.violations)
		require.False(t, armed, "its Node was read")
		require.Equal(t, 1, calls, "one deletion, which the API server rejects")
		machines := all[*v1alpha1.Machine](w.control, "machines")
		require.Len(t, machines, 1)
		require.Nil(t, machines[0].DeletionTimestamp)
		require.Equal(t, v1alpha1.MachineRunning, machines[0].Status.CurrentStatus.Phase)
	})
}
