// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestClass_UsersAreMissingInTheFirstLists_KeepsItsFinalizer has first lists that are older than the
// machine, the set and the deployment of a class. The finalizer is removed only after live lists.
func TestClass_UsersAreMissingInTheFirstLists_KeepsItsFinalizer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newShardWorld(t, "", nil)
	class, err := w.clients.MachineV1alpha1().MachineClasses("n").Get(ctx, "class", metav1.GetOptions{})
	require.NoError(t, err)
	class.Finalizers = []string{v1alpha1.MCMFinalizerName}
	_, err = w.clients.MachineV1alpha1().MachineClasses("n").Update(ctx, class, metav1.UpdateOptions{})
	require.NoError(t, err)
	r := w.loop(t, "machineclass")
	w.fill(t)
	api := w.caches.machines.Machine().V1alpha1()
	for _, users := range []cache.SharedIndexInformer{api.Machines().Informer(), api.MachineSets().Informer(), api.MachineDeployments().Informer()} {
		require.NoError(t, users.GetIndexer().Replace(nil, ""))
	}
	live := w.clients.MachineV1alpha1()
	for _, remove := range []func() error{
		func() error { return live.Machines("n").Delete(ctx, "machine", metav1.DeleteOptions{}) },
		func() error { return live.MachineSets("n").Delete(ctx, "set", metav1.DeleteOptions{}) },
		func() error { return live.MachineDeployments("n").Delete(ctx, "deployment", metav1.DeleteOptions{}) },
	} {
		w.clients.ClearActions()
		pass(t, r, "class")
		require.Zero(t, w.writes(), "an object refers to it")
		require.NoError(t, remove())
	}
	w.clients.ClearActions()
	pass(t, r, "class")
	require.Equal(t, 1, w.writes(), "no object refers to it")
}
