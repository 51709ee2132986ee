// SPDX-License-Identifier: Apache-2.0

package mcm_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
)

var _ func(bool, string, string, string, []corev1.NodeAddress, error, driver.VMs) driver.Driver = driver.NewFakeDriver

func TestFakeDriver_EachCall_FixedResponses(t *testing.T) {
	ctx := t.Context()
	d, ok := driver.NewFakeDriver(false, "id", "node", "state", nil, nil, driver.VMs{"id": "machine"}).(*driver.FakeDriver)
	require.True(t, ok)
	_, err := d.GetMachineStatus(ctx, nil)
	decoded, _ := status.FromError(err)
	require.Equal(t, codes.NotFound, decoded.Code())
	created, err := d.CreateMachine(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, &driver.CreateMachineResponse{ProviderID: "id", NodeName: "node", LastKnownState: "state"}, created)
	found, err := d.GetMachineStatus(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, &driver.GetMachineStatusResponse{ProviderID: "id", NodeName: "node"}, found)
	listed, err := d.ListMachines(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"id": "machine"}, listed.MachineList)
	_, err = d.DeleteMachine(ctx, nil)
	require.NoError(t, err)
	require.False(t, d.VMExists)
}

func TestFakeDriver_Error_OfEachCall(t *testing.T) {
	ctx := t.Context()
	for _, tc := range []struct {
		err              error
		initialized, has bool
	}{
		{status.Error(codes.NotFound, "x"), false, false},
		{status.Error(codes.Unimplemented, "x"), true, true},
		{errors.New("x"), false, true},
	} {
		d, ok := driver.NewFakeDriver(true, "id", "node", "", nil, tc.err, nil).(*driver.FakeDriver)
		require.True(t, ok)
		out, err := d.CreateMachine(ctx, nil)
		require.Nil(t, out)
		require.Equal(t, tc.err, err)
		initialized, err := d.InitializeMachine(ctx, nil)
		require.Equal(t, tc.initialized, err == nil && initialized != nil)
		require.Equal(t, tc.has, d.VMExists)
	}
}
