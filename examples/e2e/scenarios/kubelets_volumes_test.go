// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubelets_Volume_VMStaysUntilDetached lets the attach-detach controller attach a volume to a real
// kubelet, which cannot mount it without a driver.
func TestKubelets_Volume_VMStaysUntilDetached(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "csi", kubeletOptions())
	s.StartManager(t, "manager")
	ctx := t.Context()
	_, err := s.Client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: csiDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(true)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.Client.StorageV1().CSIDrivers().Delete(context.WithoutCancel(ctx), csiDriver, metav1.DeleteOptions{})
	})
	attachVolumes(t, s.Client, s.Namespace)
	require.NoError(t, s.Class(ctx, "small"))
	create(t, s, s.Machine("a", "small"))
	s.Wait(t, patience, "it runs", running(s, "a"))
	// kubemark lets kubelets attach volumes; with this annotation the controller does so.
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, s.NodeName("a"), mergePatch,
		[]byte(`{"metadata":{"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	w := &drainWorld{control: s.Cluster.ControlPlane, client: s.Client, ns: s.Namespace}
	w.claim(t, "data")
	set := s.ReplicaSet("db", 1)
	set.Spec.Template.Spec.Volumes = []corev1.Volume{volumeOf("data")}
	_, err = s.Client.AppsV1().ReplicaSets(s.Namespace).Create(ctx, set, metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the volume is attached", func(context.Context) (string, error) {
		//nolint:contextcheck // attachment has that of the test
		if a := w.attachment(t, s.NodeName("a"), "data"); a == nil || !a.Status.Attached {
			return "it is not attached", nil
		}
		return "", nil
	})

	require.NoError(t, s.Machines.MachineV1alpha1().Machines(s.Namespace).Delete(ctx, "a", metav1.DeleteOptions{}))
	var detaching time.Time
	s.Wait(t, patience, "the volume is being detached", func(context.Context) (string, error) {
		a := w.attachment(t, s.NodeName("a"), "data") //nolint:contextcheck // as above
		if a == nil || a.DeletionTimestamp == nil {
			return "it is attached", nil
		}
		detaching = a.DeletionTimestamp.Time
		return "", nil
	})
	require.NotEmpty(t, s.Cloud.Snapshot().Of("a").VMs)
	s.Wait(t, patience, "the machine is gone", gone(s, "a"))
	require.GreaterOrEqual(t, deletionBegan(s, "a").Sub(detaching), detachTime-time.Second, "the volume was detached first") // the API has whole seconds
	require.Nil(t, w.attachment(t, s.NodeName("a"), "data"))
	require.Zero(t, attachmentDeletions(t, s), "the controller detaches, not the manager")
	require.NoError(t, s.Client.AppsV1().ReplicaSets(s.Namespace).Delete(ctx, "db", metav1.DeleteOptions{}))
	removeAll(t, s)
}
