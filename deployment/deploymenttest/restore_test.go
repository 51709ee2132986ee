// SPDX-License-Identifier: Apache-2.0

package deploymenttest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observed is what a world shows.
func observed(w *deploymenttest.World) deployment.Observation {
	in := deployment.Observation{Deployment: w.Deployment(), Sets: w.Sets(), Machines: w.Machines(), Complete: true, Nodes: map[string]*corev1.Node{}}
	for _, n := range w.Nodes() {
		in.Nodes[n.Name] = n
	}
	return in
}

func TestRestore_EachMomentOfARollout_EndsAsTheWorldDoes(t *testing.T) {
	for moment := time.Duration(0); moment < 9*time.Minute; moment += 20 * time.Second {
		w := settled(t, size(3, "1"), deploymenttest.Model{})
		require.NoError(t, w.Edit(class("large")))
		w.Run(moment)
		restored, err := deploymenttest.Restore(observed(w), deploymenttest.Model{Start: w.Now()})
		require.NoError(t, err)
		complete(t, w)
		complete(t, restored)
		require.WithinDuration(t, w.Now(), restored.Now(), time.Second, "restored after %s", moment)
		require.Len(t, restored.Machines(), 3)
		for _, m := range restored.Machines() {
			require.Equal(t, "large", m.Spec.Class.Name)
		}
	}
}

func TestRestore_NamesAndTimesOfAnotherCluster_GoOn(t *testing.T) {
	w := settled(t, size(3, "1"), deploymenttest.Model{})
	in := observed(w)
	pending, unknown, leaving := in.Machines[0].DeepCopy(), in.Machines[1].DeepCopy(), in.Machines[2].DeepCopy()
	pending.Status.CurrentStatus.Phase, pending.CreationTimestamp = v1alpha1.MachinePending, metav1.NewTime(w.Now().Add(-time.Hour))
	unknown.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineUnknown, LastUpdateTime: metav1.NewTime(w.Now())}
	leaving.DeletionTimestamp = &metav1.Time{Time: w.Now()}
	for _, m := range []*v1alpha1.Machine{pending, unknown, leaving} {
		m.ResourceVersion = "4711"
		node := in.Nodes[m.Labels[v1alpha1.NodeLabelKey]]
		if m == pending {
			node = nil
		}
		m.Labels[v1alpha1.NodeLabelKey] = "ip-10-0-0-" + m.Name
		in.Nodes[m.Labels[v1alpha1.NodeLabelKey]] = node
	}
	in.Machines = []*v1alpha1.Machine{pending, unknown, leaving}
	restored, err := deploymenttest.Restore(in, deploymenttest.Model{Start: w.Now(), HealthTimeout: 10 * time.Minute, CreationTimeout: 2 * time.Hour})
	require.NoError(t, err)
	restored.Run(time.Minute)
	require.Nil(t, restored.Machine(leaving.Name))
	require.Equal(t, v1alpha1.MachineRunning, restored.Machine(pending.Name).Status.CurrentStatus.Phase)
	restored.Run(10 * time.Minute)
	require.Nil(t, restored.Machine(unknown.Name), "it failed and was replaced")
	complete(t, restored)
	require.Len(t, restored.Machines(), 3)
}

func TestRestore_NothingToRestore_Error(t *testing.T) {
	w := settled(t, size(3, "1"), deploymenttest.Model{})
	partial, deleted, invalid := observed(w), observed(w), observed(w)
	partial.Complete = false
	deleted.Deployment = deleted.Deployment.DeepCopy()
	deleted.Deployment.DeletionTimestamp = &metav1.Time{Time: w.Now()}
	invalid.Deployment = invalid.Deployment.DeepCopy()
	invalid.Deployment.Spec.Replicas = -1
	for _, in := range []deployment.Observation{{}, {Complete: true}, partial, deleted, invalid} {
		_, err := deploymenttest.Restore(in, deploymenttest.Model{})
		require.ErrorContains(t, err, "cannot be simulated")
	}
}

func TestRestore_MachineDeletedDuringTheChange_IsReplaced(t *testing.T) {
	w := settled(t, size(5, "2"), deploymenttest.Model{})
	restored, err := deploymenttest.Restore(observed(w), deploymenttest.Model{Start: w.Now()})
	require.NoError(t, err)
	require.NoError(t, restored.Edit(class("large")))
	require.NoError(t, restored.DeleteMachine(restored.Machines()[0].Name))
	complete(t, restored)
	require.Len(t, restored.Machines(), 5)
}
