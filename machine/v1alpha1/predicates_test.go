// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestPredicates_Phases_ActiveFailedTerminating(t *testing.T) {
	for phase, want := range map[v1alpha1.MachinePhase][3]bool{
		"":                          {true, false, false},
		v1alpha1.MachineRunning:     {true, false, false},
		v1alpha1.MachineUnknown:     {true, false, false},
		v1alpha1.MachineFailed:      {false, true, true},
		v1alpha1.MachineTerminating: {false, false, true},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: phase}}}
		got := [3]bool{v1alpha1.IsMachineActive(m), v1alpha1.IsMachineFailed(m), v1alpha1.IsMachineFailedOrTerminating(m)}
		require.Equal(t, want, got, phase)
		m.DeletionTimestamp = &metav1.Time{}
		require.True(t, v1alpha1.IsMachineFailedOrTerminating(m), phase)
	}
}

func TestPredicates_Nil_False(t *testing.T) {
	require.False(t, v1alpha1.IsMachineActive(nil))
	require.False(t, v1alpha1.IsMachineFailed(nil))
	require.False(t, v1alpha1.IsMachineFailedOrTerminating(nil))
	require.False(t, v1alpha1.IsMachineTriggeredForDeletion(nil))
	require.False(t, v1alpha1.IsMachinePreservationExpired(nil, time.Now()))
}

func TestPredicates_PriorityAndExpiry_Compared(t *testing.T) {
	now, m := time.Unix(1000, 0), &v1alpha1.Machine{}
	require.False(t, v1alpha1.IsMachineTriggeredForDeletion(m))
	require.False(t, v1alpha1.IsMachinePreservationExpired(m, now))
	m.Annotations = map[string]string{v1alpha1.MachinePriority: "1"}
	m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now}
	require.True(t, v1alpha1.IsMachineTriggeredForDeletion(m))
	require.True(t, v1alpha1.IsMachinePreservationExpired(m, now))
	require.False(t, v1alpha1.IsMachinePreservationExpired(m, now.Add(-time.Second)))
}
