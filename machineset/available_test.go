// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func readySince(at time.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch)},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
	}
}

func TestAvailableSince_Conditions_NodeReadyElsePhase(t *testing.T) {
	phase, ready := now.Add(-time.Minute), now.Add(-time.Hour)
	m := newMachine("m", v1alpha1.MachineRunning)
	m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(phase)
	since, ok := members.AvailableSince(m)
	require.True(t, ok)
	require.Equal(t, phase, since)
	m.Status.Conditions = readySince(ready)
	since, _ = members.AvailableSince(m)
	require.Equal(t, ready, since)
	m.Status.Conditions[1].Status = corev1.ConditionFalse
	since, _ = members.AvailableSince(m)
	require.Equal(t, phase, since)
	m.Status.Conditions = readySince(time.Time{})
	since, _ = members.AvailableSince(m)
	require.Equal(t, phase, since)

	m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
	_, ok = members.AvailableSince(m)
	require.False(t, ok)
	_, ok = members.AvailableSince(nil)
	require.False(t, ok)
	require.False(t, members.AvailableFor(m, -time.Hour, now))
	require.True(t, members.AvailableFor(newMachine("m", v1alpha1.MachineRunning), time.Hour, now), "no time is recorded")
}

func TestNextAvailable_SeveralSettling_LongestWait(t *testing.T) {
	since := func(name string, ago time.Duration) *v1alpha1.Machine {
		m := newMachine(name, v1alpha1.MachineRunning)
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(-ago))
		return m
	}
	leaving := since("a", 59*time.Second)
	leaving.DeletionTimestamp = deletedNow()
	machines := []*v1alpha1.Machine{
		nil, leaving, since("b", time.Minute), since("e", 30*time.Second), since("d", 30*time.Second), since("c", time.Second),
		newMachine("f", v1alpha1.MachinePending),
	}
	m, at := members.NextAvailable(machines, time.Minute, now)
	require.Equal(t, "d", m.Name)
	require.Equal(t, now.Add(30*time.Second), at)
	m, at = members.NextAvailable(machines, 0, now)
	require.Nil(t, m)
	require.Zero(t, at)
}
