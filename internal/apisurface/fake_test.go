// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	applied "github.com/machinist-dev/machinist/machine/client/applyconfiguration/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestFakeClientset_Apply_MergesManagers(t *testing.T) {
	ctx := t.Context()
	machines := fake.NewClientset().MachineV1alpha1().Machines("cluster")
	for manager, m := range map[string]*applied.MachineApplyConfiguration{
		"creator": applied.Machine("m-1", "cluster").
			WithSpec(applied.MachineSpec().WithClass(applied.ClassSpec().WithKind("MachineClass").WithName("small"))),
		"labeller": applied.Machine("m-1", "cluster").WithLabels(map[string]string{"node": "node-1"}),
	} {
		_, err := machines.Apply(ctx, m, metav1.ApplyOptions{FieldManager: manager})
		require.NoError(t, err)
	}
	got, err := machines.Get(ctx, "m-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "small", got.Spec.Class.Name)
	require.Equal(t, "node-1", got.Labels["node"])
}

func TestFakeClientset_StatusAndClasses_Written(t *testing.T) {
	ctx := t.Context()
	c := fake.NewClientset(&v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster", Name: "small"}}).MachineV1alpha1()
	m, err := c.Machines("cluster").Create(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	m, err = c.Machines("cluster").UpdateStatus(ctx, m, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.MachineRunning, m.Status.CurrentStatus.Phase)
	classes, err := c.MachineClasses("cluster").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, classes.Items, 1)
}

func TestInformers_Listers_AreFilled(t *testing.T) {
	ctx := t.Context()
	c := fake.NewClientset(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster", Name: "m-1"}})
	factory := externalversions.NewSharedInformerFactoryWithOptions(c, time.Hour, externalversions.WithNamespace("cluster"))
	lister := factory.Machine().V1alpha1().Machines().Lister()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		require.True(t, synced, kind)
	}
	m, err := lister.Machines("cluster").Get("m-1")
	require.NoError(t, err)
	require.Equal(t, "m-1", m.Name)
}
