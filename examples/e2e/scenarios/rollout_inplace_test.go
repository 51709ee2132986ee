// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// inPlace makes a deployment update its machines in place, one at a time.
func inPlace(d *v1alpha1.MachineDeployment, how v1alpha1.OrchestrationType) *v1alpha1.MachineDeployment {
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{
		Type: v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
		InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{
			UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &none, MaxUnavailable: &one}, OrchestrationType: how,
		},
	}
	return d
}

// agile is an environment on which machines are updated in place, and nothing fails.
func agile() env.Options {
	o := fastOptions()
	o.Nodes.UpdateTime = 500 * time.Millisecond
	o.Bounds.Steady = true
	return o
}

// identity is what an update in place leaves as it is.
type identity struct {
	machine, node types.UID
	providerID    string
}

// identities returns those of all machines, by name.
func identities(t *testing.T, s *env.Env) map[string]identity {
	t.Helper()
	all := map[string]identity{}
	for _, m := range machines(t, s) {
		all[m.Name] = identity{m.UID, node(t, s, m.Name).UID, m.Spec.ProviderID}
	}
	return all
}

// updated requires that all machines have moved to the set for a class, and that
// nothing else is left of the update.
func updated(t *testing.T, s *env.Env, class string) {
	t.Helper()
	set := setOf(t, s, class)
	all := machines(t, s)
	allOf(t, s, set, len(all))
	for _, m := range all {
		require.Equal(t, set.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey], m.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey])
		require.NotContains(t, m.Labels, v1alpha1.LabelKeyNodeUpdateResult)
		n := node(t, s, m.Name)
		for _, label := range []string{candidate, selected, v1alpha1.LabelKeyNodeUpdateResult} {
			require.NotContains(t, n.Labels, label)
		}
		require.False(t, n.Spec.Unschedulable, "pods may come back")
		require.False(t, slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == v1alpha1.TaintNodeCriticalComponentsNotReady
		}), "no controller here removes it")
	}
}

// acknowledged holds when no machine bears the mark of one that has just moved.
func acknowledged(s *env.Env) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelKeyNodeUpdateResult})
		if err != nil || len(list.Items) > 0 {
			return "machines are on the move", err
		}
		return "", nil
	}
}

// candidates holds when so many Nodes of an environment may be selected for an update.
func candidates(s *env.Env, n int) env.Condition {
	return func(ctx context.Context) (string, error) {
		list, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: candidate + "," + env.Label + "=" + s.Namespace})
		if err != nil {
			return "the nodes", err
		}
		if len(list.Items) != n {
			return fmt.Sprintf("%d candidates, not %d", len(list.Items), n), nil
		}
		return "", nil
	}
}

// movedTo holds when a machine belongs to an owner.
func movedTo(s *env.Env, name string, owner types.UID) env.Condition {
	return func(ctx context.Context) (string, error) {
		m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "the machine", err
		}
		if controller(m) != owner {
			return fmt.Sprintf("machine %s belongs to %v", name, m.OwnerReferences), nil
		}
		return "", nil
	}
}

// ofClass returns the machines that belong to the set for a class.
func ofClass(t *testing.T, s *env.Env, class string) []v1alpha1.Machine {
	t.Helper()
	set := setOf(t, s, class)
	return slices.DeleteFunc(machines(t, s), func(m v1alpha1.Machine) bool { return controller(&m) != set.UID })
}

func TestInPlaceRoll_Automatic_KeepsNamesAndNodes(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "auto", agile())
	s.StartManager(t, "manager")
	deploy(t, s, inPlace(s.Deployment("workers", "small", 3, 0, 1), v1alpha1.OrchestrationTypeAuto))
	before := identities(t, s)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "updated", s.Complete("workers"))
	s.Wait(t, patience, "and acknowledged", acknowledged(s))
	updated(t, s, "large")
	require.Equal(t, before, identities(t, s))
	require.Len(t, arrivals(s), 3)
	require.EqualValues(t, 0, setOf(t, s, "small").Spec.Replicas)
	for _, m := range machines(t, s) {
		s.Wait(t, patience, "its phases", went(s, m.UID, "Pending", "Running", "InPlaceUpdating", "InPlaceUpdateSuccessful", "Running"))
	}
	removeAll(t, s)
}

func TestInPlaceRoll_Manual_WaitsForUser(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "manual", agile())
	s.StartManager(t, "manager")
	deploy(t, s, inPlace(s.Deployment("workers", "small", 3, 0, 1), v1alpha1.OrchestrationTypeManual))
	before := identities(t, s)
	all := machines(t, s)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "all may be selected", candidates(s, 3))
	s.Wait(t, patience, "a while has passed", passed(lookedAt))
	for i, m := range all {
		s.Wait(t, patience, "the others wait", candidates(s, 3-i))
		require.Len(t, ofClass(t, s, "large"), i, "only those that were selected")
		mark(t, s, m.Name, map[string]any{selected: "true"}, nil)
		s.Wait(t, patience, "it has moved", movedTo(s, m.Name, setOf(t, s, "large").UID))
		s.Wait(t, patience, "it runs", running(s, m.Name))
		s.Wait(t, patience, "and is acknowledged", acknowledged(s))
	}
	s.Wait(t, patience, "updated", s.Complete("workers"))
	updated(t, s, "large")
	require.Equal(t, before, identities(t, s))
	require.Len(t, arrivals(s), 3)
	removeAll(t, s)
}
