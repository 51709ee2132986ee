// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// slow is a cloud that takes long to answer that it has made a VM.
func slow() env.Options {
	o := fastOptions()
	o.Cloud.CreateLatency = 5 * time.Second
	return o
}

// made holds when the cloud has begun to make a VM.
func made(s *env.Env) env.Condition {
	return func(context.Context) (string, error) {
		if len(s.Cloud.Snapshot().VMs) == 0 {
			return "no VM", nil
		}
		return "", nil
	}
}

// vmless holds when a machine has no VM any more. The cloud accepts its deletion, and
// takes its time.
func vmless(s *env.Env, machine string) env.Condition {
	return func(context.Context) (string, error) {
		if left := s.Cloud.Snapshot().Of(machine); !left.Empty() {
			return left.String(), nil
		}
		return "", nil
	}
}

func TestMachine_DeletedDuringCreation_LeavesNoVM(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "early", slow())
	s.StartManager(t, "manager")
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	_, err := api.Create(ctx, s.Machine("a", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the VM is being created", made(s))

	require.NoError(t, api.Delete(ctx, "a", metav1.DeleteOptions{}))
	m, err := api.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err, "the machine is there: its VM is being created")
	require.Empty(t, m.Spec.ProviderID)
	s.Wait(t, patience, "the machine is gone", gone(s, "a"))
	require.True(t, s.Cloud.Snapshot().Empty(), "%s", s.Cloud.Snapshot())
	removeAll(t, s)
}

func TestManager_KilledDuringCreation_VMIsDeletedWithMachine(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "cut", withShortLease(slow()))
	manager := s.StartManager(t, "manager")
	ctx, api := t.Context(), s.Machines.MachineV1alpha1().Machines(s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	_, err := api.Create(ctx, s.Machine("a", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the VM is being created", made(s))

	manager.Kill()
	require.NoError(t, api.Delete(ctx, "a", metav1.DeleteOptions{}))
	m, err := api.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, m.Spec.ProviderID, "its VM is not recorded")
	require.Contains(t, m.Finalizers, v1alpha1.MCMFinalizerName)
	s.Start(t, manager)
	s.Wait(t, patience, "the machine is gone", gone(s, "a"))
	require.True(t, s.Cloud.Snapshot().Empty(), "%s", s.Cloud.Snapshot())
	removeAll(t, s)
}

// replacedWithoutNode replaces a machine that fails because a user has deleted its Node.
func replacedWithoutNode(t *testing.T, by composition) {
	var first v1alpha1.Machine
	o := by.options()
	o.Bounds.Excused = func(m *v1alpha1.Machine) bool { return m.UID == first.UID } // it is us who bring it down
	s := cluster.Set(t, "node", o)
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 3, 1, 0))
	first = machines(t, s)[0]
	node := first.Labels[v1alpha1.NodeLabelKey]
	require.Equal(t, s.NodeName(first.Name), node)

	require.NoError(t, s.Client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}))
	s.Wait(t, patience, "the machine is gone", gone(s, first.Name))
	s.Wait(t, patience, "the node is gone", env.Gone("node", s.Client.CoreV1().Nodes().Get, node))
	s.Wait(t, patience, "its VM is gone", vmless(s, first.Name))
	s.Wait(t, patience, "the machine is replaced", s.Complete("workers"))
	require.Len(t, machines(t, s), 3)
	removeAll(t, s)
}
