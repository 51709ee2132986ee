// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// TestOrphans_ManyClasses_OneListOfTheMachines counts the live lists of machines in passes over twenty classes, of
// which one has a VM without a machine: none while it waits for its grace, and one for its deletion.
func TestOrphans_ManyClasses_OneListOfTheMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const classes, period = 20, time.Minute
		r := newHarness(t)
		r.orphans, r.tick = safety.Policy{Period: period}, time.Second
		lists := r.requests("list", "machines", every)
		r.create("m")
		for i := range classes {
			class := get(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Get, "class")
			class.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprint("class-", i)}
			create(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Create, class)
		}
		r.orphans.Grace, r.orphans.MaxPercent, r.orphans.MaxDeletions = 4*period, 100, 1
		r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
		r.start()
		time.Sleep(10 * time.Second)
		begin := lists.Load()
		require.Positive(t, begin)
		time.Sleep(3 * period)
		require.Equal(t, begin, lists.Load(), "nothing is to be deleted")
		require.Len(t, r.cloud.Snapshot().VMs, 2)
		time.Sleep(3 * period)
		require.Len(t, r.cloud.Snapshot().VMs, 1)
		require.Equal(t, begin+1, lists.Load())
	})
}

// TestMachine_Created_IsNotRead counts the reads of a machine from its creation to Running. The
// writes before the creation of the VM confirm its version.
func TestMachine_Created_IsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		reads := r.requests("get", "machines", func(a clienttesting.Action) bool {
			get, ok := a.(clienttesting.GetAction)
			return ok && get.GetName() == "m" // not the probe of the API server
		})
		r.tick = 100 * time.Millisecond
		r.start()
		r.create("m")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, reads.Load())
		require.Equal(t, v1alpha1.MachineRunning, r.phase("m"))
	})
}

// TestDeployment_OnlyCountersChange_StatusOnceASecond lets ten machines become unhealthy, one every
// 300 ms, and counts the writes of the status of their deployment.
func TestDeployment_OnlyCountersChange_StatusOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 10
		ctx := t.Context()
		r := newHarness(t)
		writes := r.requests("update", "machinedeployments", func(a clienttesting.Action) bool { return a.GetSubresource() == "status" })
		available := func() int32 { return r.deployment().Status.AvailableReplicas }
		r.tick = 100 * time.Millisecond
		r.start()
		r.create("class-user")
		r.deploy(ctx, size)
		time.Sleep(time.Minute)
		require.EqualValues(t, size, available())

		nodes := list(t, r.nodes.CoreV1().Nodes().List, metav1.ListOptions{})
		before, began := writes.Load(), time.Now()
		for _, n := range nodes.Items {
			_, err := r.nodes.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"KernelDeadlock","status":"True"}]}}`), metav1.PatchOptions{}, "status")
			require.NoError(t, err)
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Zero(t, available(), "the last write is made")
		took := writes.Load() - before
		require.LessOrEqual(t, took, int32(time.Since(began).Seconds())+2, "with the first, which changes the condition Available")
		require.Greater(t, took, int32(2))
	})
}

// TestPass_StatusWritten_NextPassWaits writes the status of a set and of its deployment while nothing
// else changes, and looks at when their next passes are. Those of 40 machines wait 40 ms.
func TestPass_StatusWritten_NextPassWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 40
		ctx, r := t.Context(), newHarness(t)
		var mu sync.Mutex
		var passes []string
		r.observe = func(n controllers.Note) {
			mu.Lock()
			defer mu.Unlock()
			passes = append(passes, n.Kind)
		}
		seen := func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			defer func() { passes = nil }()
			return passes
		}
		r.tick = time.Second
		r.start()
		r.create("class-user")
		r.deploy(ctx, size)
		time.Sleep(time.Minute)
		api := r.machines.MachineV1alpha1()
		sets := list(t, api.MachineSets(namespace).List, metav1.ListOptions{})
		require.Len(t, sets.Items, 1)
		require.EqualValues(t, size, sets.Items[0].Status.AvailableReplicas)

		status := []byte(`{"status":{"availableReplicas":1}}`)
		for kind, write := range map[string]func() error{
			"machineset": func() error {
				_, err := api.MachineSets(namespace).Patch(ctx, sets.Items[0].Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
				return err
			},
			"machinedeployment": func() error {
				_, err := api.MachineDeployments(namespace).Patch(ctx, "d", types.MergePatchType, status, metav1.PatchOptions{}, "status")
				return err
			},
		} {
			seen()
			require.NoError(t, write())
			time.Sleep((size - 1) * time.Millisecond)
			require.NotContains(t, seen(), kind)
			time.Sleep(2 * time.Millisecond)
			require.Contains(t, seen(), kind)
			time.Sleep(time.Minute)
		}
	})
}
