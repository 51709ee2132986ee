// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestNoTargetCluster_Machines_AvailableAndDeleted(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	o.NoTarget = true
	s := cluster.Set(t, "targetless", o)
	s.StartManager(t, "manager")
	ctx := t.Context()
	require.NoError(t, s.Class(ctx, "small"))
	// A label for a Node is no reason to look for one.
	odd := s.Machine("odd", "small")
	odd.Labels = map[string]string{v1alpha1.NodeLabelKey: "nowhere"}
	create(t, s, odd)
	for _, name := range []string{"a", "b"} {
		create(t, s, s.Machine(name, "small"))
	}
	for _, name := range []string{"a", "b", "odd"} {
		s.Wait(t, patience, "it is available", in(s, name, v1alpha1.MachineAvailable))
		m := machine(t, s, name)
		require.NotEmpty(t, m.Spec.ProviderID)
		require.True(t, slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool {
			return a.Type == corev1.NodeInternalIP && a.Address != ""
		}), "%v", m.Status.Addresses)
		require.Equal(t, v1alpha1.MachineOperationCreate, m.Status.LastOperation.Type)
		require.Equal(t, v1alpha1.MachineStateSuccessful, m.Status.LastOperation.State)
		require.Contains(t, m.Status.LastOperation.Description, v1alpha1.CreatedMachine)
		require.Empty(t, s.TokenOf(name), "there is nothing to join")
	}
	require.NotContains(t, machine(t, s, "a").Labels, v1alpha1.NodeLabelKey)
	require.Len(t, s.Cloud.Snapshot().VMs, 3)

	require.NoError(t, s.Machines.MachineV1alpha1().Machines(s.Namespace).Delete(ctx, "a", metav1.DeleteOptions{}))
	s.Wait(t, patience, "the machine is gone", gone(s, "a"))
	s.Wait(t, patience, "its VM is gone", vmless(s, "a"))
	require.Len(t, s.Cloud.Snapshot().VMs, 2)
	removeAll(t, s)
	requests, err := s.Requests(ctx)
	require.NoError(t, err)
	for _, r := range requests {
		require.NotContains(t, []string{"nodes", "pods", "volumeattachments"}, r.Resource, "%v", r)
		require.NotEqual(t, metav1.NamespaceSystem, r.Namespace, "%v", r)
	}
}
