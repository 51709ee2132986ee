// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// inPlace sets the condition of an update in place on a Node.
func (s *harness) inPlace(node, reason string) {
	s.t.Helper()
	n := s.node(node)
	c := corev1.NodeCondition{
		Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(s.clock.Now()),
	}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
	n.Status.Conditions = append(n.Status.Conditions, c)
	_, err := s.client.CoreV1().Nodes().UpdateStatus(s.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(s.t, err)
}

func (s *harness) result(node string) string {
	s.t.Helper()
	return s.node(node).Labels[v1alpha1.LabelKeyNodeUpdateResult]
}

func TestAgent_UpdateRequested_Updates(t *testing.T) {
	s := newHarness(t)
	s.nodes.UpdateTime = 20 * time.Second
	s.up("a")
	s.steps(11)
	for _, early := range []string{v1alpha1.CandidateForUpdate, v1alpha1.SelectedForUpdate, v1alpha1.DrainSuccessful} {
		s.inPlace("a", early)
		s.steps(60)
		require.Empty(t, s.result("a"), early)
	}
	s.inPlace("a", v1alpha1.ReadyForUpdate)
	s.steps(19)
	require.Empty(t, s.result("a"), "the call is slow")
	s.steps(1)
	require.Equal(t, "successful", s.result("a"))
	require.Equal(t, v1alpha1.ReadyForUpdate, s.condition("a", v1alpha1.NodeInPlaceUpdate).Reason, "the condition is owned by other clients")
	require.Equal(t, "a", s.node("a").Labels[corev1.LabelHostname])

	version := s.node("a").ResourceVersion
	s.inPlace("a", v1alpha1.UpdateSuccessful)
	s.steps(60)
	require.NotEqual(t, version, s.node("a").ResourceVersion)
	require.Equal(t, "successful", s.result("a"))
}

func TestAgent_AbsentOrSilent_ReportsNothing(t *testing.T) {
	s := newHarness(t)
	s.up("a")
	s.steps(11)
	s.inPlace("a", v1alpha1.ReadyForUpdate)
	s.steps(60)
	require.Empty(t, s.result("a"))

	s = newHarness(t)
	s.nodes.UpdateTime = time.Second
	s.up("a")
	s.steps(11)
	s.nodes.Silence("a", true)
	s.inPlace("a", v1alpha1.ReadyForUpdate)
	s.steps(60)
	require.Empty(t, s.result("a"))
	s.nodes.Silence("a", false)
	s.steps(1)
	require.Equal(t, "successful", s.result("a"))
}

func TestAgent_Run_UpdatesOnRequest(t *testing.T) {
	l := newLive(t, func(n *hollow.Nodes) { n.UpdateTime = 20 * time.Millisecond })
	l.up("a")
	l.eventually("it joins", func() bool { return len(l.nodeNames()) == 1 })
	_, err := l.client.CoreV1().Nodes().Patch(t.Context(), "a", "application/strategic-merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"InPlaceUpdate","status":"True","reason":"ReadyForUpdate","lastTransitionTime":"`+
			time.Now().UTC().Format(time.RFC3339)+`"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	l.eventually("it says how it went", func() bool { return l.result("a") == "successful" })
}
