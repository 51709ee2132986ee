// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

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
		n := &corev1.Node{}
		n.Labels = map[string]string{}
		for word := range strings.FieldsSeq(tc.labels) {
			switch word {
			case "candidate", "replace":
				n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] = word
			case "selected":
				n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = word
			default:
				n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = word
			}
		}
		if tc.step != none {
			n.Status.Conditions = []corev1.NodeCondition{facts.StepCondition(tc.step, "", now)}
		}
		c, due := facts.UpdateCondition(n, now)
		require.Equal(t, tc.want != none, due, "%+v", tc)
		require.Equal(t, tc.want, c.Reason, "%+v", tc)
	}
	_, due := facts.UpdateCondition(nil, now)
	require.False(t, due)
}
