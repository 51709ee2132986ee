// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestAPodLivesOnForItsGracePeriod(t *testing.T) {
	c, client, clock := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", web)))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, pod.DeletionTimestamp.Time.Equal(start.Add(30*time.Second)))
	require.EqualValues(t, 30, *pod.DeletionGracePeriodSeconds)
	require.EqualValues(t, 2, pod.Generation)
	version := pod.ResourceVersion

	require.True(t, c.Tick().Equal(start.Add(30*time.Second)))
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(60))}), "longer is no change")
	require.Equal(t, version, c.ResourceVersion())

	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(10))}))
	pod, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, pod.DeletionTimestamp.Time.Equal(start.Add(10*time.Second)), "shorter counts from the first deletion")

	clock.Step(9 * time.Second)
	c.Tick()
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	clock.Step(time.Second)
	require.True(t, c.Tick().IsZero())
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestAPodGoesAtOnceWhenNothingRuns(t *testing.T) {
	ended := runningPod("ended", "n1", nil)
	ended.Status.Phase = corev1.PodSucceeded
	cases := map[string]struct {
		pod   *corev1.Pod
		grace *int64
	}{
		"it has no node":        {runningPod("unscheduled", "", nil), nil},
		"it has ended":          {ended, nil},
		"the grace period is 0": {runningPod("forced", "n1", nil), new(int64(0))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, client, _ := newCluster(t)
			require.NoError(t, c.Add(tc.pod))
			pods := client.CoreV1().Pods("ns")
			require.NoError(t, pods.Delete(t.Context(), tc.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: tc.grace}))
			_, err := pods.Get(t.Context(), tc.pod.Name, metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

func TestNegativeGraceIsASecond(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", nil)))
	require.NoError(t, client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(-5))}))
	require.True(t, c.Tick().Equal(start.Add(time.Second)))
}

func TestAFinalizerHoldsAPodBeyondItsGracePeriod(t *testing.T) {
	c, client, clock := newCluster(t)
	pod := runningPod("p", "n1", nil)
	pod.Finalizers = []string{"a/b"}
	require.NoError(t, c.Add(pod))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	clock.Step(time.Minute)
	require.True(t, c.Tick().IsZero())
	require.True(t, c.Tick().IsZero(), "nothing is left to do by itself")
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Zero(t, *pod.DeletionGracePeriodSeconds)
	pod.Finalizers = nil
	_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestAPodWithoutFinalizersStillHasItsGracePeriod(t *testing.T) {
	c, client, clock := newCluster(t)
	pod := runningPod("p", "n1", nil)
	pod.Finalizers = []string{"a/b"}
	require.NoError(t, c.Add(pod))
	pods := client.CoreV1().Pods("ns")
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	_, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err, "its containers still run")
	clock.Step(30 * time.Second)
	c.Tick()
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestThePodsOfASilentNodeStay(t *testing.T) {
	c, client, clock := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "n1", nil), runningPod("forced", "n1", nil)))
	pods := client.CoreV1().Pods("ns")
	c.SetNodeSilent("n1", true)
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	clock.Step(time.Hour)
	require.True(t, c.Tick().IsZero())
	_, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, pods.Delete(t.Context(), "forced", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	_, err = pods.Get(t.Context(), "forced", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "force takes it out of the API: %v", err)

	c.SetNodeSilent("n1", false)
	c.Tick()
	_, err = pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestStopTimeIsBoundedByTheGracePeriod(t *testing.T) {
	stop := 12 * time.Second
	c, client, _ := newCluster(t, func(o *draintest.Options) {
		o.StopTime = func(*corev1.Pod) time.Duration { return stop }
	})
	require.NoError(t, c.Add(runningPod("p", "n1", nil)))
	require.NoError(t, client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	require.True(t, c.Tick().Equal(start.Add(12*time.Second)))
	stop = time.Hour
	require.True(t, c.Tick().Equal(start.Add(30*time.Second)))
	stop = -1
	require.True(t, c.Tick().IsZero())
	_, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestRunDoesWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := draintest.New(draintest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Run(ctx); close(done) }()
		require.NoError(t, c.Add(runningPod("p", "n1", nil)))
		synctest.Wait() // Run has nothing to do and sleeps; the deletion has to wake it
		pods := c.Client().CoreV1().Pods("ns")
		require.NoError(t, pods.Delete(ctx, "p", metav1.DeleteOptions{}))
		time.Sleep(28 * time.Second)
		_, err := pods.Get(ctx, "p", metav1.GetOptions{})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		_, err = pods.Get(ctx, "p", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		cancel()
		<-done
	})
}

func TestABindingPutsAPodOnANode(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(runningPod("p", "", nil)))
	pods := client.CoreV1().Pods("ns")
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	require.NoError(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{}))
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "n1", pod.Spec.NodeName)
	require.True(t, apierrors.IsConflict(pods.Bind(t.Context(), binding, metav1.CreateOptions{})))
}

