// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// removal is the patch by which an autoscaler lets machines go: it names them and
// lowers the replicas in one write.
func removal(t *testing.T, replicas int, at time.Time, names ...string) string {
	t.Helper()
	text, stamp := "", at.UTC().Format(time.RFC3339)
	for _, name := range names {
		if text != "" {
			text += ","
		}
		text += name + "~" + stamp
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{
			v1alpha1.TriggerDeletionByMCM: text, v1alpha1.LastDeploymentReplicaChangeByScalerTime: stamp,
		}},
		"spec": map[string]any{"replicas": replicas},
	})
	require.NoError(t, err)
	return string(patch)
}

// forgotten holds when the names of machines that were to go are gone, too.
func forgotten(s *env.Env, name string) env.Condition {
	return deploymentIs(s, name, func(d *v1alpha1.MachineDeployment) bool {
		_, named := d.Annotations[v1alpha1.TriggerDeletionByMCM]
		return !named
	})
}

func TestAutoscaler_NamedMachines_OnlyTheyAreDeleted(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "named", withShortLease(fastOptions()))
	manager := s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 6, 1, 1))
	all := machines(t, s)
	for _, m := range all[4:] { // the order of the set would take these
		annotate(t, s, m.Name, v1alpha1.MachinePriority, "2")
	}
	seen := watchCloud(t, s)
	at := time.Now()
	change(t, s, "workers", removal(t, 4, at, all[1].Name, all[3].Name))
	await(t, seen, drivertest.VMDeletionBegan)
	manager.Kill()
	s.Start(t, manager)
	s.Wait(t, patience, "the next one leads", leads(manager.Log, 2))
	s.Wait(t, patience, "all are gone that were named", forgotten(s, "workers"))
	s.Wait(t, patience, "scaled", s.Complete("workers"))
	s.Wait(t, patience, "no other machine is deleted", passed(lookedAt))
	require.ElementsMatch(t, []string{all[1].Name, all[3].Name}, namesOf(departures(s)))
	require.Len(t, arrivals(s), 6, "no machine is replaced")
	set := setOf(t, s, "small")
	require.EqualValues(t, 4, set.Spec.Replicas)
	require.Equal(t, at.UTC().Format(time.RFC3339), set.Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime])
	require.Equal(t, at.UTC().Format(time.RFC3339), deploymentNamed(t, s, "workers").Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime])

	// Names of machines that are gone, or never were, are no names of others.
	change(t, s, "workers", removal(t, 4, time.Now(), all[1].Name, "missing"))
	s.Wait(t, patience, "they are done with", forgotten(s, "workers"))
	s.Wait(t, patience, "no other machine is deleted", passed(lookedAt))
	require.Len(t, departures(s), 2)
	require.Len(t, arrivals(s), 6)
	removeAll(t, s)
}

func TestAutoscaler_NamedMachineDuringARoll_BoundsAreKept(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "namedroll", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 5, 1, 1))
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "half-way", deploymentIs(s, "workers", halfway))
	var young string // of the new set
	s.Wait(t, patience, "one of the new ones runs", func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "the machines", err
		}
		for _, m := range list.Items {
			if m.Spec.Class.Name == "large" && m.DeletionTimestamp == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
				young = m.Name
				return "", nil
			}
		}
		return "none runs", nil
	})
	change(t, s, "workers", removal(t, 4, time.Now(), young))
	s.Wait(t, patience, "it is gone", gone(s, young))
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	s.Wait(t, patience, "its name is forgotten", forgotten(s, "workers"))
	allOf(t, s, setOf(t, s, "large"), 4)
	removeAll(t, s)
}
