// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestCreateFillsSystemFieldsAndDropsTheStatus(t *testing.T) {
	c, client, clock := newCluster(t)
	clock.SetTime(start.Add(1500 * time.Millisecond))
	in := widget("w")
	in.UID, in.Generation, in.Status.Phase = "mine", 9, "Ready"
	in.SelfLink = "/self" //nolint:staticcheck // that it is dropped is the point
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

func TestCreateRefusesWhatTheServerRefuses(t *testing.T) {
	c, client, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	_, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	versioned := widget("v")
	versioned.ResourceVersion = "5"
	_, err = widgets.Create(t.Context(), versioned, metav1.CreateOptions{})
	require.True(t, apierrors.IsInternalError(err), "%v", err)

	_, err = widgets.Create(t.Context(), widget(""), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	elsewhere := widget("e")
	elsewhere.Namespace = "other"
	_, err = widgets.Create(t.Context(), elsewhere, metav1.CreateOptions{})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)

	_, err = client.CoreV1().Pods("").Create(t.Context(), runningPod("p", "", nil), metav1.CreateOptions{})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.Len(t, c.History(), 1)
}

func TestGenerateNameAddsFiveLetters(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	seen := map[string]bool{}
	for range 20 {
		in := widget("")
		in.GenerateName = strings.Repeat("x", 70) + "-"
		got, err := widgets.Create(t.Context(), in, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Len(t, got.Name, 63)
		require.False(t, seen[got.Name])
		seen[got.Name] = true
	}
}

func TestAStaleResourceVersionIsAConflict(t *testing.T) {
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
	require.True(t, apierrors.IsInternalError(err), "as a server has it: %v", err)
	node.ResourceVersion = "0"
	_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err, "version 0 is none")
	stale.ResourceVersion = "0"
	_, err = widgets.Update(t.Context(), stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestAnUpdateWithoutResourceVersion(t *testing.T) {
	c, client, _ := newCluster(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: "ns"}}
	require.NoError(t, c.Add(widget("w"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, lease))

	t.Run("is refused for custom kinds", func(t *testing.T) {
		w := widget("w")
		w.Spec.Size = 5
		_, err := widgetsOf(c, "ns").Update(t.Context(), w, metav1.UpdateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, "metadata.resourceVersion")
		require.ErrorContains(t, err, "must be specified for an update")
	})
	t.Run("is carried out for nodes", func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
		got, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, got.UID)
	})
	t.Run("is refused for leases", func(t *testing.T) {
		_, err := client.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
	})
}

func TestTheUIDOfAnUpdateIsAPrecondition(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	other := w.DeepCopyObject().(*Widget)
	other.UID = "another"
	_, err = widgets.Update(t.Context(), other, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)

	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}))
	_, err = widgets.UpdateStatus(t.Context(), w, metav1.UpdateOptions{})
	require.True(t, apierrors.IsNotFound(err), "what is gone is not found: %v", err)
	w.UID = ""
	_, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestAnUpdateCreatesALeaseThatIsNotThere(t *testing.T) {
	_, client, _ := newCluster(t)
	leases := client.CoordinationV1().Leases("ns")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", ResourceVersion: "7"}}
	got, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, got.UID)
	require.NoError(t, leases.Delete(t.Context(), "l", metav1.DeleteOptions{}))
	_, err = leases.Update(t.Context(), got, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "who held it has lost it: %v", err)
	_, err = client.CoreV1().Secrets("ns").Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.UpdateOptions{})
	require.True(t, apierrors.IsNotFound(err), "other kinds are not created: %v", err)
}

func TestTheStatusOfACustomKindIsWrittenAlone(t *testing.T) {
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
	require.True(t, got.Status.Since.Time.Equal(start), "the wire knows whole seconds: %v", got.Status.Since)
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

func TestACustomKindWithoutStatusSubresource(t *testing.T) {
	c, _, _ := newCluster(t, func(o *draintest.Options) {
		k := widgetKind
		k.InlineStatus = true
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

func TestTheStatusOfANodeCarriesMetadataButNoSpec(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	node.Labels, node.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	node.Spec.Unschedulable, node.Status.Phase = true, corev1.NodeRunning
	node, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "b", node.Labels["a"])
	require.Equal(t, "d", node.Annotations["c"])
	require.False(t, node.Spec.Unschedulable)
	require.Equal(t, corev1.NodeRunning, node.Status.Phase)

	node.Spec.Unschedulable, node.Status.Phase = true, corev1.NodePending
	node, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.True(t, node.Spec.Unschedulable)
	require.Equal(t, corev1.NodeRunning, node.Status.Phase, "a plain update keeps the status")
}

func TestTheStatusOfAPodCarriesNoOwnersAndNoSpec(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", web)))
	pods := client.CoreV1().Pods("ns")
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	pod.Spec.NodeName, pod.Status.Phase = "other", corev1.PodFailed
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "X", Name: "x", UID: "x"}}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "n1", pod.Spec.NodeName)
	require.Equal(t, corev1.PodFailed, pod.Status.Phase)
	require.Empty(t, pod.OwnerReferences)
}

func TestTheGenerationFollowsTheDesiredState(t *testing.T) {
	c, client, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	steps := []struct {
		name   string
		change func(*Widget)
		want   int64
	}{
		{"a label does not count", func(w *Widget) { w.Labels = map[string]string{"a": "b"} }, 1},
		{"an annotation does not count", func(w *Widget) { w.Annotations = map[string]string{"a": "b"} }, 1},
		{"a finalizer does not count", func(w *Widget) { w.Finalizers = []string{"a/b"} }, 1},
		{"the spec counts", func(w *Widget) { w.Spec.Size = 2 }, 2},
		{"a generation in the request is ignored", func(w *Widget) { w.Generation = 50; w.Labels = nil }, 2},
	}
	for _, step := range steps {
		step.change(w)
		w, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
		require.NoError(t, err, step.name)
		require.Equal(t, step.want, w.Generation, step.name)
	}
	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}))
	w, err = widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, w.Generation, "a deletion counts once")
	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}))
	w, err = widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, w.Generation)

	deployment, err := client.AppsV1().Deployments("ns").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	deployment.Annotations = map[string]string{"a": "b"}
	deployment, err = client.AppsV1().Deployments("ns").Update(t.Context(), deployment, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, deployment.Generation, "annotations of deployments count")
}

func TestAnUpdateThatChangesNothingIsNoWrite(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	watch, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: w.ResourceVersion})
	require.NoError(t, err)
	defer watch.Stop()
	w.Labels = map[string]string{} // absent and empty are one
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

func TestTheFirstStatusIsAWriteEvenIfItIsEmpty(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	w, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	first, err := widgets.UpdateStatus(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NotEqual(t, w.ResourceVersion, first.ResourceVersion, "there was no status before")
	second, err := widgets.UpdateStatus(t.Context(), first, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, first.ResourceVersion, second.ResourceVersion)
}

func TestADryRunChangesNothing(t *testing.T) {
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
	ev := eviction("p")
	ev.DeleteOptions = &metav1.DeleteOptions{DryRun: dry}
	require.NoError(t, client.CoreV1().Pods("ns").EvictV1(t.Context(), ev))
	require.Len(t, c.History(), writes)
}

func TestResourceVersionsGrowAcrossAllKinds(t *testing.T) {
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
