// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver"
)

const confidential = "hunter2-hunter2"

func TestRequest_Print_ShowsNamesOnly(t *testing.T) {
	m, class, secret := objects()
	ofClass := `class "shoot/small", secret "shoot/small" with 2 keys)`
	of := `(machine "shoot/m-1" "aws:///i-1", ` + ofClass
	disk := driver.SideResource{Kind: "disk", ID: "d-1", MachineName: "m-1"}
	for _, tt := range []struct {
		value any
		want  string
	}{
		{driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "CreateMachine" + of},
		{driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "InitializeMachine" + of},
		{driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret}, "DeleteMachine" + of},
		{driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret}, "GetMachineStatus" + of},
		{driver.ListMachinesRequest{MachineClass: class, Secret: secret}, "ListMachines(" + ofClass},
		{driver.ListSideResourcesRequest{MachineClass: class, Secret: secret}, "ListSideResources(" + ofClass},
		{
			driver.DeleteSideResourceRequest{Resource: disk, MachineClass: class, Secret: secret},
			`DeleteSideResource(disk "d-1" of machine "m-1", ` + ofClass,
		},
		{driver.GetVolumeIDsRequest{PVSpecs: []*corev1.PersistentVolumeSpec{nil}}, "GetVolumeIDs(1 volumes)"},
		{driver.CreateMachineRequest{}, "CreateMachine(no machine, no class, no secret)"},
		{driver.ListMachinesRequest{}, "ListMachines(no class, no secret)"},
	} {
		pointer := reflect.New(reflect.TypeOf(tt.value))
		pointer.Elem().Set(reflect.ValueOf(tt.value))
		for _, req := range []any{tt.value, pointer.Interface()} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				require.Equal(t, tt.want, fmt.Sprintf(verb, req), "%T with %s", req, verb)
				require.NotContains(t, fmt.Sprintf(verb, struct{ Nested any }{req}), confidential)
			}
			require.Equal(t, tt.want, req.(fmt.Stringer).String())
			require.Equal(t, tt.want, req.(interface{ MarshalLog() any }).MarshalLog())
			var logs bytes.Buffer
			for _, handler := range []slog.Handler{slog.NewJSONHandler(&logs, nil), slog.NewTextHandler(&logs, nil)} {
				slog.New(handler).Info("call", "request", req)
			}
			require.NotContains(t, logs.String(), confidential)
			require.Equal(t, 2, strings.Count(logs.String(), tt.want[:6]))
		}
	}
}
