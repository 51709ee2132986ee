// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMachine_WriteWithoutEffect_PassEndsWithAnError has an API server that accepts the finalizer of a
// machine and does not store it, so that every decision has the same action.
func TestMachine_WriteWithoutEffect_PassEndsWithAnError(t *testing.T) {
	cfg, _ := newConfig(t, drivertest.NewCloud(drivertest.CloudOptions{}))
	stored := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", UID: "u"},
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c"}},
	}
	writes := 0
	clients, ok := cfg.Machines.(*fake.Clientset)
	require.True(t, ok)
	clients.PrependReactor("*", "machines", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		if a.GetVerb() == "update" || a.GetVerb() == "patch" {
			writes++
		}
		return true, stored.DeepCopy(), nil
	})
	caches := newCaches(cfg)
	r := newMachines(cfg, caches)
	require.NoError(t, caches.machines.Machine().V1alpha1().Machines().Informer().GetIndexer().Add(stored.DeepCopy()))
	_, err := r.pass(t.Context(), cache.NewObjectName("n", "m"))
	require.ErrorIs(t, err, errNotSettled)
	require.Equal(t, maxSteps, writes)
}
