// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/machine-controller-acme/acme"
	"example.com/machine-controller-acme/fakeacme"
)

// TestManager_Machine_CreatesAndDeletesAServer runs the controllers of machines without a target
// cluster.
func TestManager_Machine_CreatesAndDeletesAServer(t *testing.T) {
	cloud := &fakeacme.Cloud{}
	server := httptest.NewServer(cloud)
	defer server.Close()
	cluster, machines := machinetest.New(draintest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- controllers.Run(ctx, controllers.Config{
			Part: controllers.Machines, Namespace: "default", Machines: machines, Control: cluster.Client(), Driver: acme.NewDriver(), Policy: machine.DefaultPolicy(),
		})
	}()
	defer func() { cancel(); require.NoError(t, <-done) }()

	_, err := cluster.Client().CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Data: map[string][]byte{acme.TokenKey: []byte(fakeacme.Token), acme.UserDataKey: []byte("#cloud-config")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	api := machines.MachineV1alpha1()
	_, err = api.MachineClasses("default").Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "small"}, Provider: acme.Provider, SecretRef: &corev1.SecretReference{Namespace: "default", Name: "acme"},
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"endpoint":"` + server.URL + `","project":"p","cluster":"c","serverType":"small","image":"linux"}`)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.Machines("default").Create(ctx, &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		m, err := api.Machines("default").Get(ctx, "worker-1", metav1.GetOptions{})
		return err == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable && m.Spec.ProviderID == "acme:///p/1"
	}, time.Minute, 20*time.Millisecond, "the machine is available")
	require.Len(t, cloud.Servers("p"), 1)
	require.NoError(t, api.Machines("default").Delete(ctx, "worker-1", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		list, err := api.Machines("default").List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0 && len(cloud.Servers("p")) == 0
	}, time.Minute, 20*time.Millisecond, "machine and server are deleted")
}
