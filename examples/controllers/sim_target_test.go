// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestTargetCluster_Unreachable_NoMachineFails makes the target cluster unreachable for an hour
// without an error on any watch. Meanwhile silent Nodes recover and new Nodes join. The controllers
// receive no events of that.
func TestTargetCluster_Unreachable_NoMachineFails(t *testing.T) {
	t.Parallel()
	const away = time.Hour
	for name, tc := range map[string]struct {
		answers bool // only the watches are silent
		boot    time.Duration
		phase   v1alpha1.MachinePhase // the phase of all machines at the begin
	}{
		"silent nodes, no answer":         {false, 20 * time.Second, v1alpha1.MachineUnknown},
		"silent nodes, silent watches":    {true, 20 * time.Second, v1alpha1.MachineUnknown},
		"machines join, no answer":        {false, 10 * time.Minute, v1alpha1.MachinePending},
		"machines join, silent watches":   {true, 10 * time.Minute, v1alpha1.MachinePending},
		"healthy nodes, a silent cluster": {false, 20 * time.Second, v1alpha1.MachineRunning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scenario{name: name, machines: 4, joins: true, cloud: drivertest.CloudOptions{BootTime: tc.boot}}
				w := newWorld(s, nil, noFaults, true)
				begin := w.clock.Now().Add(6 * time.Minute)
				if tc.phase == v1alpha1.MachineUnknown {
					w.later(5*time.Minute, func() { w.reportAll(corev1.ConditionUnknown) })
					w.later(8*time.Minute, func() { w.reportAll(corev1.ConditionTrue) })
				}
				failed := map[string]bool{}
				look := func() {
					for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
						if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
							failed[m.Name] = true
						}
					}
				}
				w.runUntil(begin, look)
				for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
					require.Equal(t, tc.phase, m.Status.CurrentStatus.Phase)
				}
				w.recordFault(away)
				w.target.hold(begin.Add(away), w.process.caches)
				if !tc.answers {
					w.target.outUntil = begin.Add(away)
				}
				calls := w.calls
				w.runUntil(begin.Add(away), look)
				t.Logf("%d calls in an hour", w.calls-calls)
				require.Less(t, w.calls-calls, 2000, "one read per 10s for all machines")
				w.runUntil(begin.Add(away+5*time.Minute), look)
				w.process.cancel()
				require.Empty(t, w.violations)
				require.Empty(t, failed, strings.Join(tail(w.trace, 60), "\n"))
				for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
					require.Equal(t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase, fmt.Sprint(m.Status))
				}
			})
		})
	}
}

// reportAll reports a condition of all Nodes.
func (w *world) reportAll(c corev1.ConditionStatus) {
	for _, node := range all[*corev1.Node](w.target, "nodes") {
		w.report(node.Name, c)
	}
}

// tail returns the last n lines.
func tail(lines []string, n int) []string { return slices.Clone(lines[max(0, len(lines)-n):]) }
