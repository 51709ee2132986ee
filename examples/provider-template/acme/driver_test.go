// SPDX-License-Identifier: Apache-2.0

package acme_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"example.com/machine-controller-acme/acme"
	"example.com/machine-controller-acme/fakeacme"
)

func class(t *testing.T, endpoint, project string) *v1alpha1.MachineClass {
	t.Helper()
	raw, err := yaml.Marshal(acme.ProviderSpec{Endpoint: endpoint, Project: project, ServerType: "small", Image: "linux"})
	require.NoError(t, err)
	raw, err = yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	return &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "small"}, Provider: acme.Provider, ProviderSpec: runtime.RawExtension{Raw: raw},
	}
}

func secret() *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{acme.TokenKey: []byte(fakeacme.Token), acme.UserDataKey: []byte("#cloud-config")}}
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		server := httptest.NewServer(&fakeacme.Cloud{})
		t.Cleanup(server.Close)
		return drivertest.Harness{
			New:          func() driver.Driver { return acme.NewDriver() },
			MachineClass: class(t, server.URL, "project-1"), OtherScope: class(t, server.URL, "project-2"),
			Secret: secret(),
		}
	})
}

func TestDriver_StatusOfTheCloud_HasItsCode(t *testing.T) {
	for answer, want := range map[int]codes.Code{
		http.StatusBadRequest: codes.InvalidArgument, http.StatusUnauthorized: codes.Unauthenticated, http.StatusForbidden: codes.PermissionDenied,
		http.StatusNotFound: codes.NotFound, http.StatusTooManyRequests: codes.ResourceExhausted, http.StatusInternalServerError: codes.Unavailable,
		http.StatusTeapot: codes.Unavailable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.MachineSpec{ProviderID: "acme:///p/1"}}
		_, err := acme.NewDriver().GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: class(t, server.URL, "p"), Secret: secret()})
		require.Equal(t, want, codes.Of(err), "%d", answer)
		server.Close()
	}
}

func TestDriver_InvalidClass_SaysWhichField(t *testing.T) {
	c := class(t, "no URL", "p")
	_, err := acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: c, Secret: secret()})
	require.Equal(t, codes.InvalidArgument, codes.Of(err))
	require.ErrorContains(t, err, "endpoint: has to be a URL")
	c.ProviderSpec.Raw = []byte(`{"endpoint":"http://x","proyect":"p"}`)
	_, err = acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: c, Secret: secret()})
	require.ErrorContains(t, err, `unknown field "proyect"`)
	_, err = acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: class(t, "http://x", "p")})
	require.ErrorContains(t, err, `no key "token"`)
}
