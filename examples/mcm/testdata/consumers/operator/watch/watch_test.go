// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile_FailedMachine_NodeSaysSo(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, corev1.AddToScheme(scheme))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "m-1", Labels: map[string]string{v1alpha1.NodeLabelKey: "node-1"}}}
	m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node, m).WithStatusSubresource(node).Build()
	_, err := (&Reconciler{c}).Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	require.Len(t, node.Status.Conditions, 1)
	require.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)
}
