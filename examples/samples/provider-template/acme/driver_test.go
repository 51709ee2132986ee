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

// class returns a class of project "p".
func class(t *testing.T, endpoint, cluster string) *v1alpha1.MachineClass {
	t.Helper()
	raw, err := yaml.Marshal(acme.ProviderSpec{Endpoint: endpoint, Project: "p", Cluster: cluster, ServerType: "small", Image: "linux"})
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
			MachineClass: class(t, server.URL, "cluster-1"), OtherScope: class(t, server.URL, "cluster-2"),
			Secret: secret(),
		}
	})
}

func TestDriver_StatusOfTheCloud_HasItsCode(t *testing.T) {
	for answer, want := range map[int]codes.Code{
		http.StatusBadRequest: codes.InvalidArgument, http.StatusUnauthorized: codes.Unauthenticated, http.StatusForbidden: codes.PermissionDenied,
		http.StatusNotFound: codes.Unavailable, // without the code of the cloud
		http.StatusConflict: codes.Aborted, http.StatusTooManyRequests: codes.ResourceExhausted, http.StatusInternalServerError: codes.Unavailable,
		http.StatusTeapot: codes.Unavailable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.MachineSpec{ProviderID: "acme:///p/1"}}
		_, err := acme.NewDriver().GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: class(t, server.URL, "c"), Secret: secret()})
		require.Equal(t, want, codes.Of(err), "%d", answer)
		server.Close()
	}
}

func TestDriver_ServerOfAnotherCluster_IsIgnored(t *testing.T) {
	cloud := &fakeacme.Cloud{}
	server := httptest.NewServer(cloud)
	defer server.Close()
	d, m := acme.NewDriver(), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	_, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: class(t, server.URL, "a"), Secret: secret()})
	require.NoError(t, err)

	other := class(t, server.URL, "b")
	list, err := d.ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: other, Secret: secret()})
	require.NoError(t, err)
	require.Empty(t, list.MachineList)
	_, err = d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: other, Secret: secret()})
	require.Equal(t, codes.Aborted, codes.Of(err), err)
	for _, id := range []string{"", "acme:///p/1"} {
		m.Spec.ProviderID = id
		_, err = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: other, Secret: secret()})
		require.Equal(t, codes.NotFound, codes.Of(err), id)
		_, err = d.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: other, Secret: secret()})
		require.Equal(t, codes.NotFound, codes.Of(err), id)
	}
	require.Len(t, cloud.Servers("p"), 1)
}

func TestDriver_ProviderIDOfAnotherProject_IsInvalid(t *testing.T) {
	for _, id := range []string{"acme:///q/1", "acme:///p/", "acme:///p/..", "acme:///p/1/2", "acme:///p/%2e", "other:///p/1"} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.MachineSpec{ProviderID: id}}
		_, err := acme.NewDriver().DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: class(t, "http://127.0.0.1:1", "c"), Secret: secret()})
		require.Equal(t, codes.InvalidArgument, codes.Of(err), id)
	}
}

func TestDriver_AnswerWithoutID_IsUnavailable(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer server.Close()
	d, c, m := acme.NewDriver(), class(t, server.URL, "c"), &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	answer = "{}"
	_, err := d.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, MachineClass: c, Secret: secret()})
	require.Equal(t, codes.Unavailable, codes.Of(err))
	answer = `[{"name":"m","labels":{"machinist-cluster":"c"}}]`
	_, err = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: c, Secret: secret()})
	require.Equal(t, codes.Unavailable, codes.Of(err))
	answer = `{"id":"2","labels":{"machinist-cluster":"c"}}`
	m.Spec.ProviderID = "acme:///p/1"
	_, err = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m, MachineClass: c, Secret: secret()})
	require.Equal(t, codes.Unavailable, codes.Of(err))
}

func TestDriver_InvalidClass_SaysWhichField(t *testing.T) {
	c := class(t, "no URL", "p")
	_, err := acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: c, Secret: secret()})
	require.Equal(t, codes.InvalidArgument, codes.Of(err))
	require.ErrorContains(t, err, "endpoint: must be a URL")
	_, err = acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: class(t, "http://x", ""), Secret: secret()})
	require.ErrorContains(t, err, "cluster: is required", "without it, servers of other clusters would be listed")
	c.ProviderSpec.Raw = []byte(`{"endpoint":"http://x","proyect":"p"}`)
	_, err = acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: c, Secret: secret()})
	require.ErrorContains(t, err, `unknown field "proyect"`)
	_, err = acme.NewDriver().ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: class(t, "http://x", "p")})
	require.ErrorContains(t, err, `no key "token"`)
}
