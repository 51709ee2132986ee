// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// countedLooks counts the calls of GetMachineStatus by machine.
type countedLooks struct {
	driver.Driver
	mu    sync.Mutex
	looks map[string]int
}

func (c *countedLooks) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	c.mu.Lock()
	c.looks[req.Machine.Name]++
	c.mu.Unlock()
	return c.Driver.GetMachineStatus(ctx, req)
}

// take returns the calls since the last call of take: all of them, and the most of one machine.
func (c *countedLooks) take() (sum, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.looks {
		sum, most = sum+n, max(most, n)
	}
	c.looks = map[string]int{}
	return sum, most
}

// TestRestart_SettledFleet_ProviderIsNotAsked restarts the controllers of 300 machines (of 30 in a short
// test) whose Nodes are proven, and counts GetMachineStatus. Without the records on the Nodes, as after another
// controller, the first write of each Node needs one call.
func TestRestart_SettledFleet_ProviderIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := int32(300)
		if testing.Short() {
			size = 30
		}
		ctx, r := t.Context(), newHarness(t)
		counted := &countedLooks{Driver: r.cloud, looks: map[string]int{}}
		r.driver, r.tick, r.workers = counted, time.Minute, 20 // kubelets work once a minute
		end := r.begin()
		r.create("class-user")
		r.deploy(ctx, size)
		time.Sleep(4 * time.Minute)
		running := 0
		machines := list(t, r.machines.MachineV1alpha1().Machines(namespace).List, metav1.ListOptions{})
		for _, m := range machines.Items {
			if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
				running++
			}
		}
		require.EqualValues(t, size+1, running)
		sum, most := counted.take()
		t.Logf("creation of %d machines: %d calls, at most %d for a machine", size+1, sum, most)
		require.LessOrEqual(t, most, 1)
		end()

		end = r.begin()
		time.Sleep(5 * time.Minute)
		sum, _ = counted.take()
		t.Logf("5 minutes after a restart: %d calls", sum)
		require.Zero(t, sum)
		end()

		for _, m := range machines.Items {
			_, err := r.nodes.CoreV1().Nodes().Patch(ctx, m.Labels[v1alpha1.NodeLabelKey], types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, v1alpha1.MachineUIDAnnotation), metav1.PatchOptions{})
			require.NoError(t, err)
		}
		t.Cleanup(r.begin())
		time.Sleep(5 * time.Minute)
		sum, most = counted.take()
		t.Logf("5 minutes after a restart without records: %d calls, at most %d for a machine", sum, most)
		require.LessOrEqual(t, most, 1)
		for _, m := range machines.Items[:20] {
			r.remove(m.Name)
		}
		time.Sleep(5 * time.Minute)
		for _, m := range machines.Items[:20] {
			require.True(t, r.gone(ctx, m.Name))
		}
		deletions, most := counted.take()
		t.Logf("deletion of 20 of them, and creation of as many: %d calls, at most %d for a machine", deletions, most)
		require.LessOrEqual(t, most, 1)
	})
}
