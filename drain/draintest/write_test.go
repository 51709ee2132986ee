// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestCreate_SystemFields_SetAndStatusDropped(t *testing.T) {
	c, client, clock := newCluster(t)
	clock.SetTime(start.Add(1500 * time.Millisecond))
	in := widget("w")
	in.UID, in.Generation, in.Status.Phase = "mine", 9, "Ready"
	in.SelfLink = "/self" //nolint:staticcheck // it is dropped
	in.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	in.DeletionTimestamp = &metav1.Time{Time: start}
	got, err := widgetsOf(c, "ns").Create(t.Context(), in, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEqualValues(t, "mine", got.UID)
	require.Len(t, got.UID, 36)
	require.Empty(t, got.SelfLink) //nolint:staticcheck // see above
	require.Empty(t, got.ManagedFields, "fields are not tracked")
	require.EqualValues(t, 1, got.Generation)
	require.Empty(t, got.Status.Phase)
	require.Nil(t, got.DeletionTimestamp)
	require.True(t, got.CreationTimestamp.Time.Equal(start.Add(time.Second)), "whole seconds: %v", got.CreationTimestamp)

	pod, err := client.CoreV1().Pods("ns").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodPending, pod.Status.Phase)
	require.EqualValues(t, 30, *pod.Spec.TerminationGracePeriodSeconds)

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Phase: corev1.NodeRunning}}
	node, err = client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.NodeRunning, node.Status.Phase, "a kubelet registers its node with a status")
}

func TestUpdate_StaleResourceVersion_Conflict(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(widget("w"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	widgets := widgetsOf(c, "ns")
	stale, err := widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	fresh := stale.DeepCopyObject().(*Widget)
	fresh.Spec.Size = 2
	fresh, err = widgets.Update(t.Context(), fresh, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NotEqual(t, stale.ResourceVersion, fresh.ResourceVersion)

	_, err = widgets.Update(t.Context(), stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = widgets.UpdateStatus(t.Context(), stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)

	node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	node.ResourceVersion = "1"
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	node.ResourceVersion = "nonsense"
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInternalError(err), "like the API server: %v", err)
	node.ResourceVersion = "0"
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err, "version 0 is none")
	stale.ResourceVersion = "0"
	_, err = widgets.Update(t.Context(), stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	fresh.UID = "another"
	_, err = widgets.Update(t.Context(), fresh, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "UID")
}

func TestUpdateStatus_CustomKind_WritesOnlyStatus(t *testing.T) {
	c, _, clock := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)

	w.Labels, w.Annotations, w.Finalizers = map[string]string{"a": "b"}, map[string]string{"c": "d"}, []string{"e/f"}
	w.Spec.Size, w.Status.Phase = 9, "Ready"
	w.Status.Since = metav1.NewTime(clock.Now().Add(1234567))
	got, err := widgets.UpdateStatus(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "Ready", got.Status.Phase)
	require.True(t, got.Status.Since.Time.Equal(start), "whole seconds: %v", got.Status.Since)
	require.Empty(t, got.Labels)
	require.Empty(t, got.Annotations)
	require.Empty(t, got.Finalizers)
	require.Equal(t, 1, got.Spec.Size)
	require.EqualValues(t, 1, got.Generation)

	got.Labels = map[string]string{"a": "b"}
	got.Status.Phase, got.Spec.Size = "Ignored", 2
	got, err = widgets.Update(t.Context(), got, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "Ready", got.Status.Phase)
	require.Equal(t, 2, got.Spec.Size)
	require.Equal(t, "b", got.Labels["a"])
	require.EqualValues(t, 2, got.Generation)
}

func TestUpdateStatus_NoSubresource_NotFound(t *testing.T) {
	c, _, _ := newCluster(t, func(o *draintest.Options) {
		k := widgetKind
		k.NoStatusSubresource = true
		o.Kinds = []draintest.Kind{k}
	})
	widgets := widgetsOf(c, "ns")
	in := widget("w")
	in.Status.Phase = "Set"
	w, err := widgets.Create(t.Context(), in, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "Set", w.Status.Phase)
	w.Status.Phase = "Changed"
	w, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "Changed", w.Status.Phase)
	require.EqualValues(t, 2, w.Generation)
	_, err = widgets.UpdateStatus(t.Context(), w, metav1.UpdateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestUpdate_NoChange_NoWrite(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	watch, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: w.ResourceVersion})
	require.NoError(t, err)
	defer watch.Stop()
	w.Labels = map[string]string{} // absent and empty are equal
	got, err := widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, w.ResourceVersion, got.ResourceVersion)
	_, err = widgets.Patch(t.Context(), "w", "application/merge-patch+json", []byte(`{"spec":{"size":1}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Len(t, c.History(), 1)

	got.Spec.Size = 2
	_, err = widgets.Update(t.Context(), got, metav1.UpdateOptions{})
	require.NoError(t, err)
	ev := <-watch.ResultChan()
	require.Equal(t, 2, ev.Object.(*Widget).Spec.Size, "the first event is of the first change")
}

func TestDryRun_EachWrite_NoChange(t *testing.T) {
	c, client, _ := newCluster(t)
	dry := []string{metav1.DryRunAll}
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{DryRun: dry})
	require.NoError(t, err)
	require.NotEmpty(t, w.UID)
	require.Empty(t, c.History())

	require.NoError(t, c.Add(widget("w"), runningPod("p", "n", web), minAvailable("b", intstr.FromInt32(0), web)))
	writes := len(c.History())
	w, err = widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	w.Spec.Size = 3
	w, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{DryRun: dry})
	require.NoError(t, err)
	require.EqualValues(t, 2, w.Generation)
	_, err = widgets.Patch(t.Context(), "w", "application/merge-patch+json", []byte(`{"spec":{"size":4}}`), metav1.PatchOptions{DryRun: dry})
	require.NoError(t, err)
	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{DryRun: dry}))
	held := widget("held")
	held.Finalizers, held.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: start}
	require.NoError(t, c.Add(held))
	writes++
	held, err = widgets.Get(t.Context(), "held", metav1.GetOptions{})
	require.NoError(t, err)
	held.Finalizers = nil
	_, err = widgets.Update(t.Context(), held, metav1.UpdateOptions{DryRun: dry})
	require.NoError(t, err)
	ev := eviction("p")
	ev.DeleteOptions = &metav1.DeleteOptions{DryRun: dry}
	require.NoError(t, client.CoreV1().Pods("ns").EvictV1(t.Context(), ev))
	require.Len(t, c.History(), writes)
}

func TestResourceVersion_AllKinds_Grows(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(widget("a")))
	_, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.Add(widget("b")))
	seen := map[string]bool{}
	for _, w := range c.History() {
		require.False(t, seen[w.ResourceVersion])
		seen[w.ResourceVersion] = true
	}
	require.Len(t, c.HistorySince(c.History()[0].ResourceVersion), 2)
	c.ForgetHistory()
	require.Empty(t, c.History())
}
