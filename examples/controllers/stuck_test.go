// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// waitEvents returns the Events of holds.
func waitEvents(events *record.FakeRecorder) []string {
	return slices.DeleteFunc(eventsOf(events), func(e string) bool { return !strings.Contains(e, " Waits for ") })
}

// TestStuck_NodeDoesNotJoin_OneEventAfterFiveMinutes has a VM that boots for 15 minutes.
func TestStuck_NodeDoesNotJoin_OneEventAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.cloud = drivertest.NewCloud(drivertest.CloudOptions{BootTime: 15 * time.Minute})
		events := r.record()
		r.create("m")
		r.start()
		time.Sleep(5*time.Minute - 10*time.Second)
		require.Empty(t, waitEvents(events))
		time.Sleep(5 * time.Minute)
		told := waitEvents(events)
		require.Len(t, told, 1)
		require.Contains(t, told[0], "Normal WaitingForNode Waits for node/")
		time.Sleep(10 * time.Minute)
		require.Empty(t, waitEvents(events))
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
	})
}

// TestStuck_NormalLifecycle_NoEvent creates, runs and deletes machines.
func TestStuck_NormalLifecycle_NoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		events := r.record()
		r.create("m")
		r.start()
		time.Sleep(time.Hour)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
		r.remove("m")
		time.Sleep(time.Hour)
		require.True(t, r.gone(t.Context(), "m"))
		require.Empty(t, waitEvents(events))
	})
}

// TestStuck_NewMachineDoesNotJoin_OneEventOfTheDeployment has a VM of a deployment that boots for
// 15 minutes.
func TestStuck_NewMachineDoesNotJoin_OneEventOfTheDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.cloud = drivertest.NewCloud(drivertest.CloudOptions{BootTime: 15 * time.Minute})
		events := r.record()
		r.create("alone") // this also creates the class
		r.remove("alone")
		r.deploy(t.Context(), 1)
		r.start()
		time.Sleep(5*time.Minute - 10*time.Second)
		require.Empty(t, waitEvents(events))
		time.Sleep(20 * time.Minute)
		told := slices.DeleteFunc(waitEvents(events), func(e string) bool { return strings.Contains(e, "WaitingForNode") })
		require.Len(t, told, 1, "beside that of the machine: %v", told)
		require.Contains(t, told[0], "Normal NewMachinesUnavailable Waits for machine/d-")
		require.Contains(t, told[0], ": Pending")
	})
}

// TestStuck_LongRollout_NoEventWhileMachinesComeAndGo replaces machines one after the other for
// much longer than the progress deadline.
func TestStuck_LongRollout_NoEventWhileMachinesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.cloud = drivertest.NewCloud(drivertest.CloudOptions{BootTime: 2 * time.Minute})
		events := r.record()
		r.create("alone")
		r.remove("alone")
		r.deploy(t.Context(), 5)
		r.start()
		time.Sleep(10 * time.Minute)
		r.patchDeployment(`{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
		time.Sleep(6 * time.Minute)
		require.Less(t, r.deployment().Status.UpdatedReplicas, int32(5), "it takes longer than a hold may last")
		time.Sleep(time.Hour)
		require.EqualValues(t, 5, r.deployment().Status.UpdatedReplicas)
		require.Empty(t, waitEvents(events))
	})
}

// TestStuck_DeletedSetWaitsForADrain_OneEventOfTheSet deletes a set whose machine has a pod that
// its PodDisruptionBudget blocks.
func TestStuck_DeletedSetWaitsForADrain_OneEventOfTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		events := r.record()
		r.create("alone")
		r.remove("alone")
		labels := map[string]string{"name": "s"}
		sets, machines := r.machines.MachineV1alpha1().MachineSets(namespace), r.machines.MachineV1alpha1().Machines(namespace)
		create(t, sets.Create, setOfOne(labels))
		r.start()
		time.Sleep(time.Minute)
		all := list(t, machines.List, metav1.ListOptions{LabelSelector: "name=s"})
		require.Len(t, all.Items, 1)
		r.blocked(all.Items[0].Labels[v1alpha1.NodeLabelKey])
		require.NoError(t, sets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
		time.Sleep(7 * time.Minute)
		told := slices.DeleteFunc(waitEvents(events), func(e string) bool { return !strings.Contains(e, "MachineSetDeleting") })
		require.Len(t, told, 1)
		require.Contains(t, told[0], "Waits for machine/"+all.Items[0].Name)
		require.Contains(t, told[0], "machines left: 1")
	})
}

// setOfOne returns set s with one machine of the class.
func setOfOne(labels map[string]string) *v1alpha1.MachineSet {
	return &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec: v1alpha1.MachineSetSpec{
			Replicas: 1, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: ofClass("class")},
		},
	}
}
