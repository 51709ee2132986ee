// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/examples/audit"
	"github.com/machinist-dev/machinist/examples/e2e/env"
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

func TestHealth_ThreeSilentNodes_ReplacedOneByOne(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "silent", fastOptions())
	s.StartManager(t, "manager")
	d := s.Deployment("workers", "small", 3, 1, 0)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineHealthTimeout: seconds(5)}
	deploy(t, s, d)
	group, names := map[types.UID]bool{}, map[types.UID]string{}
	for _, m := range machines(t, s) {
		group[m.UID], names[m.UID] = true, m.Name
		s.Nodes.Silence(s.NodeName(m.Name), true)
	}
	s.Wait(t, nodeGrace+patience, "all three are replaced", func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "nothing is known", err
		}
		for _, m := range list.Items {
			if group[m.UID] {
				return fmt.Sprintf("machine %s is still there", m.Name), nil
			}
		}
		return s.Complete("workers")(ctx)
	})
	for uid, name := range names {
		s.Wait(t, patience, "its phases", went(s, uid, "Pending", "Running", "Unknown", "Failed", "Terminating"))
		s.Wait(t, patience, "how it went", tells(s, "Machine", name, "Pending", "Running", "Unknown", "Failed", "Terminating"))
	}
	most, failed := replacing(s.AuditLog(), group)
	require.Equal(t, 1, most, "machines that were replaced at a time")
	require.Equal(t, 3, failed)
	seen := map[types.UID]bool{}
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		if !ok {
			continue
		}
		seen[m.UID] = true
		if group[m.UID] && m.Status.CurrentStatus.Phase == v1alpha1.MachineUnknown && m.DeletionTimestamp == nil {
			require.Contains(t, m.Status.LastOperation.Description, "unhealthy")
			require.Contains(t, m.Status.LastOperation.Description, "Ready=Unknown", "what a node lifecycle controller has found")
		}
	}
	require.Len(t, seen, 6, "one for each")
	removeAll(t, s)
}

func TestHealth_NodeSilentForAWhile_UnknownThenRunning(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "resumed", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 0))
	m := machines(t, s)[0]
	before := node(t, s, m.Name).UID
	s.Nodes.Silence(s.NodeName(m.Name), true)
	s.Wait(t, nodeGrace+patience, "the machine is unknown", in(s, m.Name, v1alpha1.MachineUnknown))
	s.Nodes.Silence(s.NodeName(m.Name), false)
	s.Wait(t, patience, "the machine runs again", running(s, m.Name))
	s.Wait(t, patience, "all is well", s.Complete("workers"))

	require.Equal(t, before, node(t, s, m.Name).UID, "the same node")
	all := map[types.UID]bool{}
	for _, c := range s.AuditLog().Changes {
		if m, ok := c.Object.(*v1alpha1.Machine); ok {
			all[m.UID] = true
		}
	}
	require.Len(t, all, 2, "nothing was replaced")
	require.Len(t, s.Cloud.Snapshot().VMs, 2)
	s.Wait(t, patience, "its phases", went(s, m.UID, "Pending", "Running", "Unknown", "Running"))
	require.Contains(t, machine(t, s, m.Name).Status.LastOperation.Description, "re-joined the cluster")
	s.Wait(t, patience, "how it went", tells(s, "Machine", m.Name, "Pending", "Running", "Unknown", "Running"))
	removeAll(t, s)
}

// sick lets the Node of a machine report that it is not ready.
func sick(s *env.Env, machine string) {
	s.Nodes.Report(s.NodeName(machine), corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Sick", Message: "as it was told"})
}
