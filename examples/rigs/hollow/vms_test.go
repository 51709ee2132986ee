// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	drivers "github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestVMs_RunningAndInitialized_IsUp(t *testing.T) {
	require.Empty(t, hollow.VMsOf(nil)())
	cloud := drivertest.NewCloud(drivertest.CloudOptions{Clock: clocktesting.NewFakeClock(start), NeedsInitialization: true})
	h := cloud.Harness()
	m := cloud.AddVM(drivertest.VM{Namespace: "default", Machine: "planted"})
	vms := hollow.VMsOf(cloud)
	require.Equal(t, []hollow.VM{{ProviderID: m.ProviderID, NodeName: "planted", UpSince: start}}, vms())
	cloud.Stop(m.ProviderID)
	require.Equal(t, []hollow.VM{{ProviderID: m.ProviderID, NodeName: "planted"}}, vms(), "it does not run")
	cloud.Terminate(m.ProviderID)
	require.Empty(t, vms())

	request := &drivers.CreateMachineRequest{Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "1"}}, MachineClass: h.MachineClass, Secret: h.Secret}
	_, err := cloud.CreateMachine(t.Context(), request)
	require.NoError(t, err)
	require.Zero(t, vms()[0].UpSince, "it is not initialized")
	_, err = cloud.InitializeMachine(t.Context(), &drivers.InitializeMachineRequest{Machine: request.Machine, MachineClass: h.MachineClass, Secret: h.Secret})
	require.NoError(t, err)
	require.Equal(t, start, vms()[0].UpSince)
}
