// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const confidential = "hunter2-hunter2"

// loaded returns the objects of a request with secrets in every field.
func loaded() (*v1alpha1.Machine, *v1alpha1.MachineClass, *corev1.Secret) {
	meta := metav1.ObjectMeta{Namespace: "shoot", Name: "m-1"}
	return &v1alpha1.Machine{ObjectMeta: meta, Spec: v1alpha1.MachineSpec{ProviderID: "aws:///i-1"}},
		&v1alpha1.MachineClass{
			ObjectMeta:   metav1.ObjectMeta{Namespace: "shoot", Name: "small"},
			ProviderSpec: runtime.RawExtension{Raw: []byte(confidential)},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"},
			Data:       map[string][]byte{"userData": []byte(confidential)},
			StringData: map[string]string{"password": confidential},
		}
}

func TestRequest_Print_ShowsNamesOnly(t *testing.T) {
	m, class, secret := loaded()
	of := `(machine "shoot/m-1" "aws:///i-1", class "shoot/small", secret "shoot/small" with 2 keys)`
	nothing := `(no machine, no class, no secret)`
	for _, tt := range []struct {
		value any
		want  string
	}{
		{driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "CreateMachine" + of},
		{driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "InitializeMachine" + of},
		{driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "DeleteMachine" + of},
		{driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret}, "GetMachineStatus" + of},
		{driver.ListMachinesRequest{MachineClass: class, Secret: secret}, `ListMachines(class "shoot/small", secret "shoot/small" with 2 keys)`},
		{driver.ListSideResourcesRequest{MachineClass: class, Secret: secret}, `ListSideResources(class "shoot/small", secret "shoot/small" with 2 keys)`},
		{
			driver.DeleteSideResourceRequest{Resource: driver.SideResource{Kind: "disk", ID: "d-1", MachineName: "m-1"}, MachineClass: class, Secret: secret},
			`DeleteSideResource(disk "d-1" of machine "m-1", class "shoot/small", secret "shoot/small" with 2 keys)`,
		},
		{driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{nil}}, "GetVolumeIDs(1 volumes)"},
		{driver.CreateMachineRequest{}, "CreateMachine" + nothing},
		{driver.ListMachinesRequest{}, "ListMachines(no class, no secret)"},
	} {
		pointer := reflect.New(reflect.TypeOf(tt.value))
		pointer.Elem().Set(reflect.ValueOf(tt.value))
		for _, req := range []any{tt.value, pointer.Interface()} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				require.Equal(t, tt.want, fmt.Sprintf(verb, req), "%T with %s", req, verb)
			}
			require.Equal(t, tt.want, req.(fmt.Stringer).String())
			require.Equal(t, tt.want, req.(interface{ MarshalLog() any }).MarshalLog())
			for _, handler := range []func(*bytes.Buffer) slog.Handler{
				func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
				func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			} {
				var b bytes.Buffer
				slog.New(handler(&b)).Info("call", "request", req)
				require.NotContains(t, b.String(), confidential)
				require.Contains(t, b.String(), tt.want[:6])
			}
		}
	}
}

func TestRequest_PrintNil_DoesNotPanic(t *testing.T) {
	for _, req := range []any{
		(*driver.CreateMachineRequest)(nil), (*driver.ListMachinesRequest)(nil), (*driver.GetVolumeIDsRequest)(nil),
	} {
		require.Equal(t, "<nil>", fmt.Sprint(req))
	}
}

func TestRequest_PrintNested_ShowsNamesOnly(t *testing.T) {
	m, class, secret := loaded()
	outer := struct{ Req driver.CreateMachineRequest }{driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}}
	require.NotContains(t, fmt.Sprintf("%+v %#v", outer, outer), confidential)
}
