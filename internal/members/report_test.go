// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestReportFrom_ProgressPausedOrTimed_IsNotStuck(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	begin := now.Add(-time.Hour)
	for name, tc := range map[string]struct {
		hold     machinist.Hold
		progress time.Time
		want     time.Time
	}{
		"never any progress":   {machinist.Hold{Since: begin}, time.Time{}, begin.Add(5 * time.Minute)},
		"progress before":      {machinist.Hold{Since: begin}, begin.Add(-time.Hour), begin.Add(5 * time.Minute)},
		"progress since":       {machinist.Hold{Since: begin}, begin.Add(time.Minute), begin.Add(6 * time.Minute)},
		"progress to come":     {machinist.Hold{Since: begin}, now.Add(time.Minute), begin.Add(5 * time.Minute)},
		"ends at a known time": {machinist.Hold{Since: begin, Until: now.Add(time.Minute)}, time.Time{}, time.Time{}},
		"should have ended":    {machinist.Hold{Since: begin, Until: now.Add(-time.Minute)}, time.Time{}, begin.Add(5 * time.Minute)},
	} {
		set, d := &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}
		set.Status.LastOperation.LastUpdateTime = metav1.NewTime(tc.progress)
		d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentProgressing, LastUpdateTime: metav1.NewTime(tc.progress)}}
		require.Equal(t, tc.want, machineset.Decision{}.ReportFrom(set, tc.hold, now), name)
		require.Equal(t, tc.want, deployment.Decision{}.ReportFrom(d, tc.hold, now), name)
	}
	for _, reason := range []machinist.Reason{"NameTaken", "NoCapacity", "NoCluster", "NotSelected", "Gate"} {
		h := machinist.Hold{Since: begin, Reason: reason, Until: now.Add(time.Minute)}
		require.Equal(t, begin.Add(2*time.Second), deployment.Decision{}.ReportFrom(nil, h, now), reason)
	}
	for reason, since := range map[machinist.Reason]time.Time{
		machineset.ReasonPreserved: machineset.Decision{}.ReportFrom(&v1alpha1.MachineSet{}, machinist.Hold{Since: begin, Reason: machineset.ReasonPreserved}, now),
		machineset.ReasonInvalid:   machineset.Decision{}.ReportFrom(&v1alpha1.MachineSet{}, machinist.Hold{Since: begin, Reason: machineset.ReasonInvalid}, now),
		deployment.ReasonPaused:    deployment.Decision{}.ReportFrom(&v1alpha1.MachineDeployment{}, machinist.Hold{Since: begin, Reason: deployment.ReasonPaused}, now),
	} {
		require.Zero(t, since, reason)
	}
}
