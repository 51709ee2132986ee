// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
)

// ofOthers is the context of other clients.
var ofOthers = context.Background()

// claim gives a pod a volume that is attached to its Node.
func (w *world) claim(pod *corev1.Pod) {
	volume := "pv-" + pod.Name
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pod.Name},
	}}}
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-" + pod.Name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi", NodeName: pod.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
	foreign(&va.ObjectMeta)
	if w.scenario.foreignFinalizers {
		va.Finalizers = append(va.Finalizers, foreignKey)
	}
	for _, o := range []interface{ metav1.Object }{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
		}, va,
	} {
		w.addOnce(o)
	}
}

// sweep simulates the attacher: it deletes the attachments of a deleted Node.
func (w *world) sweep(ctx context.Context, node string) {
	for _, va := range all[*storagev1.VolumeAttachment](w.target, "volumeattachments") {
		if va.Spec.NodeName == node && w.node(node) == nil && va.DeletionTimestamp.IsZero() {
			err := w.nodes.StorageV1().VolumeAttachments().Delete(ctx, va.Name, metav1.DeleteOptions{})
			w.logf("another client deletes VolumeAttachment %s: %v", va.Name, err)
		}
	}
}

// notePods records when the last pod of a volume was deleted.
func (w *world) notePods(write draintest.Write) {
	if pod, ok := write.Before.(*corev1.Pod); ok && write.After == nil {
		w.judge.freed["pv-"+pod.Name] = w.clock.Now()
	}
}

// assessDetach checks the deletion of a VolumeAttachment.
func (w *world) assessDetach(va *storagev1.VolumeAttachment) {
	node, m := w.node(va.Spec.NodeName), w.machine(va.Spec.NodeName)
	if node != nil && (m == nil || m.DeletionTimestamp.IsZero() || !w.mayForce(m, node)) {
		w.violate("attachment %s deleted without force", va.Name)
	}
}

// attachedTo returns the attachments of a Node that are not being deleted.
func (w *world) attachedTo(node string) []*storagev1.VolumeAttachment {
	return slices.DeleteFunc(all[*storagev1.VolumeAttachment](w.target, "volumeattachments"), func(va *storagev1.VolumeAttachment) bool {
		return va.Spec.NodeName != node || !va.DeletionTimestamp.IsZero()
	})
}

// checkDetached checks that a VM is deleted only after the wait for its volumes.
func (w *world) checkDetached(machine string, node *corev1.Node) {
	for _, va := range w.attachedTo(node.Name) {
		over := !w.clock.Now().Before(w.judge.freed[*va.Spec.Source.PersistentVolumeName].Add(w.policy.DetachTimeout))
		if !over && w.shownBefore("volumeattachments", va, w.judge.askedAt[machine].Add(-time.Second)) {
			w.violate("VM of machine %s deleted while %s is attached", machine, va.Name)
		}
	}
}

// checkDetachForced checks that force deletes the attachments before the VM.
func (w *world) checkDetachForced(machine string, deleted, due time.Time, node *corev1.Node) {
	if w.judge.askedAt[machine].After(deleted) {
		return // the deletion has continued without the attachment
	}
	for _, va := range w.attachedTo(node.Name) {
		w.violate("attachment %s exists, force on node %s was due at %s", va.Name, node.Name, due)
	}
}

func (w *world) addOnce(o metav1.Object) {
	var err error
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		err = w.target.cluster.Add(o)
	case *storagev1.VolumeAttachment:
		err = w.target.cluster.Add(o)
	default:
		err = fmt.Errorf("%T", o)
	}
	if err != nil { // an earlier VM may have created it
		w.logf("%s: %v", o.GetName(), err)
	}
}
