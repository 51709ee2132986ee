// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// everything returns a machine, a class and a Secret with all fields set.
func everything() (*v1alpha1.Machine, *v1alpha1.MachineClass, *corev1.Secret) {
	m := machineNamed("a")
	m.UID, m.Labels, m.Annotations = "uid", map[string]string{"node": "<a&b>"}, map[string]string{"text": "\u2028 \ufffd \\ufffd"}
	m.CreationTimestamp = metav1.NewTime(time.Unix(1767225600, 0))
	m.Spec.ProviderID, m.Spec.Class = "id:///a", v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}
	m.Status.LastKnownState = "resume at step 3"
	class := &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}, Provider: "simulated",
		ProviderSpec: runtime.RawExtension{Raw: []byte("{ \"a\" : \"<\\ufffd>\",\n \"n\": 1.0 }")},
		NodeTemplate: &v1alpha1.NodeTemplate{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
	}
	return m, class, secretWith(map[string][]byte{"userData": {0, 1, 0xff}, "empty": {}, "credential": []byte("x")})
}

func TestWire_Request_IsUnchanged(t *testing.T) {
	m, class, secret := everything()
	volume := (&drivertest.Cloud{}).Volume("vol-1")
	var got any
	client := dial(t, says{
		create: func(_ context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
			got = q
			return &driver.CreateMachineResponse{}, nil
		},
		initialize: func(_ context.Context, q *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
			got = q
			return &driver.InitializeMachineResponse{}, nil
		},
		delete: func(_ context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
			got = q
			return &driver.DeleteMachineResponse{}, nil
		},
		status: func(_ context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
			got = q
			return &driver.GetMachineStatusResponse{}, nil
		},
		list: func(_ context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
			got = q
			return &driver.ListMachinesResponse{}, nil
		},
		volumes: func(_ context.Context, q *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
			got = q
			return &driver.GetVolumeIDsResponse{}, nil
		},
	})
	for _, sent := range []any{
		&driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret},
		&driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret},
		&driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret},
		&driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret},
		&driver.ListMachinesRequest{MachineClass: class, Secret: secret},
		&driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{volume, nil}},
		&driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{}},
		&driver.CreateMachineRequest{},
		(*driver.CreateMachineRequest)(nil),
		(*driver.InitializeMachineRequest)(nil),
		(*driver.DeleteMachineRequest)(nil),
		(*driver.GetMachineStatusRequest)(nil),
		(*driver.ListMachinesRequest)(nil),
		(*driver.GetVolumeIDsRequest)(nil),
	} {
		got = nil
		var err error
		switch q := sent.(type) {
		case *driver.CreateMachineRequest:
			_, err = client.CreateMachine(t.Context(), q)
		case *driver.InitializeMachineRequest:
			_, err = client.InitializeMachine(t.Context(), q)
		case *driver.DeleteMachineRequest:
			_, err = client.DeleteMachine(t.Context(), q)
		case *driver.GetMachineStatusRequest:
			_, err = client.GetMachineStatus(t.Context(), q)
		case *driver.ListMachinesRequest:
			_, err = client.ListMachines(t.Context(), q)
		case *driver.GetVolumeIDsRequest:
			_, err = client.GetVolumeIDs(t.Context(), q)
		}
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(sent, got), "%T", sent)
	}
}

// TestWire_ProviderSpec_IsUnchanged sends provider specifications that are JSON or not.
func TestWire_ProviderSpec_IsUnchanged(t *testing.T) {
	var got []byte
	client := dial(t, says{list: func(_ context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
		got = q.MachineClass.ProviderSpec.Raw
		return &driver.ListMachinesResponse{}, nil
	}})
	for _, raw := range [][]byte{nil, {}, []byte("null"), []byte("{}"), []byte(" { } \n"), []byte("not: json"), {0xff, 0}, []byte(`"<\u003c\ufffd>"`)} {
		class := &v1alpha1.MachineClass{ProviderSpec: runtime.RawExtension{Raw: raw}}
		_, err := client.ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: class})
		require.NoError(t, err)
		require.Equal(t, raw, got)
		require.Equal(t, raw, class.ProviderSpec.Raw, "the request belongs to the caller")
	}
}

