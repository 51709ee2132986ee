// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestReplacementLimit_TemplateWithoutLabelName_OneAtATime silences all Nodes of a deployment.
// Owner references define the group of the limit.
func TestReplacementLimit_TemplateWithoutLabelName_OneAtATime(t *testing.T) {
	t.Parallel()
	for _, unlabeled := range []bool{false, true} {
		t.Run(fmt.Sprintf("unlabeled %t", unlabeled), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := scenario{
					name: "all Nodes silent", joins: true, deployment: true, unlabeled: unlabeled,
					rollout: rolling(6, 0, 1),
					cloud:   drivertest.CloudOptions{BootTime: 20 * time.Second},
				}
				w := newWorld(s, nil, noFaults, true)
				w.later(5*time.Minute, func() { w.reportAll(corev1.ConditionUnknown) })
				most, failed := 0, map[string]bool{}
				w.runUntil(w.clock.Now().Add(40*time.Minute), func() {
					replaced := 0
					for _, m := range all[*v1alpha1.Machine](w.control, "machines") {
						if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed || m.DeletionTimestamp != nil {
							failed[m.Name] = true
							replaced++
						}
					}
					most = max(most, replaced)
				})
				w.process.cancel()
				require.Empty(t, w.violations)
				require.Equal(t, 1, most, "machines replaced at a time")
				require.Len(t, failed, 6, "all are replaced at the end")
			})
		})
	}
}

// runUntil runs the world until a time, and calls look after every step.
func (w *world) runUntil(end time.Time, look func()) {
	w.later(end.Sub(w.clock.Now()), func() {})
	for w.clock.Now().Before(end) && len(w.violations) == 0 {
		if w.live(); !w.step() {
			w.passTime()
		}
		look()
	}
}
