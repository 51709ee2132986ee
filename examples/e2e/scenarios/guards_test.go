// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestClass_InUse_ClassAndSecretStay(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "guards", fastOptions())
	s.StartManager(t, "manager")
	ctx, api, secrets := t.Context(), s.Machines.MachineV1alpha1(), s.Client.CoreV1().Secrets(s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	require.NoError(t, s.Class(ctx, "idle"))
	_, err := api.Machines(s.Namespace).Create(ctx, s.Machine("a", "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the machine runs", running(s, "a"))

	for _, name := range []string{"small", "idle"} {
		require.NoError(t, api.MachineClasses(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		require.NoError(t, secrets.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	// An unused object is deleted at once; after that the manager has had the time
	// to let the other go, too.
	s.Wait(t, patience, "the idle class is gone", env.Gone("class", api.MachineClasses(s.Namespace).Get, "idle"))
	s.Wait(t, patience, "the idle secret is gone", env.Gone("secret", secrets.Get, "idle"))
	class, err := api.MachineClasses(s.Namespace).Get(ctx, "small", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, class.DeletionTimestamp)
	require.Contains(t, class.Finalizers, v1alpha1.MCMFinalizerName)
	secret, err := secrets.Get(ctx, "small", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, secret.DeletionTimestamp)
	require.Contains(t, secret.Finalizers, v1alpha1.MCFinalizerName)

	require.NoError(t, api.Machines(s.Namespace).Delete(ctx, "a", metav1.DeleteOptions{}))
	s.Wait(t, patience, "the machine is gone, and what it used", s.NothingLeft)
}