func TestWire_Response_IsUnchanged(t *testing.T) {
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	for _, given := range []*driver.CreateMachineResponse{
		nil, {}, {ProviderID: "id:///a", NodeName: "a", LastKnownState: "<step 3> \u2028 \\ufffd \ufffd", Addresses: addresses},
		{Addresses: []corev1.NodeAddress{}},
	} {
		for _, failed := range []error{nil, status.Error(codes.Uninitialized, "not yet"), status.Error(codes.NotFound, "")} {
			got, err := dial(t, says{create: func(context.Context, *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
				return given, failed
			}}).CreateMachine(t.Context(), nil)
			require.Empty(t, cmp.Diff(given, got), "the response next to %v", failed)
			require.Equal(t, failed, err)
		}
	}
	for _, given := range []*driver.ListMachinesResponse{{}, {MachineList: map[string]string{}}, {MachineList: map[string]string{"id<1>": "a", "id<2>": "a", "": ""}}} {
		got, err := dial(t, says{list: func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
			return given, nil
		}}).
			ListMachines(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(given, got))
	}
}

func TestWire_InvalidUTF8_IsRefused(t *testing.T) {
	client := dial(t, says{list: func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
		return &driver.ListMachinesResponse{MachineList: map[string]string{"\xff": "a", "\xfe": "b"}}, nil
	}})
	resp, err := client.ListMachines(t.Context(), nil)
	require.Nil(t, resp, "two VMs must not become one")
	require.Equal(t, codes.Internal, codes.Of(err))
	_, err = client.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: machineNamed("secret-\xff")})
	require.Equal(t, codes.InvalidArgument, codes.Of(err))
	require.NotContains(t, err.Error(), "secret-")
}

func TestWire_SideResources_ArePassedOn(t *testing.T) {
	c := drivertest.NewCloud(drivertest.CloudOptions{})
	class, secret := c.MachineClass("shoot", "small"), c.Secret("shoot", "small")
	_, err := c.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: machineNamed("a"), MachineClass: class, Secret: secret})
	require.NoError(t, err)
	req := &driver.ListSideResourcesRequest{MachineClass: class, Secret: secret}
	want, err := c.ListSideResources(t.Context(), req)
	require.NoError(t, err)
	lister, ok := driver.As[driver.SideResourceLister](driver.WithDeadline(dial(t, driver.WithDeadline(c, driver.Timeouts{})), driver.Timeouts{}))
	require.True(t, ok)
	got, err := lister.ListSideResources(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, got.Resources, 2)
	require.Equal(t, want, got)

	deleter, ok := driver.As[driver.SideResourceDeleter](dial(t, c))
	require.True(t, ok)
	gone := &driver.DeleteSideResourceRequest{Resource: got.Resources[0], MachineClass: class, Secret: secret}
	_, err = deleter.DeleteSideResource(t.Context(), gone)
	require.Equal(t, codes.FailedPrecondition, codes.Of(err), "its VM exists")
	c.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Machine: "b", Times: 1, Kind: drivertest.Partial})
	_, err = c.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: machineNamed("b"), MachineClass: class, Secret: secret})
	require.Error(t, err)
	left := c.Snapshot().Leftovers()
	require.NotEmpty(t, left)
	gone.Resource = left[0]
	_, err = deleter.DeleteSideResource(t.Context(), gone)
	require.NoError(t, err)
	require.Equal(t, left[1:], c.Snapshot().Leftovers())

	none := dial(t, says{})
	_, err = none.ListSideResources(t.Context(), req)
	require.Equal(t, codes.Unimplemented, codes.Of(err))
	_, err = none.DeleteSideResource(t.Context(), gone)
	require.Equal(t, codes.Unimplemented, codes.Of(err))
}

func TestClient_LargeResponse_IsRefused(t *testing.T) {
	text := strings.Repeat("x", cloud.MaxAnswerBytes)
	resp, err := dial(t, says{status: func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
		return &driver.GetMachineStatusResponse{NodeName: text}, nil
	}}).GetMachineStatus(t.Context(), nil)
	require.Nil(t, resp)
	require.Equal(t, codes.Internal, codes.Of(err))

	_, err = dial(t, failing(codes.WithRetryAfter(status.Error(codes.ResourceExhausted, text), time.Minute))).GetMachineStatus(t.Context(), nil)
	require.Equal(t, codes.ResourceExhausted, codes.Of(err))
	require.Equal(t, time.Minute, codes.RetryAfterOf(err))
	require.Less(t, len(err.Error()), 200)
}
