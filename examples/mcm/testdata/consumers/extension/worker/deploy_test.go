// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/fake"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestScheme(t *testing.T) {
	s := runtime.NewScheme()
	require.NoError(t, AddToScheme(s))
	require.True(t, s.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment")))
	require.Equal(t, "machine.sapcloud.io", classes.Group)
	object, _, err := decoder.Decode([]byte(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":"m"}}`), nil, nil)
	require.NoError(t, err)
	require.Equal(t, "m", object.(*v1alpha1.Machine).Name)
}

func TestDeployAndWait(t *testing.T) {
	ctx, c := t.Context(), fake.NewSimpleClientset()
	pool := Pool{Name: "pool", Replicas: 2, MaxSurge: 1, DrainTimeout: time.Hour}
	require.NoError(t, Deploy(ctx, c, "shoot", pool))
	pool.InPlace = true
	require.NoError(t, Deploy(ctx, c, "shoot", pool))
	deployments := c.MachineV1alpha1().MachineDeployments("shoot")
	d, err := deployments.Get(ctx, "pool", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.OrchestrationTypeAuto, d.Spec.Strategy.InPlaceUpdate.OrchestrationType)

	d.Status = v1alpha1.MachineDeploymentStatus{
		AvailableReplicas: 2,
		Conditions:        []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentAvailable, Status: v1alpha1.ConditionTrue}},
	}
	_, err = deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, Wait(ctx, c, "shoot", pool))
}

func TestWait_FailedMachine(t *testing.T) {
	failed := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", Labels: map[string]string{"name": "pool"}},
		Status:     v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: v1alpha1.MachineFailed}},
	}
	pool := Pool{Name: "pool", Replicas: 1}
	c := fake.NewSimpleClientset(pool.deployment("shoot"), failed)
	require.EqualError(t, Wait(t.Context(), c, "shoot", pool), "machine m-1 has failed")
}
