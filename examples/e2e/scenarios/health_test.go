// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// replacing says how many machines of a group were being replaced at a time, at the
// most, as a log shows it: those that had been failed less those that had come to
// run in their place.
func replacing(log audit.Log, group map[types.UID]bool) (most, failed int) {
	lost, won := map[types.UID]bool{}, map[types.UID]bool{}
	for _, c := range log.Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		if !ok {
			continue
		}
		switch phase := m.Status.CurrentStatus.Phase; {
		case group[m.UID] && (phase == v1alpha1.MachineFailed || m.DeletionTimestamp != nil || c.Gone):
			lost[m.UID] = true
		case !group[m.UID] && phase == v1alpha1.MachineRunning:
			won[m.UID] = true
		}
		most = max(most, len(lost)-len(won))
	}
	return most, len(lost)
}

// sick sets a condition of the Node of a machine that its kubelet does not know, as a problem detector
// does. The machine is unhealthy while it is true.
func sick(t *testing.T, s *env.Env, machine string, is corev1.ConditionStatus) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"KernelDeadlock","status":%q,"reason":"Test","message":"set by the test"}]}}`, is)
	_, err := s.Client.CoreV1().Nodes().Patch(t.Context(), s.NodeName(machine), types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}
