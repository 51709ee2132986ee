// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"errors"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/metrics"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func request(name, provider string) *driver.CreateMachineRequest {
	return &driver.CreateMachineRequest{
		Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NodeLabelKey: name + ".local"}}},
		MachineClass: &v1alpha1.MachineClass{
			Provider: provider, ProviderSpec: runtime.RawExtension{Raw: []byte(`{"flavor":"small"}`)},
		},
		Secret: &corev1.Secret{Data: map[string][]byte{"userData": []byte("#!/bin/sh")}},
	}
}

func TestDriver_Lifecycle(t *testing.T) {
	d, req := NewDriver(NewCloud()), request("m-1", Provider)
	created, err := d.CreateMachine(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, &driver.CreateMachineResponse{ProviderID: "acme:///m-1", NodeName: "m-1.local", LastKnownState: "created"}, created)
	listed, err := d.ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: req.MachineClass, Secret: req.Secret})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"acme:///m-1": "m-1"}, listed.MachineList)
	_, err = d.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: req.Machine, MachineClass: req.MachineClass, Secret: req.Secret})
	require.NoError(t, err)
	_, err = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: req.Machine})
	require.EqualError(t, err, "machine codes error: code = [NotFound] message = [404: no such server]")
}

func TestDriver_Errors(t *testing.T) {
	cloud := NewCloud()
	cloud.Quota = 0
	_, err := NewDriver(cloud).CreateMachine(t.Context(), request("m-1", Provider))
	var failed *status.Status
	require.True(t, errors.As(err, &failed))
	require.Equal(t, codes.ResourceExhausted, failed.Code())
	require.ErrorIs(t, failed.Cause(), errQuota)
	decoded, ok := status.FromError(errors.New(err.Error()))
	require.True(t, ok)
	require.Equal(t, codes.ResourceExhausted, decoded.Code())

	_, err = NewDriver(cloud).CreateMachine(t.Context(), request("m-1", "other"))
	require.Equal(t, status.New(codes.InvalidArgument, "requested for provider 'other', we only support 'Acme'"), err)
}

func TestDriver_Metrics(t *testing.T) {
	metrics.APIRequestCount.Reset()
	_, err := NewDriver(NewCloud()).CreateMachine(t.Context(), request("m-1", Provider))
	require.NoError(t, err)
	require.InDelta(t, 1, value(t, metrics.APIRequestCount.WithLabelValues(Provider, "servers")), 0)
}

func value(t *testing.T, counter prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, counter.Write(&m))
	return m.GetCounter().GetValue()
}
