// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// failedWithNode returns a machine that failed an hour ago, and its Node, whose Ready has
// had the status since then.
func failedWithNode(status corev1.ConditionStatus, since time.Time) (*v1alpha1.Machine, machine.NodeView) {
	m := newMachine("a", v1alpha1.MachineFailed)
	m.Labels[v1alpha1.NodeLabelKey] = "n"
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(epoch)
	return m, machine.NodeView{Looked: true, Node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
		}},
	}}
}

func TestReplaceFailed_NodeReadyAgain_HoldsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		status corev1.ConditionStatus
		since  time.Time
		stays  bool
	}{
		"Ready just now":                   {corev1.ConditionTrue, now, true},
		"Ready for less than a minute":     {corev1.ConditionTrue, now.Add(-59 * time.Second), true},
		"Ready for a minute":               {corev1.ConditionTrue, now.Add(-time.Minute), false},
		"Ready since before it failed":     {corev1.ConditionTrue, epoch.Add(-time.Second), false},
		"not Ready":                        {corev1.ConditionFalse, now, false},
		"Ready by a clock a little ahead":  {corev1.ConditionTrue, now.Add(time.Minute), true},
		"Ready by a clock that is useless": {corev1.ConditionTrue, now.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			m, view := failedWithNode(tc.status, tc.since)
			goes, reason := machineset.ReplaceFailed(m, view, time.Time{}, now)
			require.Equal(t, !tc.stays, goes)
			in := observed(1, m)
			in.Nodes = map[string]machine.NodeView{"n": view}
			d := machineset.Decide(in, machineset.Policy{}, now)
			if !tc.stays {
				require.Equal(t, machineset.ReasonFailed, reason)
				require.Equal(t, []string{"a"}, deleted(d))
				return
			}
			require.Equal(t, machineset.ReasonNodeReadyAgain, reason)
			require.Empty(t, d.Actions)
			until := tc.since.Add(time.Minute)
			require.Equal(t, until, d.Holds[0].Until)
			require.Equal(t, machineset.ReasonNodeReadyAgain, d.Reason)
			require.Equal(t, until, d.NextCheck)
			later := machineset.Decide(in, machineset.Policy{}, until)
			require.Equal(t, []string{"a"}, deleted(later), "it stays no longer")
		})
	}
}

// TestReplaceFailed_ReadyAgainReadLater_OneMinuteFromRead has a Node that was Ready for long before
// the set reads that, as after an outage.
func TestReplaceFailed_ReadyAgainReadLater_OneMinuteFromRead(t *testing.T) {
	m, view := failedWithNode(corev1.ConditionTrue, now.Add(-time.Minute))
	for at, stays := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false} {
		goes, reason := machineset.ReplaceFailed(m, view, now, now.Add(at))
		require.Equal(t, !stays, goes, at)
		require.Equal(t, stays, reason == machineset.ReasonNodeReadyAgain, at)
	}
	m, view = failedWithNode(corev1.ConditionFalse, now)
	goes, _ := machineset.ReplaceFailed(m, view, now, now)
	require.True(t, goes, "it is not Ready any more")
}
