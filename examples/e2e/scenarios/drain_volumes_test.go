// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// claim makes a claim with a volume of the same name.
func (w *drainWorld) claim(t *testing.T, name string) {
	t.Helper()
	ctx, full, gib := t.Context(), w.ns+"-"+name, corev1.ResourceList{corev1.ResourceStorage: quantity.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := w.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: full},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: gib, AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: w.ns, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: full}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = w.client.CoreV1().PersistentVolumes().Delete(context.WithoutCancel(ctx), full, metav1.DeleteOptions{})
	})
	claims := w.client.CoreV1().PersistentVolumeClaims(w.ns)
	_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: full, AccessModes: modes, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: gib},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.until(t, "claim "+name+" is bound", func(ctx context.Context) bool {
		c, err := claims.Get(ctx, name, metav1.GetOptions{})
		return err == nil && c.Status.Phase == corev1.ClaimBound
	})
}

func claiming(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{volumeOf(name)} }
}

func volumeOf(claim string) corev1.Volume {
	return corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// attachment returns what says that a volume is attached to a Node, or nil.
func (w *drainWorld) attachment(t *testing.T, node, claim string) *storagev1.VolumeAttachment {
	t.Helper()
	list, err := w.client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		va := &list.Items[i]
		if pv := va.Spec.Source.PersistentVolumeName; va.Spec.NodeName == node && pv != nil && *pv == w.ns+"-"+claim {
			return va
		}
	}
	return nil
}

// agents runs a DaemonSet on the Node a whose pod has a volume, and waits for it.
func (w *drainWorld) agents(t *testing.T, name, claim string) {
	t.Helper()
	labels := map[string]string{"app": name}
	spec := (&env.Env{Namespace: w.ns}).ReplicaSet(name, 1).Spec.Template
	spec.Spec.NodeSelector, spec.Spec.Volumes = map[string]string{corev1.LabelHostname: w.a}, []corev1.Volume{volumeOf(claim)}
	api := w.client.AppsV1().DaemonSets(w.ns)
	_, err := api.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: spec},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.until(t, "the agent is ready", func(ctx context.Context) bool {
		d, err := api.Get(ctx, name, metav1.GetOptions{})
		return err == nil && d.Status.NumberReady == 1
	})
}

func TestDrain_Volumes_WaitsUntilDetached(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	attachVolumes(t, w.client, w.ns)
	w.claim(t, "moves")
	w.claim(t, "stays")
	w.agents(t, "agent", "stays")
	pod := w.pod(t, "web", w.a, claiming("moves"))
	for _, claim := range []string{"moves", "stays"} {
		//nolint:contextcheck // attachment has that of the test
		w.until(t, "it is attached", func(context.Context) bool { a := w.attachment(t, w.a, claim); return a != nil && a.Status.Attached })
	}

	p := lenient
	p.Volumes = drain.VolumePolicy{Wait: true, DetachTimeout: time.Minute}
	began := time.Now()
	g := w.drains(t.Context(), w.client, p)
	va := w.attachment(t, w.a, "moves").Name
	g.waits(t, w, "volumeattachment/"+va, "Detaching")
	require.False(t, w.there(t, pod))
	require.NoError(t, g.end(t).err)
	require.Equal(t, drain.Drained, g.plan.Outcome)
	require.Nil(t, w.attachment(t, w.a, "moves"), "it is over when the volume is detached")
	require.NotNil(t, w.attachment(t, w.a, "stays"))
	require.Less(t, g.at.Sub(began), 30*time.Second, "the volume of the agent costs no time")
	t.Logf("drained after %s, with 3 s to detach", g.at.Sub(began).Round(time.Millisecond))
}
