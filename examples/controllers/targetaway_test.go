// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestRun_TargetClusterAwayFromTheBeginning_DeletionsEnd starts the controllers while the target
// cluster answers nothing. A forced deletion ends after minutes, another one after its drain
// timeout. When the cluster answers again, a new machine joins.
func TestRun_TargetClusterAwayFromTheBeginning_DeletionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, r := t.Context(), newHarness(t)
		var away atomic.Bool
		clients, ok := r.nodes.(*fake.Clientset)
		require.True(t, ok)
		refuse := func() error { return apierrors.NewServiceUnavailable("the cluster is away") }
		clients.PrependReactor("*", "*", func(clienttesting.Action) (bool, apiruntime.Object, error) { return away.Load(), nil, refuse() })
		r.tick = 10 * time.Second
		end := r.begin()
		r.create("class-user")
		r.add("forced")
		r.add("patient")
		time.Sleep(time.Minute)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("forced"))
		require.Equal(t, v1alpha1.MachineRunning, r.phase("patient"))
		end()

		away.Store(true)
		t.Cleanup(r.begin())
		r.patch("forced", `{"metadata":{"labels":{"force-deletion":"true"}}}`)
		r.remove("forced")
		r.remove("patient")
		time.Sleep(5 * time.Minute)
		require.True(t, r.gone(ctx, "forced"))
		require.False(t, r.gone(ctx, "patient"), "its pods may be drained when the cluster answers")
		time.Sleep(machine.DefaultPolicy().DrainTimeout)
		require.True(t, r.gone(ctx, "patient"))
		require.Equal(t, []drivertest.VM{r.cloud.Snapshot().Of("class-user").VMs[0]}, r.cloud.Snapshot().VMs, "the VM of the remaining machine")

		away.Store(false)
		r.add("later")
		time.Sleep(5 * time.Minute)
		require.Equal(t, v1alpha1.MachineRunning, r.phase("later"))
	})
}
