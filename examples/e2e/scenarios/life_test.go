// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twentyMachines creates, scales, rolls and deletes a fleet with a workload.
func twentyMachines(t *testing.T, by composition) {
	s := cluster.Set(t, "life", by.options())
	s.StartManager(t, "manager")
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(t.Context(), s.ReplicaSet("app", 30), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(t.Context(), s.Budget("app", 20), metav1.CreateOptions{})
	require.NoError(t, err)

	deploy(t, s, s.Deployment("workers", "small", 12, 3, 1))
	change(t, s, "workers", `{"spec":{"replicas":20}}`)
	s.Wait(t, patience, "scaled up", s.Complete("workers"))
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	for _, m := range machines(t, s) {
		require.Equal(t, "large", m.Spec.Class.Name)
	}
	change(t, s, "workers", `{"spec":{"replicas":15}}`)
	s.Wait(t, patience, "scaled down", s.Complete("workers"))

	require.NoError(t, s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	removeAll(t, s)
}
