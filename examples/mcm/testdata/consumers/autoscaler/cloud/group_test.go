// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"testing"
	"time"

	machineinternal "github.com/gardener/machine-controller-manager/pkg/apis/machine"
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	fakeclientset "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/fake"
	machineapi "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1"
	fakemachine "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned/typed/machine/v1alpha1/fake"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/cache"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newTypedClient puts an object tracker of this test under the fake of the typed client.
func newTypedClient(t *testing.T, objects ...runtime.Object) (machineapi.MachineV1alpha1Interface, *fakeclientset.Clientset) {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, machineinternal.AddToScheme(s))
	require.NoError(t, fakeclientset.AddToScheme(s))
	tracker := clienttesting.NewObjectTracker(s, serializer.NewCodecFactory(s).UniversalDecoder())
	for _, o := range objects {
		require.NoError(t, tracker.Add(o))
	}
	c := &fakeclientset.Clientset{Fake: clienttesting.Fake{}}
	c.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	return &fakemachine.FakeMachineV1alpha1{Fake: &c.Fake}, c
}

func newGroup(t *testing.T, objects ...runtime.Object) Group {
	t.Helper()
	client, _ := newTypedClient(t, objects...)
	var c versioned.Interface = fakeclientset.NewSimpleClientset(objects...)
	factory := externalversions.NewSharedInformerFactoryWithOptions(c, time.Hour, externalversions.WithNamespace("shoot"))
	group := factory.Machine().V1alpha1()
	g := Group{Namespace: "shoot", Name: "pool", Machines: group.Machines().Lister(), Deployments: group.MachineDeployments().Lister(), Client: client}
	machines, deployments := group.Machines().Informer(), group.MachineDeployments().Informer()
	factory.Start(t.Context().Done())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), machines.HasSynced, deployments.HasSynced))
	return g
}

func deployment() *v1alpha1.MachineDeployment {
	return &v1alpha1.MachineDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "pool"},
		Spec:       v1alpha1.MachineDeploymentSpec{Replicas: 3},
	}
}

func TestDelete(t *testing.T) {
	g := newGroup(t, deployment())
	require.NoError(t, g.Delete(t.Context(), now, "m-1", "m-2"))
	d, err := g.Client.MachineDeployments("shoot").Get(t.Context(), "pool", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Spec.Replicas)
	require.Equal(t, "m-1~2026-01-02T03:04:05Z,m-2~2026-01-02T03:04:05Z", d.Annotations["node.machine.sapcloud.io/trigger-deletion-by-mcm"])
}

func TestDelete_Rolling(t *testing.T) {
	d := deployment()
	d.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, Reason: "MachineSetUpdated"}}
	require.ErrorIs(t, newGroup(t, d).Delete(t.Context(), now, "m-1"), ErrRolling)
}

func TestExhausted(t *testing.T) {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", Labels: map[string]string{"name": "pool"}},
		Status: v1alpha1.MachineStatus{LastOperation: v1alpha1.LastOperation{
			Type: v1alpha1.MachineOperationCreate, State: v1alpha1.MachineStateFailed, ErrorCode: codes.ResourceExhausted.String(),
		}},
	}
	names, err := newGroup(t, m).Exhausted()
	require.NoError(t, err)
	require.Equal(t, []string{"m-1"}, names)
}