func TestABindingByCase(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(*corev1.Binding)
		check func(error) bool
	}{
		{"metadata comes along", func(b *corev1.Binding) {
			b.Labels, b.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "1"}
		}, nil},
		{"the right uid is fine", func(b *corev1.Binding) { b.UID = "uid" }, nil},
		{"another uid is a conflict", func(b *corev1.Binding) { b.UID = "other" }, apierrors.IsConflict},
		{"another version is a conflict", func(b *corev1.Binding) { b.ResourceVersion = "1" }, apierrors.IsConflict},
		{"another namespace is bad", func(b *corev1.Binding) { b.Namespace = "other" }, apierrors.IsNotFound}, // the fake asks there
		{"no node is an error", func(b *corev1.Binding) { b.Target.Name = "" }, apierrors.IsInternalError},
		{"another kind of target is an error", func(b *corev1.Binding) { b.Target.Kind = "Pod" }, apierrors.IsInternalError},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, client, _ := newCluster(t)
			p := runningPod("p", "", nil)
			p.UID = "uid"
			require.NoError(t, c.Add(p))
			binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
			tc.spoil(binding)
			err := client.CoreV1().Pods("ns").Bind(t.Context(), binding, metav1.CreateOptions{})
			got, getErr := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
			require.NoError(t, getErr)
			if tc.check != nil {
				require.True(t, tc.check(err), "%v", err)
				require.Empty(t, got.Spec.NodeName)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "n1", got.Spec.NodeName)
			require.Equal(t, binding.Labels, got.Labels)
			require.Equal(t, binding.Annotations, got.Annotations)
		})
	}
}

func TestVolumesAreDetachedAfterTheirPod(t *testing.T) {
	c, client, clock := newCluster(t, func(o *draintest.Options) { o.DetachTime = 20 * time.Second })
	withClaim := func(name, node, claim string) *corev1.Pod {
		pod := runningPod(name, node, nil)
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return pod
	}
	claim := func(name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	attachment := func(name, node, volume string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
			NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		}}
	}
	require.NoError(t, c.Add(
		withClaim("p", "n1", "mine"), withClaim("q", "n1", "shared"), withClaim("r", "n1", "shared"),
		claim("mine", "pv-mine"), claim("shared", "pv-shared"),
		attachment("mine-n1", "n1", "pv-mine"), attachment("mine-n2", "n2", "pv-mine"), attachment("shared-n1", "n1", "pv-shared"),
	))
	pods := client.CoreV1().Pods("ns")
	for _, name := range []string{"p", "q"} {
		require.NoError(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	}
	names := func() []string {
		list, err := client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		found := []string{}
		for _, a := range list.Items {
			found = append(found, a.Name)
		}
		return found
	}
	require.True(t, c.Tick().Equal(start.Add(20*time.Second)))
	require.Len(t, names(), 3)
	clock.Step(20 * time.Second)
	require.True(t, c.Tick().IsZero())
	require.Equal(t, []string{"mine-n2", "shared-n1"}, names())
}
