// SPDX-License-Identifier: Apache-2.0

package machinetest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestNew_EachKind_ServedAsDefined(t *testing.T) {
	ctx, meta := t.Context(), metav1.ObjectMeta{Namespace: "ns", Name: "a"}
	_, machines := machinetest.New(draintest.Options{})
	api := machines.MachineV1alpha1()

	m, err := api.Machines("ns").Create(ctx, &v1alpha1.Machine{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	set, err := api.MachineSets("ns").Create(ctx, &v1alpha1.MachineSet{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	d, err := api.MachineDeployments("ns").Create(ctx, &v1alpha1.MachineDeployment{ObjectMeta: meta}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.MachineClasses("ns").Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: meta, ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	m.Spec.ProviderID, m.Status.CurrentStatus.Phase = "dropped", v1alpha1.MachineRunning
	m, err = api.Machines("ns").UpdateStatus(ctx, m, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Empty(t, m.Spec.ProviderID, "a status write writes the status alone")
	require.Equal(t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase)
	set.Status.Replicas = 1
	set, err = api.MachineSets("ns").Update(ctx, set, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Zero(t, set.Status.Replicas, "a plain write does not write the status")
	require.EqualValues(t, 1, d.Generation)
	d.Spec.Replicas = 3
	d, err = api.MachineDeployments("ns").Update(ctx, d, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, d.Generation)
}

func TestNew_Informers_SeeWrites(t *testing.T) {
	_, machines := machinetest.New(draintest.Options{})
	factory := externalversions.NewSharedInformerFactory(machines, 0)
	informer := factory.Machine().V1alpha1().Machines()
	added := make(chan string, 1)
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if m, ok := o.(*v1alpha1.Machine); ok {
			added <- m.Name
		}
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	_, err = machines.MachineV1alpha1().Machines("ns").Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "m", <-added)
}

func TestNew_Discovery_HasTheKinds(t *testing.T) {
	_, machines := machinetest.New(draintest.Options{})
	list, err := machines.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	require.NoError(t, err)
	var names []string
	for _, r := range list.APIResources {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"machines", "machinesets", "machinedeployments", "machineclasses"}, names)
}
